/* Mistral: [TOOL_CALLS] and a JSON array (v3: Nemo, 7B 0.3), or [TOOL_CALLS]NAME[ARGS]{…} with
   perhaps [CALL_ID] between (v11, v13); Magistral's [THINK]…[/THINK]. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, MARK, LIST, ITEM, OBJECT, COMMA, NAME, ID, ARGS, NEXT };

static const tool_state states[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"[TOOL_CALLS]", MARK, ARM_SP},
                        {"[THINK]", THOUGHT, ARM_SP | ARM_AT},
                        {"<think>", THOUGHT, ARM_AT}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"[/THINK]", AFTER, ARM_SP},
                         {"</think>", AFTER, 0},
                         {"[TOOL_CALLS]", MARK, ARM_SP}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"[TOOL_CALLS]", MARK, ARM_SP}, {"[THINK]", THOUGHT, ARM_SP | ARM_AT}}},
    [MARK] = {.op = TOOL_SKIP,
              .arm = {{"[", LIST, ARM_KEEP}, {"{", LIST, ARM_KEEP}, {"", NAME, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "[/TOOL_CALLS]", AFTER, 0),
    [NAME] = {.op = TOOL_NAME,
              .arm = {{"[ARGS]", ARGS, ARM_SP}, {"[CALL_ID]", ID, ARM_SP}, {"{", ARGS, ARM_KEEP}}},
    [ID] = {.op = TOOL_ID, .arm = {{"[ARGS]", ARGS, ARM_SP}}},
    [ARGS] = {.op = TOOL_JSON, .flags = TOOL_END, .next = NEXT},
    [NEXT] = {.op = TOOL_SKIP, .arm = {{"[TOOL_CALLS]", MARK, ARM_SP}, {"", AFTER, 0}}},
};
const tool_family tool_family_mistral = {
    .name = "mistral",
    .state = states,
    .n_states = TOOL_COUNT(states),
    .answer = AFTER,
    .special = true,
    .ids = TOOL_IDS_NINE,
    .tail = {{"[THINK]", THOUGHT}, {"[/THINK]", AFTER}, {"<think>", THOUGHT}},
    .thought_end = "[/THINK]"};
