/* Texts into vectors, by any model; embedding models say in their files how.  What a text's vector is
   depends on the text alone: not on the others of the call, nor on threads. */
#ifndef CAIRN_EMBED_H
#define CAIRN_EMBED_H

#include "cairn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CAIRN_MAX_EMBED_TEXTS = 2048 }; /* of one call; as many as OpenAI's route takes */

typedef struct cairn_embed_info {
    uint32_t struct_size; /* set by cairn_embed_info_init */
    int32_t dimensions;   /* of a vector where nobody asks for fewer */
    int32_t max_tokens;   /* of one text, or list of tokens */
    int32_t n_prompts;    /* that the model's files name */
    bool normalised;      /* vectors have length 1 */
    bool embeds;          /* the files say how, or there is no other use; else defaults count */
    bool only_embeds;     /* there are no logits: no engine can be made */
} cairn_embed_info;

typedef struct cairn_embed_opts {
    uint32_t struct_size;     /* set by cairn_embed_opts_init */
    int32_t dimensions;       /* the first so many elements, normalised again; 0: all */
    int32_t n_threads;        /* at most CAIRN_MAX_THREADS; 0: the model's */
    bool truncate;            /* a text that is too long is cut; else it is an error */
    cairn_str prompt_name;    /* of the model's files; the text goes before each text */
    cairn_str prompt;         /* the same spelled out; ptr not NULL: it counts, even if empty */
    const char *const *names; /* [texts], for messages; NULL: text 0, text 1, … */
    /* Asked before each step of some 500 tokens, and each text that is tokenized: false ends with E_CANCELLED.  NULL: go
       on. */
    bool (*go_on)(void *ctx);
    void *go_on_ctx;
} cairn_embed_opts;

/* Valid during the callback only. */
typedef struct cairn_embedding {
    size_t index; /* of the text */
    const float *values;
    int32_t n_values;
    int32_t n_tokens; /* of the text, special ones and the prompt included */
} cairn_embedding;
/* In the order of the texts.  Return false to stop. */
typedef bool (*cairn_embed_fn)(void *ctx, const cairn_embedding *e);

CAIRN_API void cairn_embed_info_init(cairn_embed_info *info);
/* Writes the first info->struct_size bytes: what the caller's version of the struct has. */
CAIRN_API void cairn_embed_get_info(const cairn_model *m, cairn_embed_info *info);
/* i < n_prompts: asserted.  Valid as long as the model. */
CAIRN_API void cairn_embed_prompt(const cairn_model *m, int32_t i, cairn_str *name,
                                  cairn_str *text);

CAIRN_API void cairn_embed_opts_init(cairn_embed_opts *o);
/* Without prompt and prompt_name the files' default prompt counts, if they name one.  `o` may be NULL.
   E_LIMIT: a text or a list of tokens is longer than max_tokens; E_ARG: an empty list of tokens, an option
   out of range, an unknown prompt; E_NOTFOUND: texts, and the model has no tokenizer.  Every text is checked
   before the first is computed.  Any thread; not while others run on `m` if `n_threads` differs from the
   model's. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_embed(const cairn_model *m, const cairn_str *texts,
                                                  size_t n, const cairn_embed_opts *o,
                                                  cairn_embed_fn fn, void *ctx, cairn_diag *dg);
/* Tokens are taken as they are: no prompt, nothing added. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_embed_ids(const cairn_model *m, const cairn_ids *texts,
                                                      size_t n, const cairn_embed_opts *o,
                                                      cairn_embed_fn fn, void *ctx, cairn_diag *dg);

#ifdef __cplusplus
}
#endif
#endif
