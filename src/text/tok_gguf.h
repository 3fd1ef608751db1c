/* What the readers of GGUF vocabularies share: tok_gguf.c (BPE, SentencePiece), tok_gguf_pre.c (split
   rules by name), tok_gguf_kinds.c (the other algorithms). */
#ifndef TEXT_TOK_GGUF_H
#define TEXT_TOK_GGUF_H

#include "text/tok_priv.h"

/* tokenizer.ggml.token_type */
enum {
    GGUF_NORMAL = 1,
    GGUF_UNKNOWN,
    GGUF_CONTROL,
    GGUF_USER,
    GGUF_UNUSED,
    GGUF_BYTE,
};

enum { GGUF_MOST_RULES = 6 };

enum {
    GGUF_IGNORE_MERGES = 1,
    GGUF_ADD_BOS = 2, /* unless the file says otherwise */
    GGUF_TEXT = 4,    /* pieces are text, not bytes of the byte-level alphabet */
    GGUF_SPACED = 8,  /* with U+2581 for spaces */
};

typedef struct gguf_pre {
    const char *name;
    const char *rule[GGUF_MOST_RULES]; /* each over the words of the one before */
    uint32_t flags;
} gguf_pre;

const gguf_pre *gguf_pre_find(cairn_str name); /* NULL: not known */

typedef enum gguf_kind { GGUF_BPE, GGUF_SPM, GGUF_WPM, GGUF_UGM, GGUF_RWKV, GGUF_PLAMO2 } gguf_kind;

typedef struct gguf_loader {
    tok *t;
    const meta_view *v;
    const char *where;
    cairn_diag *dg;
    gguf_kind kind;
    const gguf_pre *pre; /* of BPE */
    meta tokens, types, scores, merges;
} gguf_loader;

cairn_status gguf_no_memory(gguf_loader *l);
int64_t gguf_type_at(gguf_loader *l, size_t i); /* GGUF_NORMAL where the file says none */
cairn_status gguf_read_scores(gguf_loader *l);  /* t->score */
/* After pieces are indexed: steps, model and decoder of the kind. */
cairn_status gguf_read_wpm(gguf_loader *l);
cairn_status gguf_read_ugm(gguf_loader *l);
cairn_status gguf_read_plamo2(gguf_loader *l);
/* Before: the bytes of piece `id`, which is spelt with escapes. */
cairn_status gguf_rwkv_piece(gguf_loader *l, int32_t id);
cairn_status gguf_read_rwkv(gguf_loader *l);

#endif
