/* ATTEND.  First the step's keys and values go into the cache through its codec; then each query row
   attends to the positions [lo, hi] of its window, reading only the cache.

   The arithmetic of a row: positions are cut at multiples of ATTEND_SPLIT; a split gives its scores'
   maximum m, the sum l of p = exp(s - m) and o = Σ p·v; splits merge from left to right under the
   maximum of all.  So a row's bits depend on its own positions alone, and the rest of this file is
   free: a unit is (segment, KV head, a few query rows), whose rows × query heads share each key and
   value; with few rows its splits are tasks of their own. */
#include <assert.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "base/num.h"

enum {
    TILE_VECS = 48,   /* query vectors (rows × heads) a unit: queries, scores and a panel fit L2 */
    DIRECT_VECS = 12, /* up to here keys are widened in registers; above, once a tile */
    SPLIT_ROWS = 8, /* steps of at most so many query rows may run by splits: bounds the scratch */
    INLINE_MACS = 32768, /* multiply-adds that take about as long as waking the others */
    ENCODE_GRAIN = 4096,
    LANES = 16
};

typedef struct attend_job {
    const cpu_run *r;
    const op *o;
    const kv_layer *kv;
    const kern_vec *k;
    int32_t heads;     /* query heads a KV head */
    int32_t tile_rows; /* query rows a unit, at most */
    int32_t n_split;   /* splits that partial results have room for */
} attend_job;

/* Where a unit's partial results lie: o[split][vector][dv_pad], m and l [vector][split_pad]. */
typedef struct partial {
    float *o, *m, *l;
} partial;

typedef struct unit {
    const segment *seg;
    int32_t kvh, row0, n_rows; /* rows of the query value */
    int32_t c0, c1;            /* first and last split */
    int32_t lo[TILE_VECS], hi[TILE_VECS];
} unit;

static size_t pad16(int32_t n)
{
    return round_up((size_t)n, LANES);
}
static int32_t vecs_max(const op *o)
{
    return max_i32(TILE_VECS, o->u.attend.n_head / o->u.attend.n_kv_head);
}
static int32_t split_room(const op *o, int32_t max_ctx)
{
    int32_t all = ceil_div(max_ctx, ATTEND_SPLIT);
    if (o->u.attend.window == 0) return all;
    return min_i32(all, (o->u.attend.window + TILE_VECS) / ATTEND_SPLIT + 2);
}
static size_t partial_floats(const op *o, int32_t n_vec, int32_t n_split)
{
    return (size_t)n_vec * ((size_t)n_split * pad16(o->u.attend.dv) + 2 * pad16(n_split));
}

/* A thread's scratch, in this order. */
typedef struct attend_scratch {
    float *q, *s, *panel, *encode;
    partial part;
} attend_scratch;

static size_t scratch_floats(const op *o, int32_t n_split, float *base, attend_scratch *out)
{
    const int32_t dk = o->u.attend.dk, dv = o->u.attend.dv, n_vec = vecs_max(o);
    const size_t v = (size_t)n_vec;
    size_t n_q = round_up(v * (size_t)dk, LANES), n_s = v * ATTEND_SPLIT;
    size_t n_panel = LANES * (size_t)dk, n_values = KV_BLOCK * pad16(dv);
    if (n_panel < n_values) n_panel = n_values;
    size_t n_encode = round_up((size_t)o->u.attend.n_kv_head * (size_t)max_i32(dk, dv), LANES);
    size_t part = n_q + n_s + n_panel + n_encode;
    if (out) {
        out->q = base;
        out->s = out->q + n_q;
        out->panel = out->s + n_s;
        out->encode = out->panel + n_panel;
        out->part.m = base + part;
        out->part.l = out->part.m + v * pad16(n_split);
        out->part.o = out->part.l + v * pad16(n_split);
    }
    return part + partial_floats(o, n_vec, n_split);
}

cpu_need cpu_attend_need(const dev *d, const op *o, int32_t max_rows, int32_t max_ctx)
{
    const int32_t n_split = split_room(o, max_ctx);
    const int32_t rows = min_i32(max_rows, SPLIT_ROWS);
    (void)d;
    return (cpu_need){.shared =
                          partial_floats(o, rows * o->u.attend.n_head, n_split) * sizeof(float),
                      .thread = scratch_floats(o, n_split, NULL, NULL) * sizeof(float)};
}

