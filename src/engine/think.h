/* A budget for thinking: follows one reply beside its stream, counts the tokens of thoughts, and says
   which tokens close one that has spent it.  Engine thread. */
#ifndef ENGINE_THINK_H
#define ENGINE_THINK_H

#include "base/buf.h"
#include "cairn/engine.h"
#include "text/detok.h"

typedef struct think {
    struct reply *reply; /* NULL: no budget */
    detok *detok;        /* its own: special tokens are markup here, whatever the request hides */
    const tok *tok;
    int32_t vocab, budget, n_thought;
    bool whole;  /* the last token ended in no half character */
    buf closing; /* ids that close a thought */
    size_t at;   /* what came of them, in bytes; all: no thought is being closed */
} think;

/* `budget` < 0, no `how`, or a family whose thoughts nothing closes: nothing is followed.  E_ARG: the
   tokenizer cannot write what closes a thought.  n_ids ids are fed without allocating; a call that holds
   back more than 16 KiB ends the following. */
cairn_status think_init(think *t, const tok *tk, int32_t vocab, int32_t budget,
                        const struct cairn_reply_opts *how, size_t n_ids, cairn_diag *dg);
void think_deinit(think *t);        /* zeroed is fine */
size_t think_bytes(const think *t); /* held */
uint64_t think_worst_bytes(const tok *t, uint64_t n_ids);
/* The id that must come next; NULL: any may.  Valid as long as t. */
const int32_t *think_next(think *t);
cairn_status think_feed(think *t, int32_t id); /* what came */

#endif
