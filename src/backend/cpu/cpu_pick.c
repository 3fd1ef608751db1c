/* PICK: an indexer scores every position that a row may see, and the best are what attention reads
   (DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1).  Owns the scores and the choice; keys lie in the cache
   as any layer's.

   A score is a chain of its own, so how positions are cut into tasks is free.  The choice is by exact
   rank: scores become whole numbers in the same order, the k-th highest is found byte by byte, and of
   those equal to it the earliest are taken.  A few rows at a time have a row of scores each, which
   bounds the scratch; rows that see no more than k positions need none. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_attend.h"
#include "backend/cpu/kern/kern.h"
#include "base/half.h"
#include "tensor/backend.h"
#include "tensor/batch.h"
#include "tensor/kvview.h"
#include "tensor/op.h"

enum {
    PICK_ROWS = 16,    /* rows of scores at once */
    PICK_CHUNK = 256,  /* positions a task */
    FORK_MACS = 32768, /* multiply-adds that take about as long as waking the others */
    RADIX = 256
};

typedef struct pick_job {
    const cpu_run *r;
    const op *o;
    const kv_layer *kv;
    const kern_vec *k;
    const float *q, *w; /* of row row0 on, as are the scores */
    float *out;
    uint32_t *score; /* [PICK_ROWS][room], in the order of the scores; NaN lowest */
    size_t room;
    int32_t row0, n_chunk;
} pick_job;

/* A thread's scratch, in this order. */
typedef struct pick_scratch {
    float *s, *sum, *panel; /* [heads][PICK_CHUNK], [PICK_CHUNK], tiles of keys */
} pick_scratch;

static size_t score_room(const op *o, int32_t max_ctx)
{
    return max_ctx > o->u.pick.k ? round_up((size_t)max_ctx, PICK_CHUNK) : 0;
}

static pick_scratch pick_thread_scratch(const pick_job *j, int32_t i_thread)
{
    float *base = (float *)(void *)cpu_thread_scratch(j->r, i_thread);
    float *sum = base + (size_t)j->o->u.pick.n_head * PICK_CHUNK;
    return (pick_scratch){base, sum, sum + PICK_CHUNK};
}

cpu_need cpu_pick_need(const dev *d, const op *o, int32_t max_rows, int32_t max_ctx)
{
    const size_t rows = (size_t)min_i32(max_rows, PICK_ROWS), dim = (size_t)o->u.pick.dim;
    const size_t n = ((size_t)o->u.pick.n_head + 1) * PICK_CHUNK + SCORE_STRIPS * dim * KV_TILE;
    (void)d;
    return (cpu_need){rows * score_room(o, max_ctx) * sizeof(uint32_t), n * sizeof(float)};
}

/* Whole numbers in the order of floats; NaN below all. */
static uint32_t in_order(float x)
{
    if (isnan(x)) return 0;
    const uint32_t u = f32_bits(x + 0.0f); /* -0 equals +0 */
    return u >> 31 ? ~u : u | 0x80000000u;
}

static const segment *segment_of(const step *s, int32_t row)
{
    const segment *g = s->seg;
    while (row >= g->row0 + g->n_rows) g++;
    return g;
}

/* sum[i] = Σ over heads, rising, of (w · scale) · max(0, s): NaN stays NaN. */
static void add_heads(const pick_job *j, const float *w, float *s, float *sum)
{
    memset(sum, 0, PICK_CHUNK * sizeof *sum);
    for (int32_t h = 0; h < j->o->u.pick.n_head; h++, s += PICK_CHUNK) {
        for (int32_t i = 0; i < PICK_CHUNK; i++) s[i] = s[i] < 0.0f ? 0.0f : s[i];
        j->k->axpy(sum, w[h] * j->o->u.pick.scale, s, PICK_CHUNK);
    }
}

/* Scores of one row in one chunk of positions. */
static void score_chunk(const pick_job *j, int32_t i, int32_t p0, int32_t p1,
                        const pick_scratch *sc)
{
    const int32_t row = cpu_step_row(j->r, j->o->in[0], j->row0 + i), n_head = j->o->u.pick.n_head;
    const segment *g = segment_of(j->r->s, row);
    const attend_job at = {.kv = j->kv};
    const size_t dim = (size_t)j->kv->dk, n = (size_t)n_head;
    for (int32_t p = p0; p < p1; p += KV_BLOCK) {
        kern_mm m = {.c = sc->s + (p - p0),
                     .a = j->q + (size_t)i * n * dim,
                     .b = keys_at(&at, g, 0, p),
                     .ldc = PICK_CHUNK,
                     .lda = dim,
                     .n_a = n_head,
                     .n_strip = ceil_div(min_i32(KV_BLOCK, p1 - p), KV_TILE),
                     .n = j->kv->dk};
        kv_scores(j->k, kv_at(j->kv, p)->k, &m, sc->panel);
    }
    add_heads(j, j->w + (size_t)i * n, sc->s, sc->sum);
    uint32_t *out = j->score + (size_t)i * j->room;
    for (int32_t p = p0; p < p1; p++) out[p] = in_order(sc->sum[p - p0]);
}

