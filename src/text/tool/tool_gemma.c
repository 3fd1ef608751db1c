/* Gemma 4: sentinels that are single special tokens.  <|channel>thought and a line end begin a
   thought; <|tool_call>call:NAME{key:value,…}<tool_call|> is a call, strings between <|"|>.
   FunctionGemma: the same with other sentinels and <escape>. */
#include "text/tool/tool_parts.h"

enum { ANSWER, CHANNEL, THOUGHT, AFTER, CALL, NAME, ARGS, CLOSE };

static const tool_state states[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<|channel>", CHANNEL, ARM_SP},
                        {"<channel|>", AFTER, ARM_SP},
                        {"<|tool_call>", CALL, ARM_SP}}},
    [CHANNEL] = {.op = TOOL_DROP, .arm = {{"\n", THOUGHT, 0}, {"<channel|>", AFTER, ARM_SP}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"<channel|>", AFTER, ARM_SP}, {"<|tool_call>", CALL, ARM_SP}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<|channel>", CHANNEL, ARM_SP},
                       {"<channel|>", AFTER, ARM_SP},
                       {"<|tool_call>", CALL, ARM_SP}}},
    [CALL] = {.op = TOOL_SKIP, .arm = {{"call:", NAME, 0}}},
    [NAME] = {.op = TOOL_NAME, .arm = {{"{", ARGS, ARM_KEEP}}},
    [ARGS] = {.op = TOOL_GEMMA, .flags = TOOL_END, .next = CLOSE},
    [CLOSE] = {.op = TOOL_SKIP,
               .arm = {{"<tool_call|>", CLOSE, ARM_SP | ARM_OK},
                       {"<|tool_response>", AFTER, ARM_SP | ARM_OK},
                       {"<|tool_call>", CALL, ARM_SP},
                       {"", AFTER, 0}}},
};
const tool_family tool_family_gemma4 = {
    .name = "gemma4",
    .state = states,
    .n_states = TOOL_COUNT(states),
    .answer = AFTER,
    .special = true,
    .tail = {{"<|channel>thought", THOUGHT}, {"<channel|>", AFTER}},
    .thought_end = "\n<channel|>"};

enum { F_ANSWER, F_CALL, F_NAME, F_ARGS, F_CLOSE };

static const tool_state functiongemma[] = {
    [F_ANSWER] = {.op = TOOL_ANSWER, .arm = {{"<start_function_call>", F_CALL, ARM_SP}}},
    [F_CALL] = {.op = TOOL_SKIP, .arm = {{"call:", F_NAME, 0}}},
    [F_NAME] = {.op = TOOL_NAME, .arm = {{"{", F_ARGS, ARM_KEEP}}},
    [F_ARGS] = {.op = TOOL_GEMMA, .flags = TOOL_END | TOOL_ESCAPE, .next = F_CLOSE},
    [F_CLOSE] = {.op = TOOL_SKIP,
                 .arm = {{"<end_function_call>", F_CLOSE, ARM_SP | ARM_OK},
                         {"<start_function_response>", F_ANSWER, ARM_SP | ARM_OK},
                         {"<start_function_call>", F_CALL, ARM_SP},
                         {"", F_ANSWER, 0}}},
};
const tool_family tool_family_functiongemma = {.name = "functiongemma",
                                               .state = functiongemma,
                                               .n_states = TOOL_COUNT(functiongemma),
                                               .answer = F_ANSWER,
                                               .special = true};
