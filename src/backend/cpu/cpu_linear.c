/* LINEAR: rows to 8 bits once an op, then tasks over the 32-row units of all its weights.  Owns the
   cutting of the work, the choice of the kernel, bias and residual; leaves arithmetic to the kernels.
   An output is computed whole by one task and K is never split, so that neither the threads nor the
   other rows of the step can matter; parts of K follow each other in one task.

   Three ways for a weight: tiles times 8-bit activations (adopted, fast); floats in place by lane16;
   and, for what has no tiles and under compute f32, rows dequantised into the thread's scratch. */
#include <assert.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/tiles.h"
#include "base/far.h"
#include "base/num.h"

enum {
    UNIT = TILE_ROWS,
    TASKS_A_THREAD = 8, /* the slowest thread then idles for at most an eighth of its share */
    /* But of small products of more than CPU_SHARES_ROWS rows fewer, as a task begins a stream, and streams start
       slowly; down to this, so that one that is late has somebody's help. */
    FEW_A_THREAD = 2,
    TASK_PRODUCTS = 1 << 17,
    /* Rows: whole steps of every level's panels, which take 2, 4, 6 or 8 at a time, AMX's 16. */
    CHUNK_STEP = 48,
    SERIAL_QUANT = 16384, /* values under which a fork costs more than it saves */
    MAX_ACT = 4,          /* group sizes × terms */
    /* Tiles at once by parts of K: sums and activations, each 197 KB of 192 vectors, stay in the second cache. */
    PART_TILES = 8,
    PART_BLOCKS = 2,
    FETCH_ROWS = 8, /* ahead of where results are written */
};

/* The op's input in one 8-bit form: [block][row][term]. */
typedef struct act8 {
    int32_t group, terms; /* group 32 or 256 */
    size_t stride;        /* bytes from block to block */
    uint8_t *data;
} act8;

typedef struct linear_job {
    cpu_run *r;
    const weight *const *w;
    int32_t n_w, kept; /* kept: tiles whose sums a thread keeps at once */
    const float *x;
    const float *residual; /* or NULL */
    float *out[OP_MAX_OUT];
    int32_t n_rows, cols;
    int32_t n_act;
    act8 act[MAX_ACT];
    int32_t act_of[OP_MAX_OUT]; /* index into act; −1: the weight meets floats */
    int32_t n_unit;
    cpu_shares shares;  /* of steps of few rows */
    int32_t n_run;      /* runs of units a chunk of rows */
    int32_t chunk;      /* rows */
    int32_t quant_rows; /* rows a task of quantisation */
    const cpu_products *p;
} linear_job;

static size_t act_struct(int32_t group)
{
    return group == 32 ? sizeof(a8_32) : sizeof(a8_256);
}

static bool has_fine(const kern_linear *k, const weight *w)
{
    tile_type t;
    return !w->packed && tiles_type(w->type, &t) && k->fine[t];
}

/* Numerics contract: the groups and terms of the activations that meet a weight; group 0: floats do. */
static act8 act_form(const dev *d, const weight *w)
{
    act8 a = {.group = tiles_act_group(d->compute, w), .terms = 1};
    const bool down = w->klass == WEIGHT_FFN_DOWN;
    if (a.group == 256 && down && has_fine(&d->k.lin, w))
        a.group = 32;
    else if (w->klass == WEIGHT_HEAD || (a.group == 256 ? down : w->klass == WEIGHT_KV))
        a.terms = 2;
    return a;
}

bool cpu_meets_codes(const dev *d, const weight *w)
{
    const act8 a = act_form(d, w);
    return a.group == 32 && a.terms == 1;
}

/* Lists the forms of x that the op's weights need, each once, and their place from base on; answers
   the bytes they take. */
