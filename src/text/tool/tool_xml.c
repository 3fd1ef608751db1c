/* Calls written as tags with a name and parameters, beside those of tool_hermes.c: Seed-OSS, MiniMax M2
   and M3 (which nests elements for lists and objects), MiniCPM5 (values perhaps in CDATA), and ERNIE,
   which has its own tags around the answer. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, CALL, NAME, PARAM, KEY, VALUE, NEXT, CDATA, SHUT };

static const tool_state seed[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<seed:think>", THOUGHT, ARM_AT}, {"<seed:tool_call>", CALL, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</seed:think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER, .flags = TOOL_TRIM, .arm = {{"<seed:tool_call>", CALL, 0}}},
    [CALL] = {.op = TOOL_SKIP, .arm = {{"<function=", NAME, 0}}},
    TOOL_XML(NAME, PARAM, KEY, VALUE, ">", "<parameter=", ">", "</parameter>", "</function>", NEXT,
             "</seed:tool_call>", AFTER, 0),
    [NEXT] = {.op = TOOL_SKIP,
              .arm = {{"</seed:tool_call>", AFTER, ARM_OK},
                      {"<function=", NAME, 0},
                      {"", AFTER, 0}}},
};
const tool_family tool_family_seed_oss = {
    .name = "seed-oss",
    .state = seed,
    .n_states = TOOL_COUNT(seed),
    .answer = AFTER,
    .tail = {{"<seed:think>", THOUGHT}, {"</seed:think>", AFTER}},
    .thought_end = "</seed:think>\n"};

static const tool_state minimax[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<think>", THOUGHT, ARM_AT},
                        {"</think>", AFTER, ARM_AT},
                        {"<minimax:tool_call>", CALL, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"</think>", AFTER, 0}, {"<minimax:tool_call>", CALL, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<think>", THOUGHT, ARM_AT}, {"<minimax:tool_call>", CALL, 0}}},
    [CALL] = {.op = TOOL_SKIP,
              .arm = {{"<invoke name=\"", NAME, 0}, {"</minimax:tool_call>", AFTER, ARM_OK}}},
    TOOL_XML(NAME, PARAM, KEY, VALUE, "\">", "<parameter name=\"", "\">", "</parameter>",
             "</invoke>", NEXT, "</minimax:tool_call>", AFTER, 0),
    [NEXT] = {.op = TOOL_SKIP,
              .arm = {{"<invoke name=\"", NAME, 0},
                      {"</minimax:tool_call>", AFTER, ARM_OK},
                      {"", AFTER, 0}}},
};
const tool_family tool_family_minimax_m2 = {.name = "minimax-m2",
                                            .state = minimax,
                                            .n_states = TOOL_COUNT(minimax),
                                            .answer = AFTER,
                                            .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                            .thought_end = "\n</think>\n\n"};

#define NS "]<]minimax[>[" /* a special token before each tag of a call */

