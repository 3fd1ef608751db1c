/* Mistral: [TOOL_CALLS] and a JSON array (v3: Nemo, 7B 0.3), or [TOOL_CALLS]NAME[ARGS]{…} with
   perhaps [CALL_ID] between (v11, v13); Magistral's [THINK]…[/THINK]. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, MARK, LIST, ITEM, OBJECT, COMMA, NAME, ID, ARGS, NEXT };

static const tool_state states[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"[TOOL_CALLS]", MARK, ARM_SP},
                 {"[THINK]", THOUGHT, ARM_SP | ARM_AT},
                 {"<think>", THOUGHT, ARM_AT}}},
    [THOUGHT] = {TOOL_THOUGHT,
                 TOOL_TRIM,
                 0,
                 {{"[/THINK]", AFTER, ARM_SP},
                  {"</think>", AFTER, 0},
                  {"[TOOL_CALLS]", MARK, ARM_SP}}},
    [AFTER] = {TOOL_ANSWER,
               TOOL_TRIM,
               0,
               {{"[TOOL_CALLS]", MARK, ARM_SP}, {"[THINK]", THOUGHT, ARM_SP | ARM_AT}}},
    [MARK] = {TOOL_SKIP, 0, 0, {{"[", LIST, ARM_KEEP}, {"{", LIST, ARM_KEEP}, {"", NAME, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "[/TOOL_CALLS]", AFTER, 0),
    [NAME] = {TOOL_NAME,
              0,
              0,
              {{"[ARGS]", ARGS, ARM_SP}, {"[CALL_ID]", ID, ARM_SP}, {"{", ARGS, ARM_KEEP}}},
    [ID] = {TOOL_ID, 0, 0, {{"[ARGS]", ARGS, ARM_SP}}},
    [ARGS] = {TOOL_JSON, TOOL_END, NEXT, {{0}}},
    [NEXT] = {TOOL_SKIP, 0, 0, {{"[TOOL_CALLS]", MARK, ARM_SP}, {"", AFTER, 0}}},
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
