/* Ops on the parallel streams and the sparse MLP of Gemma 3n: MIX, MATCH, CUTOFF.  Each row is one
   thread's; its sums are the lane16 chains of the vector kernels. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"

typedef struct mix_job {
    const kern_vec *k;
    const op *o;
    float *y;
    const float *x, *b, *c; /* the operands; NULL: none */
    size_t cols, out, n_by; /* widths of x, y and b */
} mix_job;

static void run_rows(cpu_run *r, const op *o, cpu_span_fn fn)
{
    const value *v = r->x->pl->p->value;
    mix_job j = {.k = &r->x->d->k.vec,
                 .o = o,
                 .y = cpu_val(r, o->out[0]),
                 .x = cpu_val(r, o->in[0]),
                 .cols = (size_t)v[o->in[0]].cols,
                 .out = (size_t)v[o->out[0]].cols};
    if (o->in[1] != VAL_NONE) {
        j.b = cpu_val(r, o->in[1]);
        j.n_by = (size_t)v[o->in[1]].cols;
    }
    if (o->in[2] != VAL_NONE) j.c = cpu_val(r, o->in[2]);
    cpu_row_spans(r, cpu_rows(r, o->out[0]), v[o->out[0]].cols, CPU_GRAIN_MOVE, fn, &j);
}

static void mix_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const mix_job *j = ctx;
    const size_t n = (size_t)j->o->u.mix.n, width = j->cols / n;
    (void)i_thread;
    for (size_t row = begin; row < end; row++) {
        const float *x = j->x + row * j->cols, *by = j->b + row * j->n_by;
        float *y = j->y + row * j->out;
        memcpy(y, j->c + row * j->out, j->out * sizeof *y);
        for (size_t i = 0; i < j->n_by; i++)
            j->k->axpy(y + i / n * width, by[i] + j->o->u.mix.plus, x + i % n * width, width);
    }
}

void cpu_mix(cpu_run *r, const op *o)
{
    run_rows(r, o, mix_span);
}

static void match_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const mix_job *j = ctx;
    const size_t n = j->cols;
    const float least = j->o->u.match.least;
    (void)i_thread;
    for (size_t row = begin; row < end; row++) {
        const float *x = j->x + row * n;
        float *y = j->y + row * n;
        const float to = j->k->sum_sq(j->b + row * j->n_by, j->n_by) / (float)j->n_by;
        const float from = j->k->sum_sq(x, n) / (float)n;
        j->k->scale(y, x, sqrtf(to), n);
        j->k->divide(y, y, sqrtf(from < least ? least : from), n);
    }
}

void cpu_match(cpu_run *r, const op *o)
{
    run_rows(r, o, match_span);
}

static void cutoff_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const mix_job *j = ctx;
    const size_t n = j->cols;
    (void)i_thread;
    for (size_t row = begin; row < end; row++) {
        const float *x = j->x + row * n;
        float *y = j->y + row * n;
        const float mean = j->k->sum(x, n) / (float)n;
        const float spread = sqrtf(j->k->center(y, x, mean, n) / (float)n);
        (void)j->k->center(y, x, mean + spread * j->o->u.map.scalar, n);
        for (size_t i = 0; i < n; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
    }
}

void cpu_cutoff(cpu_run *r, const op *o)
{
    run_rows(r, o, cutoff_span);
}
