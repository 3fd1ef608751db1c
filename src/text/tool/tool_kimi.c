/* Kimi K2: functions.NAME:INDEX and the arguments between special tokens, the whole in a section.
   Kimi K3: elements opened and closed by special tokens, with attributes. */
#include "text/tool/tool_parts.h"

#define SECTION     "<|tool_calls_section_begin|>"
#define SECTION_END "<|tool_calls_section_end|>"
#define BEGIN       "<|tool_call_begin|>"
#define END         "<|tool_call_end|>"

enum { ANSWER, THOUGHT, AFTER, CALLS, NAME, ARGS, CLOSE };

static const tool_state k2[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<think>", THOUGHT, ARM_AT},
                        {"</think>", AFTER, ARM_AT},
                        {SECTION, CALLS, ARM_SP},
                        {BEGIN, NAME, ARM_SP}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"</think>", AFTER, 0}, {SECTION, CALLS, ARM_SP}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{SECTION, CALLS, ARM_SP}, {BEGIN, NAME, ARM_SP}}},
    [CALLS] = {.op = TOOL_SKIP,
               .arm = {{BEGIN, NAME, ARM_SP},
                       {SECTION_END, AFTER, ARM_SP | ARM_OK},
                       {"", AFTER, 0}}},
    [NAME] = {.op = TOOL_NAME,
              .flags = TOOL_KIMI,
              .arm = {{"<|tool_call_argument_begin|>", ARGS, ARM_SP}}},
    [ARGS] = {.op = TOOL_JSON, .flags = TOOL_END, .next = CLOSE},
    [CLOSE] = {.op = TOOL_SKIP, .arm = {{END, CALLS, ARM_SP | ARM_OK}, {"", CALLS, 0}}},
};
const tool_family tool_family_kimi_k2 = {.name = "kimi-k2",
                                         .state = k2,
                                         .n_states = TOOL_COUNT(k2),
                                         .answer = AFTER,
                                         .special = true,
                                         .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                         .thought_end = "</think>"};

#define OPEN(name) "<|open|>" name "<|sep|>"
#define SHUT(name) "<|close|>" name "<|sep|>"

enum {
    M_THOUGHT,
    M_BETWEEN,
    M_SHOWN,
    M_ANSWER,
    M_CALLS,
    M_NAME,
    M_INDEX,
    M_PARAM,
    M_KEY,
    M_TYPE,
    M_STRING,
    M_JSON
};

static const tool_state k3[] = {
    [M_THOUGHT] = {.op = TOOL_THOUGHT,
                   .flags = TOOL_TRIM,
                   .arm = {{SHUT("think"), M_BETWEEN, 0}, {OPEN("tools"), M_CALLS, 0}}},
    [M_BETWEEN] = {.op = TOOL_SKIP,
                   .arm = {{OPEN("response"), M_SHOWN, 0},
                           {OPEN("tools"), M_CALLS, 0},
                           {OPEN("think"), M_THOUGHT, 0},
                           {SHUT("message"), M_BETWEEN, ARM_OK},
                           {"<|end_of_msg|>", M_BETWEEN, ARM_OK},
                           {"", M_ANSWER, 0}}},
    [M_SHOWN] = {.op = TOOL_ANSWER,
                 .arm = {{SHUT("response"), M_BETWEEN, ARM_OK}, {OPEN("tools"), M_CALLS, 0}}},
    [M_ANSWER] = {.op = TOOL_ANSWER,
                  .arm = {{OPEN("tools"), M_CALLS, 0}, {OPEN("response"), M_SHOWN, 0}}},
    [M_CALLS] = {.op = TOOL_SKIP,
                 .arm = {{"<|open|>call tool=\"", M_NAME, 0}, {SHUT("tools"), M_BETWEEN, ARM_OK}}},
    [M_NAME] = {.op = TOOL_NAME, .arm = {{"\"<|sep|>", M_PARAM, 0}, {"\" index=\"", M_INDEX, 0}}},
    [M_INDEX] = {.op = TOOL_DROP, .arm = {{"\"<|sep|>", M_PARAM, 0}}},
    [M_PARAM] = {.op = TOOL_SKIP,
                 .arm = {{"<|open|>argument key=\"", M_KEY, ARM_BEGIN},
                         {SHUT("call"), M_CALLS, ARM_END}}},
    [M_KEY] = {.op = TOOL_KEY,
               .arm = {{"\" type=\"string\"<|sep|>", M_STRING, 0}, {"\" type=\"", M_TYPE, 0}}},
    [M_TYPE] = {.op = TOOL_DROP, .arm = {{"\"<|sep|>", M_JSON, 0}}},
    [M_STRING] = {.op = TOOL_VALUE, .flags = TOOL_STRING, .arm = {{SHUT("argument"), M_PARAM, 0}}},
    [M_JSON] = {.op = TOOL_VALUE, .flags = TOOL_TYPED, .arm = {{SHUT("argument"), M_PARAM, 0}}},
};
const tool_family tool_family_kimi_k3 = {
    .name = "kimi-k3",
    .state = k3,
    .n_states = TOOL_COUNT(k3),
    .start = M_BETWEEN,
    .answer = M_ANSWER,
    .special = true,
    .tail = {{OPEN("think"), M_THOUGHT}, {OPEN("response"), M_SHOWN}},
    .thought_end = SHUT("think")};
