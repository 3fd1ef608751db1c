/* The memory guard: one budget and who has how much of it.  Its figures are exact: cache_bytes is what a sequence
   takes at its worst moment, cache_overhead what tables, the tree of prefixes and the disk's stages take, the
   scratch is what plans and buffers take, weights are what the backend holds, and what else was allocated is counted
   by base/alloc.  Memory that was promised to a sequence is there before it starts.  Under pressure a sequence takes
   the blocks of prefixes that nobody uses, then requests wait, then the queue refuses (engine_submit). */
#include "engine/guard.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/num.h"
#include "cache/cache.h"
#include "engine/request.h"

enum {
    LEAST_CTX = 64,     /* in less there is no room for a chat's frame and an answer */
    UNKNOWN_CTX = 2048, /* no decoder that is supported was trained on less */
    QUEUE_PART = 16     /* of the budget, for requests that wait: small machines have few clients */
};
#define DEFAULT_PREFIX (UINT64_C(8) << 30)
/* Requests that wait: what 64 of a context of 32k and a full vocabulary's text take; beyond it a queue is told that
   it is full. */
#define QUEUE_BYTES (UINT64_C(64) << 20)
/* What no counter of ours sees: the program and its libraries, stacks, the ends of what the allocator holds. */
#define PROGRAM_BYTES (UINT64_C(16) << 20)

int32_t guard_model_ctx(const model *m)
{
    return m->shape.ctx_train > 0 ? m->shape.ctx_train : UNKNOWN_CTX;
}

static uint64_t one_sequence(const guard_in *in, int32_t ctx)
{
    return cache_bytes(&in->m->cache, &in->codec, in->max_step_rows, ctx);
}

/* Bytes of weights that lie in the file's pages, so that no allocation counts them: used in place, or looked up
   beside what was made of them. */
static void count_pages(const model *m, uint64_t *in_place, uint64_t *looked_up)
{
    *in_place = *looked_up = 0;
    for (size_t i = 0; i < m->n_adopted; i++) {
        const weight *w = m->w.item[i];
        if (w->f32) continue;
        if (!w->expert) *(w->dev ? looked_up : in_place) += !w->dev || w->gather ? w->size : 0;
        for (int32_t k = 0; w->expert && k < w->n_expert; k++)
            *in_place += w->expert[k].dev ? 0 : w->expert[k].size;
    }
}

/* What has its place before caches are asked.  Requests: as many whole contexts as run at once, and so many that
   wait as a part of the budget holds. */
static void count_fixed(const guard_in *in, guard_out *out)
{
    uint64_t tiles = 0;
    out->weights_bytes = in->weights;
    if (!in->weights) {
        uint64_t in_place, looked_up;
        const uint64_t resident = in->m->be->resident(in->m->dev);
        count_pages(in->m, &in_place, &looked_up);
        tiles = guard_left(resident, in_place);
        out->weights_bytes = resident + looked_up;
    }
    out->scratch_bytes = in->scratch;
    out->other_bytes = guard_left(in->live, in->scratch + tiles);
    out->host_bytes = in->host + PROGRAM_BYTES;
    const uint64_t worst =
        request_worst_bytes(in->tok, in->ctx_len ? in->ctx_len : guard_model_ctx(in->m));
    const uint64_t part = (in->budget ? in->budget : in->free) / QUEUE_PART;
    uint64_t waiting = worst * (uint64_t)in->max_queue;
    if (waiting > QUEUE_BYTES) waiting = QUEUE_BYTES;
    if (waiting > part) waiting = part;
    out->request_bytes = worst * (uint64_t)in->max_seqs + waiting;
}

static uint64_t fixed(const guard_out *out)
{
    return out->weights_bytes + out->scratch_bytes + out->other_bytes + out->host_bytes +
           out->request_bytes;
}

/* Bytes for caches and all that belongs to them.  Weights used in place lie in the page cache, which the machine
   counts as free: hence the second bound. */
static uint64_t budget_of(const guard_in *in, guard_out *out)
{
    count_fixed(in, out);
    const uint64_t loaded = in->weights ? 0 : out->weights_bytes;
    const uint64_t rest = guard_left(in->total, loaded);
    const uint64_t share = (in->free < rest ? in->free : rest) / 10 * 9;
    const uint64_t before = loaded + out->other_bytes;
    out->budget = in->budget ? in->budget : before + share;
    if (in->limit && !in->budget) return in->limit;
    return guard_left(out->budget, fixed(out));
}

static cairn_status refuse(const guard_in *in, const guard_out *out, int32_t ctx, uint64_t budget,
                           cairn_diag *dg)
{
    const unsigned long long need = one_sequence(in, ctx);
    if (in->limit && in->limit <= budget)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "a context of %d needs %llu bytes of cache; the limit is %llu", ctx, need,
                        (unsigned long long)in->limit);
    char of[120];
    if (in->budget)
        (void)snprintf(of, sizeof of, "the budget is %llu", (unsigned long long)in->budget);
    else
        (void)snprintf(of, sizeof of, "%llu of %llu are free, of which nine tenths may be used",
                       (unsigned long long)in->free, (unsigned long long)in->total);
    return diag_set(dg, CAIRN_E_LIMIT,
                    "a context of %d needs %llu bytes of cache and %llu are left: %s; weights take "
                    "%llu, scratch %llu, requests %llu, the program and its buffers %llu, "
                    "vocabularies and tables %llu, tables of caches and a disk's stages %llu",
                    ctx, need, (unsigned long long)budget, of,
                    (unsigned long long)out->weights_bytes, (unsigned long long)out->scratch_bytes,
                    (unsigned long long)out->request_bytes, (unsigned long long)out->host_bytes,
                    (unsigned long long)out->other_bytes, (unsigned long long)out->overhead);
}

