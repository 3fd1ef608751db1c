/* Units of a product whose step has few rows: it waits for weights, and a core reads a stretch of them best as one
   stream that it knows ahead.  So each thread has a share of the units, one stretch, which it takes in runs, the
   tasks that it owns in the pool; one that has none left takes the next run of another.  And each fetches the first
   bytes of its share of the next product while it waits.  A thread alone never waits: it fetches some tiles ahead, and
   from a product's last tiles on the first of the next, so that all weights are one stream.  Who computes a unit never
   changes a bit. */
#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/tiles.h"
#include "base/far.h"
#include "base/num.h"

enum {
    /* Each half of what is left of a share: long streams, and threads that end together. */
    RUNS = 4,
    /* Bytes a thread fetches of the next product at most: 64 to 600 KB made no difference, and a core that waits 5 µs
       gets as much. */
    FETCH_MOST = 128 << 10,
    /* Bytes that a thread alone fetches ahead, at least: docs/kernels.md, "One thread, one stream". */
    LEAD = 24 << 10,
    LEAD_TILE = 96 << 10 /* of larger tiles less: 1.5B lost 2 % by 160 to 240 KB */
};

static int32_t share_begin(int32_t n_unit, int32_t n_thread, int32_t t)
{
    return (int32_t)((int64_t)n_unit * t / n_thread);
}

int32_t cpu_shares_cut(const cpu_run *r, int32_t n_unit, cpu_shares *s)
{
    *s = (cpu_shares){.n_unit = n_unit, .n_thread = workers_active(r->x->d->pool), .n_run = 1};
    while (s->n_run < RUNS && n_unit / s->n_thread >> s->n_run > 0) s->n_run++;
    return s->n_thread * s->n_run;
}

cpu_stretch cpu_shares_stretch(const cpu_shares *s, int32_t i_task)
{
    const int32_t t = i_task / s->n_run, i = i_task % s->n_run;
    const int32_t last = share_begin(s->n_unit, s->n_thread, t + 1);
    const int32_t n = last - share_begin(s->n_unit, s->n_thread, t);
    const bool more = i + 1 < s->n_run;
    return (cpu_stretch){last - (n >> i), more ? last - (n >> (i + 1)) : last, more};
}

static int32_t units_of(const weight *w)
{
    return ceil_div(w->rows, TILE_ROWS);
}

/* What begins thread t's share, as far as it lies in one weight's tiles. */
static void fetch_share(workers *pool, const op *o, int32_t n_unit, int32_t t)
{
    const int32_t n_thread = workers_active(pool);
    int32_t begin = share_begin(n_unit, n_thread, t), i = 0;
    int32_t end = share_begin(n_unit, n_thread, t + 1);
    for (; i < o->n_w - 1 && begin >= units_of(o->w[i]); i++) {
        begin -= units_of(o->w[i]);
        end -= units_of(o->w[i]);
    }
    const tiles *d = o->w[i]->dev;
    if (!d) return;
    const size_t size = (size_t)(min_i32(end, units_of(o->w[i])) - begin) * d->tile_bytes;
    workers_ahead(pool, t, d->data + (size_t)begin * d->tile_bytes,
                  size < FETCH_MOST ? size : FETCH_MOST);
}

/* After the last comes the first, of the next step.  A program without any answers itself. */
static const op *next_linear(const cpu_run *r)
{
    const prog *p = r->x->pl->p;
    int32_t i = r->i_op;
    do i = (i + 1) % p->n_op;
    while (p->op[i].kind != OP_LINEAR && i != r->i_op);
    return &p->op[i];
}

void cpu_shares_fetch(const cpu_run *r)
{
    workers *pool = r->x->d->pool;
    if (workers_active(pool) == 1 || r->s->n_rows > CPU_SHARES_ROWS) return;
    const op *o = next_linear(r);
    int32_t n_unit = 0;
    for (int32_t i = 0; i < o->n_w; i++) n_unit += units_of(o->w[i]);
    for (int32_t t = 0; t < workers_active(pool); t++) fetch_share(pool, o, n_unit, t);
}

/* The tile of a unit and its bytes; 0: it has none. */
static size_t tile_of(const weight *const *w, int32_t unit, uintptr_t *at)
{
    while (unit >= units_of(*w)) unit -= units_of(*w++);
    const tiles *t = (*w)->dev;
    if (!t) return 0;
    *at = (uintptr_t)t->data + (size_t)unit * t->tile_bytes;
    return t->tile_bytes;
}

uintptr_t cpu_shares_far(const cpu_run *r, const cpu_shares *s, const weight *const *w,
                         int32_t unit)
{
    uintptr_t at, to;
    if (!r->x->d->k.lin.leads) return FAR_AHEAD;
    const size_t size = tile_of(w, unit, &at);
    if (size == 0 || size > LEAD_TILE) return FAR_AHEAD;
    const int32_t later = unit + (int32_t)((LEAD + size - 1) / size);
    if (later < s->n_unit) return tile_of(w, later, &to) > 0 ? to - at : FAR_AHEAD;
    const op *o = next_linear(r);
    if (o->kind != OP_LINEAR || tile_of(o->w, 0, &to) == 0) return FAR_AHEAD;
    return to + (size_t)(later - s->n_unit) * size - at;
}
