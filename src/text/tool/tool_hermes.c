/* <tool_call> with a JSON object (Hermes 2/3, Qwen 2.5 and 3, Granite 4, SmolLM3, ERNIE, most others)
   or with <function=NAME><parameter=KEY> inside (Qwen3-Coder, Qwen 3.5, Nemotron 3, Step), which the
   first byte tells.  "generic" is the same: what a model without a known template is likely to do. */
#include "text/tool/tool_parts.h"

enum { ANSWER, THOUGHT, AFTER, CALL, LIST, ITEM, OBJECT, COMMA, NAME, PARAM, KEY, VALUE, NEXT };

static const tool_state states[] = {
    [ANSWER] = {TOOL_ANSWER,
                0,
                0,
                {{"<think>", THOUGHT, ARM_AT},
                 {"</think>", AFTER, ARM_AT},
                 {"<tool_call>", CALL, 0},
                 {"<function=", NAME, 0}}},
    [THOUGHT] = {TOOL_THOUGHT, TOOL_TRIM, 0, {{"</think>", AFTER, 0}}},
    [AFTER] = {TOOL_ANSWER, TOOL_TRIM, 0, {{"<tool_call>", CALL, 0}, {"<function=", NAME, 0}}},
    [CALL] = {TOOL_SKIP, 0, 0, {{"<function=", NAME, 0}, {"", LIST, 0}}},
    TOOL_LIST(LIST, ITEM, OBJECT, COMMA, "</tool_call>", AFTER, 0),
    TOOL_XML(NAME, PARAM, KEY, VALUE, ">", "<parameter=", ">", "</parameter>", "</function>", NEXT,
             TOOL_LINES),
    [NEXT] = {TOOL_SKIP,
              0,
              0,
              {{"</tool_call>", AFTER, ARM_OK}, {"<function=", NAME, 0}, {"", AFTER, 0}}},
};

#define HERMES(called)                                                                             \
    {                                                                                              \
        .name = called, .state = states, .n_states = TOOL_COUNT(states), .answer = AFTER,          \
        .tail = {{"<think>", THOUGHT}, {"</think>", AFTER}}, .thought_end = "\n</think>\n\n"       \
    }
const tool_family tool_family_generic = HERMES("generic");
const tool_family tool_family_hermes = HERMES("hermes");
const tool_family tool_family_qwen3_coder = HERMES("qwen3-coder");
