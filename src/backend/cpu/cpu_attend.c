/* ATTEND and ATTEND_AT.  First the step's keys and values go into the cache through its codec; then each query row
   attends to the positions [lo, hi] of its window, reading only the cache.

   With `both`, hi lies after the row, which therefore needs its whole sequence in the step.

   The arithmetic of a row: positions are cut at multiples of ATTEND_SPLIT; a split gives its scores'
   maximum m, the sum l of p = exp(s - m) and o = Σ p·v; splits merge from left to right under the
   maximum of all.  So a row's bits depend on its own positions alone, and how work is cut is
   free: a unit is (segment, KV head, a few query rows), whose rows × query heads share each key and
   value; with few rows its splits are tasks of their own.

   ATTEND_AT: the picked positions of a row are numbered from 0 and take the place of a sequence's; a
   unit is one row. */
#include <assert.h>
#include <string.h>

#include "backend/cpu/cpu_attend.h"
#include "backend/cpu/kern/kern_math.h"

enum {
    SPLIT_ROWS = 8, /* steps of at most so many query rows may run by splits: bounds the scratch */
    SHARE_LEAST =
        4, /* units or splits a thread from which each has a share: its last runs are then one each */
    INLINE_MACS = 32768 /* multiply-adds that take about as long as waking the others */
};

static int32_t vecs_max(const op *o)
{
    return max_i32(TILE_VECS, o->u.attend.n_head / o->u.attend.n_kv_head);
}
/* Values are parts of the keys. */
static bool is_latent(const op *o)
{
    return o->kind == OP_ATTEND_AT || (o->in[1] != VAL_NONE && o->in[2] == VAL_NONE);
}
static int32_t n_picked(const plan *pl, const op *o)
{
    return o->kind == OP_ATTEND_AT ? pl->p->value[o->in[2]].cols : INT32_MAX;
}
/* Splits of a row at most, of max_ctx positions. */
static int32_t split_room(const plan *pl, const op *o, int32_t max_ctx)
{
    int32_t all = ceil_div(min_i32(max_ctx, n_picked(pl, o)), ATTEND_SPLIT);
    if (o->u.attend.window == 0) return all;
    const int32_t seen = min_i32(o->u.attend.window, max_ctx) * (o->u.attend.both ? 2 : 1);
    return min_i32(all, (seen + TILE_VECS) / ATTEND_SPLIT + 2);
}
static size_t partial_floats(const op *o, int32_t n_vec, int32_t n_split)
{
    return (size_t)n_vec * ((size_t)n_split * pad16(o->u.attend.dv) + 2 * pad16(n_split));
}

static size_t scratch_floats(const op *o, int32_t n_split, float *base, attend_scratch *out)
{
    const int32_t dk = o->u.attend.dk, dv = o->u.attend.dv, n_vec = vecs_max(o);
    const size_t v = (size_t)n_vec;
    const bool latent = is_latent(o);
    size_t n_q = round_up(v * (size_t)dk, LANES), n_s = v * SCORE_PITCH;
    size_t n_panel = latent ? KV_BLOCK * row_pitch(dk) : SCORE_STRIPS * LANES * (size_t)dk;
    size_t n_values = KV_BLOCK * row_pitch(dv);
    if (n_panel < n_values) n_panel = n_values;
    size_t n_turned = latent ? pad16(n_vec) * (size_t)dk : 0;
    size_t n_lanes = latent ? KV_BLOCK * (pad16(n_vec) + LANES) : 0;
    size_t part = n_q + n_s + n_panel + n_turned + n_lanes;
    if (out) {
        out->q = base;
        out->s = out->q + n_q;
        out->panel = out->s + n_s;
        out->turned = out->panel + n_panel;
        out->lanes = out->turned + n_turned;
        out->part.m = base + part;
        out->part.l = out->part.m + v * pad16(n_split);
        out->part.o = out->part.l + v * pad16(n_split);
    }
    return part + partial_floats(o, n_vec, n_split);
}