static attend_scratch thread_scratch(const attend_job *j, int32_t i_thread)
{
    attend_scratch s;
    float *base = (float *)(void *)cpu_thread_scratch(j->r, i_thread);
    (void)scratch_floats(j->o, j->n_split, base, &s);
    return s;
}

/* --- the cache --- */

static uint8_t *keys_at(const attend_job *j, const segment *g, int32_t kvh, int32_t pos)
{
    const kv_layer *kv = j->kv;
    size_t tile = (size_t)kvh * KV_BLOCK + (size_t)(pos % KV_BLOCK) / KV_TILE * KV_TILE;
    return g->blocks[kv->group][pos / KV_BLOCK] + kv->k_off +
           tile * (size_t)kv->dk * kv_codec_bytes(kv->codec);
}
static uint8_t *values_at(const attend_job *j, const segment *g, int32_t kvh, int32_t pos)
{
    const kv_layer *kv = j->kv;
    size_t row = (size_t)kvh * KV_BLOCK + (size_t)(pos % KV_BLOCK);
    return g->blocks[kv->group][pos / KV_BLOCK] + kv->v_off +
           row * (size_t)kv->dv * kv_codec_bytes(kv->codec);
}

/* Keys lie position fastest: element d of a position is KV_TILE elements after element d - 1. */
static void scatter_key(const attend_job *j, const segment *g, int32_t pos, const void *row)
{
    const size_t dk = (size_t)j->kv->dk, lane = (size_t)(pos % KV_TILE);
    for (int32_t h = 0; h < j->kv->n_kv_head; h++) {
        void *tile = keys_at(j, g, h, pos);
        if (j->kv->codec == KV_F32) {
            const uint32_t *src = (const uint32_t *)row + (size_t)h * dk;
            uint32_t *dst = (uint32_t *)tile + lane;
            for (size_t d = 0; d < dk; d++) dst[d * KV_TILE] = src[d];
        } else {
            const uint16_t *src = (const uint16_t *)row + (size_t)h * dk;
            uint16_t *dst = (uint16_t *)tile + lane;
            for (size_t d = 0; d < dk; d++) dst[d * KV_TILE] = src[d];
        }
    }
}

static void encode_row(const attend_job *j, const segment *g, int32_t row, void *tmp)
{
    const kv_layer *kv = j->kv;
    const int32_t pos = g->pos0 + (row - g->row0);
    const size_t nk = (size_t)kv->n_kv_head * (size_t)kv->dk, dv = (size_t)kv->dv;
    const float *key = cpu_val(j->r, j->o->in[1]) + (size_t)row * nk;
    const float *val_row = cpu_val(j->r, j->o->in[2]) + (size_t)row * (size_t)kv->n_kv_head * dv;
    j->k->encode[kv->codec](tmp, key, nk);
    scatter_key(j, g, pos, tmp);
    for (int32_t h = 0; h < kv->n_kv_head; h++)
        j->k->encode[kv->codec](values_at(j, g, h, pos), val_row + (size_t)h * dv, dv);
}

static int32_t key_tiles(const segment *g)
{
    return (g->pos0 + g->n_rows - 1) / KV_TILE - g->pos0 / KV_TILE + 1;
}

/* A task takes whole key tiles, so that no two write one cache line. */
static void encode_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const attend_job *j = ctx;
    const step *s = j->r->s;
    void *tmp = thread_scratch(j, i_thread).encode;
    int32_t first = 0;
    for (int32_t i = 0; i < s->n_seg; i++) {
        const segment *g = &s->seg[i];
        const int32_t n = key_tiles(g), base = g->pos0 / KV_TILE;
        int32_t t0 = max_i32((int32_t)begin - first, 0), t1 = min_i32((int32_t)end - first, n);
        if (t0 < t1) {
            int32_t p0 = max_i32((base + t0) * KV_TILE, g->pos0);
            int32_t p1 = min_i32((base + t1) * KV_TILE, g->pos0 + g->n_rows);
            for (int32_t p = p0; p < p1; p++) encode_row(j, g, g->row0 + (p - g->pos0), tmp);
        }
        first += n;
    }
}

