/* Values as Python, JSON or Gemma 4 write them → JSON, byte by byte. */
#ifndef TEXT_TOOL_LITERAL_H
#define TEXT_TOOL_LITERAL_H

#include "base/buf.h"
#include "cairn/reply.h"
#include "text/tool/tool_scan.h"

/* An escape sequence under way. */
typedef struct unescape {
    uint8_t left; /* hexadecimal digits to come */
    bool slash;   /* after a backslash */
    uint32_t cp, high;
} unescape;
/* Appends the bytes that c completes to out[0 … 9]; answers their number.  An escape that is none
   stands for itself. */
size_t unescape_feed(unescape *u, char c, char out[10]);

typedef enum literal_kind {
    LITERAL_PYTHON, /* 'a' or "a", True or true, tuples as lists */
    LITERAL_GEMMA,  /* <|"|>a<|"|>, bare keys */
    LITERAL_ESCAPE  /* <escape>a<escape>, bare keys */
} literal_kind;

typedef struct literal {
    literal_kind kind;
    uint8_t state;
    char quote;
    bool is_key;
    uint16_t depth;
    uint8_t n_mark;                     /* matched bytes of Gemma's quote */
    uint16_t n_word;                    /* of a word or bare key */
    char open[CAIRN_REPLY_MAX_DEPTH];   /* the containers' opening brackets */
    bool filled[CAIRN_REPLY_MAX_DEPTH]; /* has an element */
    char word[CAIRN_REPLY_MAX_NAME];
    unescape esc;
} literal;

void literal_init(literal *l, literal_kind kind);
/* SCAN_AFTER: the value ended before c.  `mark`: c may be part of Gemma's quote. */
scan_result literal_feed(literal *l, char c, bool mark, buf *out);
/* The end of the input: SCAN_DONE or SCAN_BAD. */
scan_result literal_end(literal *l, buf *out);
/* A whole value, white space around it left out; false: it is none, and `out` is as before. */
bool literal_convert(cairn_str text, buf *out);

#endif
