/* Texts, as ids, into vectors.  Each call makes its own stepper and leaves nothing behind; calls on one
   model may run on several threads: their steps take turns. */
#ifndef ENGINE_EMBED_H
#define ENGINE_EMBED_H

#include "cairn/score.h"
#include "cairn/status.h"
#include "model/model.h"

typedef struct embed_text {
    const int32_t *ids;
    int32_t n;
    int32_t skip; /* rows of the prompt, where they are not pooled; less than n */
} embed_text;

typedef struct embed_how {
    int32_t
        dimensions; /* elements kept, then normalised again if the model's vectors are; 0: the files' */
    int32_t n_threads;        /* 0: the model's */
    const char *const *names; /* [texts], for messages; NULL: text 0, text 1, … */
    int32_t step_rows;        /* rows of a step where texts leave the choice; 0: STEP_ROWS */
    bool (*go_on)(void *ctx); /* asked before each step; false: E_CANCELLED.  NULL: go on */
    void *go_on_ctx;
} embed_how;

/* v: [dim] of text i; valid during the call.  Return false to stop. */
typedef bool (*embed_fn)(void *ctx, size_t i, const float *v, int32_t dim);

int32_t embed_max_ids(const model *m); /* of a text as the files have it */
int32_t embed_dim(const model *m);     /* where nobody asks for fewer elements */
cairn_status embed_check_ids(const model *m, const int32_t *ids, size_t n, cairn_diag *dg);
/* Says before the message which text it is about. */
cairn_status embed_blame(const embed_how *o, size_t i, cairn_status st, cairn_diag *dg);
/* In the order of the texts, every one checked before the first is computed. */
cairn_status embed_run(const model *m, const embed_text *text, size_t n, const embed_how *o,
                       embed_fn fn, void *ctx, cairn_diag *dg);

/* numerics_check for models without logits: the text's vector alone, with strangers, in chunks where a
   text may be cut, on 1 … max_threads threads. */
cairn_status embed_check_numerics(const model *m, const int32_t *ids, size_t n, int32_t max_threads,
                                  void (*say)(void *ctx, const char *line), void *ctx,
                                  cairn_numerics_report *out, cairn_diag *dg);

#endif
