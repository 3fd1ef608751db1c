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

/* What has its place before caches are asked. */
static void count_fixed(const guard_in *in, guard_out *out)
{
    uint64_t tiles = 0;
    out->weights_bytes = in->weights;
    if (!in->weights) {
        uint64_t in_place, looked_up;
        const uint64_t resident = in->m->be->resident(in->m->dev);
        count_pages(in->m, &in_place, &looked_up);
        tiles = guard_left(resident, in_place) + in->m->be->spare(in->m->dev);
        out->weights_bytes = resident + looked_up;
    }
    out->scratch_bytes = in->scratch;
    out->other_bytes = in->other ? in->other : guard_left(in->live, in->scratch + tiles);
    out->host_bytes = in->host + PROGRAM_BYTES;
}

/* Requests: as many whole contexts as run at once, and so many that wait as a part of the budget holds. */
static uint64_t requests(const guard_in *in, int32_t ctx)
{
    const uint64_t worst = request_worst_bytes(in->tok, ctx);
    const uint64_t part = (in->budget ? in->budget : in->free) / QUEUE_PART;
    uint64_t waiting = worst * (uint64_t)in->max_queue;
    if (waiting > QUEUE_BYTES) waiting = QUEUE_BYTES;
    if (waiting > part) waiting = part;
    return worst * (uint64_t)in->max_seqs + waiting;
}

static uint64_t fixed(const guard_out *out)
{
    return out->weights_bytes + out->scratch_bytes + out->other_bytes + out->host_bytes;
}

/* Bytes for requests, caches and all that belongs to these.  Weights used in place lie in the page cache, which the
   machine counts as free: hence the second bound. */
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

/* What a fit is held against. */
typedef struct bounds {
    uint64_t whole;         /* of requests, caches and all that belongs to these */
    uint64_t cap;           /* of caches and prefixes alone */
    bool requests, belongs; /* these have a place in whole: under a bare limit they have none */
} bounds;

static uint64_t beside_caches(const bounds *b, const guard_out *o)
{
    return (b->requests ? o->request_bytes : 0) + (b->belongs ? o->overhead : 0);
}

static bool within(const bounds *b, const guard_out *o)
{
    const uint64_t caches = o->cache_bytes + o->prefix_room, beside = beside_caches(b, o);
    return caches <= b->cap && beside <= b->whole && caches <= b->whole - beside;
}

/* Of a context, that not even one sequence of it fits. */
static cairn_status refuse(const guard_in *in, const guard_out *out, const bounds *b,
                           cairn_diag *dg)
{
    const unsigned long long need = out->cache_bytes;
    const uint64_t budget = guard_left(b->whole, beside_caches(b, out));
    if (in->limit && in->limit <= budget)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "a context of %d needs %llu bytes of cache; the limit is %llu",
                        out->ctx_len, need, (unsigned long long)in->limit);
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
                    out->ctx_len, need, (unsigned long long)budget, of,
                    (unsigned long long)out->weights_bytes, (unsigned long long)out->scratch_bytes,
                    (unsigned long long)out->request_bytes, (unsigned long long)out->host_bytes,
                    (unsigned long long)out->other_bytes, (unsigned long long)out->overhead);
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

typedef void (*setter)(const guard_in *in, uint64_t v, guard_out *o);

/* The least that a context can do with: one sequence, and no room for prefixes beside the tree. */
static void set_ctx(const guard_in *in, uint64_t v, guard_out *o)
{
    o->ctx_len = (int32_t)v;
    o->cache_bytes = one_sequence(in, o->ctx_len);
    o->request_bytes = requests(in, o->ctx_len);
}

static void set_cache(const guard_in *in, uint64_t v, guard_out *o)
{
    (void)in;
    o->cache_bytes = v;
}

static void set_room(const guard_in *in, uint64_t v, guard_out *o)
{
    (void)in;
    o->prefix_room = v;
}

/* The largest of lo, lo + 1, … hi that bisection finds to fit; lo where none does.  Overhead need not grow with
   caches (a state more is some blocks less), so what is found is tried, and never taken to follow. */
static cairn_status find_largest(const guard_in *in, const bounds *b, uint64_t lo, uint64_t hi,
                                 setter set, guard_out *o, cairn_diag *dg)
{
    uint64_t mid = hi; /* most often all of it fits */
    while (lo < hi) {
        set(in, mid, o);
        TRY(count_overhead(in, o, dg));
        if (within(b, o))
            lo = mid;
        else
            hi = mid - 1;
        mid = lo + (hi - lo + 1) / 2;
    }
    set(in, lo, o);
    return count_overhead(in, o, dg);
}

/* Unless somebody says how much: half of what sequences leave, and their own bytes while they lie idle. */
static cairn_status fit_prefixes(const guard_in *in, bounds b, guard_out *out, cairn_diag *dg)
{
    const uint64_t room = guard_left(b.whole, beside_caches(&b, out));
    uint64_t left = guard_left(room < b.cap ? room : b.cap, out->cache_bytes);
    out->prefix_bytes = in->prefix;
    if (!in->prefix) {
        out->prefix_bytes = out->cache_bytes + left / 2;
        if (out->prefix_bytes > DEFAULT_PREFIX) out->prefix_bytes = DEFAULT_PREFIX;
        left /= 2;
    }
    b.belongs = true; /* what prefixes need besides, they give up of their room in any case */
    return find_largest(in, &b, 0, out->prefix_bytes < left ? out->prefix_bytes : left, set_room,
                        out, dg);
}

static cairn_status fit(const guard_in *in, guard_out *out, cairn_diag *dg)
{
    guard_out o = {.prefix_bytes = in->prefix != GUARD_NO_PREFIX}; /* any: it has a tree then */
    bounds b = {.whole = budget_of(in, &o), .cap = in->limit ? in->limit : UINT64_MAX};
    b.requests = b.belongs = !in->limit || in->budget;
    const int32_t model_ctx = guard_model_ctx(in->m), least = min_i32(LEAST_CTX, model_ctx);
    if (in->ctx_len) {
        set_ctx(in, (uint64_t)in->ctx_len, &o);
        TRY(count_overhead(in, &o, dg));
    } else
        TRY(find_largest(in, &b, (uint64_t)least, (uint64_t)model_ctx, set_ctx, &o, dg));
    if (!within(&b, &o)) return refuse(in, &o, &b, dg);
    const uint64_t one = o.cache_bytes;
    uint64_t all = one * (uint64_t)in->max_seqs; /* beyond the budget no caches are tried */
    if (all > b.whole) all = b.whole;
    if (all > b.cap) all = b.cap;
    TRY(find_largest(in, &b, one, all, set_cache, &o, dg));
    if (in->prefix != GUARD_NO_PREFIX) TRY(fit_prefixes(in, b, &o, dg));
    o.reserved = fixed(&o) + o.request_bytes + o.cache_bytes + o.prefix_room + o.overhead;
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