static size_t plan_acts(linear_job *j, const dev *d, uint8_t *base)
{
    size_t used = 0;
    for (int32_t i = 0; i < j->n_w; i++) {
        const weight *w = j->w[i];
        act8 a = act_form(d, w);
        j->act_of[i] = -1;
        if (!a.group) continue;
        int32_t at = 0;
        while (at < j->n_act && (j->act[at].group != a.group || j->act[at].terms != a.terms)) at++;
        j->act_of[i] = at;
        if (at < j->n_act) continue;
        assert(at < MAX_ACT);
        a.stride = act_struct(a.group) * (size_t)a.terms * (size_t)j->n_rows;
        if (base) a.data = base + used;
        used += round_up(a.stride * (size_t)(w->cols / a.group), 64);
        j->act[j->n_act++] = a;
    }
    return used;
}

/* Whether tiles of weight i may go together through parts of K. */
static bool goes_by_parts(const linear_job *j, const dev *d, int32_t i)
{
    tile_type t;
    const act8 *a = j->act_of[i] < 0 ? NULL : &j->act[j->act_of[i]];
    return a && a->group == 32 && a->terms == 1 && j->cols > 256 * PART_BLOCKS &&
           has_fine(&d->k.lin, j->w[i]) && tiles_type(j->w[i]->type, &t) && d->k.lin.fine_more[t];
}

static int32_t sums_kept(const linear_job *j, const dev *d)
{
    for (int32_t i = 0; i < j->n_w; i++)
        if (goes_by_parts(j, d, i)) return PART_TILES;
    return 1;
}

cpu_need cpu_products_need(const dev *d, const weight *const *w, int32_t n_w, int32_t max_rows)
{
    linear_job j = {.w = w, .n_w = n_w, .n_rows = max_rows, .cols = w[0]->cols};
    cpu_need need = {.shared = plan_acts(&j, d, NULL)};
    size_t sums = sizeof(float) * TILE_MAX_VEC * UNIT; /* of a tile: gates have two */
    need.thread = sums * (size_t)max_i32(sums_kept(&j, d), 1 + (n_w == 2)) + TILE_PANEL;
    for (int32_t i = 0; i < n_w; i++) {
        size_t rows = sums + sizeof(float) * CPU_DEQUANT_ROWS * (size_t)w[i]->cols;
        if (j.act_of[i] < 0 && rows > need.thread) need.thread = rows;
    }
    need.thread = round_up(need.thread, 64);
    return need;
}

cpu_need cpu_linear_need(const dev *d, const op *o, int32_t max_rows)
{
    return cpu_products_need(d, o->w, o->n_w, max_rows);
}

/* The form of two terms that begins with a's one, or NULL. */
static const act8 *twice(const linear_job *j, const act8 *a)
{
    for (const act8 *b = j->act; b < j->act + j->n_act; b++)
        if (b->group == a->group && b->terms > a->terms) return b;
    return NULL;
}

/* Row r of a from the same of b: the first term of each block. */
static void first_terms(const linear_job *j, const act8 *a, const act8 *b, size_t r)
{
    const size_t size = act_struct(a->group);
    for (size_t i = 0; i < (size_t)(j->cols / a->group); i++)
        memcpy(a->data + i * a->stride + r * size, b->data + i * b->stride + 2 * r * size, size);
}

static void quant_rows(const linear_job *j, int32_t row0, int32_t n)
{
    const kern_linear *k = &j->r->x->d->k.lin;
    if (j->p->norm) cpu_norm_rows(j->r, j->p->norm, row0, n);
    for (const act8 *a = j->act; a < j->act + j->n_act; a++) {
        size_t size = act_struct(a->group) * (size_t)a->terms;
        if (twice(j, a)) continue;
        for (int32_t r = row0; r < row0 + n; r++) {
            const float *x = j->x + (size_t)r * (size_t)j->cols;
            void *to = a->data + (size_t)r * size;
            if (a->group == 32)
                k->quant32(x, j->cols / 32, a->terms, to, a->stride);
            else
                k->quant256(x, j->cols / 256, a->terms, to, a->stride);
        }
    }
    for (const act8 *a = j->act; a < j->act + j->n_act; a++) {
        const act8 *b = twice(j, a);
        for (int32_t r = row0; b && r < row0 + n; r++) first_terms(j, a, b, (size_t)r);
    }
}

