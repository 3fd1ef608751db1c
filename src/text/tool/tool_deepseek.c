/* DeepSeek V3 and R1: function<｜tool▁sep｜>NAME and the arguments in a ```json fence; V3.1:
   NAME<｜tool▁sep｜>{…}.  V3.2 and V4: "DSML" tags with parameters that say whether they are strings.
   A call may come without the thought having been closed. */
#include "text/tool/tool_parts.h"

#define CALLS     "<｜tool▁calls▁begin｜>"
#define CALLS_END "<｜tool▁calls▁end｜>"
#define BEGIN     "<｜tool▁call▁begin｜>"
#define END       "<｜tool▁call▁end｜>"
#define SEP       "<｜tool▁sep｜>"

enum { ANSWER, THOUGHT, AFTER, CALL, HEAD, NAME, OLD_NAME, ARGS, CLOSE };

static const tool_state states[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<think>", THOUGHT, ARM_AT},
                        {"</think>", AFTER, ARM_AT},
                        {CALLS, CALL, ARM_SP},
                        {BEGIN, HEAD, ARM_SP}}},
    [THOUGHT] = {.op = TOOL_THOUGHT,
                 .flags = TOOL_TRIM,
                 .arm = {{"</think>", AFTER, 0}, {CALLS, CALL, ARM_SP}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{CALLS, CALL, ARM_SP}, {BEGIN, HEAD, ARM_SP}}},
    [CALL] = {.op = TOOL_SKIP,
              .arm = {{BEGIN, HEAD, ARM_SP}, {CALLS_END, AFTER, ARM_SP | ARM_OK}, {"", AFTER, 0}}},
    [HEAD] = {.op = TOOL_SKIP, .arm = {{"function" SEP, OLD_NAME, 0}, {"", NAME, 0}}},
    [NAME] = {.op = TOOL_NAME, .arm = {{SEP, ARGS, ARM_SP}}},
    [OLD_NAME] = {.op = TOOL_NAME, .arm = {{"```json", ARGS, 0}}},
    [ARGS] = {.op = TOOL_JSON, .flags = TOOL_END, .next = CLOSE},
    [CLOSE] = {.op = TOOL_SKIP,
               .arm = {{"```", CLOSE, ARM_OK}, {END, CALL, ARM_SP | ARM_OK}, {"", CALL, 0}}},
};
const tool_family tool_family_deepseek = {.name = "deepseek",
                                          .state = states,
                                          .n_states = TOOL_COUNT(states),
                                          .answer = AFTER,
                                          .special = true,
                                          .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},
                                          .thought_end = "\n</think>\n\n"};

#define D(name)     "<｜DSML｜" name
#define D_END(name) "</｜DSML｜" name ">"

enum { D_ANSWER, D_THOUGHT, D_AFTER, D_CALL, D_NAME, D_PARAM, D_KEY, D_STRING, D_JSON };

static const tool_state dsml[] = {
    [D_ANSWER] = {.op = TOOL_ANSWER,
                  .arm = {{"<think>", D_THOUGHT, ARM_AT},
                          {"</think>", D_AFTER, ARM_AT},
                          {D("function_calls>"), D_CALL, 0},
                          {D("tool_calls>"), D_CALL, 0}}},
    [D_THOUGHT] = {.op = TOOL_THOUGHT,
                   .flags = TOOL_TRIM,
                   .arm = {{"</think>", D_AFTER, 0},
                           {D("function_calls>"), D_CALL, 0},
                           {D("tool_calls>"), D_CALL, 0}}},
    [D_AFTER] = {.op = TOOL_ANSWER,
                 .flags = TOOL_TRIM,
                 .arm = {{D("function_calls>"), D_CALL, 0}, {D("tool_calls>"), D_CALL, 0}}},
    [D_CALL] = {.op = TOOL_SKIP,
                .arm = {{D("invoke name=\""), D_NAME, 0},
                        {D_END("function_calls"), D_AFTER, ARM_OK},
                        {D_END("tool_calls"), D_AFTER, ARM_OK},
                        {"", D_AFTER, 0}}},
    [D_NAME] = {.op = TOOL_NAME, .arm = {{"\">", D_PARAM, 0}}},
    [D_PARAM] = {.op = TOOL_SKIP,
                 .arm = {{D("parameter name=\""), D_KEY, ARM_BEGIN},
                         {D_END("invoke"), D_CALL, ARM_END}}},
    [D_KEY] = {.op = TOOL_KEY,
               .arm = {{"\" string=\"true\">", D_STRING, 0}, {"\" string=\"false\">", D_JSON, 0}}},
    [D_STRING] = {.op = TOOL_VALUE,
                  .flags = TOOL_STRING,
                  .arm = {{D_END("parameter"), D_PARAM, 0}}},
    [D_JSON] = {.op = TOOL_VALUE, .flags = TOOL_TYPED, .arm = {{D_END("parameter"), D_PARAM, 0}}},
};
const tool_family tool_family_dsml = {.name = "dsml",
                                      .state = dsml,
                                      .n_states = TOOL_COUNT(dsml),
                                      .answer = D_AFTER,
                                      .tail = {{"<think>", D_THOUGHT}, {"</think>", D_AFTER}},
                                      .thought_end = "</think>"};
