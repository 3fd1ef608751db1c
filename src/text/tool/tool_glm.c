/* NAME<arg_key>K</arg_key><arg_value>V</arg_value>: GLM 4.5 to 4.7, Laguna, Ling 3, Spark 2.5, with
   line ends between or without; LongCat and Hunyuan 3 with other tags for the same. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, NAME, PARAM, KEY, BETWEEN, VALUE };

static const tool_state glm[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<think>", THOUGHT, ARM_AT},
                 {"</think>", AFTER, ARM_AT},
                 {"<tool_call>", NAME, 0}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</think>", AFTER, 0}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{"<tool_call>", NAME, 0}, {"<think>", THOUGHT, ARM_AT}}},
    [NAME] = {TOOL_NAME, 0, 0, {{"<arg_key>", KEY, ARM_BEGIN}, {"</tool_call>", AFTER, ARM_END}}},
    TOOL_PAIRS(NAME, PARAM, KEY, BETWEEN, VALUE, "", "</tool_call>", AFTER),
};
const tool_family tool_family_glm = {.name = "glm",
                                     .state = glm,
                                     .n_states = TOOL_COUNT(glm),
                                     .answer = AFTER,
                                     .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                     .thought_end = "</think>"};

static const tool_state longcat[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<longcat_think>", THOUGHT, ARM_AT}, {"<longcat_tool_call>", NAME, 0}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</longcat_think>", AFTER, 0}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{"<longcat_tool_call>", NAME, 0}}},
    [NAME] = {TOOL_NAME,
              0,
              0,
              {{"<longcat_arg_key>", KEY, ARM_BEGIN}, {"</longcat_tool_call>", AFTER, ARM_END}}},
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
    [H_ANSWER] = {TOOL_ANSWER,
                  0,
                  0,
                  {{T("think"), H_THOUGHT, ARM_AT}, {T("tool_calls"), H_CALLS, 0}}},
    [H_THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{T_END("think"), H_AFTER, 0}}},
    [H_AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{T("tool_calls"), H_CALLS, 0}}},
    [H_CALLS] = {TOOL_SKIP,
                 0,
                 0,
                 {{T("tool_call"), H_NAME, 0},
                  {T_END("tool_calls"), H_AFTER, ARM_OK},
                  {"", H_AFTER, 0}}},
    [H_NAME] = {TOOL_NAME, 0, 0, {{T("tool_sep"), H_PARAM, 0}}},
    [H_PARAM] = {TOOL_SKIP,
                 0,
                 0,
                 {{T("arg_key"), H_KEY, ARM_BEGIN}, {T_END("tool_call"), H_CALLS, ARM_END}}},
    [H_KEY] = {TOOL_KEY, 0, 0, {{T_END("arg_key"), H_BETWEEN, 0}}},
    [H_BETWEEN] = {TOOL_SKIP, 0, 0, {{T("arg_value"), H_VALUE, 0}}},
    [H_VALUE] = {TOOL_VALUE, 0, 0, {{T_END("arg_value"), H_PARAM, 0}}},
};
const tool_family tool_family_hunyuan3 = {
    .name = "hunyuan3",
    .state = hunyuan,
    .n_states = TOOL_COUNT(hunyuan),
    .answer = H_AFTER,
    .tail = {{T("think"), H_THOUGHT}, {T_END("think"), H_AFTER}},
    .thought_end = T_END("think")};
