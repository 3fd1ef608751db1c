/* A big JSON object in pieces.  Private to format/ and its tests. */
#ifndef FORMAT_JSONSPLIT_H
#define FORMAT_JSONSPLIT_H

#include "base/buf.h"

typedef struct jsonsplit {
    cairn_str text; /* begins with the object's brace */
    size_t at;      /* where the next piece begins */
    bool done;
} jsonsplit;

/* The next member's text, of any length; empty for an empty object.  E_CORRUPT as below. */
cairn_status jsonsplit_member(jsonsplit *s, cairn_str *member, cairn_diag *dg);
/* Members of the object as its commas say; an upper bound where the text is malformed. */
size_t jsonsplit_count(cairn_str text);
/* Puts the next members into `piece` (cleared first) as an object of their own.  E_CORRUPT where the
   object does not end or something follows it, E_LIMIT for a member of over 4 MiB.  What is inside
   a piece is for the parser to judge. */
cairn_status jsonsplit_next(jsonsplit *s, buf *piece, cairn_diag *dg);

#endif
