/* The memory guard.  Its figures are exact: cache_bytes is what a sequence takes at its worst moment,
   cache_overhead what tables, the tree of prefixes and the disk's stages take, the scratch is what plans and
   buffers take, weights are what the backend holds.  Memory that was
   promised to a sequence is there before it starts; nothing is evicted or shrunk later. */
#include "engine/guard.h"

#include "base/diag.h"
#include "base/num.h"
#include "cache/cache.h"

enum {
    LEAST_CTX = 64,    /* in less there is no room for a chat's frame and an answer */
    UNKNOWN_CTX = 2048 /* no decoder that is supported was trained on less */
};
#define DEFAULT_PREFIX (UINT64_C(8) << 30)

int32_t guard_model_ctx(const model *m)
{
    return m->shape.ctx_train > 0 ? m->shape.ctx_train : UNKNOWN_CTX;
}

static uint64_t one_sequence(const guard_in *in, int32_t ctx)
{
    return cache_bytes(&in->m->cache, &in->codec, in->max_step_rows, ctx);
}

/* Weights used in place lie in the page cache, which the machine counts as free: hence the second
   bound. */
static uint64_t budget_of(const guard_in *in)
{
    if (in->limit) return in->limit;
    const uint64_t held = in->m->be->resident(in->m->dev);
    const uint64_t rest = in->total > held ? in->total - held : 0;
    const uint64_t share = (in->free < rest ? in->free : rest) / 10 * 9;
    return share > in->scratch ? share - in->scratch : 0;
}

static cairn_status refuse(const guard_in *in, int32_t ctx, uint64_t budget, cairn_diag *dg)
{
    const unsigned long long need = one_sequence(in, ctx);
    if (in->limit)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "a context of %d needs %llu bytes of cache; the limit is %llu", ctx, need,
                        (unsigned long long)budget);
    return diag_set(dg, CAIRN_E_LIMIT,
                    "a context of %d needs %llu bytes of cache and %llu of scratch beside %llu of "
                    "weights; %llu of %llu bytes are free, of which nine tenths may be used",
                    ctx, need, (unsigned long long)in->scratch,
                    (unsigned long long)in->m->be->resident(in->m->dev),
                    (unsigned long long)in->free, (unsigned long long)in->total);
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

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t all_sequences(const guard_in *in, int32_t ctx, uint64_t budget)
{
    const uint64_t all = one_sequence(in, ctx) * (uint64_t)in->max_seqs;
    return all < budget ? all : budget;
}

/* Without prefixes, at the context that would fit if there were none. */
static cairn_status take_overhead(const guard_in *in, uint64_t *budget, cairn_diag *dg)
{
    const int32_t ctx = in->ctx_len ? in->ctx_len : largest_ctx(in, *budget);
    guard_out bare = {.ctx_len = ctx > 0 ? ctx : 1};
    bare.cache_bytes = all_sequences(in, bare.ctx_len, *budget);
    TRY(count_overhead(in, &bare, dg));
    *budget = less(*budget, bare.overhead);
    return CAIRN_OK;
}

/* What prefixes need besides, they give up of their room; with less of it, that is less too. */
static cairn_status pay_overhead(const guard_in *in, uint64_t budget, guard_out *out,
                                 cairn_diag *dg)
{
    TRY(count_overhead(in, out, dg));
    const uint64_t sum = out->cache_bytes + out->prefix_room + out->overhead;
    if (sum <= budget) return CAIRN_OK;
    out->prefix_room = less(out->prefix_room, sum - budget);
    return count_overhead(in, out, dg);
}

cairn_status guard_fit(const guard_in *in, guard_out *out, cairn_diag *dg)
{
    const uint64_t whole = budget_of(in);
    uint64_t budget = whole;
    if (!in->limit) TRY(take_overhead(in, &budget, dg));
    int32_t ctx = in->ctx_len;
    if (ctx && one_sequence(in, ctx) > budget) return refuse(in, ctx, budget, dg);
    if (!ctx) ctx = largest_ctx(in, budget);
    const int32_t least = min_i32(LEAST_CTX, guard_model_ctx(in->m));
    if (!in->ctx_len && ctx < least) return refuse(in, least, budget, dg);
    *out = (guard_out){.ctx_len = ctx, .cache_bytes = all_sequences(in, ctx, budget)};
    if (in->prefix != GUARD_NO_PREFIX) fit_prefixes(in, budget - out->cache_bytes, out);
    return pay_overhead(in, whole, out, dg);
}
