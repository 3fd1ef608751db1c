/* Memory: how long a context fits, and how much of the machine the caches may take. */
#ifndef ENGINE_GUARD_H
#define ENGINE_GUARD_H

#include "cairn/status.h"
#include "model/model.h"
#include "tensor/kvview.h"

typedef struct guard_in {
    const model *m;
    kv_scheme codec;
    int32_t max_seqs, max_step_rows;
    int32_t ctx_len; /* 0: the largest that fits, at most the model's */
    uint64_t
        limit; /* bytes for caches; 0: nine tenths of what is free.  One that somebody states is
                             kept by giving prefixes less; tables that a lone sequence needs come on top */
    uint64_t prefix;      /* bytes for prefixes at most; 0: by default; GUARD_NO_PREFIX */
    uint64_t scratch;     /* bytes of programs and step buffers, not resident yet */
    uint64_t free, total; /* of the machine */
    bool disk;            /* prefixes go to files too */
} guard_in;

#define GUARD_NO_PREFIX UINT64_MAX

/* Prefixes may fill what sequences leave of their own bytes too, so prefix_bytes may be more than the room
   that is theirs alone. */
typedef struct guard_out {
    int32_t ctx_len;
    uint64_t cache_bytes; /* for all sequences */
    uint64_t prefix_room, prefix_bytes;
    uint64_t
        overhead; /* tables, the tree of prefixes, stages of the disk: within the same budget */
} guard_out;

int32_t guard_model_ctx(const model *m); /* the model's own context */
/* E_LIMIT with the sum when not even one sequence fits. */
cairn_status guard_fit(const guard_in *in, guard_out *out, cairn_diag *dg);

#endif