enum { M3_NEST = SHUT + 1 };
static const tool_state minimax_m3[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<mm:think>", THOUGHT, ARM_AT},
                        {"</mm:think>", AFTER, ARM_AT},
                        {NS "<tool_call>", CALL, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"</mm:think>", AFTER, 0}, {NS "<tool_call>", CALL, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<mm:think>", THOUGHT, ARM_AT}, {NS "<tool_call>", CALL, 0}}},
    [CALL] = {.op = TOOL_SKIP,
              .arm = {{NS "<invoke name=\"", NAME, 0}, {NS "</tool_call>", AFTER, ARM_OK}}},
    [NAME] = {.op = TOOL_NAME, .arm = {{"\">", PARAM, 0}}},
    [PARAM] = {.op = TOOL_SKIP,
               .arm = {{NS "<", KEY, ARM_BEGIN},
                       {NS "</invoke>", NEXT, ARM_END},
                       {NS "</tool_call>", AFTER, ARM_END}}},
    [KEY] = {.op = TOOL_KEY, .arm = {{">", VALUE, 0}}},
    [VALUE] = {.op = TOOL_VALUE, .arm = {{NS "</", SHUT, 0}, {NS "<", M3_NEST, ARM_INSIDE}}},
    [M3_NEST] = {.op = TOOL_NEST, .arm = {{NS "</", SHUT, 0}, {NS "<", M3_NEST, ARM_INSIDE}}},
    [SHUT] = {.op = TOOL_DROP, .arm = {{">", PARAM, 0}}},
    [NEXT] = {.op = TOOL_SKIP,
              .arm = {{NS "<invoke name=\"", NAME, 0},
                      {NS "</tool_call>", AFTER, ARM_OK},
                      {"", AFTER, 0}}},
};
const tool_family tool_family_minimax_m3 = {
    .name = "minimax-m3",
    .state = minimax_m3,
    .n_states = TOOL_COUNT(minimax_m3),
    .answer = AFTER,
    .special = true,
    .tail = {{"<mm:think>", THOUGHT}, {"</mm:think>", AFTER}},
    .thought_end = "</mm:think>"};

static const tool_state minicpm[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<think>", THOUGHT, ARM_AT},
                        {"</think>", AFTER, ARM_AT},
                        {"<function name=\"", NAME, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER, .flags = TOOL_TRIM, .arm = {{"<function name=\"", NAME, 0}}},
    [NAME] = {.op = TOOL_NAME, .arm = {{"\">", PARAM, 0}}},
    [PARAM] = {.op = TOOL_SKIP,
               .arm = {{"<param name=\"", KEY, ARM_BEGIN}, {"</function>", NEXT, ARM_END}}},
    [KEY] = {.op = TOOL_KEY, .arm = {{"\">", VALUE, 0}}},
    [VALUE] = {.op = TOOL_VALUE,
               .arm = {{"</param>", PARAM, 0}, {"<![CDATA[", CDATA, ARM_AT | ARM_INSIDE}}},
    [CDATA] = {.op = TOOL_VALUE, .flags = TOOL_MORE, .arm = {{"]]>", SHUT, 0}}},
    [SHUT] = {.op = TOOL_SKIP, .arm = {{"</param>", PARAM, 0}}},
    [NEXT] = {.op = TOOL_SKIP, .arm = {{"<function name=\"", NAME, 0}, {"", AFTER, 0}}},
};
const tool_family tool_family_minicpm5 = {.name = "minicpm5",
                                          .state = minicpm,
                                          .n_states = TOOL_COUNT(minicpm),
                                          .answer = AFTER,
                                          .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                          .thought_end = "\n</think>\n\n"};

enum { E_ANSWER, E_THOUGHT, E_AFTER, E_SHOWN, E_LIST, E_ITEM, E_OBJECT, E_COMMA };
static const tool_state ernie[] = {
    [E_ANSWER] = {.op = TOOL_ANSWER,
                  .arm = {{"<think>", E_THOUGHT, ARM_AT},
                          {"</think>", E_AFTER, ARM_AT},
                          {"<tool_call>", E_LIST, 0},
                          {"<response>", E_SHOWN, ARM_AT}}},
    [E_THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", E_AFTER, 0}}},
    [E_AFTER] = {.op = TOOL_ANSWER,
                 .flags = TOOL_TRIM,
                 .arm = {{"<tool_call>", E_LIST, 0}, {"<response>", E_SHOWN, ARM_AT}}},
    [E_SHOWN] = {.op = TOOL_ANSWER,
                 .flags = TOOL_TRIM,
                 .arm = {{"</response>", E_AFTER, 0}, {"<tool_call>", E_LIST, 0}}},
    TOOL_LIST(E_LIST, E_ITEM, E_OBJECT, E_COMMA, "</tool_call>", E_AFTER, 0),
};
const tool_family tool_family_ernie = {.name = "ernie",
                                       .state = ernie,
                                       .n_states = TOOL_COUNT(ernie),
                                       .answer = E_AFTER,
                                       .tail = {{"<think>", E_THOUGHT}, {"</think>", E_AFTER}},
                                       .thought_end = "\n</think>\n\n"};
