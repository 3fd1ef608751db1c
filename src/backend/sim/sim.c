/* The simulated backend.  Each position leaves a hash of the whole sequence so far in every group's cache
   block, in the first bytes of the block, and in the recurrent state if there is one.  A row chains on
   from its predecessor's hash and mixes in what it finds at two positions of each group that it may see:
   a block dropped too early, shared by mistake or never written changes its logits, or is a NULL that is
   read; so does a state that was not emptied. */
#include "backend/sim/sim.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/thread.h"

enum { DEFAULT_THREADS = 4 };

struct dev {
    uint64_t seed, now_ns;
    sim_flaw flaw;
    int32_t n_threads, limit;
    bool busy;
    void (*within)(void *ctx);
    void *ctx;
};

struct exec {
    dev *d;
    const plan *pl;
    int32_t vocab, max_ctx;
    uint64_t *op_ns;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u; /* splitmix64's finaliser */
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static cairn_status sim_open(const dev_opts *o, dev **out, cairn_diag *dg)
{
    dev *d = mem_calloc(1, sizeof *d, MEM_MISC);
    if (!d) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a device");
    d->n_threads = o->n_threads ? o->n_threads : DEFAULT_THREADS;
    *out = d;
    return CAIRN_OK;
}

static void sim_close(dev *d)
{
    mem_free(d);
}

static cairn_status sim_adopt(dev *d, weight *w, cairn_diag *dg)
{
    (void)d;
    (void)dg;
    w->dev = NULL;
    return CAIRN_OK;
}

static void sim_release(dev *d, weight *w)
{
    (void)d;
    (void)w;
}

static size_t sim_held(cairn_compute compute, const weight *w)
{
    (void)compute;
    return w->size;
}

static bool sim_repacks(cairn_compute compute, const weight *w)
{
    (void)compute;
    (void)w;
    return false;
}

static size_t sim_resident(const dev *d)
{
    (void)d;
    return 0;
}

static size_t sim_spare(const dev *d)
{
    (void)d;
    return 0;
}

static cairn_status sim_compile(dev *d, const plan *pl, int32_t max_ctx, exec **out, cairn_diag *dg)
{
    exec *x = mem_calloc(1, sizeof *x, MEM_SCRATCH);
    if (!x) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a program");
    *x = (exec){d, pl, pl->p->value[pl->p->logits].cols, max_ctx, NULL};
    *out = x;
    return CAIRN_OK;
}

static size_t sim_exec_bytes(const exec *x)
{
    return x->pl->peak;
}

static void sim_exec_free(exec *x)
{
    mem_free(x);
}

static uint8_t *slot(const segment *g, int32_t group, int32_t pos)
{
    uint8_t *block = g->blocks[group][pos / KV_BLOCK];
    assert(block);
    return block + (size_t)(pos % KV_BLOCK) * sizeof(uint64_t);
}

static uint64_t look(const segment *g, int32_t group, int32_t pos)
{
    uint64_t h;
    memcpy(&h, slot(g, group, pos), sizeof h);
    return h;
}

/* 1 when the sequence is past a rotary table's range. */
static uint64_t long_table(const prog *p, const segment *g)
{
    for (int32_t i = 0; i < p->n_rope; i++)
        if (p->rope[i].switch_len > 0 && g->known_len > p->rope[i].switch_len) return 1;
    return 0;
}

static int32_t window_of(const prog *p, const step *s, int32_t group)
{
    for (int32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == OP_ATTEND && s->kv[p->op[i].u.attend.cache].group == group)
            return p->op[i].u.attend.window;
    return 0;
}

/* Writes the row's hash into the cache; answers what its logits are made from. */
static uint64_t run_row(const exec *x, const step *s, const segment *g, int32_t pos, int32_t id)
{
    uint64_t left = 0; /* by the row before, in the recurrent state; none yet: 0 */
    const float *was = g->from && pos == g->pos0 ? g->from : g->state;
    if (was) memcpy(&left, was, sizeof left);
    const uint64_t before = pos == 0 ? x->d->seed ^ left : s->n_group ? look(g, 0, pos - 1) : left;
    const uint64_t h = mix(mix(before, (uint64_t)id), long_table(x->pl->p, g));
    uint64_t seen = mix(h, left);
    if (g->state) memcpy(g->state, &h, sizeof h);
    for (int32_t k = 0; k < s->n_group; k++) {
        memcpy(slot(g, k, pos), &h, sizeof h);
        const int32_t window = window_of(x->pl->p, s, k);
        const int32_t low = window ? max_i32(0, pos - window + 1) : 0;
        const int32_t any = low + (int32_t)(h % (uint64_t)(pos - low + 1));
        seen = mix(mix(seen, look(g, k, low)), look(g, k, any));
    }
    return seen;
}

static void fill(float *out, int32_t n, uint64_t h)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = (float)(mix(h, (uint64_t)i) >> 40) * (8.0f / 16777216.0f) - 4.0f;
}