static void quant_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const linear_job *j = ctx;
    int32_t row0 = i_task * j->quant_rows;
    (void)i_thread;
    quant_rows(j, row0, min_i32(j->quant_rows, j->n_rows - row0));
}

static void quantise(linear_job *j)
{
    if (!j->n_act) return;
    if ((int64_t)j->n_rows * j->cols <= SERIAL_QUANT || j->n_rows == 1) {
        quant_rows(j, 0, j->n_rows);
        return;
    }
    j->quant_rows = ceil_div(SERIAL_QUANT / 4, j->cols);
    workers_run(j->r->x->d->pool, ceil_div(j->n_rows, j->quant_rows), quant_task, j);
}

/* The lines of a unit, which are too far apart for the processor to see a stream. */
static void fetch_row(const linear_job *j, int32_t i_w, size_t at)
{
    for (size_t i = 0; i < UNIT; i += 16) {
        __builtin_prefetch(j->out[i_w] + at + i, 1);
        if (j->residual) __builtin_prefetch(j->residual + at + i);
    }
}

/* Adds bias and residual to the sums of rows t0 … t0+n_t-1 and stores them. */
static void finish(const linear_job *j, int32_t i_w, int32_t row0, int32_t t0, int32_t n_t,
                   const float *y)
{
    const kern_vec *k = &j->r->x->d->k.vec;
    const weight *w = j->w[i_w];
    const size_t n = (size_t)min_i32(UNIT, w->rows - row0);
    for (int32_t t = 0; t < n_t; t++, y += UNIT) {
        size_t at = (size_t)(t0 + t) * (size_t)w->rows + (size_t)row0;
        float *out = j->out[i_w] + at;
        if (t + FETCH_ROWS < n_t) fetch_row(j, i_w, at + FETCH_ROWS * (size_t)w->rows);
        const float *from = y;
        if (w->bias) {
            k->add(out, y, w->bias + row0, n);
            from = out;
        }
        if (j->residual)
            k->add(out, from, j->residual + at, n);
        else if (from == y)
            memcpy(out, y, n * sizeof *y);
    }
}

static void tile_unit(const linear_job *j, int32_t i_w, int32_t unit, int32_t t0, int32_t n_t,
                      uint8_t *scratch, float *y)
{
    const tiles *t = j->w[i_w]->dev;
    const act8 *a = &j->act[j->act_of[i_w]];
    const kern_linear *k = &j->r->x->d->k.lin;
    const uint8_t *tile = t->data + (size_t)unit * t->tile_bytes;
    const uint8_t *act = a->data + act_struct(a->group) * (size_t)a->terms * (size_t)t0;
    if (t->affine)
        k->affine[t->form.code](&t->form, tile, t->n_block, act, a->stride, n_t * a->terms,
                                a->terms, y, scratch);
    else
        (a->group < tile_elems(t->type) ? k->fine : k->tile)[t->type](
            tile, t->n_block, act, a->stride, n_t * a->terms, a->terms, y, scratch);
}

static kern_dense_fn *dense_kernel(const kern_linear *k, dtype t)
{
    return t == DT_F32    ? k->dense_f32
           : t == DT_F16  ? k->dense_f16
           : t == DT_BF16 ? k->dense_bf16
                          : NULL;
}

/* The stored values of a row; fp8, which whole models have, by a kernel. */
static void row_f32(const kern_linear *k, const weight *w, size_t row, float *out)
{
    const packed *s = w->packed;
    if (s && (s->kind == PACKED_F8 || s->kind == PACKED_MXFP8)) {
        const size_t at = weight_packed_row(w, row), cols = (size_t)s->cols;
        const size_t group = (size_t)s->group;
        for (size_t g = 0; g < packed_groups(s); g++) {
            const size_t n = cols - g * group < group ? cols - g * group : group;
            k->widen_e4m3(s->code + at * cols + g * group, (int32_t)n, packed_scale(s, at, g),
                          out + g * group);
        }
    } else if (w->type == DT_F8_E4M3 || w->type == DT_F8_E5M2) {
        (w->type == DT_F8_E4M3 ? k->widen_e4m3 : k->widen_e5m2)(w->data + row * (size_t)w->cols,
                                                                w->cols, 1.0f, out);
    } else {
        weight_row_f32(w, row, out);
    }
}

