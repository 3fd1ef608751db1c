/* Groups of states that many families share, as initialisers for their tables.  The caller names the
   states; `close` and the like are literals. */
#ifndef TEXT_TOOL_PARTS_H
#define TEXT_TOOL_PARTS_H

#include "text/tool/tool.h"

/* One JSON object a call, or an array of them: LIST comes after the opening marker. */
#define TOOL_LIST(LIST, ITEM, OBJECT, COMMA, close, AFTER, keyed)                                  \
    [LIST] = {TOOL_SKIP, 0, 0, {{"[", ITEM, 0}, {"{", OBJECT, ARM_KEEP}}},                         \
    [ITEM] = {TOOL_SKIP, 0, 0, {{"{", OBJECT, ARM_KEEP}, {"]", COMMA, ARM_OK}}},                   \
    [OBJECT] = {TOOL_OBJECT, keyed, COMMA, {{0}}},                                                 \
    [COMMA] = {TOOL_SKIP,                                                                          \
               0,                                                                                  \
               0,                                                                                  \
               {{",", ITEM, 0},                                                                    \
                {";", ITEM, 0},                                                                    \
                {"]", COMMA, ARM_OK},                                                              \
                {"{", OBJECT, ARM_KEEP},                                                           \
                {close, AFTER, ARM_OK},                                                            \
                {"", AFTER, 0}}}

/* A name, then parameters with names: NAME comes after the opening marker. */
#define TOOL_XML(NAME, PARAM, KEY, VALUE, name_end, open, key_end, shut, close, NEXT, lines)       \
    [NAME] = {TOOL_NAME, 0, 0, {{name_end, PARAM, 0}}},                                            \
    [PARAM] = {TOOL_SKIP, 0, 0, {{open, KEY, ARM_BEGIN}, {close, NEXT, ARM_END}}},                 \
    [KEY] = {TOOL_KEY, 0, 0, {{key_end, VALUE, 0}}},                                               \
    [VALUE] = {TOOL_VALUE, lines, 0, {{shut, PARAM, 0}}}

/* NAME<arg_key>K</arg_key><arg_value>V</arg_value>…: the tags with what follows their names. */
#define TOOL_PAIRS(NAME, PARAM, KEY, BETWEEN, VALUE, tag, close, NEXT)                             \
    [PARAM] = {TOOL_SKIP, 0, 0, {{"<" tag "arg_key>", KEY, ARM_BEGIN}, {close, NEXT, ARM_END}}},   \
    [KEY] = {TOOL_KEY, 0, 0, {{"</" tag "arg_key>", BETWEEN, 0}}},                                 \
    [BETWEEN] = {TOOL_SKIP, 0, 0, {{"<" tag "arg_value>", VALUE, 0}}},                             \
    [VALUE] = {TOOL_VALUE, 0, 0, {{"</" tag "arg_value>", PARAM, 0}}}

#define TOOL_COUNT(states) (uint8_t)(sizeof(states) / sizeof(states)[0])

#endif
