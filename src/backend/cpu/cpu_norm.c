/* RMS_NORM, with the addition before it when there is one, and LAYER_NORM.  The sums are the lane16 chain of a group;
   how many rows or groups there are never enters it. */
#include <assert.h>
#include <math.h>

#include "backend/cpu/cpu_priv.h"

typedef struct norm_job {
    const kern_vec *k;
    const op *o;
    const float *x, *add;
    float *sum, *y;
    size_t cols, group, gains;
    const float *gain, *bias;
} norm_job;

static void norm_row(const norm_job *j, size_t row)
{
    const size_t n = j->group;
    for (size_t at = 0; at < j->cols; at += n) {
        const size_t i = row * j->cols + at;
        const float *x = j->x + i;
        float ss;
        if (j->add) {
            ss = j->k->add_sum_sq(j->sum + i, x, j->add + i, n);
            x = j->sum + i;
        } else {
            ss = j->k->sum_sq(x, n);
        }
        float inv = 1.0f / sqrtf(ss / (float)n + j->o->u.norm.eps);
        j->k->norm(j->y + i, x, inv, j->gain + at % j->gains, n);
    }
}

static void layer_norm_row(const norm_job *j, size_t row)
{
    const size_t n = j->group;
    for (size_t at = 0; at < j->cols; at += n) {
        float *y = j->y + row * j->cols + at;
        const float *x = j->x + row * j->cols + at;
        float mean = j->k->sum(x, n) / (float)n;
        float inv = 1.0f / sqrtf(j->k->center(y, x, mean, n) / (float)n + j->o->u.norm.eps);
        j->k->norm(y, y, inv, j->gain + at % j->gains, n);
        if (j->bias) j->k->add(y, y, j->bias + at % j->gains, n);
    }
}

static void norm_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    (void)i_thread;
    for (size_t row = begin; row < end; row++) norm_row(ctx, row);
}

static void layer_norm_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    (void)i_thread;
    for (size_t row = begin; row < end; row++) layer_norm_row(ctx, row);
}

static norm_job norm_of(cpu_run *r, const op *o)
{
    const int32_t cols = r->x->pl->p->value[o->in[0]].cols;
    const bool fused = o->in[1] != VAL_NONE;
    norm_job j = {.k = &r->x->d->k.vec,
                  .o = o,
                  .x = cpu_val(r, o->in[0]),
                  .add = fused ? cpu_val(r, o->in[1]) : NULL,
                  .sum = fused ? cpu_val(r, o->out[1]) : NULL,
                  .y = cpu_val(r, o->out[0]),
                  .cols = (size_t)cols,
                  .group = (size_t)o->u.norm.group,
                  .gains = (size_t)o->w[0]->cols,
                  .gain = o->w[0]->f32,
                  .bias = o->w[1] ? o->w[1]->f32 : NULL};
    assert(j.cols % j.group == 0 && j.gains % j.group == 0 && j.gain);
    return j;
}

static void run_norm(cpu_run *r, const op *o, cpu_span_fn fn)
{
    norm_job j = norm_of(r, o);
    cpu_row_spans(r, cpu_rows(r, o->out[0]), (int32_t)j.cols, CPU_GRAIN_MOVE, fn, &j);
}

void cpu_norm_rows(cpu_run *r, const op *o, int32_t row0, int32_t n)
{
    const norm_job j = norm_of(r, o);
    for (int32_t row = row0; row < row0 + n; row++) norm_row(&j, (size_t)row);
}

void cpu_rms_norm(cpu_run *r, const op *o)
{
    if (!(cpu_with(r, o) & CPU_DONE)) run_norm(r, o, norm_span);
}

void cpu_layer_norm(cpu_run *r, const op *o)
{
    run_norm(r, o, layer_norm_span);
}
