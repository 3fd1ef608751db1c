/* CONV: a causal convolution of each column over time.  Columns go to threads, rows of a segment in their
   order; what the next step needs of the inputs stays in the sequence's state, the oldest first. */
#include <string.h>

#include "backend/cpu/cpu_priv.h"

enum { CONV_COLS = 256 }; /* of one task: a row of them is a few cache lines of each input row */

typedef struct conv_job {
    const cpu_run *r;
    const op *o;
    const float *x;
    float *y;
    size_t cols, n_part; /* parts of the columns */
} conv_job;

/* The last k - 1 of the rows seen so far, of `was` and x; where was is old, reads run ahead of writes. */
static void keep_rows(float *old, const float *was, const float *x, size_t n_old, size_t n,
                      size_t ld, size_t cols)
{
    for (size_t i = 0; i < n_old; i++) {
        const size_t from = i + n;
        const float *row = from < n_old ? was + from * ld : x + (from - n_old) * ld;
        memcpy(old + i * ld, row, cols * sizeof *old);
    }
}

static void conv_part(const conv_job *j, const segment *g, size_t first, size_t cols)
{
    const weight *w = j->o->w[0];
    const size_t n_old = (size_t)w->rows - 1, n = (size_t)g->n_rows, ld = j->cols;
    const size_t at = j->r->s->kv[j->o->layer].state_off + (size_t)j->o->u.conv.state;
    float *old = g->state + at + first;
    const float *was = g->from ? g->from + at + first : old;
    const float *x = j->x + (size_t)g->row0 * ld + first;
    float *y = j->y + (size_t)g->row0 * ld + first;
    kern_conv c = {.w = w->f32 + first,
                   .bias = w->bias ? w->bias + first : NULL,
                   .k = n_old + 1,
                   .ld = ld,
                   .silu = j->o->u.conv.silu};
    for (size_t i = 0; i < n; i++) {
        c.n_old = i < n_old ? n_old - i : 0;
        c.old = was + (n_old - c.n_old) * ld;
        c.now = x + (i - (n_old - c.n_old)) * ld;
        j->r->x->d->k.vec.conv(y + i * ld, &c, cols);
    }
    keep_rows(old, was, x, n_old, n, ld, cols);
}

static void conv_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const conv_job *j = ctx;
    (void)i_thread;
    for (size_t i = begin; i < end; i++) {
        const size_t first = i % j->n_part * CONV_COLS, left = j->cols - first;
        conv_part(j, &j->r->s->seg[i / j->n_part], first, left < CONV_COLS ? left : CONV_COLS);
    }
}

void cpu_conv(cpu_run *r, const op *o)
{
    const size_t cols = (size_t)o->w[0]->cols;
    conv_job j = {.r = r,
                  .o = o,
                  .x = cpu_val(r, o->in[0]),
                  .y = cpu_val(r, o->out[0]),
                  .cols = cols,
                  .n_part = (cols + CONV_COLS - 1) / CONV_COLS};
    const size_t n = (size_t)r->s->n_seg * j.n_part;
    const size_t each = (size_t)r->s->n_rows * cols * (size_t)o->w[0]->rows / (n ? n : 1);
    cpu_spans(r, n, CPU_GRAIN_MOVE / (each + 1) + 1, 1, conv_span, &j);
}
