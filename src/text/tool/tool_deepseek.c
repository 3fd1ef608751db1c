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
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<think>", THOUGHT, ARM_AT},
                 {"</think>", AFTER, ARM_AT},
                 {CALLS, CALL, ARM_SP},
                 {BEGIN, HEAD, ARM_SP}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</think>", AFTER, 0}, {CALLS, CALL, ARM_SP}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{CALLS, CALL, ARM_SP}, {BEGIN, HEAD, ARM_SP}}},
    [CALL] = {TOOL_SKIP,
              0,
              0,
              {{BEGIN, HEAD, ARM_SP}, {CALLS_END, AFTER, ARM_SP | ARM_OK}, {"", AFTER, 0}}},
    [HEAD] = {TOOL_SKIP, 0, 0, {{"function" SEP, OLD_NAME, 0}, {"", NAME, 0}}},
    [NAME] = {TOOL_NAME, 0, 0, {{SEP, ARGS, ARM_SP}}},
    [OLD_NAME] = {TOOL_NAME, 0, 0, {{"```json", ARGS, 0}}},
    [ARGS] = {TOOL_JSON, TOOL_END, CLOSE, {{0}}},
    [CLOSE] = {TOOL_SKIP,
               0,
               0,
               {{"```", CLOSE, ARM_OK}, {END, CALL, ARM_SP | ARM_OK}, {"", CALL, 0}}},
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
    [D_ANSWER] = {TOOL_ANSWER,
                  0,
                  0,
                  {{"<think>", D_THOUGHT, ARM_AT},
                   {"</think>", D_AFTER, ARM_AT},
                   {D("function_calls>"), D_CALL, 0},
                   {D("tool_calls>"), D_CALL, 0}}},
    [D_THOUGHT] = {TOOL_THOUGHT,
                   TOOL_TRIM,
                   0,
                   {{"</think>", D_AFTER, 0},
                    {D("function_calls>"), D_CALL, 0},
                    {D("tool_calls>"), D_CALL, 0}}},
    [D_AFTER] = {TOOL_ANSWER,
                 TOOL_TRIM,
                 0,
                 {{D("function_calls>"), D_CALL, 0}, {D("tool_calls>"), D_CALL, 0}}},
    [D_CALL] = {TOOL_SKIP,
                0,
                0,
                {{D("invoke name=\""), D_NAME, 0},
                 {D_END("function_calls"), D_AFTER, ARM_OK},
                 {D_END("tool_calls"), D_AFTER, ARM_OK},
                 {"", D_AFTER, 0}}},
    [D_NAME] = {TOOL_NAME, 0, 0, {{"\">", D_PARAM, 0}}},
    [D_PARAM] = {TOOL_SKIP,
                 0,
                 0,
                 {{D("parameter name=\""), D_KEY, ARM_BEGIN}, {D_END("invoke"), D_CALL, ARM_END}}},
    [D_KEY] = {TOOL_KEY,
               0,
               0,
               {{"\" string=\"true\">", D_STRING, 0}, {"\" string=\"false\">", D_JSON, 0}}},
    [D_STRING] = {TOOL_VALUE, TOOL_STRING, 0, {{D_END("parameter"), D_PARAM, 0}}},
    [D_JSON] = {TOOL_VALUE, TOOL_TYPED, 0, {{D_END("parameter"), D_PARAM, 0}}},
};
const tool_family tool_family_dsml = {.name = "dsml",
                                      .state = dsml,
                                      .n_states = TOOL_COUNT(dsml),
                                      .answer = D_AFTER,
                                      .tail = {{"<think>", D_THOUGHT}, {"</think>", D_AFTER}},
                                      .thought_end = "</think>"};