static int32_t seen(const pick_job *j, int32_t i)
{
    return j->r->s->pos[cpu_step_row(j->r, j->o->in[0], j->row0 + i)] + 1;
}

static void score_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const pick_job *j = ctx;
    const pick_scratch sc = pick_thread_scratch(j, i_thread);
    for (size_t t = begin; t < end; t++) {
        const int32_t i = (int32_t)t / j->n_chunk, p0 = (int32_t)t % j->n_chunk * PICK_CHUNK;
        const int32_t n = seen(j, i);
        if (n > j->o->u.pick.k && p0 < n) score_chunk(j, i, p0, min_i32(p0 + PICK_CHUNK, n), &sc);
    }
}

/* The k-th highest of n > k; *n_equal: how many of those equal to it are among the k. */
static uint32_t kth(const uint32_t *score, int32_t n, int32_t k, int32_t *n_equal)
{
    uint32_t found = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int32_t count[RADIX] = {0}, b = RADIX - 1;
        for (int32_t i = 0; i < n; i++)
            if ((score[i] & known) == found) count[score[i] >> shift & (RADIX - 1)]++;
        for (; count[b] < k; b--) k -= count[b];
        found |= (uint32_t)b << shift;
        known |= (uint32_t)(RADIX - 1) << shift;
    }
    *n_equal = k;
    return found;
}

static void choose(const uint32_t *score, int32_t n, int32_t k, float *out)
{
    int32_t n_equal;
    const uint32_t least = kth(score, n, k, &n_equal);
    for (int32_t i = 0; i < n; i++) {
        const bool equal = score[i] == least && n_equal > 0;
        if (equal) n_equal--;
        if (equal || score[i] > least) *out++ = (float)i;
    }
}

static void choose_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const pick_job *j = ctx;
    const int32_t k = j->o->u.pick.k;
    (void)i_thread;
    for (size_t i = begin; i < end; i++) {
        const int32_t n = seen(j, (int32_t)i);
        float *out = j->out + i * (size_t)k;
        if (n > k) choose(j->score + i * j->room, n, k, out);
        for (int32_t p = 0; n <= k && p < k; p++) out[p] = p < n ? (float)p : -1.0f;
    }
}

void cpu_pick(cpu_run *r, const op *o)
{
    const int32_t n_rows = cpu_rows(r, o->in[0]), n_head = o->u.pick.n_head, dim = o->u.pick.dim;
    const float *q = cpu_val(r, o->in[0]), *w = cpu_val(r, o->in[2]);
    float *out = cpu_val(r, o->out[0]);
    pick_job j = {.r = r, .o = o, .kv = &r->s->kv[o->u.pick.cache], .k = &r->x->d->k.vec};
    kv_encode(r, j.kv, o->in[1], VAL_NONE);
    j.score = (uint32_t *)(void *)r->x->shared;
    j.room = score_room(o, r->x->max_ctx);
    const size_t grain = 1 + FORK_MACS / ((size_t)n_head * (size_t)dim * PICK_CHUNK);
    for (; j.row0 < n_rows; j.row0 += PICK_ROWS) {
        const int32_t n = min_i32(PICK_ROWS, n_rows - j.row0);
        int32_t most = 0;
        for (int32_t i = 0; i < n; i++) most = max_i32(most, seen(&j, i));
        j.q = q + (size_t)j.row0 * (size_t)n_head * (size_t)dim;
        j.w = w + (size_t)j.row0 * (size_t)n_head;
        j.out = out + (size_t)j.row0 * (size_t)o->u.pick.k;
        j.n_chunk = ceil_div(most, PICK_CHUNK);
        if (most > o->u.pick.k) cpu_spans(r, (size_t)(n * j.n_chunk), grain, 1, score_span, &j);
        cpu_row_spans(r, n, max_i32(most, o->u.pick.k), CPU_GRAIN_MOVE, choose_span, &j);
    }
}