static void encode_step(attend_job *j)
{
    const step *s = j->r->s;
    const int32_t cols = j->kv->n_kv_head * (j->kv->dk + j->kv->dv) * KV_TILE;
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_seg; i++) n += key_tiles(&s->seg[i]);
    cpu_row_spans(j->r, n, cols, ENCODE_GRAIN, encode_span, j);
}

/* --- units --- */

static void query_rows(const attend_job *j, const segment *g, int32_t *row0, int32_t *n)
{
    bool all = j->r->x->pl->p->value[j->o->in[0]].rows == ROWS_ALL;
    *row0 = all ? g->row0 : g->out0;
    *n = all ? g->n_rows : g->n_out;
}

static int32_t unit_count(const attend_job *j)
{
    int32_t units = 0, row0, n;
    for (int32_t i = 0; i < j->r->s->n_seg; i++) {
        query_rows(j, &j->r->s->seg[i], &row0, &n);
        units += ceil_div(n, j->tile_rows) * j->kv->n_kv_head;
    }
    return units;
}

static void unit_bounds(const attend_job *j, unit *u)
{
    for (int32_t i = 0; i < u->n_rows; i++) {
        int32_t pos = j->r->s->pos[cpu_step_row(j->r, j->o->in[0], u->row0 + i)];
        int32_t window = j->o->u.attend.window;
        u->lo[i] = window > 0 ? max_i32(0, pos - window + 1) : 0;
        u->hi[i] = pos;
    }
    u->c0 = u->lo[0] / ATTEND_SPLIT;
    u->c1 = u->hi[u->n_rows - 1] / ATTEND_SPLIT;
    assert(u->c1 - u->c0 < j->n_split);
}

/* Units of a segment come last rows first: these are the longest. */
static void unit_get(const attend_job *j, int32_t i_unit, unit *u)
{
    for (int32_t i = 0; i < j->r->s->n_seg; i++) {
        const segment *g = &j->r->s->seg[i];
        int32_t row0, n;
        query_rows(j, g, &row0, &n);
        int32_t tiles = ceil_div(n, j->tile_rows), units = tiles * j->kv->n_kv_head;
        if (i_unit >= units) {
            i_unit -= units;
            continue;
        }
        int32_t tile = tiles - 1 - i_unit / j->kv->n_kv_head;
        u->seg = g;
        u->kvh = i_unit % j->kv->n_kv_head;
        u->row0 = row0 + tile * j->tile_rows;
        u->n_rows = min_i32(j->tile_rows, n - tile * j->tile_rows);
        unit_bounds(j, u);
        return;
    }
    assert(false);
}

static int32_t unit_vecs(const attend_job *j, const unit *u)
{
    return u->n_rows * j->heads;
}

/* Partial results that splits of one unit share, when splits are tasks. */
static partial shared_partial(const attend_job *j, const unit *u)
{
    const size_t room = pad16(j->n_split), vecs = (size_t)unit_vecs(j, u);
    size_t first = (size_t)u->row0 * (size_t)j->o->u.attend.n_head + (size_t)u->kvh * vecs;
    float *base = (float *)(void *)j->r->x->shared + partial_floats(j->o, 1, j->n_split) * first;
    return (partial){.m = base, .l = base + vecs * room, .o = base + 2 * vecs * room};
}

/* Queries as [vector][dk], vector = row · heads + head; in place when the row is one. */
static const float *unit_queries(const attend_job *j, const unit *u, float *pack)
{
    const size_t dk = (size_t)j->kv->dk, n = (size_t)j->heads * dk;
    const size_t cols = (size_t)j->o->u.attend.n_head * dk;
    const float *q = cpu_val(j->r, j->o->in[0]) + (size_t)u->row0 * cols + (size_t)u->kvh * n;
    if (u->n_rows == 1) return q;
    for (int32_t i = 0; i < u->n_rows; i++)
        memcpy(pack + (size_t)i * n, q + (size_t)i * cols, n * sizeof *q);
    return pack;
}

/* --- one split of one unit --- */

typedef struct split {
    const attend_job *j;
    const unit *u;
    int32_t c, a, b; /* split; the unit's rows [a, b) that have positions in it */
    int32_t next;    /* the split that this thread likely works on next, or -1 */
    const float *q;
    float *s, *panel, *o;
} split;