/* Shared scratch: partial results of steps that run by splits, then the sets of rows. */
static size_t shared_partials(const plan *pl, const op *o, int32_t n_split)
{
    const int32_t rows = min_i32(pl->max_rows, SPLIT_ROWS);
    return partial_floats(o, rows * o->u.attend.n_head, n_split) * sizeof(float);
}

cpu_need cpu_attend_need(const dev *d, const plan *pl, const op *o, int32_t max_ctx)
{
    const int32_t n_split = split_room(pl, o, max_ctx);
    const size_t n_encode = (size_t)o->u.attend.n_kv_head * (size_t)o->u.attend.dk;
    const size_t n = scratch_floats(o, n_split, NULL, NULL);
    (void)d;
    return (cpu_need){.shared = shared_partials(pl, o, n_split) + attend_sets_size(pl->max_rows),
                      .thread = (n > n_encode ? n : n_encode) * sizeof(float)};
}

attend_scratch attend_thread_scratch(const attend_job *j, int32_t i_thread)
{
    attend_scratch s;
    float *base = (float *)(void *)cpu_thread_scratch(j->r, i_thread);
    (void)scratch_floats(j->o, j->n_split, base, &s);
    return s;
}

/* Query rows of a set. */
static int32_t set_rows(const attend_job *j, const row_set *set, int32_t *row0)
{
    int32_t n;
    attend_query_rows(j, &j->r->s->seg[j->order[set->first]], row0, &n);
    return set->n > 1 ? set->n : n;
}

static int32_t unit_count(const attend_job *j)
{
    int32_t units = 0, row0;
    for (int32_t i = 0; i < j->n_set; i++)
        units += ceil_div(set_rows(j, &j->set[i], &row0), j->tile_rows) * j->kv->n_kv_head;
    return units;
}

/* On both sides, to the end of the sequence at most. */
static int32_t last_seen(const segment *g, int32_t pos, int32_t window)
{
    const int32_t last = g->n_rows - 1;
    assert(g->pos0 == 0 && g->n_rows == g->known_len);
    return window > 0 && window - 1 < last - pos ? pos + window - 1 : last;
}

static void unit_bounds(const attend_job *j, unit *u)
{
    int32_t first = INT32_MAX, last = 0;
    assert(u->n_rows > 0 && u->n_rows <= TILE_VECS);
    for (int32_t i = 0; i < u->n_rows; i++) {
        int32_t pos = j->r->s->pos[cpu_step_row(j->r, j->o->in[0], u->row[i])];
        int32_t window = j->o->u.attend.window;
        u->lo[i] = window > 0 ? max_i32(0, pos - window + 1) : 0;
        u->hi[i] = pos;
        if (j->o->u.attend.both) u->hi[i] = last_seen(u->seg, pos, window);
        if (j->at) u->hi[i] = min_i32(u->hi[i], j->n_at - 1);
        first = min_i32(first, u->lo[i]);
        last = max_i32(last, u->hi[i]);
    }
    u->at = j->at ? j->at + (size_t)u->row[0] * (size_t)j->n_at : NULL;
    u->c0 = first / ATTEND_SPLIT;
    u->c1 = last / ATTEND_SPLIT;
    assert(u->c1 - u->c0 < j->n_split);
}

/* Units of a set come last rows first: of a segment these are the longest. */
static void unit_get(const attend_job *j, int32_t i_unit, unit *u)
{
    int32_t before = 0, row0;
    for (int32_t i = 0; i < j->n_set; i++) {
        const row_set *set = &j->set[i];
        const int32_t n = set_rows(j, set, &row0), tiles = ceil_div(n, j->tile_rows);
        if (i_unit >= tiles * j->kv->n_kv_head) {
            i_unit -= tiles * j->kv->n_kv_head;
            before += n;
            continue;
        }
        const int32_t at = (tiles - 1 - i_unit / j->kv->n_kv_head) * j->tile_rows;
        u->seg = &j->r->s->seg[j->order[set->first]];
        u->segs = set->n > 1 ? j->order + set->first + at : NULL;
        u->kvh = i_unit % j->kv->n_kv_head;
        u->first = before + at;
        u->n_rows = min_i32(j->tile_rows, n - at);
        for (int32_t k = 0; k < u->n_rows; k++) {
            int32_t one;
            u->row[k] = row0 + at + k;
            if (u->segs) attend_query_rows(j, &j->r->s->seg[u->segs[k]], &u->row[k], &one);
        }
        unit_bounds(j, u);
        return;
    }
    assert(false);
}