/* cache_bytes never falls as the context grows. */
static int32_t largest_ctx(const guard_in *in, uint64_t budget)
{
    int32_t lo = 0, hi = guard_model_ctx(in->m);
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo + 1) / 2;
        if (one_sequence(in, mid) <= budget)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* Unless somebody says how much: half of what sequences leave, and their own bytes while they lie idle. */
static void fit_prefixes(const guard_in *in, uint64_t left, guard_out *out)
{
    out->prefix_bytes = in->prefix;
    if (!in->prefix) {
        out->prefix_bytes = out->cache_bytes + left / 2;
        if (out->prefix_bytes > DEFAULT_PREFIX) out->prefix_bytes = DEFAULT_PREFIX;
        left /= 2;
    }
    out->prefix_room = out->prefix_bytes < left ? out->prefix_bytes : left;
}

static cairn_status count_overhead(const guard_in *in, guard_out *out, cairn_diag *dg)
{
    const cache_opts o = {.codec = in->codec,
                          .max_seqs = in->max_seqs,
                          .ctx_len = out->ctx_len,
                          .max_step_rows = in->max_step_rows,
                          .max_bytes = out->cache_bytes,
                          .prefix_room = out->prefix_room,
                          .prefix_bytes = out->prefix_bytes};
    return cache_overhead(&in->m->cache, &o, in->disk, &out->overhead, dg);
}

static uint64_t all_sequences(const guard_in *in, int32_t ctx, uint64_t budget)
{
    const uint64_t all = one_sequence(in, ctx) * (uint64_t)in->max_seqs;
    return all < budget ? all : budget;
}

/* With a tree of prefixes and the disk's stages, but no room for prefixes, at the context that would fit if there
   were none of all that. */
static cairn_status take_overhead(const guard_in *in, uint64_t *budget, guard_out *out,
                                  cairn_diag *dg)
{
    const int32_t ctx = in->ctx_len ? in->ctx_len : largest_ctx(in, *budget);
    guard_out bare = {.ctx_len = ctx > 0 ? ctx : 1, .prefix_bytes = in->prefix != GUARD_NO_PREFIX};
    bare.cache_bytes = all_sequences(in, bare.ctx_len, *budget);
    TRY(count_overhead(in, &bare, dg));
    out->overhead = bare.overhead;
    *budget = guard_left(*budget, bare.overhead);
    return CAIRN_OK;
}

/* What prefixes need besides, they give up of their room; with less of it, that is less too. */
static cairn_status pay_overhead(const guard_in *in, uint64_t budget, guard_out *out,
                                 cairn_diag *dg)
{
    TRY(count_overhead(in, out, dg));
    const uint64_t sum = out->cache_bytes + out->prefix_room + out->overhead;
    if (sum <= budget) return CAIRN_OK;
    out->prefix_room = guard_left(out->prefix_room, sum - budget);
    return count_overhead(in, out, dg);
}

static cairn_status fit(const guard_in *in, guard_out *out, cairn_diag *dg)
{
    guard_out o = {.ctx_len = in->ctx_len};
    const uint64_t whole = budget_of(in, &o);
    uint64_t budget = whole;
    if (!in->limit || in->budget) TRY(take_overhead(in, &budget, &o, dg));
    if (in->limit && budget > in->limit) budget = in->limit;
    if (o.ctx_len && one_sequence(in, o.ctx_len) > budget)
        return refuse(in, &o, o.ctx_len, budget, dg);
    if (!o.ctx_len) o.ctx_len = largest_ctx(in, budget);
    const int32_t least = min_i32(LEAST_CTX, guard_model_ctx(in->m));
    if (!in->ctx_len && o.ctx_len < least) return refuse(in, &o, least, budget, dg);
    o.cache_bytes = all_sequences(in, o.ctx_len, budget);
    if (in->prefix != GUARD_NO_PREFIX) fit_prefixes(in, budget - o.cache_bytes, &o);
    TRY(pay_overhead(in, whole, &o, dg));
    o.reserved = fixed(&o) + o.cache_bytes + o.prefix_room + o.overhead;
    *out = o;
    return CAIRN_OK;
}

/* Whoever asks for a disk asks for prefixes. */
cairn_status guard_fit(const guard_in *in, guard_out *out, cairn_diag *dg)
{
    if (in->disk || in->prefix == GUARD_NO_PREFIX) return fit(in, out, dg);
    cairn_diag why = {0};
    const cairn_status st = fit(in, out, &why);
    if (st == CAIRN_OK) return CAIRN_OK;
    if (st != CAIRN_E_LIMIT) return diag_set(dg, st, "%s", why.message);
    guard_in less = *in;
    less.prefix = GUARD_NO_PREFIX;
    TRY(fit(&less, out, dg));
    log_event(LOG_WARN, "no_prefixes", "ctx_len=%d why=\"%s\"", out->ctx_len, why.message);
    return CAIRN_OK;
}

uint64_t guard_budget(const guard_in *in)
{
    guard_out o = {0};
    (void)budget_of(in, &o);
    return o.budget;
}

uint64_t guard_program_bytes(const guard_in *in)
{
    guard_out o = {0};
    count_fixed(in, &o);
    return o.other_bytes + o.host_bytes;
}