static void score_block(const split *x, int32_t p0, int32_t p1)
{
    const attend_job *j = x->j;
    const kv_layer *kv = j->kv;
    const size_t first = (size_t)(x->a * j->heads), dk = (size_t)kv->dk;
    const int32_t t0 = p0 / KV_TILE, t1 = p1 / KV_TILE + 1;
    kern_mm m = {.c = x->s + first * ATTEND_SPLIT + (size_t)(t0 * KV_TILE % ATTEND_SPLIT),
                 .a = x->q + first * dk,
                 .b = keys_at(j, x->u->seg, x->u->kvh, p0),
                 .ldc = ATTEND_SPLIT,
                 .lda = dk,
                 .row = KV_TILE,
                 .strip = KV_TILE * dk,
                 .n_a = (x->b - x->a) * j->heads,
                 .n_strip = t1 - t0,
                 .n = kv->dk};
    const int32_t after = (p0 / KV_BLOCK + 1) * KV_BLOCK;
    m.ahead[0] = values_at(j, x->u->seg, x->u->kvh, p0);
    if (after % ATTEND_SPLIT != 0 && after <= x->u->hi[x->b - 1])
        m.ahead[1] = keys_at(j, x->u->seg, x->u->kvh, after);
    if (kv->codec == KV_F32 || m.n_a <= DIRECT_VECS) {
        j->k->mm[kv->codec](&m);
        return;
    }
    const uint8_t *tile = m.b;
    m.b = x->panel;
    m.n_strip = 1;
    for (int32_t t = t0; t < t1; t++, m.c += KV_TILE) {
        j->k->widen[kv->codec](x->panel, tile, kv->dk, KV_TILE);
        j->k->mm[KV_F32](&m);
        tile += m.strip * kv_codec_bytes(kv->codec);
    }
}

/* Values of positions p0 … in the form that mm reads. */
typedef struct value_block {
    const uint8_t *b;
    kv_codec codec;
    size_t row, strip;
    int32_t p0;
} value_block;

static value_block value_open(const split *x, int32_t p0, int32_t p1)
{
    const attend_job *j = x->j;
    const kv_layer *kv = j->kv;
    const uint8_t *v = values_at(j, x->u->seg, x->u->kvh, p0);
    const int32_t n = p1 - p0;
    bool direct = kv->codec == KV_F32 || (x->b - x->a) * j->heads <= DIRECT_VECS;
    if (direct && kv->dv % LANES == 0)
        return (value_block){v, kv->codec, (size_t)kv->dv, LANES, p0};
    j->k->widen[kv->codec](x->panel, v, n, kv->dv);
    return (value_block){(const uint8_t *)x->panel, KV_F32, LANES, LANES * (size_t)n, p0};
}

static void add_values(const split *x, const value_block *v, int32_t a, int32_t b, int32_t p0,
                       int32_t p1)
{
    const attend_job *j = x->j;
    const size_t first = (size_t)(a * j->heads), dvp = pad16(j->kv->dv);
    const size_t skip = (size_t)(p0 - v->p0) * v->row * kv_codec_bytes(v->codec);
    kern_mm m = {.c = x->o + first * dvp,
                 .a = x->s + first * ATTEND_SPLIT + p0 % ATTEND_SPLIT,
                 .b = v->b + skip,
                 .ldc = dvp,
                 .lda = ATTEND_SPLIT,
                 .row = v->row,
                 .strip = v->strip,
                 .n_a = (b - a) * j->heads,
                 .n_strip = (int32_t)(dvp / LANES),
                 .n = p1 - p0,
                 .add = true};
    const int32_t later = p0 + (x->next - x->c) * ATTEND_SPLIT;
    if (x->next > x->c && later <= x->u->hi[x->u->n_rows - 1])
        m.ahead[0] = keys_at(j, x->u->seg, x->u->kvh, later);
    j->k->mm[v->codec](&m);
}

/* Adds the positions [p0, p1) to rows [a, b), each only those of its window and in rising order:
   what all have together, before it and after it the same for each half.  At most 6 deep. */
