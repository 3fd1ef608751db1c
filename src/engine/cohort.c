/* Many agents begin with one long prompt: the first that is admitted computes it, and the others stay in
   the queue until its blocks are known, then take them up.

   Nobody waits in a circle, since only active requests are waited for and they wait for none; who is waited
   for is at work and of at least the waiters' priority.  A wait ends when the rows are there or the leader
   leaves, and there are few of them. */
#include "engine/cohort.h"

#include "base/hash.h"
#include "base/num.h"

enum {
    BLOCK = KV_BLOCK, /* what a cache makes known */
    MAX_WAITS = 8     /* leaders that a request follows in its life: they may be cancelled */
};

cairn_status cohort_prepare(request *r)
{
    const int32_t n = r->n_prompt / BLOCK;
    r->chain = arena_alloc(&r->a, (size_t)n * sizeof *r->chain);
    if (!r->chain) return CAIRN_E_NOMEM;
    uint64_t h = 0;
    for (int32_t i = 0; i < n; i++)
        r->chain[i] = h = hash64(r->ids + i * BLOCK, BLOCK * sizeof *r->ids, h);
    return CAIRN_OK;
}

/* Who tells of its prompt takes up nothing, and goes a few rows a step: it neither waits nor is waited for. */
static bool apart(const request *r)
{
    return r->prompt_logprobs;
}

/* Positions in which two prompts agree. */
static int32_t agree(const request *a, const request *b)
{
    const int32_t n = min_i32(a->n_prompt, b->n_prompt);
    int32_t lo = 0, hi = n / BLOCK;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo + 1) / 2;
        if (a->chain[mid - 1] == b->chain[mid - 1])
            lo = mid;
        else
            hi = mid - 1;
    }
    int32_t i = lo * BLOCK;
    while (i < n && a->ids[i] == b->ids[i]) i++;
    return i;
}

static bool same_rows(const request *r, const request *by, const cohort_env *env)
{
    const int32_t at = env->switch_len;
    if (at > 0 && (r->n_ids > at) != (by->n_ids > at)) return false;
    return hash128_same(by->ns, r->ns) || hash128_same(by->ns, env->common);
}

int32_t cohort_shared(const request *r, const request *by, const cohort_env *env)
{
    if (!env->keeps || !same_rows(r, by, env)) return 0;
    const int32_t most = min_i32(agree(r, by), r->n_prompt - 1); /* the last row is its own */
    if (!env->mark_every) return most / BLOCK * BLOCK;
    int32_t best = most / env->mark_every * env->mark_every;
    for (int32_t i = 0; by->mark[i] <= most; i++) best = max_i32(best, by->mark[i]);
    return best;
}

static bool at_work(const request *r, int32_t until)
{
    return (r->state == REQ_PREFILL || r->state == REQ_RESTORE) && r->n_done < until;
}

/* As far as r follows, its leader goes at r's pace. */
static void hurry(request *leader, const request *r)
{
    const bool urgent = leader->n_done < leader->urgent_to;
    leader->urgency = urgent ? min_i32(leader->urgency, r->priority) : r->priority;
    leader->urgent_to = urgent ? max_i32(leader->urgent_to, r->led_to) : r->led_to;
    if (leader->n_done < leader->rush_to && leader->rush_len <= r->n_prompt) return;
    leader->rush_to = r->led_to;
    leader->rush_len = r->n_prompt;
}

int32_t cohort_urgency(const request *r)
{
    return r->n_done < r->urgent_to ? min_i32(r->urgency, r->priority) : r->priority;
}

int32_t cohort_left(const request *r)
{
    const int32_t len = r->n_done < r->rush_to ? min_i32(r->rush_len, r->n_ids) : r->n_ids;
    return len - r->n_done;
}

bool cohort_waits(request *r, request *const *active, int32_t n, const cohort_env *env)
{
    if (r->leader && same_rows(r, r->leader, env) && at_work(r->leader, r->led_to)) return true;
    if (r->leader) r->led_from = r->led_to; /* so much is known now */
    r->leader = NULL;
    if (apart(r)) return false;
    for (int32_t i = 0; i < n && r->n_waits < MAX_WAITS; i++) {
        const int32_t until = !apart(active[i]) && at_work(active[i], r->n_prompt)
                                  ? cohort_shared(r, active[i], env)
                                  : 0;
        if (until <= r->led_from || !at_work(active[i], until)) continue;
        r->leader = active[i];
        r->led_to = until;
        r->n_waits++;
        hurry(active[i], r);
        return true;
    }
    return false;
}

void cohort_release(const request *r, request *const *other, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (other[i]->leader == r) other[i]->leader = NULL;
}
