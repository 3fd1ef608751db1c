/* ROPE.  Cosines and sines of the step's rows are made once a run for each rotary spec, by scalar
   code that every level shares; the op then rotates each head by them. */
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern_math.h"
#include "base/fmath.h"

enum { ROPE_GRAIN = 128 }; /* angles: about 20 ns each */

/* Table of a spec: [max_rows][2][n_freq], the specs one after another. */
static size_t table_at(const plan *pl, int32_t spec)
{
    size_t n = 0;
    for (int32_t i = 0; i < spec; i++)
        n += (size_t)pl->max_rows * 2 * (size_t)pl->p->rope[i].n_freq;
    return n;
}

size_t cpu_rope_size(const plan *pl)
{
    return table_at(pl, pl->p->n_rope) * sizeof(float);
}

/* Cosines of a row; its sines follow. */
static const float *row_table(const cpu_run *r, int32_t spec, int32_t step_row)
{
    const plan *pl = r->x->pl;
    return r->x->rope + table_at(pl, spec) +
           (size_t)step_row * 2 * (size_t)pl->p->rope[spec].n_freq;
}

static int32_t known_len(const step *s, int32_t row)
{
    int32_t i = 0;
    while (i + 1 < s->n_seg && s->seg[i + 1].row0 <= row) i++;
    return s->n_seg > 0 ? s->seg[i].known_len : 0;
}

/* What cosine and sine at position p are multiplied by. */
static float table_scale(const rope_spec *rs, int32_t p)
{
    if (rs->temper == 0.0f) return rs->mscale;
    const double grown = fmath_log(1.0 + (double)(p / rs->temper_len));
    return rs->mscale * (float)(1.0 + (double)rs->temper * grown);
}

typedef struct table_job {
    const cpu_run *r;
    int32_t spec;
} table_job;

static void table_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const table_job *j = ctx;
    const rope_spec *rs = &j->r->x->pl->p->rope[j->spec];
    float *t = j->r->x->rope + table_at(j->r->x->pl, j->spec);
    (void)i_thread;
    for (size_t row = begin; row < end; row++) {
        bool far = rs->switch_len > 0 && known_len(j->r->s, (int32_t)row) > rs->switch_len;
        const float *freq = far ? rs->inv_freq_long : rs->inv_freq;
        const float p = (float)j->r->s->pos[row], scale = table_scale(rs, j->r->s->pos[row]);
        float *cosine = t + row * 2 * (size_t)rs->n_freq, *sine = cosine + rs->n_freq;
        for (int32_t i = 0; i < rs->n_freq; i++) {
            kern_sincos(p * freq[i], &sine[i], &cosine[i]);
            sine[i] *= scale;
            cosine[i] *= scale;
        }
    }
}

void cpu_rope_tables(const cpu_run *r)
{
    for (int32_t i = 0; i < r->x->pl->p->n_rope; i++) {
        table_job j = {r, i};
        cpu_row_spans(r, r->s->n_rows, r->x->pl->p->rope[i].n_freq, ROPE_GRAIN, table_span, &j);
    }
}

typedef struct rope_job {
    const cpu_run *r;
    const op *o;
} rope_job;

static void rope_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const rope_job *j = ctx;
    const op *o = j->o;
    const rope_spec *rs = &j->r->x->pl->p->rope[o->u.rope.spec];
    const kern_vec *k = &j->r->x->d->k.vec;
    const size_t dim = (size_t)o->u.rope.head_dim, n = (size_t)rs->n_freq;
    const size_t cols = dim * (size_t)o->u.rope.n_head;
    const float *x = cpu_val(j->r, o->in[0]);
    float *y = cpu_val(j->r, o->out[0]);
    (void)i_thread;
    for (size_t row = begin; row < end; row++) {
        const int32_t srow = cpu_step_row(j->r, o->out[0], (int32_t)row);
        const float *c = row_table(j->r, o->u.rope.spec, srow);
        for (size_t at = row * cols; at < (row + 1) * cols; at += dim) {
            (rs->interleaved ? k->rope_pairs : k->rope_halves)(y + at, x + at, c, c + n, n);
            if (x != y && 2 * n < dim)
                memcpy(y + at + 2 * n, x + at + 2 * n, (dim - 2 * n) * sizeof *y);
        }
    }
}

void cpu_rope(cpu_run *r, const op *o)
{
    rope_job j = {r, o};
    cpu_row_spans(r, cpu_rows(r, o->out[0]), o->u.rope.n_head * o->u.rope.head_dim, CPU_GRAIN_MOVE,
                  rope_span, &j);
}
