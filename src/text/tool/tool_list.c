/* Families that write calls as JSON objects, one or an array of them, after a marker of their own. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, LIST, ITEM, OBJECT, COMMA };

#define THINK                                                                                      \
    {                                                                                              \
        "<think>", THOUGHT, ARM_AT                                                                 \
    }
#define THINK_TAILS                                                                                \
    {                                                                                              \
        {"<think>", THOUGHT},                                                                      \
        {                                                                                          \
            "</think>", AFTER                                                                      \
        }                                                                                          \
    }

/* Granite 3.x: thoughts and the answer between tags if the template asked for that. */
static const tool_state granite[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {THINK, {"<|tool_call|>", LIST, ARM_SP}, {"<tool_call>", LIST, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<response>", AFTER, ARM_AT},
                       {"</response>", AFTER, 0},
                       {"<|tool_call|>", LIST, ARM_SP},
                       {"<tool_call>", LIST, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "</tool_call>", AFTER, 0),
};
const tool_family tool_family_granite = {.name = "granite",
                                         .state = granite,
                                         .n_states = TOOL_COUNT(granite),
                                         .answer = AFTER,
                                         .special = true,
                                         .tail = THINK_TAILS,
                                         .thought_end = "</think>"};

/* Phi-4-mini and Phi-4-reasoning. */
static const tool_state phi[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {THINK, {"<|tool_call|>", LIST, ARM_SP}, {"functools[", ITEM, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<|tool_call|>", LIST, ARM_SP}, {"functools[", ITEM, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "<|/tool_call|>", AFTER, 0),
};
const tool_family tool_family_phi4 = {.name = "phi4",
                                      .state = phi,
                                      .n_states = TOOL_COUNT(phi),
                                      .answer = AFTER,
                                      .special = true,
                                      .tail = THINK_TAILS,
                                      .thought_end = "</think>"};

static const tool_state firefunction[] = {
    [ANSWER] = {.op = TOOL_ANSWER, .arm = {{"functools[", ITEM, 0}}},
    [AFTER] = {.op = TOOL_ANSWER, .flags = TOOL_TRIM, .arm = {{"functools[", ITEM, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "]", AFTER, 0),
};
const tool_family tool_family_firefunction = {.name = "firefunction",
                                              .state = firefunction,
                                              .n_states = TOOL_COUNT(firefunction),
                                              .answer = AFTER};

/* Nemotron Nano v2. */
static const tool_state nemotron[] = {
    [ANSWER] = {.op = TOOL_ANSWER, .arm = {THINK, {"<TOOLCALL>", LIST, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER, .flags = TOOL_TRIM, .arm = {{"<TOOLCALL>", LIST, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "</TOOLCALL>", AFTER, 0),
};
const tool_family tool_family_nemotron = {.name = "nemotron",
                                          .state = nemotron,
                                          .n_states = TOOL_COUNT(nemotron),
                                          .answer = AFTER,
                                          .tail = THINK_TAILS,
                                          .thought_end = "</think>\n\n"};

/* <tool_calls>: Hunyuan A13B (with <answer> around the answer), MiniMax M1, Jamba. */
static const tool_state tool_calls[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {THINK, {"<tool_calls>", LIST, 0}, {"<answer>", AFTER, ARM_AT}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<tool_calls>", LIST, 0},
                       {"<answer>", AFTER, ARM_AT},
                       {"</answer>", AFTER, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "</tool_calls>", AFTER, 0),
};
const tool_family tool_family_tool_calls = {.name = "tool-calls",
                                            .state = tool_calls,
                                            .n_states = TOOL_COUNT(tool_calls),
                                            .answer = AFTER,
                                            .tail = THINK_TAILS,
                                            .thought_end = "\n</think>\n"};

/* Apriel: the prompt or the reply begins the thought with a sentence. */
#define APRIEL_THINKS "Here are my reasoning steps:"
static const tool_state apriel[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{APRIEL_THINKS, THOUGHT, ARM_AT}, {"<tool_calls>", LIST, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"[BEGIN FINAL RESPONSE]", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"[END FINAL RESPONSE]", AFTER, 0}, {"<tool_calls>", LIST, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "</tool_calls>", AFTER, 0),
};
const tool_family tool_family_apriel = {
    .name = "apriel",
    .state = apriel,
    .n_states = TOOL_COUNT(apriel),
    .answer = AFTER,
    .tail = {{APRIEL_THINKS, THOUGHT}, {"[BEGIN FINAL RESPONSE]", AFTER}},
    .thought_end = "\n[BEGIN FINAL RESPONSE]\n"};

/* Command R7B, Command A, Cohere2. */
#define COHERE_OPENS                                                                               \
    {"<|START_RESPONSE|>", AFTER, ARM_SP}, {"<|START_TEXT|>", AFTER, ARM_SP},                      \
        {"<|START_ACTION|>", LIST, ARM_SP},                                                        \
    {                                                                                              \
        "<|START_THINKING|>", THOUGHT, ARM_SP                                                      \
    }
static const tool_state cohere[] = {
    [ANSWER] = {.op = TOOL_ANSWER, .arm = {COHERE_OPENS}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"<|END_THINKING|>", AFTER, ARM_SP}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {COHERE_OPENS,
                       {"<|END_RESPONSE|>", AFTER, ARM_SP},
                       {"<|END_TEXT|>", AFTER, ARM_SP}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "<|END_ACTION|>", AFTER, 0),
};
const tool_family tool_family_cohere = {
    .name = "cohere",
    .state = cohere,
    .n_states = TOOL_COUNT(cohere),
    .answer = AFTER,
    .special = true,
    .tail = {{"<|START_THINKING|>", THOUGHT}, {"<|END_THINKING|>", AFTER}},
    .thought_end = "<|END_THINKING|>"};

/* Command R and R+. */
static const tool_state command_r[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"Action:\n```json", LIST, 0}, {"Action: ```json", LIST, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"Action:\n```json", LIST, 0}, {"Action: ```json", LIST, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "```", AFTER, 0),
};
const tool_family tool_family_command_r = {
    .name = "command-r", .state = command_r, .n_states = TOOL_COUNT(command_r), .answer = AFTER};

/* Apertus: the function's name is the object's key. */
static const tool_state apertus[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<|inner_prefix|>", THOUGHT, ARM_SP}, {"<|tools_prefix|>", LIST, ARM_SP}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"<|inner_suffix|>", AFTER, ARM_SP}, {"<|tools_prefix|>", LIST, ARM_SP}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<|inner_prefix|>", THOUGHT, ARM_SP}, {"<|tools_prefix|>", LIST, ARM_SP}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "<|tools_suffix|>", AFTER, TOOL_KEYED),
};
const tool_family tool_family_apertus = {
    .name = "apertus",
    .state = apertus,
    .n_states = TOOL_COUNT(apertus),
    .answer = AFTER,
    .special = true,
    .tail = {{"<|inner_prefix|>", THOUGHT}, {"<|inner_suffix|>", AFTER}},
    .thought_end = "<|inner_suffix|>"};

/* GigaChat 3: a message of a role of its own, or after <|function_call|>. */
enum { G_ANSWER, G_SEP, G_OBJECT, G_NEXT };
static const tool_state gigachat[] = {
    [G_ANSWER] = {.op = TOOL_ANSWER,
                  .arm = {{"<|message_sep|>", G_SEP, ARM_SP},
                          {"function call<|role_sep|>", G_OBJECT, ARM_AT},
                          {"<|function_call|>", G_OBJECT, ARM_SP}}},
    [G_SEP] = {.op = TOOL_SKIP,
               .arm = {{"function call<|role_sep|>", G_OBJECT, 0}, {"", G_ANSWER, 0}}},
    [G_OBJECT] = {.op = TOOL_OBJECT, .next = G_NEXT},
    [G_NEXT] = {.op = TOOL_SKIP,
                .arm = {{"<|message_sep|>", G_SEP, ARM_SP | ARM_OK}, {"", G_ANSWER, 0}}},
};
const tool_family tool_family_gigachat = {.name = "gigachat",
                                          .state = gigachat,
                                          .n_states = TOOL_COUNT(gigachat),
                                          .answer = G_ANSWER,
                                          .special = true};

static const tool_state internlm[] = {
    [ANSWER] = {.op = TOOL_ANSWER, .arm = {THINK, {"<|action_start|>", LIST, ARM_SP}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER, .flags = TOOL_TRIM, .arm = {{"<|action_start|>", LIST, ARM_SP}}},
    [LIST] = {.op = TOOL_SKIP, .arm = {{"<|plugin|>", LIST, ARM_SP}, {"{", OBJECT, ARM_KEEP}}},
    [OBJECT] = {.op = TOOL_OBJECT, .next = COMMA},
    [COMMA] = {.op = TOOL_SKIP,
               .arm = {{"<|action_end|>", AFTER, ARM_SP | ARM_OK}, {"", AFTER, 0}}},
};
const tool_family tool_family_internlm = {.name = "internlm",
                                          .state = internlm,
                                          .n_states = TOOL_COUNT(internlm),
                                          .answer = AFTER,
                                          .special = true,
                                          .tail = THINK_TAILS,
                                          .thought_end = "</think>"};
