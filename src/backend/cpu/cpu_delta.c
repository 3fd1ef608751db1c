/* DELTA: linear attention by the gated delta rule (Yang, Kautz and Hatamizadeh 2024, "Gated Delta
   Networks", equation 10), serial in time.  Heads of values go to threads, each through all rows of its
   segment; a head's state is [key][value]. */
#include <math.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern_math.h"
#include "base/num.h"

typedef struct delta_job {
    const cpu_run *r;
    const op *o;
    const float *qkv, *a, *b;
    float *y;
} delta_job;

static size_t key_bytes(const op *o)
{
    return (size_t)o->u.delta.key_dim * sizeof(float);
}

/* y = x / |x| · by */
static void unit(const kern_vec *k, float *y, const float *x, int32_t n, float by)
{
    k->scale(y, x, 1.0f / sqrtf(k->sum_sq(x, (size_t)n) + 1e-6f), (size_t)n);
    k->scale(y, y, by, (size_t)n);
}

/* Head h of the values through the rows of a segment. */
static void delta_head(const delta_job *j, const segment *g, int32_t h, float *scratch)
{
    const op *o = j->o;
    const kern_vec *k = &j->r->x->d->k.vec;
    const int32_t n_key = o->u.delta.n_key, n_value = o->u.delta.n_value;
    const int32_t dk = o->u.delta.key_dim, dv = o->u.delta.value_dim;
    const int32_t of = o->u.delta.tiled ? h % n_key : h / (n_value / n_key);
    const size_t keys = (size_t)(n_key * dk), values = (size_t)(n_value * dv);
    const size_t state = j->r->s->kv[o->layer].state_off + (size_t)o->u.delta.state;
    const float by = 1.0f / sqrtf((float)dk);
    float *q = scratch, *key = scratch + round_up((size_t)dk, 16);
    kern_delta d = {.s = cpu_state(g, state + (size_t)(h * dk) * (size_t)dv, (size_t)(dk * dv)),
                    .q = q,
                    .k = key,
                    .n_key = dk,
                    .n_value = dv};
    for (size_t row = (size_t)g->row0; row < (size_t)(g->row0 + g->n_rows); row++) {
        const float *x = j->qkv + row * (2 * keys + values);
        const size_t at = row * (size_t)n_value + (size_t)h;
        unit(k, q, x + of * dk, dk, by);
        unit(k, key, x + keys + of * dk, dk, 1.0f);
        d.v = x + 2 * keys + h * dv;
        d.y = j->y + row * values + (size_t)(h * dv);
        d.beta = kern_sigmoid(j->b[at]);
        d.decay = kern_exp(o->w[0]->f32[h] * kern_softplus(j->a[at] + o->w[1]->f32[h]));
        k->delta(&d);
    }
}

static void delta_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const delta_job *j = ctx;
    const size_t n = (size_t)j->o->u.delta.n_value;
    float *scratch = (float *)(void *)cpu_thread_scratch(j->r, i_thread);
    for (size_t i = begin; i < end; i++)
        delta_head(j, &j->r->s->seg[i / n], (int32_t)(i % n), scratch);
}

void cpu_delta(cpu_run *r, const op *o)
{
    delta_job j = {r,
                   o,
                   cpu_val(r, o->in[0]),
                   cpu_val(r, o->in[1]),
                   cpu_val(r, o->in[2]),
                   cpu_val(r, o->out[0])};
    cpu_spans(r, (size_t)r->s->n_seg * (size_t)o->u.delta.n_value, 1, 1, delta_span, &j);
}

cpu_need cpu_delta_need(const op *o)
{
    return (cpu_need){.thread = 2 * round_up(key_bytes(o), 64)};
}
