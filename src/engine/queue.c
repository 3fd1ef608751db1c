/* The order in which requests are admitted.  Each has a place from the start: when it came, later by its
   priority and by the time that its prompt takes.  So short ones pass long ones, and high ones low ones, but
   only those that came not too long before them: everybody's turn comes. */
#include "engine/engine_priv.h"

/* A step of priority: the patience of somebody at a screen. */
#define STEP_NS UINT64_C(10000000000)
#define MS_NS   UINT64_C(1000000)

void queue_enter(const engine *e, request *r)
{
    const uint64_t later = (uint64_t)(r->priority + CAIRN_MAX_PRIORITY);
    r->due_ns = r->born_ns + later * STEP_NS + pace_prompt_ns(&e->pace, r->n_prompt);
}

bool queue_late(const request *r, uint64_t now_ns)
{
    return r->deadline_ms && now_ns - r->born_ns >= r->deadline_ms * MS_NS;
}

int32_t queue_next(engine *e)
{
    int32_t best = -1;
    for (int32_t i = e->n_active; i < e->n_mine; i++) {
        request *r = e->mine[i];
        if (best >= 0 && r->due_ns >= e->mine[best]->due_ns) continue;
        if (!cohort_waits(r, e->mine, e->n_active, &e->cohort)) best = i;
    }
    return best;
}

void queue_admit(engine *e, int32_t i)
{
    request *r = e->mine[i];
    for (int32_t k = i; k > e->n_active; k--) e->mine[k] = e->mine[k - 1];
    e->mine[e->n_active++] = r;
}
