/* Tokenizers: text to ids and back.  One interface, several algorithms and file formats behind it.
   A tok is immutable once open and may be used from any thread. */
#ifndef TEXT_TOK_H
#define TEXT_TOK_H

#include "base/buf.h"
#include "base/json.h"
#include "base/meta.h"

typedef struct tok tok;

/* From the texts of tokenizer.json and tokenizer_config.json (the latter may be empty).  `where`
   names the file in messages.  Everything is copied. */
cairn_status tok_open_hf(cairn_str tokenizer_json, cairn_str tokenizer_config, const char *where,
                         tok **out, cairn_diag *dg);
/* From a GGUF's tokenizer.ggml.* keys.  The view need not outlive the call. */
cairn_status tok_open_gguf(const meta_view *gguf, const char *where, tok **out, cairn_diag *dg);
/* From the bytes of a SentencePiece model, or of a tiktoken rank file, and tokenizer_config.json's text
   (may be empty).  tiktoken files do not name their split rule: `name` is the file's name, which
   does, and the config's tokenizer_class. */
cairn_status tok_open_sentencepiece(cairn_str model, cairn_str config, const char *where, tok **out,
                                    cairn_diag *dg);
cairn_status tok_open_tiktoken(cairn_str ranks, cairn_str config, const char *name,
                               const char *where, tok **out, cairn_diag *dg);
bool tok_is_tiktoken(cairn_str bytes); /* else it may be a SentencePiece model */
/* From vocab.json and merges.txt (byte-level BPE), or BERT's vocab.txt. */
cairn_status tok_open_merges(cairn_str vocab, cairn_str merges, cairn_str config, const char *where,
                             tok **out, cairn_diag *dg);
cairn_status tok_open_wordpiece(cairn_str vocab, cairn_str config, const char *where, tok **out,
                                cairn_diag *dg);
void tok_close(tok *t);

enum { TOK_ADD_SPECIAL = 1, TOK_PARSE_SPECIAL = 2 };
/* Appends ids (int32_t) to `ids`.  E_LIMIT when a limit of the algorithm is hit. */
cairn_status tok_encode(const tok *t, cairn_str s, uint32_t flags, buf *ids, cairn_diag *dg);
/* The same, which may stop when s itself has made `enough` ids or more: they are the first that tok_encode makes,
   and what it puts behind a text follows. */
cairn_status tok_encode_some(const tok *t, cairn_str s, uint32_t flags, size_t enough, buf *ids,
                             cairn_diag *dg);
uint32_t tok_n_after(const tok *t); /* how many ids TOK_ADD_SPECIAL puts behind a text */
/* tok_encode makes at least so many ids of s, whatever the flags; 0 where that cannot be told from s and
   the vocabulary alone. */
size_t tok_least_ids(const tok *t, cairn_str s);
/* Appends the text of n ids: the tokenizer's own decoder over all of them at once.  An id without a
   piece (a model's vocabulary may be padded) has no text; a negative one is E_ARG. */
cairn_status tok_decode(const tok *t, const int32_t *ids, size_t n, bool keep_special, buf *out,
                        cairn_diag *dg);

typedef struct tok_special {
    int32_t bos, eos, unk, pad; /* -1: none */
    bool add_bos, add_eos;
} tok_special;
tok_special tok_specials(const tok *t);
int32_t tok_vocab(const tok *t);
int32_t tok_find(const tok *t, cairn_str piece); /* id of an exact vocabulary or added piece; -1 */
/* Bytes that the id contributes in the middle of a text (byte-level pieces decoded, ▁ as space). */
cairn_str tok_piece(const tok *t, int32_t id);
size_t tok_longest_piece(const tok *t);    /* bytes, of all of these */
bool tok_is_eos(const tok *t, int32_t id); /* ends generation: eos, eot, eom and the like */
/* More ids that end generation (generation_config.json); before the tok is shared. */
cairn_status tok_add_eos(tok *t, int32_t id);

void regex_library(buf *out); /* name and version of the library of patterns */

#endif
