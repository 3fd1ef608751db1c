/* What a buffer holds, as a text. */
#ifndef SERVE_TEXT_OF_H
#define SERVE_TEXT_OF_H

#include "base/buf.h"
#include "base/str.h"

/* As buf_view, but an empty one is an empty text, which JSON tells from none.  Valid until the buffer changes. */
static inline cairn_str text_of(const buf *b)
{
    return b->len ? buf_view(b) : STR_LIT("");
}

#endif
