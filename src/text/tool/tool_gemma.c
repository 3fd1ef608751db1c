/* Gemma 4: sentinels that are single special tokens.  <|channel>thought and a line end begin a
   thought; <|tool_call>call:NAME{key:value,…}<tool_call|> is a call, strings between <|"|>. */
#include "text/tool/tool_parts.h"

enum { ANSWER, CHANNEL, THOUGHT, AFTER, CALL, NAME, ARGS, CLOSE };

static const tool_state states[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<|channel>", CHANNEL, ARM_SP},
                 {"<channel|>", AFTER, ARM_SP},
                 {"<|tool_call>", CALL, ARM_SP}}},
    [CHANNEL] = {TOOL_DROP, 0, 0, {{"\n", THOUGHT, 0}, {"<channel|>", AFTER, ARM_SP}}},
    [THOUGHT] = {TOOL_THOUGHT,
                 TOOL_TRIM,
                 0,
                 {{"<channel|>", AFTER, ARM_SP}, {"<|tool_call>", CALL, ARM_SP}}},
    [AFTER] = {TOOL_ANSWER,
               TOOL_TRIM,
               0,
               {{"<|channel>", CHANNEL, ARM_SP},
                {"<channel|>", AFTER, ARM_SP},
                {"<|tool_call>", CALL, ARM_SP}}},
    [CALL] = {TOOL_SKIP, 0, 0, {{"call:", NAME, 0}}},
    [NAME] = {TOOL_NAME, 0, 0, {{"{", ARGS, ARM_KEEP}}},
    [ARGS] = {TOOL_GEMMA, TOOL_END, CLOSE, {{0}}},
    [CLOSE] = {TOOL_SKIP,
               0,
               0,
               {{"<tool_call|>", CLOSE, ARM_SP | ARM_OK},
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
