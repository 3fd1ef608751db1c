/* Calls without a marker of their own, which only the beginning of an answer can be, and the lists of
   Python calls.  Llama 3 and 4: {"name": …, "parameters": {…}}, [name(key=value)], both perhaps after
   <|python_tag|>, and <function=NAME>{…}</function>, which Functionary 3.1 writes too.  Functionary
   3.2: >>>NAME and a line end before the arguments.  LFM2: the list between special tokens. */
#include "text/tool/tool_parts.h"

enum {
    ANSWER,
    AFTER,
    OBJECT,
    COMMA,
    ITEM,
    TAG,
    TAG_NAME,
    TAG_ARGS,
    LIST,
    PY_NAME,
    PY_ARGS,
    PY_NEXT,
    FN_NAME,
    FN_ARGS,
    FN_END
};

static const tool_state llama[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"{", OBJECT, ARM_AT | ARM_KEEP},
                        {"[", LIST, ARM_AT},
                        {"<|python_tag|>", TAG, ARM_SP},
                        {"<function=", FN_NAME, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<|python_tag|>", TAG, ARM_SP}, {"<function=", FN_NAME, 0}}},
    [OBJECT] = {.op = TOOL_OBJECT, .next = COMMA},
    [COMMA] = {.op = TOOL_SKIP,
               .arm = {{";", ITEM, 0},
                       {",", ITEM, 0},
                       {"{", OBJECT, ARM_KEEP},
                       {"]", AFTER, ARM_OK},
                       {"", AFTER, 0}}},
    [ITEM] = {.op = TOOL_SKIP, .arm = {{"{", OBJECT, ARM_KEEP}}},
    [TAG] = {.op = TOOL_SKIP, .arm = {{"{", OBJECT, ARM_KEEP}, {"[", LIST, 0}, {"", TAG_NAME, 0}}},
    [TAG_NAME] = {.op = TOOL_NAME, .arm = {{".call(", TAG_ARGS, 0}, {"(", TAG_ARGS, 0}}},
    [TAG_ARGS] = {.op = TOOL_KWARGS, .flags = TOOL_END, .next = AFTER},
    [LIST] = {.op = TOOL_SKIP, .arm = {{"{", OBJECT, ARM_KEEP}, {"", PY_NAME, 0}}},
    [PY_NAME] = {.op = TOOL_NAME, .arm = {{"(", PY_ARGS, 0}}},
    [PY_ARGS] = {.op = TOOL_KWARGS, .flags = TOOL_END, .next = PY_NEXT},
    [PY_NEXT] = {.op = TOOL_SKIP, .arm = {{",", PY_NAME, 0}, {"]", AFTER, ARM_OK}, {"", AFTER, 0}}},
    [FN_NAME] = {.op = TOOL_NAME, .arm = {{">", FN_ARGS, 0}}},
    [FN_ARGS] = {.op = TOOL_JSON, .flags = TOOL_END, .next = FN_END},
    [FN_END] = {.op = TOOL_SKIP, .arm = {{"</function>", AFTER, ARM_OK}, {"", AFTER, 0}}},
};
const tool_family tool_family_llama3 = {.name = "llama3",
                                        .state = llama,
                                        .n_states = TOOL_COUNT(llama),
                                        .answer = AFTER,
                                        .special = true};

enum { F_ANSWER, F_TO, F_NAME, F_ARGS, F_NEXT };
static const tool_state functionary[] = {
    [F_ANSWER] = {.op = TOOL_ANSWER, .arm = {{">>>", F_TO, 0}}},
    [F_TO] = {.op = TOOL_SKIP, .arm = {{"all\n", F_ANSWER, ARM_OK}, {"", F_NAME, 0}}},
    [F_NAME] = {.op = TOOL_NAME, .arm = {{"\n", F_ARGS, 0}}},
    [F_ARGS] = {.op = TOOL_JSON, .flags = TOOL_END, .next = F_NEXT},
    [F_NEXT] = {.op = TOOL_SKIP, .arm = {{">>>", F_TO, 0}, {"", F_ANSWER, 0}}},
};
const tool_family tool_family_functionary = {.name = "functionary",
                                             .state = functionary,
                                             .n_states = TOOL_COUNT(functionary),
                                             .answer = F_ANSWER,
                                             .tail = {{">>>", F_TO}}};

enum { L_ANSWER, L_THOUGHT, L_AFTER, L_CALL, L_ITEM, L_OBJECT, L_COMMA, L_NAME, L_ARGS };
static const tool_state lfm[] = {
    [L_ANSWER] = {.op = TOOL_ANSWER,
                  .arm = {{"<think>", L_THOUGHT, ARM_AT}, {"<|tool_call_start|>", L_CALL, ARM_SP}}},
    [L_THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", L_AFTER, 0}}},
    [L_AFTER] = {.op = TOOL_ANSWER,
                 .flags = TOOL_TRIM,
                 .arm = {{"<|tool_call_start|>", L_CALL, ARM_SP}}},
    [L_CALL] = {.op = TOOL_SKIP,
                .arm = {{"[", L_ITEM, 0}, {"{", L_OBJECT, ARM_KEEP}, {"", L_NAME, 0}}},
    [L_ITEM] = {.op = TOOL_SKIP, .arm = {{"{", L_OBJECT, ARM_KEEP}, {"", L_NAME, 0}}},
    [L_OBJECT] = {.op = TOOL_OBJECT, .next = L_COMMA},
    [L_COMMA] = {.op = TOOL_SKIP,
                 .arm = {{",", L_ITEM, 0},
                         {"]", L_COMMA, ARM_OK},
                         {"<|tool_call_end|>", L_AFTER, ARM_OK | ARM_SP},
                         {"", L_AFTER, 0}}},
    [L_NAME] = {.op = TOOL_NAME, .arm = {{"(", L_ARGS, 0}}},
    [L_ARGS] = {.op = TOOL_KWARGS, .flags = TOOL_END, .next = L_COMMA},
};
const tool_family tool_family_lfm2 = {.name = "lfm2",
                                      .state = lfm,
                                      .n_states = TOOL_COUNT(lfm),
                                      .answer = L_AFTER,
                                      .special = true,
                                      .tail = {{"<think>", L_THOUGHT}, {"</think>", L_AFTER}},
                                      .thought_end = "</think>"};
