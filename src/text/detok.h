/* Streaming detokenizer: ids in, text out, never half a character.  What was emitted, joined, equals
   tok_decode over all ids (U+FFFD for bytes that never become a character). */
#ifndef TEXT_DETOK_H
#define TEXT_DETOK_H

#include "text/tok.h"

typedef struct detok detok;

cairn_status detok_new(const tok *t, bool keep_special, detok **out);
void detok_free(detok *d);
/* Reserves so that feeding up to n more ids allocates nothing. */
cairn_status detok_reserve(detok *d, size_t n);
size_t detok_bytes(const detok *d); /* that it holds */
/* The same at most, with room for n ids: a buffer has up to twice what was asked for. */
uint64_t detok_worst_bytes(const tok *t, uint64_t n);
/* `text` is valid until the next call.  An id without a piece has none; a negative one is E_ARG. */
cairn_status detok_feed(detok *d, int32_t id, cairn_str *text);
cairn_status detok_end(detok *d, cairn_str *text); /* what is held */
/* Where in tok_decode's text of n ids each one stands: spans[2i] to spans[2i + 1], in bytes.  Ids that share
   a character, or a run of bytes that is no text, share its span. */
cairn_status tok_spans(const tok *t, const int32_t *ids, size_t n, bool keep_special, size_t *spans,
                       cairn_diag *dg);

#endif
