/* One split of one unit of ATTEND: scores, softmax and the sum of values.  Query vectors share each
   key and value; many of them work on panels widened to f32 once, few read the codec directly. */
#include <string.h>

#include "backend/cpu/cpu_attend.h"
#include "backend/cpu/kern/kern_vec.h"
#include "tensor/batch.h"
#include "tensor/kvview.h"
#include "tensor/op.h"

void kv_scores(const kern_vec *k, kv_codec codec, kern_mm *m, float *panel)
{
    m->row = KV_TILE;
    m->strip = KV_TILE * (size_t)m->n;
    if (codec.kind == KV_F32 || (kv_is_plain(codec.kind) && m->n_a <= k->mm_direct)) {
        k->mm[codec.kind](m);
        return;
    }
    if (k->mm_tiles[codec.kind] && m->n_a <= k->mm_coded) {
        m->group = codec.group;
        k->mm_tiles[codec.kind](m);
        return;
    }
    const uint8_t *tile = m->b;
    const int32_t n = m->n_strip;
    const size_t wide = KV_TILE * (size_t)m->n;
    m->b = panel;
    for (int32_t t = 0; t < n; t += m->n_strip, m->c += (size_t)m->n_strip * KV_TILE) {
        m->n_strip = min_i32(n - t, SCORE_STRIPS);
        for (int32_t i = 0; i < m->n_strip; i++) {
            if (kv_is_plain(codec.kind))
                k->widen[codec.kind](panel + (size_t)i * wide, tile, m->n, KV_TILE);
            else
                k->open_tile[codec.kind](panel + (size_t)i * wide, tile, m->n, codec.group);
            tile += KV_TILE * kv_row_bytes(codec, m->n);
        }
        k->mm[KV_F32](m);
    }
}

void kv_open_rows(const attend_job *j, const unit *u, int32_t p0, int32_t p1, int32_t n_cols,
                  float *rows)
{
    /* A row of whole strips is as many rows of one strip, which the kernel does in one loop. */
    const bool whole = n_cols % LANES == 0;
    const int32_t n = whole ? n_cols / LANES : 1, width = whole ? LANES : n_cols;
    for (int32_t p = p0; p < p1; p++, rows += row_pitch(n_cols)) {
        const int32_t pos = unit_pos(u, p);
        const kv_codec c = kv_at(j->kv, pos)->v;
        const uint8_t *row = values_at(j, u->seg, u->kvh, pos);
        if (kv_is_plain(c.kind))
            j->k->widen[c.kind](rows, row, n, width);
        else
            j->k->open_row[c.kind](rows, row, (int32_t)pad16(n_cols), c.group);
    }
}

typedef struct split {
    const attend_job *j;
    const unit *u;
    int32_t c, a, b; /* split; the unit's rows [a, b) that have positions in it */
    const attend_next *next;
    const float *q;
    float *s, *panel, *o;
    const attend_scratch *sc;
} split;

static void score_block(const split *x, int32_t p0, int32_t p1)
{
    const attend_job *j = x->j;
    const kv_layer *kv = kv_at(j->kv, p0);
    if (kv->latent) {
        latent_scores(j, x->u, x->a, x->b, p0, p1, x->q, x->sc);
        return;
    }
    const size_t first = (size_t)(x->a * j->heads), dk = (size_t)kv->dk;
    const int32_t t0 = p0 / KV_TILE, t1 = p1 / KV_TILE + 1;
    kern_mm m = {.c = x->s + first * SCORE_PITCH + (size_t)(t0 * KV_TILE % ATTEND_SPLIT),
                 .a = x->q + first * dk,
                 .b = keys_at(j, x->u->seg, x->u->kvh, p0),
                 .ldc = SCORE_PITCH,
                 .lda = dk,
                 .n_a = (x->b - x->a) * j->heads,
                 .n_strip = t1 - t0,
                 .n = kv->dk};
    const int32_t after = (p0 / KV_BLOCK + 1) * KV_BLOCK;
    m.ahead[0] = values_at(j, x->u->seg, x->u->kvh, p0);
    if (after % ATTEND_SPLIT != 0 && after <= x->u->hi[x->b - 1])
        m.ahead[1] = keys_at(j, x->u->seg, x->u->kvh, after);
    kv_scores(j->k, kv->k, &m, x->panel);
}

/* Values of positions p0 … in the form that mm reads. */
typedef struct value_block {
    const uint8_t *b;
    kv_codec codec;
    size_t row, strip; /* as mm has them: of a coded kind a row is bytes */
    int32_t p0;
} value_block;

static const kv_codec wide_codec = {KV_F32, 0};

static value_block value_open(const split *x, int32_t p0, int32_t p1)
{
    const attend_job *j = x->j;
    const kv_layer *kv = kv_at(j->kv, p0);
    const uint8_t *v = values_at(j, x->u->seg, x->u->kvh, unit_pos(x->u, p0));
    const int32_t n = p1 - p0;
    const kv_kind kind = kv->v.kind;
    const int32_t n_vec = (x->b - x->a) * j->heads;
    const bool few = kind == KV_F32 || n_vec <= j->k->mm_direct;
    if (few && kv_is_plain(kind) && kv->dv % LANES == 0 && !x->u->at)
        return (value_block){v, kv->v, (size_t)(kv->latent ? kv->dk : kv->dv), LANES, p0};
    if (j->k->mm_rows[kind] && n_vec <= j->k->mm_coded && !x->u->at)
        return (value_block){v, kv->v, kv_value_row(kv), LANES, p0};
    const uint8_t *wide = (const uint8_t *)x->panel;
    if (kv->latent || !kv_is_plain(kind)) {
        kv_open_rows(j, x->u, p0, p1, kv->dv, x->panel);
        return (value_block){wide, wide_codec, row_pitch(kv->dv), LANES, p0};
    }
    j->k->widen[kind](x->panel, v, n, kv->dv);
    return (value_block){wide, wide_codec, LANES, LANES * (size_t)n, p0};
}