/* Partial results that splits of one unit share, when splits are tasks. */
static partial shared_partial(const attend_job *j, const unit *u)
{
    const size_t room = pad16(j->n_split), vecs = (size_t)unit_vecs(j, u);
    size_t first = (size_t)u->first * (size_t)j->o->u.attend.n_head + (size_t)u->kvh * vecs;
    float *base = (float *)(void *)j->r->x->shared + partial_floats(j->o, 1, j->n_split) * first;
    return (partial){.m = base, .l = base + vecs * room, .o = base + 2 * vecs * room};
}

/* Queries as [vector][dk], vector = row · heads + head; in place when the row is one.  Latent: turned. */
static const float *unit_queries(const attend_job *j, const unit *u, const attend_scratch *sc)
{
    const size_t dk = (size_t)j->kv->dk, n = (size_t)j->heads * dk;
    const size_t cols = (size_t)j->o->u.attend.n_head * dk;
    const float *all = cpu_val(j->r, j->o->in[0]) + (size_t)u->kvh * n;
    const float *q = u->n_rows > 1 ? sc->q : all + (size_t)u->row[0] * cols;
    for (int32_t i = 0; u->n_rows > 1 && i < u->n_rows; i++)
        memcpy(sc->q + (size_t)i * n, all + (size_t)u->row[i] * cols, n * sizeof *q);
    if (!j->kv->latent) return q;
    latent_turn(j, u, q, sc->turned);
    return sc->turned;
}

/* Vectors [v0, v1), of rows that begin and end in the same splits: w = exp(m_c - M); L = fma(w, l_c, L);
   o = fma(w, o_c, o), c rising; a sink s: L + exp(s - M); then o / L. */
static void merge_vectors(const attend_job *j, const unit *u, const partial *part, int32_t v0,
                          int32_t v1)
{
    const int32_t row0 = v0 / j->heads, n_head = j->o->u.attend.n_head;
    const int32_t c0 = u->lo[row0] / ATTEND_SPLIT - u->c0, c1 = u->hi[row0] / ATTEND_SPLIT - u->c0;
    const size_t room = pad16(j->n_split), vecs = (size_t)unit_vecs(j, u), dvp = pad16(j->kv->dv);
    const size_t dv = (size_t)j->kv->dv, first = (size_t)v0 * room;
    float max[TILE_VECS], sum[TILE_VECS];
    assert(v1 - v0 <= TILE_VECS);
    /* leaves exp(m_c - M) */
    j->k->softmax(&(kern_softmax){part->m + first, max, sum, room, 1, v1 - v0, c0, c1, 1.0f, 0.0f});
    for (int32_t v = v0; v < v1; v++) {
        const int32_t head = u->kvh * j->heads + v % j->heads;
        float *out = cpu_val(j->r, j->o->out[0]) +
                     ((size_t)u->row[v / j->heads] * (size_t)n_head + (size_t)head) * dv;
        const size_t at = (size_t)v * room + (size_t)c0;
        const float more = j->o->w[0] ? kern_exp(j->o->w[0]->f32[head] - max[v - v0]) : 0.0f;
        j->k->merge(&(kern_merge){.y = out,
                                  .x = part->o + ((size_t)c0 * vecs + (size_t)v) * dvp,
                                  .w = part->m + at,
                                  .l = part->l + at,
                                  .step = vecs * dvp,
                                  .n_x = (size_t)(c1 - c0 + 1),
                                  .n = dv,
                                  .more = more});
        if (kv_is_rotated(j->kv->v.kind)) kv_turn_back(out, dv);
    }
}