void cpu_float_rows(const kern_linear *k, const weight *w, int32_t row0, int32_t n,
                    const cpu_floats *f, uint8_t *scratch)
{
    kern_dense_fn *dense = dense_kernel(k, w->type);
    const size_t cols = (size_t)w->cols, row_bytes = w->size / (size_t)w->rows;
    if (dense) {
        dense(w->data + (size_t)row0 * row_bytes, row_bytes, n, f->x, f->ldx, f->n_t, w->cols, f->y,
              f->ldy);
        return;
    }
    assert(k->dense_f32);
    for (int32_t i = 0; i < n; i += CPU_DEQUANT_ROWS) {
        int32_t m = min_i32(CPU_DEQUANT_ROWS, n - i);
        float *rows = (float *)(void *)scratch;
        for (int32_t q = 0; q < m; q++)
            row_f32(k, w, (size_t)(row0 + i + q), rows + (size_t)q * cols);
        k->dense_f32(scratch, cols * sizeof(float), m, f->x, f->ldx, f->n_t, w->cols, f->y + i,
                     f->ldy);
    }
}

static void dense_unit(const linear_job *j, int32_t i_w, int32_t unit, int32_t t0, int32_t n_t,
                       uint8_t *scratch, float *y)
{
    const weight *w = j->w[i_w];
    cpu_floats f = {
        .x = j->x + (size_t)t0 * (size_t)j->cols, .ldx = (size_t)j->cols, .ldy = UNIT, .n_t = n_t};
    f.y = y;
    cpu_float_rows(&j->r->x->d->k.lin, w, unit * UNIT, min_i32(UNIT, w->rows - unit * UNIT), &f,
                   scratch);
}

/* n ≤ PART_TILES units from unit on, by parts of K. */
static void run_parts(const linear_job *j, int32_t i_w, int32_t unit, int32_t n, int32_t t0,
                      int32_t n_t, uint8_t *panel, float *y)
{
    const kern_linear *k = &j->r->x->d->k.lin;
    const tiles *t = j->w[i_w]->dev;
    const act8 *a = &j->act[j->act_of[i_w]];
    for (int32_t b = 0; b < t->n_block; b += PART_BLOCKS) {
        const uint8_t *act = a->data + 8 * (size_t)b * a->stride + sizeof(a8_32) * (size_t)t0;
        for (int32_t i = 0; i < n; i++)
            (b ? k->fine_more : k->fine)[t->type](t->data + (size_t)(unit + i) * t->tile_bytes +
                                                      tile_block_bytes(t->type) * (size_t)b,
                                                  min_i32(PART_BLOCKS, t->n_block - b), act,
                                                  a->stride, n_t, 1, y + i * n_t * UNIT, panel);
    }
    for (int32_t i = 0; i < n; i++) finish(j, i_w, (unit + i) * UNIT, t0, n_t, y + i * n_t * UNIT);
}

/* Units [unit, end) times rows t0 … t0+n_t-1. */
static void run_units(const linear_job *j, int32_t unit, int32_t end, int32_t t0, int32_t n_t,
                      int32_t i_thread)
{
    uint8_t *scratch = cpu_thread_scratch(j->r, i_thread);
    float *y = (float *)(void *)scratch;
    const bool parts = j->kept == PART_TILES && n_t >= CHUNK_STEP;
    int32_t i_w = 0;
    scratch += sizeof(float) * TILE_MAX_VEC * UNIT * (size_t)j->kept;
    for (int32_t first = 0, n = 1; unit < end; unit += n) {
        while (unit - first >= ceil_div(j->w[i_w]->rows, UNIT))
            first += ceil_div(j->w[i_w++]->rows, UNIT);
        n = parts && goes_by_parts(j, j->r->x->d, i_w) ? PART_TILES : 1;
        n = min_i32(n, min_i32(end, first + ceil_div(j->w[i_w]->rows, UNIT)) - unit);
        if (n > 1) {
            run_parts(j, i_w, unit - first, n, t0, n_t, scratch, y);
            continue;
        }
        if (j->act_of[i_w] >= 0)
            tile_unit(j, i_w, unit - first, t0, n_t, scratch, y);
        else
            dense_unit(j, i_w, unit - first, t0, n_t, scratch, y);
        finish(j, i_w, (unit - first) * UNIT, t0, n_t, y);
    }
}

