/* Checked reads of tokenizer.json, shared by the files that read its parts.  A wrong value is E_CORRUPT
   "WHERE: PATH.KEY: found …; expected …". */
#ifndef TEXT_TOK_HF_H
#define TEXT_TOK_HF_H

#include "base/json.h"
#include "base/map.h"
#include "cairn/status.h"

typedef struct hf_obj {
    json_val v;
    const char *where; /* the file */
    const char *path;  /* of v in it; "": the root */
    cairn_diag *dg;
} hf_obj;

/* What is wrong with a value at a key, or with v itself (key NULL). */
cairn_status hf_wrong(const hf_obj *o, const char *key, json_val found, const char *expected);
/* The same for element i of the list that v is. */
cairn_status hf_wrong_at(const hf_obj *o, size_t i, json_val found, const char *expected);
/* Absent and null members leave *out alone. */
cairn_status hf_bool(const hf_obj *o, const char *key, bool *out);
cairn_status hf_text(const hf_obj *o, const char *key, cairn_str *out);
/* Must be there. */
cairn_status hf_list(const hf_obj *o, const char *key, json_val *out);
/* v must be an object with a text `type`. */
cairn_status hf_type(const hf_obj *o, cairn_str *type);
/* tok_hf_fields.c: the members of an object at one of the paths normalizer, pre_tokenizer, decoder,
   post_processor and model, whose type is `type`, are there and of their kind. */
cairn_status hf_fields(const hf_obj *o, cairn_str type);
/* The same of the root's version, truncation and padding, which are not used. */
cairn_status hf_check_root(const hf_obj *root);
/* Gives v, its fields checked, to `step`; of a Sequence, those of its list `key`, to HF_MAX_DEPTH inside
   each other. */
enum { HF_MAX_DEPTH = 8 };
typedef cairn_status (*hf_step)(void *ctx, json_val v, cairn_str type);
cairn_status hf_steps(const hf_obj *o, const char *key, hf_step step, void *ctx);

/* tok_hf_lists.c: the pieces and merges of a file whose shape is the usual one. */
typedef struct hf_piece {
    uint32_t at;   /* of its text in `texts`; 0: no piece has this id */
    uint16_t len;  /* longer ones are the parser's to refuse */
    uint16_t left; /* of the first half of a merge that makes it; 0: none does */
} hf_piece;
typedef struct hf_lists {
    cairn_str file; /* borrowed */
    size_t done;    /* while reading: how much of it `rest` has */
    bool has_model, has_vocab, has_merges, no_memory;
    char *
        texts; /* what the pieces are spelt, a NUL before and behind each; MAP_WIDE bytes more may be read */
    size_t n_texts;
    buf piece;        /* of hf_piece, by id; one that is none behind */
    uint32_t n_piece; /* the largest id and one */
    map by_text;      /* their ids; of equal texts the largest */
    buf merge;        /* of bpe_merge, in the file's order */
    buf rest;         /* the file with {} for the pieces and [] for the merges */
} hf_lists;
/* E_UNSUPPORTED: another shape, a merge of what are no pieces, or no JSON.  To be freed in any case. */
cairn_status hf_lists_read(cairn_str file, hf_lists *l);
void hf_lists_free(hf_lists *l);
static inline cairn_str hf_lists_text(const hf_lists *l, const hf_piece *p)
{
    return (cairn_str){l->texts + p->at, p->len};
}
/* tok_hf_merges.c: the list of merges, once the pieces are known. */
struct hf_scan;
bool hf_merges_read(struct hf_scan *r, hf_lists *l);

static inline bool hf_is_none(json_val v)
{
    return json_typeof(v) == JSON_NONE || json_typeof(v) == JSON_NULL;
}

#endif
