/* <tool_call> with a JSON object (Hermes 2/3, Qwen 2.5 and 3, Granite 4, most others)
   or with <function=NAME><parameter=KEY> inside (Qwen3-Coder, Qwen 3.5, Nemotron 3, Step), which the
   first byte tells.  "generic" is what a model without a known template is likely to do: the same, and
   the bare object at the answer's beginning. */
#include "text/tool/tool_parts.h"

enum {
    ANSWER,
    THOUGHT,
    AFTER,
    CALL,
    LIST,
    ITEM,
    OBJECT,
    COMMA,
    NAME,
    PARAM,
    KEY,
    VALUE,
    NEXT,
    BARE
};

static const tool_state states[] = {
    [ANSWER] = {.op = TOOL_ANSWER,
                .arm = {{"<think>", THOUGHT, ARM_AT},
                        {"</think>", AFTER, ARM_AT},
                        {"<tool_call>", CALL, 0},
                        {"<function=", NAME, 0}}},
    [THOUGHT] = {.op = TOOL_THOUGHT, .flags = TOOL_TRIM, .arm = {{"</think>", AFTER, 0}}},
    [AFTER] = {.op = TOOL_ANSWER,
               .flags = TOOL_TRIM,
               .arm = {{"<tool_call>", CALL, 0}, {"<function=", NAME, 0}}},
    [CALL] = {.op = TOOL_SKIP, .arm = {{"<function=", NAME, 0}, {"", LIST, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "</tool_call>", AFTER, 0),
    TOOL_XML(NAME, PARAM, KEY, VALUE, ">", "<parameter=", ">", "</parameter>", "</function>", NEXT,
             "</tool_call>", AFTER, TOOL_LINES),
    [NEXT] = {.op = TOOL_SKIP,
              .arm = {{"</tool_call>", AFTER, ARM_OK}, {"<function=", NAME, 0}, {"", AFTER, 0}}},
    [BARE] = {.op = TOOL_ANSWER,
              .arm = {{"<think>", THOUGHT, ARM_AT},
                      {"</think>", AFTER, ARM_AT},
                      {"<tool_call>", CALL, 0},
                      {"<function=", NAME, 0},
                      {"{", OBJECT, ARM_AT | ARM_KEEP}}},
};

#define HERMES(called, begins)                                                                     \
    {                                                                                              \
        .name = called, .state = states, .n_states = TOOL_COUNT(states), .start = begins,          \
        .answer = AFTER, .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}},                      \
        .thought_end = "\n</think>\n\n"                                                            \
    }
const tool_family tool_family_generic = HERMES("generic", BARE);
const tool_family tool_family_hermes = HERMES("hermes", ANSWER);
const tool_family tool_family_qwen3_coder = HERMES("qwen3-coder", ANSWER);
