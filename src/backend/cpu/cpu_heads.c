/* HEADS: a small product a head, in floats.  Owns the cutting of the work, a task for a head and a run of
   rows; the products are LINEAR's (cpu_float_rows), so that neither the threads nor the other rows of
   the step can matter. */
#include "backend/cpu/cpu_priv.h"
#include "base/num.h"

typedef struct heads_job {
    const cpu_run *r;
    const weight *w;
    const float *x;
    float *y;
    int32_t n_rows, n_chunk;
} heads_job;

static void heads_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const heads_job *j = ctx;
    const int32_t h = i_task / j->n_chunk, t0 = i_task % j->n_chunk * TILE_L1_VEC;
    const weight *w = &j->w->expert[h];
    const size_t ldx = (size_t)j->w->n_expert * (size_t)w->cols;
    const size_t ldy = (size_t)j->w->n_expert * (size_t)w->rows;
    cpu_floats f = {.x = j->x + (size_t)t0 * ldx + (size_t)h * (size_t)w->cols,
                    .ldx = ldx,
                    .y = j->y + (size_t)t0 * ldy + (size_t)h * (size_t)w->rows,
                    .ldy = ldy,
                    .n_t = min_i32(TILE_L1_VEC, j->n_rows - t0)};
    for (int32_t row = 0; row < w->rows; row += TILE_ROWS, f.y += TILE_ROWS)
        cpu_float_rows(&j->r->x->d->k.lin, w, row, min_i32(TILE_ROWS, w->rows - row), &f,
                       cpu_thread_scratch(j->r, i_thread));
}

cpu_need cpu_heads_need(const op *o)
{
    return (cpu_need){0, sizeof(float) * CPU_DEQUANT_ROWS * (size_t)o->w[0]->cols};
}

void cpu_heads(cpu_run *r, const op *o)
{
    heads_job j = {.r = r,
                   .w = o->w[0],
                   .x = cpu_val(r, o->in[0]),
                   .y = cpu_val(r, o->out[0]),
                   .n_rows = cpu_rows(r, o->in[0])};
    j.n_chunk = ceil_div(j.n_rows, TILE_L1_VEC);
    if (j.n_rows > 0) workers_run(r->x->d->pool, j.n_chunk * o->w[0]->n_expert, heads_task, &j);
}