static void merge_unit(const attend_job *j, const unit *u, const partial *part)
{
    for (int32_t i = 0, n; i < u->n_rows; i += n) {
        const int32_t c0 = u->lo[i] / ATTEND_SPLIT, c1 = u->hi[i] / ATTEND_SPLIT;
        for (n = 1; i + n < u->n_rows && u->lo[i + n] / ATTEND_SPLIT == c0 &&
                    u->hi[i + n] / ATTEND_SPLIT == c1;)
            n++;
        for (int32_t v = i * j->heads, end = (i + n) * j->heads; v < end; v += TILE_VECS)
            merge_vectors(j, u, part, v, min_i32(v + TILE_VECS, end));
    }
}

/* One split of one unit. */
typedef struct spot {
    unit u;
    int32_t i_unit, c;
} spot;

static spot first_spot(const attend_job *j, int32_t i_unit)
{
    spot s = {.i_unit = i_unit};
    unit_get(j, i_unit, &s.u);
    s.c = s.u.c0;
    return s;
}

/* Split after split, unit after unit; false: that was the last. */
static bool step_spot(const attend_job *j, spot *s)
{
    if (s->c < s->u.c1)
        s->c++;
    else if (s->i_unit + 1 < j->n_unit)
        *s = first_spot(j, s->i_unit + 1);
    else
        return false;
    return true;
}

/* What its first row reads; in a set of several that row may be another sequence's than the unit's. */
static attend_next fetch_of(const attend_job *j, const spot *s)
{
    const unit *u = &s->u;
    const segment *seg = u->segs ? &j->r->s->seg[u->segs[0]] : u->seg;
    return (attend_next){seg, u->kvh, u->lo[0], u->hi[0], s->c * ATTEND_SPLIT};
}

/* Units one after the other; after the last this thread goes on behind it, if there is more. */
static void run_units(const attend_job *j, cpu_stretch t, int32_t i_thread)
{
    attend_scratch sc = attend_thread_scratch(j, i_thread);
    spot now = first_spot(j, t.begin), later = now;
    for (int32_t i = t.begin; i < t.end; i++) {
        const float *q = unit_queries(j, &now.u, &sc);
        for (bool same = true; same;) {
            const bool any = step_spot(j, &later);
            same = any && later.i_unit == i;
            const attend_next next =
                any && (later.i_unit < t.end || t.more) ? fetch_of(j, &later) : (attend_next){0};
            attend_split(j, &now.u, now.c, &next, q, &sc, &sc.part);
            if (same) now.c = later.c;
        }
        merge_unit(j, &now.u, &sc.part);
        now = later;
    }
}

/* Splits likewise, by their number in all units. */
static void run_splits(const attend_job *j, cpu_stretch t, int32_t i_thread)
{
    attend_scratch sc = attend_thread_scratch(j, i_thread);
    spot now = first_spot(j, 0), later;
    int32_t before = t.begin;
    for (int32_t n; before >= (n = now.u.c1 - now.u.c0 + 1); before -= n)
        now = first_spot(j, now.i_unit + 1);
    now.c += before;
    for (int32_t i = t.begin; i < t.end; i++, now = later) {
        later = now;
        const bool any = step_spot(j, &later) && (i + 1 < t.end || t.more);
        const attend_next next = any ? fetch_of(j, &later) : (attend_next){0};
        partial part = shared_partial(j, &now.u);
        attend_split(j, &now.u, now.c, &next, unit_queries(j, &now.u, &sc), &sc, &part);
    }
}

static void unit_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    run_units(ctx, (cpu_stretch){.begin = i_task, .end = i_task + 1}, i_thread);
}