static void value_rows(const split *x, const value_block *v, int32_t a, int32_t b, int32_t p0,
                       int32_t p1)
{
    const unit *u = x->u;
    p0 = max_i32(p0, u->lo[a]);
    p1 = min_i32(p1, u->hi[b - 1] + 1);
    if (p0 >= p1) return;
    int32_t c0 = max_i32(p0, u->lo[b - 1]), c1 = min_i32(p1, u->hi[a] + 1);
    const int32_t mid = a + (b - a) / 2;
    if (c0 >= c1) c0 = c1 = p1;
    if (b - a > 1 && p0 < c0) {
        value_rows(x, v, a, mid, p0, c0);
        value_rows(x, v, mid, b, p0, c0);
    }
    if (c0 < c1) add_values(x, v, a, b, c0, c1);
    if (b - a > 1 && c1 < p1) {
        value_rows(x, v, a, mid, c1, p1);
        value_rows(x, v, mid, b, c1, p1);
    }
}

static void soften(const split *x, const partial *part)
{
    const attend_job *j = x->j;
    const unit *u = x->u;
    const int32_t base = x->c * ATTEND_SPLIT;
    const size_t room = pad16(j->n_split), at = (size_t)(x->c - u->c0);
    for (int32_t i = x->a; i < x->b; i++) {
        int32_t lo = max_i32(u->lo[i] - base, 0), hi = min_i32(u->hi[i] - base, ATTEND_SPLIT - 1);
        for (int32_t h = 0; h < j->heads; h++) {
            size_t v = (size_t)(i * j->heads + h);
            part->l[v * room + at] =
                j->k->softmax(x->s + v * ATTEND_SPLIT, lo, hi, j->o->u.attend.scale,
                              j->o->u.attend.softcap, &part->m[v * room + at]);
        }
    }
}

static void attend_split(const attend_job *j, const unit *u, int32_t c, int32_t next,
                         const float *q, const attend_scratch *sc, const partial *part)
{
    const size_t dvp = pad16(j->kv->dv), vecs = (size_t)unit_vecs(j, u);
    const int32_t base = c * ATTEND_SPLIT;
    split x = {.j = j, .u = u, .c = c, .b = u->n_rows, .next = next, .q = q, .s = sc->s};
    x.panel = sc->panel;
    x.o = part->o + (size_t)(c - u->c0) * vecs * dvp;
    while (u->hi[x.a] < base) x.a++;
    while (u->lo[x.b - 1] >= base + ATTEND_SPLIT) x.b--;
    const int32_t p0 = max_i32(base, u->lo[x.a]);
    const int32_t p1 = min_i32(base + ATTEND_SPLIT, u->hi[x.b - 1] + 1);
    for (int32_t p = p0; p < p1; p = (p / KV_BLOCK + 1) * KV_BLOCK)
        score_block(&x, p, min_i32((p / KV_BLOCK + 1) * KV_BLOCK, p1) - 1);
    soften(&x, part);
    memset(x.o + (size_t)(x.a * j->heads) * dvp, 0,
           (size_t)((x.b - x.a) * j->heads) * dvp * sizeof(float));
    for (int32_t p = p0; p < p1; p = (p / KV_BLOCK + 1) * KV_BLOCK) {
        int32_t end = min_i32((p / KV_BLOCK + 1) * KV_BLOCK, p1);
        value_block v = value_open(&x, p, end);
        value_rows(&x, &v, x.a, x.b, p, end);
    }
}

/* w = exp(m_c - M); L = fma(w, l_c, L); o = fma(w, o_c, o), c rising; then o / L. */
static void merge_vector(const attend_job *j, const unit *u, const partial *part, int32_t v,
                         float *out)
{
    const int32_t row = v / j->heads;
    const int32_t c0 = u->lo[row] / ATTEND_SPLIT - u->c0, c1 = u->hi[row] / ATTEND_SPLIT - u->c0;
    const size_t room = pad16(j->n_split), vecs = (size_t)unit_vecs(j, u), dvp = pad16(j->kv->dv);
    const size_t dv = (size_t)j->kv->dv;
    float *w = part->m + (size_t)v * room, *l = part->l + (size_t)v * room;
    float max, sum = 0;
    (void)j->k->softmax(w, c0, c1, 1.0f, 0.0f, &max); /* leaves exp(m_c - M) */
    memset(out, 0, dv * sizeof *out);
    for (int32_t c = c0; c <= c1; c++) {
        j->k->axpy(&sum, w[c], &l[c], 1);
        j->k->axpy(out, w[c], part->o + ((size_t)c * vecs + (size_t)v) * dvp, dv);
    }
    j->k->divide(out, out, sum, dv);
}

