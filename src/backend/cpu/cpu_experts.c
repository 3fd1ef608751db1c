/* EXPERTS: rows are grouped by expert, so that an expert's weights are read once a step; each group runs
   as LINEAR does, whose bits do not depend on the company of a row.  A row's experts are then added in
   the order of their ranks.  Who shares an expert thus never shows. */
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "base/num.h"

/* A slot is one row's place at one of its experts; slots lie in the order of (expert, row). */
typedef struct moe_job {
    cpu_run *r;
    const op *o;
    const float *x, *weight;
    float *out;
    int32_t n_rows, k, n_expert, hidden, ffn;
    int32_t *first;        /* [n_expert + 1]: slots of expert e are first[e] … first[e+1]-1 */
    int32_t *row;          /* [slot] */
    int32_t *slot;         /* [row][rank] */
    float *in, *gate, *up; /* rows of one expert */
    float *y;              /* [slot][hidden] */
    uint8_t *shared;       /* of the products */
} moe_job;

/* Places the job's arrays from base on; answers the bytes they take. */
static size_t moe_place(moe_job *j, uint8_t *base, int32_t rows)
{
    const size_t n = (size_t)rows, slots = n * (size_t)j->k;
    const size_t part[] = {sizeof(int32_t) * ((size_t)j->n_expert + 1),
                           sizeof(int32_t) * slots,
                           sizeof(int32_t) * slots,
                           sizeof(float) * n * (size_t)j->hidden,
                           sizeof(float) * n * (size_t)j->ffn,
                           sizeof(float) * n * (size_t)j->ffn,
                           sizeof(float) * slots * (size_t)j->hidden};
    size_t at[8] = {0};
    for (int i = 0; i < 7; i++) at[i + 1] = at[i] + round_up(part[i], 64);
    if (!base) return at[7];
    j->first = (int32_t *)(void *)(base + at[0]);
    j->row = (int32_t *)(void *)(base + at[1]);
    j->slot = (int32_t *)(void *)(base + at[2]);
    j->in = (float *)(void *)(base + at[3]);
    j->gate = (float *)(void *)(base + at[4]);
    j->up = (float *)(void *)(base + at[5]);
    j->y = (float *)(void *)(base + at[6]);
    j->shared = base + at[7];
    return at[7];
}

static moe_job moe_shape(const op *o)
{
    return (moe_job){.o = o,
                     .k = o->u.experts.k,
                     .n_expert = o->w[0]->n_expert,
                     .hidden = o->w[0]->cols,
                     .ffn = o->w[0]->rows};
}

cpu_need cpu_experts_need(const dev *d, const op *o, int32_t max_rows)
{
    moe_job j = moe_shape(o);
    cpu_need need = {moe_place(&j, NULL, max_rows), 0};
    size_t most = 0;
    for (int32_t i = 0; i < 3; i++) {
        const weight *w = &o->w[i]->expert[0];
        const cpu_need n = cpu_products_need(d, &w, 1, max_rows);
        most = n.shared > most ? n.shared : most;
        need.thread = n.thread > need.thread ? n.thread : need.thread;
    }
    need.shared += 2 * most; /* gate and up may want different forms of x */
    return need;
}

/* Counting sort of all (row, rank) by expert; within one, by row. */
static void group_rows(moe_job *j, const float *id)
{
    const int32_t n = j->n_rows * j->k;
    memset(j->first, 0, sizeof *j->first * ((size_t)j->n_expert + 1));
    for (int32_t i = 0; i < n; i++) j->first[(int32_t)id[i] + 1]++;
    for (int32_t e = 0; e < j->n_expert; e++) j->first[e + 1] += j->first[e];
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = j->first[(int32_t)id[i]]++;
        j->row[at] = i / j->k;
        j->slot[i] = at;
    }
    for (int32_t e = j->n_expert; e > 0; e--) j->first[e] = j->first[e - 1];
    j->first[0] = 0;
}

/* One matrix for both: each value is its own gate. */
static bool gated(const op *o)
{
    return o->w[0] != o->w[1];
}

static void glu_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const moe_job *j = ctx;
    const kern_vec *k = &j->r->x->d->k.vec;
    const glu_spec *s = &j->o->u.experts.glu;
    float *y = j->gate + begin, *up = (gated(j->o) ? j->up : j->gate) + begin;
    (void)i_thread;
    if (s->act == GLU_CLAMPED)
        k->glu_clamped(y, y, up, end - begin, s->alpha, s->limit);
    else
        k->glu[s->act](y, y, up, end - begin);
}

static void run_expert(moe_job *j, int32_t e)
{
    const int32_t at = j->first[e], n = j->first[e + 1] - at;
    const weight *in[2] = {&j->o->w[0]->expert[e], &j->o->w[1]->expert[e]};
    const weight *down = &j->o->w[2]->expert[e];
    const size_t hidden = (size_t)j->hidden;
    for (int32_t i = 0; i < n; i++)
        memcpy(j->in + (size_t)i * hidden, j->x + (size_t)j->row[at + i] * hidden,
               hidden * sizeof *j->in);
    cpu_products_run(j->r, &(cpu_products){.w = in,
                                           .n_w = gated(j->o) ? 2 : 1,
                                           .n_rows = n,
                                           .x = j->in,
                                           .out = {j->gate, j->up},
                                           .shared = j->shared});
    cpu_spans(j->r, (size_t)n * (size_t)j->ffn, CPU_GRAIN_MATH, 16, glu_span, j);
    cpu_products_run(j->r, &(cpu_products){.w = &down,
                                           .n_w = 1,
                                           .n_rows = n,
                                           .x = j->gate,
                                           .out = {j->y + (size_t)at * hidden},
                                           .shared = j->shared});
}

/* out = fma(w, y, out) by rank, from +0. */
static void combine_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const moe_job *j = ctx;
    const size_t hidden = (size_t)j->hidden, k = (size_t)j->k;
    (void)i_thread;
    for (size_t r = begin; r < end; r++) {
        float *out = j->out + r * hidden;
        memset(out, 0, hidden * sizeof *out);
        for (size_t i = r * k; i < (r + 1) * k; i++)
            j->r->x->d->k.vec.axpy(out, j->weight[i], j->y + (size_t)j->slot[i] * hidden, hidden);
    }
}

void cpu_experts(cpu_run *r, const op *o)
{
    moe_job j = moe_shape(o);
    j.r = r;
    j.x = cpu_val(r, o->in[0]);
    j.weight = cpu_val(r, o->in[2]);
    j.out = cpu_val(r, o->out[0]);
    j.n_rows = cpu_rows(r, o->in[0]);
    if (j.n_rows == 0) return;
    moe_place(&j, r->x->shared, j.n_rows);
    group_rows(&j, cpu_val(r, o->in[1]));
    for (int32_t e = 0; e < j.n_expert; e++)
        if (j.first[e + 1] > j.first[e]) run_expert(&j, e);
    cpu_row_spans(r, j.n_rows, j.hidden * j.k, CPU_GRAIN_MOVE, combine_span, &j);
}