static void add_bias(const linear_job *j, int32_t i_w, int32_t unit, int32_t n_t, float *y)
{
    const weight *w = j->w[i_w];
    const size_t row0 = (size_t)unit * UNIT, n = (size_t)min_i32(UNIT, w->rows - unit * UNIT);
    for (int32_t t = 0; w->bias && t < n_t; t++, y += UNIT)
        j->r->x->d->k.vec.add(y, y, w->bias + row0, n);
}

/* The gated sums y of rows t0 … t0+n_t-1 to where they go; in 8 bits each row's are one group. */
static void finish_gated(const linear_job *j, int32_t unit, int32_t t0, int32_t n_t, const float *y)
{
    if (j->p->glued_codes) {
        a8_32 *to = (a8_32 *)(void *)j->out[0] + (size_t)unit * (size_t)j->n_rows + t0;
        j->r->x->d->k.lin.quant32(y, n_t, 1, to, sizeof *to);
        return;
    }
    const size_t rows = (size_t)j->w[0]->rows, row0 = (size_t)unit * UNIT;
    const size_t n = rows - row0 < UNIT ? rows - row0 : UNIT;
    for (int32_t t = 0; t < n_t; t++, y += UNIT)
        memcpy(j->out[0] + (size_t)(t0 + t) * rows + row0, y, n * sizeof *y);
}

/* Units [unit, end) of both weights, and the GLU of their sums. */
static void run_gated(const linear_job *j, int32_t unit, int32_t end, int32_t t0, int32_t n_t,
                      int32_t i_thread)
{
    const bool crossed = j->p->crossed;
    uint8_t *scratch = cpu_thread_scratch(j->r, i_thread);
    float *y[2];
    for (int i = 0; i < 2; i++, scratch += sizeof(float) * TILE_MAX_VEC * UNIT)
        y[i] = (float *)(void *)scratch;
    for (; unit < end; unit++) {
        for (int i = 0; i < 2; i++) {
            tile_unit(j, i, unit, t0, n_t, scratch, y[i]);
            add_bias(j, i, unit, n_t, y[i]);
        }
        j->r->x->d->k.vec.glu[j->p->glu->u.glu.act](y[0], y[crossed], y[!crossed],
                                                    (size_t)n_t * UNIT);
        finish_gated(j, unit, t0, n_t, y[0]);
    }
}

static void linear_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const linear_job *j = ctx;
    const int32_t t0 = i_task / j->n_run * j->chunk, run = i_task % j->n_run;
    const int32_t unit = (int32_t)((int64_t)j->n_unit * run / j->n_run);
    const int32_t end = (int32_t)((int64_t)j->n_unit * (run + 1) / j->n_run);
    (j->p->glu ? run_gated : run_units)(j, unit, end, t0, min_i32(j->chunk, j->n_rows - t0),
                                        i_thread);
}

_Static_assert((int)CPU_GATED_ROWS > (int)CPU_SHARES_ROWS, "shares do not gate");
static void share_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const linear_job *j = ctx;
    const cpu_stretch t = cpu_shares_stretch(&j->shares, i_task);
    if (j->shares.n_thread > 1 || !j->r->x->d->k.lin.leads) {
        run_units(j, t.begin, t.end, 0, j->n_rows, i_thread);
        return;
    }
    for (int32_t unit = t.begin; unit < t.end; unit++) {
        far_ahead = cpu_shares_far(j->r, &j->shares, j->w, unit);
        run_units(j, unit, unit + 1, 0, j->n_rows, i_thread);
    }
    far_ahead = FAR_AHEAD;
}