static void merge_unit(const attend_job *j, const unit *u, const partial *part)
{
    const size_t dv = (size_t)j->kv->dv, cols = (size_t)j->o->u.attend.n_head * dv;
    float *out = cpu_val(j->r, j->o->out[0]) + (size_t)u->row0 * cols;
    for (int32_t v = 0; v < unit_vecs(j, u); v++) {
        size_t head = (size_t)(u->kvh * j->heads + v % j->heads);
        merge_vector(j, u, part, v, out + (size_t)(v / j->heads) * cols + head * dv);
    }
}

/* --- tasks --- */

static void unit_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const attend_job *j = ctx;
    attend_scratch sc = thread_scratch(j, i_thread);
    unit u;
    unit_get(j, i_task, &u);
    const float *q = unit_queries(j, &u, sc.q);
    for (int32_t c = u.c0; c <= u.c1; c++) attend_split(j, &u, c, c + 1, q, &sc, &sc.part);
    merge_unit(j, &u, &sc.part);
}

static void split_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const attend_job *j = ctx;
    attend_scratch sc = thread_scratch(j, i_thread);
    unit u;
    for (int32_t i = 0;; i++) {
        unit_get(j, i, &u);
        int32_t n = u.c1 - u.c0 + 1;
        if (i_task < n) break;
        i_task -= n;
    }
    partial part = shared_partial(j, &u);
    const int32_t c = u.c0 + i_task, next = c + workers_active(j->r->x->d->pool);
    attend_split(j, &u, c, next, unit_queries(j, &u, sc.q), &sc, &part);
}

static void merge_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const attend_job *j = ctx;
    unit u;
    (void)i_thread;
    unit_get(j, i_task, &u);
    partial part = shared_partial(j, &u);
    merge_unit(j, &u, &part);
}

/* All splits of all units, and multiply-adds in all. */
static int64_t total_splits(const attend_job *j, int32_t n_units, int64_t *macs)
{
    int64_t n = 0, positions = 0;
    for (int32_t i = 0; i < n_units; i++) {
        unit u;
        unit_get(j, i, &u);
        n += u.c1 - u.c0 + 1;
        for (int32_t row = 0; row < u.n_rows; row++) positions += u.hi[row] - u.lo[row] + 1;
    }
    *macs = positions * j->heads * (j->kv->dk + j->kv->dv);
    return n;
}

static void run_tasks(attend_job *j, int32_t n, bool alone, worker_fn fn)
{
    if (!alone && n > 1) {
        workers_run(j->r->x->d->pool, n, fn, j);
        return;
    }
    for (int32_t i = 0; i < n; i++) fn(j, i, 0);
}

/* Smaller units when there are fewer than threads want. */
static void choose_tiles(attend_job *j, int32_t threads)
{
    j->tile_rows = max_i32(1, TILE_VECS / j->heads);
    while (j->tile_rows > 1 && unit_count(j) < 2 * threads) j->tile_rows = (j->tile_rows + 1) / 2;
}

void cpu_attend(cpu_run *r, const op *o)
{
    const int32_t threads = workers_active(r->x->d->pool), rows = cpu_rows(r, o->in[0]);
    attend_job j = {.r = r, .o = o, .kv = &r->s->kv[o->layer], .k = &r->x->d->k.vec};
    assert(j.kv->dk == o->u.attend.dk && j.kv->dv == o->u.attend.dv &&
           j.kv->n_kv_head == o->u.attend.n_kv_head);
    j.heads = o->u.attend.n_head / o->u.attend.n_kv_head;
    j.n_split = split_room(o, r->x->max_ctx);
    encode_step(&j);
    if (rows == 0) return;
    choose_tiles(&j, threads);
    const int32_t n_units = unit_count(&j);
    int64_t macs = INLINE_MACS, n_splits = n_units;
    if (rows <= SPLIT_ROWS) n_splits = total_splits(&j, n_units, &macs);
    const bool alone = threads == 1 || macs < INLINE_MACS;
    if (alone || n_splits == n_units || n_units >= 2 * threads) {
        run_tasks(&j, n_units, alone, unit_task);
        return;
    }
    run_tasks(&j, (int32_t)n_splits, false, split_task);
    run_tasks(&j, n_units, n_splits * j.heads * j.kv->dv < INLINE_MACS, merge_task);
}
