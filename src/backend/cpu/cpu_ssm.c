/* SSM: the scan of Mamba-2.  Heads of sequences go to threads, rows of a segment in their order; a head's
   state, [dim, n_state], is read and written in place once a row. */
#include <math.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern_math.h"

typedef struct ssm_job {
    const cpu_run *r;
    const op *o;
    const float *xbc, *dt;
    float *y;
    size_t inner, n_xbc;
} ssm_job;

static float time_step(const ssm_spec *s, float dt)
{
    dt = kern_softplus(dt);
    return dt < s->dt_min ? s->dt_min : dt > s->dt_max ? s->dt_max : dt;
}

static void scan_head(const ssm_job *j, const segment *g, size_t head)
{
    const op *o = j->o;
    const ssm_spec *s = &o->u.ssm.s;
    const size_t dim = (size_t)s->dim, n = (size_t)s->n_state, n_head = (size_t)s->n_head;
    const size_t at_b = j->inner + head / (n_head / (size_t)s->n_group) * n;
    const size_t at_c = at_b + (size_t)s->n_group * n;
    const float a = o->w[0]->f32[head], d = o->w[1]->f32[head], bias = o->w[2]->f32[head];
    const size_t state = j->r->s->kv[o->layer].state_off + (size_t)o->u.ssm.state;
    float *h = cpu_state(g, state + head * dim * n, dim * n);
    for (size_t row = (size_t)g->row0; row < (size_t)(g->row0 + g->n_rows); row++) {
        const float *xbc = j->xbc + row * j->n_xbc, *x = xbc + head * dim;
        float *y = j->y + row * j->inner + head * dim;
        const float dt = time_step(s, j->dt[row * n_head + head] + bias);
        const float decay = kern_exp(dt * a);
        for (size_t p = 0; p < dim; p++) {
            const float sum =
                j->r->x->d->k.vec.scan(h + p * n, decay, dt * x[p], xbc + at_b, xbc + at_c, n);
            y[p] = fmaf(d, x[p], sum);
        }
    }
}

static void ssm_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const ssm_job *j = ctx;
    const size_t n_head = (size_t)j->o->u.ssm.s.n_head;
    (void)i_thread;
    for (size_t i = begin; i < end; i++) scan_head(j, &j->r->s->seg[i / n_head], i % n_head);
}

void cpu_ssm(cpu_run *r, const op *o)
{
    const ssm_spec *s = &o->u.ssm.s;
    ssm_job j = {.r = r,
                 .o = o,
                 .xbc = cpu_val(r, o->in[0]),
                 .dt = cpu_val(r, o->in[1]),
                 .y = cpu_val(r, o->out[0]),
                 .inner = (size_t)(s->n_head * s->dim),
                 .n_xbc = (size_t)r->x->pl->p->value[o->in[0]].cols};
    const size_t n = (size_t)r->s->n_seg * (size_t)s->n_head;
    const size_t each = (size_t)r->s->n_rows * j.inner * (size_t)s->n_state / (n ? n : 1);
    cpu_spans(r, n, CPU_GRAIN_MOVE / (each + 1) + 1, 1, ssm_span, &j);
}