static void write_taps(const exec *x, const step *s, int32_t row, uint64_t h)
{
    const prog *p = x->pl->p;
    for (int32_t i = 0; s->tap && i < p->n_op; i++) {
        const op *o = &p->op[i];
        if (o->kind != OP_TAP) continue;
        const int32_t cols = p->value[o->in[0]].cols, t = o->u.tap.tap;
        fill(s->tap[t] + (size_t)row * (size_t)cols, cols, mix(h, (uint64_t)t));
    }
}

/* What a step that is given up leaves behind: anything. */
static void spoil(const exec *x, const step *s)
{
    for (int32_t k = 0; k < s->n_seg; k++) {
        const segment *g = &s->seg[k];
        for (int32_t row = g->row0; row < g->row0 + g->n_rows; row++)
            (void)run_row(x, s, g, s->pos[row], s->id[row] + 1);
    }
}

static void sim_run(exec *x, const step *s)
{
    assert(s->n_rows <= x->pl->max_rows && s->n_out <= x->pl->max_out);
    if (x->d->within) x->d->within(x->d->ctx);
    if (s->stop && note_get(s->stop)) {
        spoil(x, s);
        return;
    }
    for (int32_t k = 0; k < s->n_seg; k++) {
        const segment *g = &s->seg[k];
        int32_t out = g->out0;
        for (int32_t row = g->row0; row < g->row0 + g->n_rows; row++) {
            const int32_t pos = s->pos[row];
            assert(pos == g->pos0 + row - g->row0 && pos < x->max_ctx);
            uint64_t h = run_row(x, s, g, pos, s->id[row]);
            write_taps(x, s, row, h);
            if (out == g->out0 + g->n_out || s->out_row[out] != row) continue;
            if (x->d->flaw == SIM_ROWS_MATTER) h = mix(h, (uint64_t)s->n_rows);
            float *logits = s->logits + (size_t)out++ * (size_t)x->vocab;
            fill(logits, x->vocab, h);
            if (x->d->flaw == SIM_NAN && pos % 5 == 0) logits[pos % x->vocab] = NAN;
        }
    }
    for (int32_t i = 0; x->op_ns && i < x->pl->p->n_op; i++) x->op_ns[i] += 1000;
    x->d->now_ns += SIM_STEP_NS + (uint64_t)s->n_rows * SIM_ROW_NS;
}

void sim_within(dev *d, void (*fn)(void *ctx), void *ctx)
{
    d->within = fn;
    d->ctx = ctx;
}

static const char *sim_isa(const dev *d)
{
    (void)d;
    return "none";
}

static int32_t sim_threads(const dev *d)
{
    return d->n_threads;
}

static void sim_limit_threads(dev *d, int32_t n)
{
    d->limit = n;
}

static cairn_status sim_measure(dev *d, dev_limits *out)
{
    (void)d;
    out->read_gbs = out->weights_gbs = out->int8_tops = out->f32_tflops = 1.0;
    return CAIRN_OK;
}

static void sim_time_ops(exec *x, uint64_t *ns)
{
    x->op_ns = ns;
}

static bool sim_integer(const dev *d, const weight *w)
{
    (void)d;
    (void)w;
    return false;
}

static void sim_busy(dev *d, bool on)
{
    d->busy = on;
}

void sim_set(dev *d, uint64_t seed, sim_flaw flaw)
{
    d->seed = seed;
    d->flaw = flaw;
}

uint64_t sim_now_ns(const dev *d)
{
    return d->now_ns;
}

static void sim_each(dev *d, int32_t n, dev_task fn, void *ctx)
{
    (void)d;
    while (n-- > 0) fn(ctx, n, 0); /* the last first: nobody may count on an order */
}

bool sim_is_busy(const dev *d)
{
    return d->busy;
}

int32_t sim_threads_limit(const dev *d)
{
    return d->limit;
}

const backend backend_sim = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .adopt = sim_adopt,
    .release = sim_release,
    .held = sim_held,
    .repacks = sim_repacks,
    .resident = sim_resident,
    .spare = sim_spare,
    .compile = sim_compile,
    .exec_bytes = sim_exec_bytes,
    .run = sim_run,
    .exec_free = sim_exec_free,
    .isa = sim_isa,
    .threads = sim_threads,
    .limit_threads = sim_limit_threads,
    .measure = sim_measure,
    .time_ops = sim_time_ops,
    .integer = sim_integer,
    .busy = sim_busy,
    .each = sim_each,
};
