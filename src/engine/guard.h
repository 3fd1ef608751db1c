/* Memory: who has how much of one budget, and how long a context fits into what that leaves. */
#ifndef ENGINE_GUARD_H
#define ENGINE_GUARD_H

#include "cairn/status.h"
#include "model/model.h"
#include "tensor/kvview.h"
#include "text/tok.h"

/* One budget holds all that the process may have in memory while the engine is open. */
typedef struct guard_in {
    const model *m; /* its device and weights may be missing where weights is given */
    const tok *tok; /* NULL: no text */
    kv_scheme codec;
    int32_t max_seqs, max_queue, max_step_rows;
    int32_t ctx_len; /* 0: the largest that fits, at most the model's */
    uint64_t budget; /* bytes in all; 0: what is held, and nine tenths of what is free */
    /* Bytes for caches at most; 0: what the budget leaves.  Without a budget it is kept by giving prefixes less,
       and nothing else is counted. */
    uint64_t limit;
    uint64_t prefix;  /* bytes for prefixes at most; 0: by default; GUARD_NO_PREFIX */
    uint64_t scratch; /* bytes of programs and step buffers */
    uint64_t live;    /* bytes allocated now, programs, step buffers and packed weights included */
    uint64_t other;   /* of what is allocated, what the budget is to hold; 0: all */
    uint64_t host;    /* bytes that the caller takes for itself */
    uint64_t weights; /* bytes of weights that are not loaded yet; 0: they are the device's */
    uint64_t free, total; /* of the machine */
    bool disk;            /* prefixes go to files too */
} guard_in;

#define GUARD_NO_PREFIX UINT64_MAX

/* Bytes.  Prefixes may fill what sequences leave of their own bytes too, so prefix_bytes may be more than the room
   that is theirs alone. */
typedef struct guard_out {
    int32_t ctx_len;
    uint64_t budget;
    uint64_t reserved; /* all below but prefix_bytes; at most the budget where one was given */
    uint64_t weights_bytes, scratch_bytes, other_bytes; /* other: what else was allocated before */
    uint64_t request_bytes; /* of requests, running and waiting, with their texts */
    uint64_t host_bytes;    /* the caller's, and what the program itself takes */
    uint64_t cache_bytes;   /* for all sequences */
    uint64_t prefix_room, prefix_bytes;
    uint64_t overhead; /* tables, the tree of prefixes, stages of the disk */
} guard_out;

static inline uint64_t guard_left(uint64_t all, uint64_t taken)
{
    return all > taken ? all - taken : 0;
}
int32_t guard_model_ctx(const model *m);          /* the model's own context */
uint64_t guard_budget(const guard_in *in);        /* the whole budget, given or found */
uint64_t guard_program_bytes(const guard_in *in); /* other_bytes and host_bytes */
/* E_LIMIT with the sum when not even one sequence fits.  A context that nobody gave is the longest that fits, beside
   the tree of prefixes and a disk's stages where these are wanted.  Where it fits without prefixes only, and no disk is
   asked for, none are kept: prefix_bytes is 0 and the log says so. */
cairn_status guard_fit(const guard_in *in, guard_out *out, cairn_diag *dg);

#endif
