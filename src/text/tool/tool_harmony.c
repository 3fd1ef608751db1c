/* Replies that are several messages with headers.  gpt-oss (harmony): <|channel|>analysis is thought,
   final is the answer, commentary an answer too unless it goes to=functions.NAME.  Muse: to=self is
   thought, other recipients get calls as tags.  Solar: <|think|>, <|content|>, <|tool_calls|>. */
#include "text/tool/tool_parts.h"

#define START "<|start|>assistant"

enum {
    HEAD,
    CHANNEL,
    ANALYSIS,
    COMMENTARY,
    FINAL,
    THOUGHT,
    ANSWER,
    NAME,
    ARGS_HEAD,
    ARGS,
    CLOSE,
    NEXT
};

/* A message ends; the literals where the next may begin. */
#define H_ENDS                                                                                     \
    {"<|end|>", NEXT, ARM_SP | ARM_OK}, {"<|return|>", NEXT, ARM_SP | ARM_OK},                     \
    {                                                                                              \
        START, HEAD, 0                                                                             \
    }

static const tool_state harmony[] = {
    [HEAD] = {.op = TOOL_SKIP,
              .arm = {{"<|channel|>", CHANNEL, ARM_SP},
                      {"to=functions.", NAME, 0},
                      {"to=", NAME, 0},
                      {"<|message|>", ANSWER, ARM_SP},
                      {START, HEAD, 0}}},
    [CHANNEL] = {.op = TOOL_SKIP,
                 .arm = {{"analysis", ANALYSIS, 0},
                         {"commentary", COMMENTARY, 0},
                         {"final", FINAL, 0}}},
    [ANALYSIS] = {.op = TOOL_SKIP,
                  .arm = {{"<|message|>", THOUGHT, ARM_SP},
                          {"to=functions.", NAME, 0},
                          {"to=", NAME, 0}}},
    [COMMENTARY] = {.op = TOOL_SKIP,
                    .arm = {{"<|message|>", ANSWER, ARM_SP},
                            {"to=functions.", NAME, 0},
                            {"to=", NAME, 0},
                            {"to=assistant", COMMENTARY, 0},
                            {"<|channel|>", CHANNEL, ARM_SP}}},
    [FINAL] = {.op = TOOL_DROP, .arm = {{"<|message|>", ANSWER, ARM_SP}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .arm = {H_ENDS}},
    [ANSWER] = {.op = TOOL_ANSWER, .arm = {H_ENDS}},
    [NAME] = {.op = TOOL_NAME,
              .arm = {{"<|channel|>", ARGS_HEAD, ARM_SP},
                      {"<|message|>", ARGS, ARM_SP},
                      {"<|constrain|>", ARGS_HEAD, ARM_SP},
                      {" ", ARGS_HEAD, 0}}},
    [ARGS_HEAD] = {.op = TOOL_DROP, .arm = {{"<|message|>", ARGS, ARM_SP}}},
    [ARGS] = {.op = TOOL_JSON, .flags = TOOL_END, .next = CLOSE},
    [CLOSE] = {.op = TOOL_SKIP,
               .arm = {{"<|call|>", NEXT, ARM_SP | ARM_OK},
                       {"<|end|>", NEXT, ARM_SP | ARM_OK},
                       {"<|return|>", NEXT, ARM_SP | ARM_OK},
                       {START, HEAD, 0},
                       {"", ANSWER, 0}}},
    [NEXT] = {.op = TOOL_SKIP,
              .arm = {{START, HEAD, 0}, {"<|channel|>", CHANNEL, ARM_SP}, {"", ANSWER, 0}}},
};
const tool_family tool_family_harmony = {
    .name = "harmony",
    .state = harmony,
    .n_states = TOOL_COUNT(harmony),
    .start = HEAD,
    .answer = ANSWER,
    .special = true,
    .tail = {{"<|channel|>analysis<|message|>", THOUGHT}, {"<|channel|>final<|message|>", ANSWER}},
    .thought_end = "<|end|>" START "<|channel|>final<|message|>"};

#define ATEM(name)     "<atem:" name
#define ATEM_END(name) "</atem:" name ">"

enum {
    M_HEAD,
    M_TO,
    M_THOUGHT,
    M_ANSWER,
    M_BODY,
    M_CALLS,
    M_NAME,
    M_PARAM,
    M_KEY,
    M_VALUE,
    M_NEXT
};

#define M_ENDS                                                                                     \
    {"<|eom|>", M_NEXT, ARM_SP | ARM_OK},                                                          \
    {                                                                                              \
        "<|eot|>", M_NEXT, ARM_SP | ARM_OK                                                         \
    }

static const tool_state muse[] = {
    [M_HEAD] = {.op = TOOL_SKIP,
                .arm = {{"to=self<|message|>", M_THOUGHT, 0},
                        {"to=user<|message|>", M_ANSWER, 0},
                        {"<|message|>", M_ANSWER, ARM_SP},
                        {"to=", M_TO, 0}}},
    [M_TO] = {.op = TOOL_DROP, .arm = {{"<|message|>", M_BODY, ARM_SP}}},
    [M_THOUGHT] = {.op = TOOL_THOUGHT, .arm = {M_ENDS}},
    [M_ANSWER] = {.op = TOOL_ANSWER, .arm = {M_ENDS, {ATEM("function_calls>"), M_CALLS, 0}}},
    [M_BODY] = {.op = TOOL_SKIP, .arm = {{ATEM("function_calls>"), M_CALLS, 0}, {"", M_ANSWER, 0}}},
    [M_CALLS] = {.op = TOOL_SKIP,
                 .arm = {{ATEM("invoke name=\""), M_NAME, 0},
                         {ATEM_END("function_calls"), M_NEXT, ARM_OK}}},
    TOOL_XML(M_NAME, M_PARAM, M_KEY, M_VALUE, "\">", ATEM("parameter name=\""), "\">",
             ATEM_END("parameter"), ATEM_END("invoke"), M_CALLS, ATEM_END("function_calls"), M_NEXT,
             0),
    [M_NEXT] = {.op = TOOL_SKIP,
                .arm = {{"<|eom|>", M_NEXT, ARM_SP | ARM_OK},
                        {"<|eot|>", M_NEXT, ARM_SP | ARM_OK},
                        {START, M_HEAD, 0},
                        {"", M_ANSWER, 0}}},
};
const tool_family tool_family_muse = {
    .name = "muse",
    .state = muse,
    .n_states = TOOL_COUNT(muse),
    .start = M_HEAD,
    .answer = M_ANSWER,
    .special = true,
    .tail = {{"to=self<|message|>", M_THOUGHT}, {"to=user<|message|>", M_ANSWER}},
    .thought_end = "<|eom|>" START " to=user<|message|>"};

enum { S_HEAD, S_THOUGHT, S_ANSWER, S_CALLS, S_ID, S_NAME, S_ARGS, S_CLOSE, S_NEXT };

static const tool_state solar[] = {
    [S_HEAD] = {.op = TOOL_SKIP,
                .arm = {{"<|think|>", S_THOUGHT, ARM_SP},
                        {"<|content|>", S_ANSWER, ARM_SP},
                        {"<|tool_calls|>", S_CALLS, ARM_SP}}},
    [S_THOUGHT] = {.op = TOOL_THOUGHT,
                   .arm = {{"<|end|>", S_NEXT, ARM_SP | ARM_OK},
                           {"<|tool_calls|>", S_CALLS, ARM_SP}}},
    [S_ANSWER] = {.op = TOOL_ANSWER,
                  .arm = {{"<|end|>", S_NEXT, ARM_SP | ARM_OK},
                          {"<|tool_calls|>", S_CALLS, ARM_SP}}},
    [S_CALLS] = {.op = TOOL_SKIP,
                 .arm = {{"<|tool_call:begin|>", S_ID, ARM_SP},
                         {"<|calls|>", S_NEXT, ARM_SP | ARM_OK},
                         {"", S_ANSWER, 0}}},
    [S_ID] = {.op = TOOL_ID, .arm = {{"<|tool_call:name|>", S_NAME, ARM_SP}}},
    [S_NAME] = {.op = TOOL_NAME, .arm = {{"<|tool_call:args|>", S_ARGS, ARM_SP}}},
    [S_ARGS] = {.op = TOOL_JSON, .flags = TOOL_END, .next = S_CLOSE},
    [S_CLOSE] = {.op = TOOL_SKIP,
                 .arm = {{"<|tool_call:end|>", S_CALLS, ARM_SP | ARM_OK}, {"", S_CALLS, 0}}},
    [S_NEXT] = {.op = TOOL_SKIP, .arm = {{"<|begin|>assistant", S_HEAD, 0}, {"", S_ANSWER, 0}}},
};
const tool_family tool_family_solar = {
    .name = "solar",
    .state = solar,
    .n_states = TOOL_COUNT(solar),
    .start = S_HEAD,
    .answer = S_ANSWER,
    .special = true,
    .tail = {{"<|think|>", S_THOUGHT}, {"<|content|>", S_ANSWER}},
    .thought_end = "<|end|><|begin|>assistant<|content|>"};
