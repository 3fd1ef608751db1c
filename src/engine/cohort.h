/* Requests whose prompts begin alike: what one computes right now, the others wait for. */
#ifndef ENGINE_COHORT_H
#define ENGINE_COHORT_H

#include "cairn/status.h"
#include "engine/request.h"

/* What the engine knows of prefixes. */
typedef struct cohort_env {
    bool keeps;         /* prefixes, at all */
    cache_ns common;    /* what every space reads */
    int32_t mark_every; /* recurrent caches: prefixes end at marks; 0: anywhere */
    int32_t switch_len; /* stepper_switch_len */
} cohort_env;

/* Running hashes of the prompt's whole blocks, into r->a; any thread. */
cairn_status cohort_prepare(request *r);
/* Positions of `by`'s prompt that r could begin with once they are computed. */
int32_t cohort_shared(const request *r, const request *by, const cohort_env *env);
/* Whether r, not yet admitted, had better wait: one of the n active ones is on its way through a prefix of
   r's. */
bool cohort_waits(request *r, request *const *active, int32_t n, const cohort_env *env);
/* The priority of r, or of the most urgent that waits for it now. */
int32_t cohort_urgency(const request *r);
/* Rows until the first token of r, or of the shortest that waits for it now. */
int32_t cohort_left(const request *r);
/* `r` computes no more: of the n others nobody waits for it. */
void cohort_release(const request *r, request *const *other, int32_t n);

#endif
