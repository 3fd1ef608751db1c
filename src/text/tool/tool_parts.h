/* Groups of states that many families share, as initialisers for their tables.  The caller names the
   states; `close` and the like are literals. */
#ifndef TEXT_TOOL_PARTS_H
#define TEXT_TOOL_PARTS_H

#include "text/tool/tool.h"

/* One JSON object a call, or an array of them: LIST comes after the opening marker. */
#define TOOL_LIST(LIST, ITEM, OBJECT, COMMA, close, AFTER, keyed)                                  \
    [LIST] = {.op = TOOL_SKIP, .arm = {{"[", ITEM, 0}, {"{", OBJECT, ARM_KEEP}}},                  \
    [ITEM] = {.op = TOOL_SKIP, .arm = {{"{", OBJECT, ARM_KEEP}, {"]", COMMA, ARM_OK}}},            \
    [OBJECT] = {.op = TOOL_OBJECT, .flags = keyed, .next = COMMA},                                 \
    [COMMA] = {.op = TOOL_SKIP,                                                                    \
               .arm = {{",", ITEM, 0},                                                             \
                       {";", ITEM, 0},                                                             \
                       {"]", COMMA, ARM_OK},                                                       \
                       {"{", OBJECT, ARM_KEEP},                                                    \
                       {close, AFTER, ARM_OK},                                                     \
                       {"", AFTER, 0}}}

/* A name, then parameters with names: NAME comes after the opening marker.  Where `close` is missing,
   the end of the block, which leads OUT, ends the call too. */
#define TOOL_XML(NAME, PARAM, KEY, VALUE, name_end, open, key_end, shut, close, NEXT, block, OUT,  \
                 lines)                                                                            \
    [NAME] = {.op = TOOL_NAME, .arm = {{name_end, PARAM, 0}}},                                     \
    [PARAM] = {.op = TOOL_SKIP,                                                                    \
               .arm = {{open, KEY, ARM_BEGIN}, {close, NEXT, ARM_END}, {block, OUT, ARM_END}}},    \
    [KEY] = {.op = TOOL_KEY, .arm = {{key_end, VALUE, 0}}},                                        \
    [VALUE] = {.op = TOOL_VALUE, .flags = lines, .arm = {{shut, PARAM, 0}}}

/* NAME<arg_key>K</arg_key><arg_value>V</arg_value>…: the tags with what follows their names. */
#define TOOL_PAIRS(NAME, PARAM, KEY, BETWEEN, VALUE, tag, close, NEXT)                             \
    [PARAM] = {.op = TOOL_SKIP,                                                                    \
               .arm = {{"<" tag "arg_key>", KEY, ARM_BEGIN}, {close, NEXT, ARM_END}}},             \
    [KEY] = {.op = TOOL_KEY, .arm = {{"</" tag "arg_key>", BETWEEN, 0}}},                          \
    [BETWEEN] = {.op = TOOL_SKIP, .arm = {{"<" tag "arg_value>", VALUE, 0}}},                      \
    [VALUE] = {.op = TOOL_VALUE, .arm = {{"</" tag "arg_value>", PARAM, 0}}}

#define TOOL_COUNT(states) (uint8_t)(sizeof(states) / sizeof(states)[0])

#endif