/* Rows a chunk at most: vectors whose sums stay in L1 or, where the level gains by it, whose activations stay in
   the second cache. */
static int32_t most_rows(const linear_job *j)
{
    const size_t near_act = j->r->x->d->k.lin.near_act;
    int32_t most = TILE_L1_VEC;
    for (int32_t i = 0; i < j->n_act; i++) {
        const act8 *a = &j->act[i];
        size_t vec = near_act / (act_struct(a->group) * (size_t)(j->cols / a->group));
        if (a->group == 32 && j->kept == PART_TILES) vec = TILE_MAX_VEC;
        const int32_t rows = max_i32(TILE_L1_VEC, min_i32((int32_t)vec, TILE_MAX_VEC)) / a->terms;
        most = i ? min_i32(most, rows) : rows;
    }
    return most / CHUNK_STEP * CHUNK_STEP;
}

/* Chunks of rows, as even as steps allow, times runs of units: enough tasks to keep the threads even, runs as
   long as that allows (memory likes long streams). */
static void cut(linear_job *j)
{
    const int32_t n_thread = workers_active(j->r->x->d->pool);
    const int64_t grains = (int64_t)j->n_unit * UNIT * j->cols * j->n_rows / TASK_PRODUCTS;
    int32_t want = TASKS_A_THREAD * n_thread, n_chunk = ceil_div(j->n_rows, most_rows(j));
    if (grains < want) want = max_i32((int32_t)grains, FEW_A_THREAD * n_thread);
    j->chunk = ceil_div(ceil_div(j->n_rows, n_chunk), CHUNK_STEP) * CHUNK_STEP;
    n_chunk = ceil_div(j->n_rows, j->chunk);
    j->n_run = max_i32(1, min_i32(j->n_unit, ceil_div(want, n_chunk)));
    workers_run(j->r->x->d->pool, n_chunk * j->n_run, linear_task, j);
}

void cpu_products_run(cpu_run *r, const cpu_products *p)
{
    linear_job j = {.r = r,
                    .w = p->w,
                    .n_w = p->n_w,
                    .x = p->x,
                    .residual = p->residual,
                    .n_rows = p->n_rows,
                    .cols = p->w[0]->cols,
                    .p = p};
    if (j.n_rows == 0) return;
    for (int32_t i = 0; i < p->n_w; i++) {
        j.out[i] = p->out[i];
        j.n_unit += ceil_div(p->w[i]->rows, UNIT);
    }
    plan_acts(&j, r->x->d, p->shared);
    j.kept = sums_kept(&j, r->x->d);
    if (p->codes)
        j.act[0].data = p->codes;
    else
        quantise(&j);
    if (p->glu) j.n_unit /= 2;
    if (j.n_rows <= CPU_SHARES_ROWS)
        workers_run(r->x->d->pool, cpu_shares_cut(r, j.n_unit, &j.shares), share_task, &j);
    else
        cut(&j);
}

void cpu_linear(cpu_run *r, const op *o)
{
    cpu_products p = {.w = o->w,
                      .n_w = o->n_w,
                      .x = cpu_val(r, o->in[0]),
                      .residual = o->in[1] == VAL_NONE ? NULL : cpu_val(r, o->in[1]),
                      .n_rows = cpu_rows(r, o->in[0]),
                      .shared = r->x->shared};
    const uint8_t with = cpu_with(r, o);
    for (int32_t i = 0; i < o->n_w; i++) p.out[i] = cpu_val(r, o->out[i]);
    if (with & CPU_CODES_IN) p.codes = (uint8_t *)cpu_val(r, o->in[0]);
    if (with & CPU_NORMS) p.norm = o - 1;
    if (with & CPU_GATES) {
        p.glu = o + 1;
        p.crossed = p.glu->in[0] == o->out[1];
        p.out[0] = cpu_val(r, p.glu->out[0]);
        p.glued_codes = with & CPU_CODES_OUT;
    }
    cpu_products_run(r, &p);
}
