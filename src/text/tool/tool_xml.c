/* Calls written as tags with a name and parameters, beside those of tool_hermes.c: Seed-OSS, MiniMax
   M2, MiniCPM5 (values perhaps in CDATA), and ERNIE, which has its own tags around the answer. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, CALL, NAME, PARAM, KEY, VALUE, NEXT, CDATA, SHUT };

static const tool_state seed[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<seed:think>", THOUGHT, ARM_AT}, {"<seed:tool_call>", CALL, 0}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</seed:think>", AFTER, 0}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{"<seed:tool_call>", CALL, 0}}},
    [CALL] = {TOOL_SKIP, 0, 0, {{"<function=", NAME, 0}}},
    TOOL_XML(NAME, PARAM, KEY, VALUE, ">", "<parameter=", ">", "</parameter>", "</function>", NEXT,
             0),
    [NEXT] = {TOOL_SKIP,
              0,
              0,
              {{"</seed:tool_call>", AFTER, ARM_OK}, {"<function=", NAME, 0}, {"", AFTER, 0}}},
};
const tool_family tool_family_seed_oss = {
    .name = "seed-oss",
    .state = seed,
    .n_states = TOOL_COUNT(seed),
    .answer = AFTER,
    .tail = {{"<seed:think>", THOUGHT}, {"</seed:think>", AFTER}},
    .thought_end = "</seed:think>\n"};

static const tool_state minimax[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<think>", THOUGHT, ARM_AT},
                 {"</think>", AFTER, ARM_AT},
                 {"<minimax:tool_call>", CALL, 0}}},
    [THOUGHT] = {TOOL_THOUGHT,
                 TOOL_TRIM,
                 0,
                 {{"</think>", AFTER, 0}, {"<minimax:tool_call>", CALL, 0}}},
    [AFTER] = {TOOL_ANSWER,
               TOOL_TRIM,
               0,
               {{"<think>", THOUGHT, ARM_AT}, {"<minimax:tool_call>", CALL, 0}}},
    [CALL] = {TOOL_SKIP,
              0,
              0,
              {{"<invoke name=\"", NAME, 0}, {"</minimax:tool_call>", AFTER, ARM_OK}}},
    TOOL_XML(NAME, PARAM, KEY, VALUE, "\">", "<parameter name=\"", "\">", "</parameter>",
             "</invoke>", NEXT, 0),
    [NEXT] = {TOOL_SKIP,
              0,
              0,
              {{"<invoke name=\"", NAME, 0},
               {"</minimax:tool_call>", AFTER, ARM_OK},
               {"", AFTER, 0}}},
};
const tool_family tool_family_minimax_m2 = {.name = "minimax-m2",
                                            .state = minimax,
                                            .n_states = TOOL_COUNT(minimax),
                                            .answer = AFTER,
                                            .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                            .thought_end = "\n</think>\n\n"};

/* MiniMax M3 nests elements inside parameters: its thoughts are told, its calls stay text. */
static const tool_state minimax_m3[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<mm:think>", THOUGHT, ARM_AT}, {"</mm:think>", AFTER, ARM_AT}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</mm:think>", AFTER, 0}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{"<mm:think>", THOUGHT, ARM_AT}}},
};
const tool_family tool_family_minimax_m3 = {
    .name = "minimax-m3",
    .state = minimax_m3,
    .n_states = TOOL_COUNT(minimax_m3),
    .answer = AFTER,
    .tail = {{"<mm:think>", THOUGHT}, {"</mm:think>", AFTER}},
    .thought_end = "</mm:think>"};

static const tool_state minicpm[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<think>", THOUGHT, ARM_AT},
                 {"</think>", AFTER, ARM_AT},
                 {"<function name=\"", NAME, 0}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</think>", AFTER, 0}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{"<function name=\"", NAME, 0}}},
    [NAME] = {TOOL_NAME, 0, 0, {{"\">", PARAM, 0}}},
    [PARAM] = {TOOL_SKIP,
               0,
               0,
               {{"<param name=\"", KEY, ARM_BEGIN}, {"</function>", NEXT, ARM_END}}},
    [KEY] = {TOOL_KEY, 0, 0, {{"\">", VALUE, 0}}},
    [VALUE] = {TOOL_VALUE,
               0,
               0,
               {{"</param>", PARAM, 0}, {"<![CDATA[", CDATA, ARM_AT | ARM_INSIDE}}},
    [CDATA] = {TOOL_VALUE, TOOL_MORE, 0, {{"]]>", SHUT, 0}}},
    [SHUT] = {TOOL_SKIP, 0, 0, {{"</param>", PARAM, 0}}},
    [NEXT] = {TOOL_SKIP, 0, 0, {{"<function name=\"", NAME, 0}, {"", AFTER, 0}}},
};
const tool_family tool_family_minicpm5 = {.name = "minicpm5",
                                          .state = minicpm,
                                          .n_states = TOOL_COUNT(minicpm),
                                          .answer = AFTER,
                                          .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                          .thought_end = "\n</think>\n\n"};

enum { E_ANSWER, E_THOUGHT, E_AFTER, E_SHOWN, E_LIST, E_ITEM, E_OBJECT, E_COMMA };
static const tool_state ernie[] = {
    [E_ANSWER] = {TOOL_ANSWER,
                  0,
                  0,
                  {{"<think>", E_THOUGHT, ARM_AT},
                   {"</think>", E_AFTER, ARM_AT},
                   {"<tool_call>", E_LIST, 0},
                   {"<response>", E_SHOWN, ARM_AT}}},
    [E_THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</think>", E_AFTER, 0}}},
    [E_AFTER] = {TOOL_ANSWER,
                 TOOL_TRIM,
                 0,
                 {{"<tool_call>", E_LIST, 0}, {"<response>", E_SHOWN, ARM_AT}}},
    [E_SHOWN] = {TOOL_ANSWER,
                 TOOL_TRIM,
                 0,
                 {{"</response>", E_AFTER, 0}, {"<tool_call>", E_LIST, 0}}},
    TOOL_LIST(E_LIST, E_ITEM, E_OBJECT, E_COMMA, "</tool_call>", E_AFTER, 0),
};
const tool_family tool_family_ernie = {.name = "ernie",
                                       .state = ernie,
                                       .n_states = TOOL_COUNT(ernie),
                                       .answer = E_AFTER,
                                       .tail = {{"<think>", E_THOUGHT}, {"</think>", E_AFTER}},
                                       .thought_end = "\n</think>\n\n"};
