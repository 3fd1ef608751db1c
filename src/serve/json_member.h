/* The text of one string member of an object, while the object's JSON comes in pieces. */
#ifndef SERVE_JSON_MEMBER_H
#define SERVE_JSON_MEMBER_H

#include "base/buf.h"

typedef enum json_member_state {
    MEMBER_BEFORE,     /* the object */
    MEMBER_KEY_OR_END, /* its next member */
    MEMBER_KEY,        /* inside a key */
    MEMBER_COLON,      /* behind a key */
    MEMBER_VALUE,      /* at the first byte of a value */
    MEMBER_TEXT,       /* inside the member's string */
    MEMBER_STRING,     /* inside another one */
    MEMBER_OTHER,      /* inside a value that is no string, or behind any */
    MEMBER_END         /* of the object, or of what could be read as one */
} json_member_state;

typedef struct json_member {
    const char *name;
    json_member_state state;
    size_t n_key; /* bytes of the key that were the name's; SIZE_MAX: it is another */
    uint32_t depth;
    bool escaped, found;
    int32_t n_hex; /* digits of \u to come */
    uint32_t unit, high;
} json_member;

void json_member_init(json_member *m, const char *name);
/* Appends to out what is new of the member's text: whole characters, where `json` holds whole ones. */
void json_member_feed(json_member *m, cairn_str json, buf *out);

#endif
