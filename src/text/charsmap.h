/* SentencePiece's precompiled map of characters: strings of bytes to their replacements, as a double
   array of 32-bit units and the replacements behind it.  Everything in it is checked as it is
   walked: the map comes from a file. */
#ifndef TEXT_CHARSMAP_H
#define TEXT_CHARSMAP_H

#include "base/arena.h"
#include "cairn/status.h"

typedef struct charsmap {
    const uint32_t *unit;
    size_t n;
    cairn_str to; /* the replacements, each ended by a zero byte */
} charsmap;

/* From a file's bytes, which are copied into a.  An empty blob is a map of nothing. */
cairn_status charsmap_init(charsmap *m, cairn_str blob, arena *a, const char *where,
                           cairn_diag *dg);
/* The longest (or, with `first`, the shortest) key at the start of s: its length, 0 if none. */
size_t charsmap_find(const charsmap *m, cairn_str s, bool first, cairn_str *to);

#endif
