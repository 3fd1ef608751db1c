/* NAME<arg_key>K</arg_key><arg_value>V</arg_value>: GLM 4.5 to 4.7, Laguna, Ling 3, Spark 2.5, with
   line ends between or without; LongCat and Hunyuan 3 with other tags for the same. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, NAME, PARAM, KEY, BETWEEN, VALUE };

static const tool_state glm[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<think>", THOUGHT, ARM_AT},
                        {"</think>", AFTER, ARM_AT},
                        {"<tool_call>", NAME, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<tool_call>", NAME, 0}, {"<think>", THOUGHT, ARM_AT}}},
    [NAME] = {.op = TOOL_NAME,
              .arm = {{"<arg_key>", KEY, ARM_BEGIN}, {"</tool_call>", AFTER, ARM_END}}},
    TOOL_PAIRS(NAME, PARAM, KEY, BETWEEN, VALUE, "", "</tool_call>", AFTER),
};
const tool_family tool_family_glm = {.name = "glm",
                                     .state = glm,
                                     .n_states = TOOL_COUNT(glm),
                                     .answer = AFTER,
                                     .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                     .thought_end = "</think>"};

static const tool_state longcat[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<longcat_think>", THOUGHT, ARM_AT}, {"<longcat_tool_call>", NAME, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</longcat_think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER, .flags = TOOL_TRIM, .arm = {{"<longcat_tool_call>", NAME, 0}}},
    [NAME] = {.op = TOOL_NAME,
              .arm = {{"<longcat_arg_key>", KEY, ARM_BEGIN},
                      {"</longcat_tool_call>", AFTER, ARM_END}}},
    TOOL_PAIRS(NAME, PARAM, KEY, BETWEEN, VALUE, "longcat_", "</longcat_tool_call>", AFTER),
};
const tool_family tool_family_longcat = {
    .name = "longcat",
    .state = longcat,
    .n_states = TOOL_COUNT(longcat),
    .answer = AFTER,
    .tail = {{"<longcat_think>", THOUGHT}, {"</longcat_think>", AFTER}},
    .thought_end = "</longcat_think>"};

#define T(name)     "<" name ":opensource>"
#define T_END(name) "</" name ":opensource>"

enum { H_ANSWER, H_THOUGHT, H_AFTER, H_CALLS, H_NAME, H_PARAM, H_KEY, H_BETWEEN, H_VALUE };

static const tool_state hunyuan[] = {
    [H_ANSWER] = {.op = TOOL_ANSWER,
                  .arm = {{T("think"), H_THOUGHT, ARM_AT}, {T("tool_calls"), H_CALLS, 0}}},
    [H_THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{T_END("think"), H_AFTER, 0}}},
    [H_AFTER] = {.op = TOOL_ANSWER, .flags = TOOL_TRIM, .arm = {{T("tool_calls"), H_CALLS, 0}}},
    [H_CALLS] = {.op = TOOL_SKIP,
                 .arm = {{T("tool_call"), H_NAME, 0},
                         {T_END("tool_calls"), H_AFTER, ARM_OK},
                         {"", H_AFTER, 0}}},
    [H_NAME] = {.op = TOOL_NAME, .arm = {{T("tool_sep"), H_PARAM, 0}}},
    [H_PARAM] = {.op = TOOL_SKIP,
                 .arm = {{T("arg_key"), H_KEY, ARM_BEGIN}, {T_END("tool_call"), H_CALLS, ARM_END}}},
    [H_KEY] = {.op = TOOL_KEY, .arm = {{T_END("arg_key"), H_BETWEEN, 0}}},
    [H_BETWEEN] = {.op = TOOL_SKIP, .arm = {{T("arg_value"), H_VALUE, 0}}},
    [H_VALUE] = {.op = TOOL_VALUE, .arm = {{T_END("arg_value"), H_PARAM, 0}}},
};
const tool_family tool_family_hunyuan3 = {
    .name = "hunyuan3",
    .state = hunyuan,
    .n_states = TOOL_COUNT(hunyuan),
    .answer = H_AFTER,
    .tail = {{T("think"), H_THOUGHT}, {T_END("think"), H_AFTER}},
    .thought_end = T_END("think")};