static void split_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    run_splits(ctx, (cpu_stretch){.begin = i_task, .end = i_task + 1}, i_thread);
}

static void unit_share(void *ctx, int32_t i_task, int32_t i_thread)
{
    const attend_job *j = ctx;
    run_units(j, cpu_shares_stretch(&j->shares, i_task), i_thread);
}

static void split_share(void *ctx, int32_t i_task, int32_t i_thread)
{
    const attend_job *j = ctx;
    run_splits(j, cpu_shares_stretch(&j->shares, i_task), i_thread);
}

/* n units or splits of a step of few rows: a share a thread where that leaves somebody late enough help. */
static void run_few(attend_job *j, int32_t n, worker_fn share, worker_fn task)
{
    workers *pool = j->r->x->d->pool;
    if (n < SHARE_LEAST * workers_active(pool))
        workers_run(pool, n, task, j);
    else
        workers_run(pool, cpu_shares_cut(j->r, n, &j->shares), share, j);
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

/* In turn where waking the others takes longer. */
static void merge_units(attend_job *j, int64_t n_splits)
{
    const bool alone = n_splits * j->heads * j->kv->dv < INLINE_MACS;
    if (!alone) workers_run(j->r->x->d->pool, j->n_unit, merge_task, j);
    for (int32_t i = 0; alone && i < j->n_unit; i++) merge_task(j, i, 0);
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

/* Smaller units when there are fewer than threads want; but not of sequences that share blocks, if the splits of
   these are tasks enough. */
static void choose_tiles(attend_job *j, int32_t threads, bool by_splits)
{
    int64_t macs;
    j->tile_rows = j->at ? 1 : max_i32(1, TILE_VECS / j->heads);
    if (by_splits && total_splits(j, unit_count(j), &macs) >= 2 * threads) return;
    while (j->tile_rows > 1 && unit_count(j) < 2 * threads) j->tile_rows = (j->tile_rows + 1) / 2;
}

void cpu_attend(cpu_run *r, const op *o)
{
    const int32_t threads = workers_active(r->x->d->pool), rows = cpu_rows(r, o->in[0]);
    attend_job j = {.r = r, .o = o, .kv = &r->s->kv[o->u.attend.cache], .k = &r->x->d->k.vec};
    assert(j.kv->dk == o->u.attend.dk && j.kv->dv == o->u.attend.dv &&
           j.kv->n_kv_head == o->u.attend.n_kv_head && j.kv->latent == is_latent(o));
    j.heads = o->u.attend.n_head / o->u.attend.n_kv_head;
    j.n_split = split_room(r->x->pl, o, r->x->max_ctx);
    if (o->kind == OP_ATTEND_AT) {
        j.at = cpu_val(r, o->in[2]);
        j.n_at = n_picked(r->x->pl, o);
    }
    if (o->in[1] != VAL_NONE)
        kv_encode(r, j.kv, o->in[1], o->kind == OP_ATTEND_AT ? VAL_NONE : o->in[2]);
    if (rows == 0) return;
    const bool shares = attend_sets(&j, r->x->shared + shared_partials(r->x->pl, o, j.n_split));
    choose_tiles(&j, threads, shares && rows <= SPLIT_ROWS);
    j.n_unit = unit_count(&j);
    const bool few = rows <= SPLIT_ROWS;
    int64_t macs = INLINE_MACS, n_splits = j.n_unit;
    if (few) n_splits = total_splits(&j, j.n_unit, &macs);
    if (threads == 1 || macs < INLINE_MACS || n_splits == 1) {
        run_units(&j, (cpu_stretch){.end = j.n_unit}, 0);
    } else if (!few) {
        workers_run(r->x->d->pool, j.n_unit, unit_task, &j);
    } else if (n_splits == j.n_unit || j.n_unit >= 2 * threads) {
        run_few(&j, j.n_unit, unit_share, unit_task);
    } else {
        run_few(&j, (int32_t)n_splits, split_share, split_task);
        merge_units(&j, n_splits);
    }
}
