/* Execution plans: what a request needs and what an engine can, resolved once, at submit, to how the request is
   computed.  A plan never changes; one that was made for another shape (cache, codec, program, context) is refused
   before anything runs by it. */
#ifndef ENGINE_EXEC_PLAN_H
#define ENGINE_EXEC_PLAN_H

#include "cairn/status.h"
#include "engine/method.h"
#include "engine/step.h"

enum {
    EXEC_LAYOUT_BYTES = 48, /* all kinds of layers at once: 27 */
    EXEC_WHY_BYTES = 256    /* all four ways, the last one's reason of some 100; more is cut */
};

/* What an engine can.  Immutable once it is open; strings live as long as the engine. */
typedef struct exec_can {
    char layout[EXEC_LAYOUT_BYTES]; /* "paged", "paged+windowed+state", … */
    const char *codec;              /* what caches hold, canonical */
    const char *isa;                /* level of the kernels */
    uint64_t program;               /* hash of the recorded ops */
    stepper_shape rows;             /* row counts that it was compiled for */
    int32_t ctx_len;
    bool exact;     /* activations stay f32 */
    bool keeps;     /* prefixes */
    bool saves;     /* checkpoints */
    uint64_t shape; /* hash of layout, codec, program, row counts and context */
} exec_can;

/* What a request needs. */
typedef struct exec_need {
    int32_t n_prompt, max_ids;
    const char *no_checkpoint; /* why it may have none; NULL: it may */
} exec_need;

typedef struct exec_plan {
    const method *method;
    const char *layout, *codec, *isa; /* the engine's */
    uint64_t program;
    int32_t max_rows;         /* of the largest program that a step of this request alone takes */
    int32_t last_rows;        /* of the one that a token of its answer takes, alone */
    int32_t n_blocks;         /* of 64 positions, at its longest, of layers that see everything */
    bool resumes;             /* its tokens go to checkpoints */
    uint64_t shape;           /* that it was made for */
    char why[EXEC_WHY_BYTES]; /* each faster way and why it is not taken, "; " between them */
} exec_plan;

/* `codec` and the model as long as `out`.  E_NOMEM. */
cairn_status exec_can_read(const model *m, const stepper *s, const char *codec, int32_t ctx_len,
                           exec_can *out, cairn_diag *dg);
exec_plan exec_plan_make(const exec_can *can, const exec_need *need);
/* E_ARG: it was made for another shape, and `dg` says in what they differ. */
cairn_status exec_plan_check(const exec_plan *p, const exec_can *can, cairn_diag *dg);

#endif