static void add_values(const split *x, const value_block *v, int32_t a, int32_t b, int32_t p0,
                       int32_t p1)
{
    const attend_job *j = x->j;
    const size_t first = (size_t)(a * j->heads), dvp = pad16(j->kv->dv);
    const bool plain = kv_is_plain(v->codec.kind);
    const size_t row = plain ? kv_row_bytes(v->codec, (int32_t)v->row) : v->row;
    kern_mm m = {.c = x->o + first * dvp,
                 .a = x->s + first * SCORE_PITCH + p0 % ATTEND_SPLIT,
                 .b = v->b + (size_t)(p0 - v->p0) * row,
                 .ldc = dvp,
                 .lda = SCORE_PITCH,
                 .row = v->row,
                 .strip = v->strip,
                 .n_a = (b - a) * j->heads,
                 .n_strip = (int32_t)(dvp / LANES),
                 .n = p1 - p0,
                 .group = v->codec.group,
                 .add = true};
    const attend_next *next = x->next;
    const int32_t later = next->base + p0 % ATTEND_SPLIT;
    if (!j->kv->latent && next->seg && later >= next->lo && later <= next->hi)
        m.ahead[0] = keys_at(j, next->seg, next->kvh, later);
    (plain ? j->k->mm : j->k->mm_rows)[v->codec.kind](&m);
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

/* Rows that see the same of the split together. */
static void soften(const split *x, const partial *part)
{
    const attend_job *j = x->j;
    const unit *u = x->u;
    const int32_t base = x->c * ATTEND_SPLIT;
    const size_t room = pad16(j->n_split), at = (size_t)(x->c - u->c0);
    for (int32_t i = x->a, n; i < x->b; i += n) {
        const int32_t lo = max_i32(u->lo[i] - base, 0);
        const int32_t hi = min_i32(u->hi[i] - base, ATTEND_SPLIT - 1);
        for (n = 1; i + n < x->b && max_i32(u->lo[i + n] - base, 0) == lo &&
                    min_i32(u->hi[i + n] - base, ATTEND_SPLIT - 1) == hi;)
            n++;
        const size_t v = (size_t)(i * j->heads);
        j->k->softmax(&(kern_softmax){.s = x->s + v * SCORE_PITCH,
                                      .max = part->m + v * room + at,
                                      .sum = part->l + v * room + at,
                                      .pitch = SCORE_PITCH,
                                      .step = room,
                                      .n = n * j->heads,
                                      .lo = lo,
                                      .hi = hi,
                                      .scale = j->o->u.attend.scale,
                                      .cap = j->o->u.attend.softcap});
    }
}

/* The rows [a, b) of x, all of the unit's segment or reading its blocks in this split. */
static void split_rows(split *x, const partial *part)
{
    const attend_job *j = x->j;
    const unit *u = x->u;
    const size_t dvp = pad16(j->kv->dv);
    const int32_t base = x->c * ATTEND_SPLIT;
    while (u->hi[x->a] < base) x->a++;
    while (u->lo[x->b - 1] >= base + ATTEND_SPLIT) x->b--;
    const int32_t p0 = max_i32(base, u->lo[x->a]);
    const int32_t p1 = min_i32(base + ATTEND_SPLIT, u->hi[x->b - 1] + 1);
    for (int32_t p = p0; p < p1; p = (p / KV_BLOCK + 1) * KV_BLOCK)
        score_block(x, p, min_i32((p / KV_BLOCK + 1) * KV_BLOCK, p1) - 1);
    soften(x, part);
    memset(x->o + (size_t)(x->a * j->heads) * dvp, 0,
           (size_t)((x->b - x->a) * j->heads) * dvp * sizeof(float));
    for (int32_t p = p0; p < p1; p = (p / KV_BLOCK + 1) * KV_BLOCK) {
        int32_t end = min_i32((p / KV_BLOCK + 1) * KV_BLOCK, p1);
        value_block v = value_open(x, p, end);
        value_rows(x, &v, x->a, x->b, p, end);
    }
}

void attend_split(const attend_job *j, const unit *u, int32_t c, const attend_next *next,
                  const float *q, const attend_scratch *sc, const partial *part)
{
    const size_t vecs = (size_t)unit_vecs(j, u);
    split x = {.j = j, .u = u, .c = c, .b = u->n_rows, .next = next, .q = q, .s = sc->s};
    x.panel = sc->panel;
    x.sc = sc;
    x.o = part->o + (size_t)(c - u->c0) * vecs * pad16(j->kv->dv);
    if (!u->segs) {
        split_rows(&x, part);
        return;
    }
    unit run = *u;
    for (int32_t a = 0, b; a < u->n_rows; a = b) {
        b = attend_run_end(j, u, a, c);
        if (u->hi[a] < c * ATTEND_SPLIT) continue;
        run.seg = &j->r->s->seg[u->segs[a]];
        x.u = &run;
        x.a = a;
        x.b = b;
        split_rows(&x, part);
    }
}
