/* Kimi K2: functions.NAME:INDEX and the arguments between special tokens, the whole in a section.
   Kimi K3: elements opened and closed by special tokens, with attributes. */
#include "text/tool/tool_parts.h"

#define SECTION     "<|tool_calls_section_begin|>"
#define SECTION_END "<|tool_calls_section_end|>"
#define BEGIN       "<|tool_call_begin|>"
#define END         "<|tool_call_end|>"

enum { ANSWER, THOUGHT, AFTER, CALLS, NAME, ARGS, CLOSE };

static const tool_state k2[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<think>", THOUGHT, ARM_AT},
                 {"</think>", AFTER, ARM_AT},
                 {SECTION, CALLS, ARM_SP},
                 {BEGIN, NAME, ARM_SP}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</think>", AFTER, 0}, {SECTION, CALLS, ARM_SP}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{SECTION, CALLS, ARM_SP}, {BEGIN, NAME, ARM_SP}}},
    [CALLS] = {TOOL_SKIP,
               0,
               0,
               {{BEGIN, NAME, ARM_SP}, {SECTION_END, AFTER, ARM_SP | ARM_OK}, {"", AFTER, 0}}},
    [NAME] = {TOOL_NAME, TOOL_KIMI, 0, {{"<|tool_call_argument_begin|>", ARGS, ARM_SP}}},
    [ARGS] = {TOOL_JSON, TOOL_END, CLOSE, {{0}}},
    [CLOSE] = {TOOL_SKIP, 0, 0, {{END, CALLS, ARM_SP | ARM_OK}, {"", CALLS, 0}}},
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
    [M_THOUGHT] = {TOOL_THOUGHT,
                   TOOL_TRIM,
                   0,
                   {{SHUT("think"), M_BETWEEN, 0}, {OPEN("tools"), M_CALLS, 0}}},
    [M_BETWEEN] = {TOOL_SKIP,
                   0,
                   0,
                   {{OPEN("response"), M_SHOWN, 0},
                    {OPEN("tools"), M_CALLS, 0},
                    {OPEN("think"), M_THOUGHT, 0},
                    {SHUT("message"), M_BETWEEN, ARM_OK},
                    {"<|end_of_msg|>", M_BETWEEN, ARM_OK},
                    {"", M_ANSWER, 0}}},
    [M_SHOWN] = {TOOL_ANSWER,
                 0,
                 0,
                 {{SHUT("response"), M_BETWEEN, ARM_OK}, {OPEN("tools"), M_CALLS, 0}}},
    [M_ANSWER] = {TOOL_ANSWER, 0, 0, {{OPEN("tools"), M_CALLS, 0}, {OPEN("response"), M_SHOWN, 0}}},
    [M_CALLS] = {TOOL_SKIP,
                 0,
                 0,
                 {{"<|open|>call tool=\"", M_NAME, 0}, {SHUT("tools"), M_BETWEEN, ARM_OK}}},
    [M_NAME] = {TOOL_NAME, 0, 0, {{"\"<|sep|>", M_PARAM, 0}, {"\" index=\"", M_INDEX, 0}}},
    [M_INDEX] = {TOOL_DROP, 0, 0, {{"\"<|sep|>", M_PARAM, 0}}},
    [M_PARAM] = {TOOL_SKIP,
                 0,
                 0,
                 {{"<|open|>argument key=\"", M_KEY, ARM_BEGIN}, {SHUT("call"), M_CALLS, ARM_END}}},
    [M_KEY] = {TOOL_KEY,
               0,
               0,
               {{"\" type=\"string\"<|sep|>", M_STRING, 0}, {"\" type=\"", M_TYPE, 0}}},
    [M_TYPE] = {TOOL_DROP, 0, 0, {{"\"<|sep|>", M_JSON, 0}}},
    [M_STRING] = {TOOL_VALUE, TOOL_STRING, 0, {{SHUT("argument"), M_PARAM, 0}}},
    [M_JSON] = {TOOL_VALUE, TOOL_TYPED, 0, {{SHUT("argument"), M_PARAM, 0}}},
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
