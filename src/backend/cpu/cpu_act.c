/* Elementwise ops: GLU, ACT, XIELU, ADD, SCALE, SOFTCAP.  A value is one run of rows · cols
   elements here. */
#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern_math.h"

enum { ACT_ALIGN = 16 }; /* elements a cache line: no two tasks write the same one */

typedef struct act_job {
    const kern_vec *k;
    const op *o;
    float *y;
    const float *a, *b;
} act_job;

static act_job act_start(const cpu_run *r, const op *o)
{
    return (act_job){.k = &r->x->d->k.vec,
                     .o = o,
                     .y = cpu_val(r, o->out[0]),
                     .a = cpu_val(r, o->in[0]),
                     .b = o->in[1] == VAL_NONE ? NULL : cpu_val(r, o->in[1])};
}

static size_t act_size(const cpu_run *r, const op *o)
{
    return (size_t)cpu_rows(r, o->out[0]) * (size_t)r->x->pl->p->value[o->out[0]].cols;
}

static void glu_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const act_job *j = ctx;
    (void)i_thread;
    j->k->glu[j->o->u.glu.act](j->y + begin, j->a + begin, j->b + begin, end - begin);
}

void cpu_glu(cpu_run *r, const op *o)
{
    act_job j = act_start(r, o);
    if (cpu_with(r, o) & CPU_DONE) return;
    cpu_spans(r, act_size(r, o), CPU_GRAIN_MATH, ACT_ALIGN, glu_span, &j);
}

/* The kernels of GLU by a second operand of ones, which multiplies without rounding. */
static void act_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    enum { ONES = 64 };
    const act_job *j = ctx;
    float ones[ONES];
    (void)i_thread;
    for (size_t i = 0; i < ONES; i++) ones[i] = 1.0f;
    for (size_t at = begin; at < end; at += ONES)
        j->k->glu[j->o->u.glu.act](j->y + at, j->a + at, ones, end - at < ONES ? end - at : ONES);
}

void cpu_act(cpu_run *r, const op *o)
{
    act_job j = act_start(r, o);
    cpu_spans(r, act_size(r, o), CPU_GRAIN_MATH, ACT_ALIGN, act_span, &j);
}

static void xielu_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const act_job *j = ctx;
    (void)i_thread;
    j->k->xielu(j->y + begin, j->a + begin, &j->o->u.xielu, end - begin);
}

void cpu_xielu(cpu_run *r, const op *o)
{
    act_job j = act_start(r, o);
    cpu_spans(r, act_size(r, o), CPU_GRAIN_MATH, ACT_ALIGN, xielu_span, &j);
}

static void add_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const act_job *j = ctx;
    (void)i_thread;
    j->k->add(j->y + begin, j->a + begin, j->b + begin, end - begin);
}

void cpu_add(cpu_run *r, const op *o)
{
    act_job j = act_start(r, o);
    cpu_spans(r, act_size(r, o), CPU_GRAIN_MOVE, ACT_ALIGN, add_span, &j);
}

static void scale_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const act_job *j = ctx;
    (void)i_thread;
    j->k->scale(j->y + begin, j->a + begin, j->o->u.map.scalar, end - begin);
}

static void scale_rows(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const act_job *j = ctx;
    const weight *w = j->o->w[0];
    const size_t n = (size_t)w->cols;
    (void)i_thread;
    for (size_t i = begin * n; i < end * n; i += n)
        j->k->norm(j->y + i, j->a + i, j->o->u.map.scalar, w->f32, n);
}

void cpu_scale(cpu_run *r, const op *o)
{
    act_job j = act_start(r, o);
    if (o->w[0])
        cpu_row_spans(r, cpu_rows(r, o->out[0]), o->w[0]->cols, CPU_GRAIN_MOVE, scale_rows, &j);
    else
        cpu_spans(r, act_size(r, o), CPU_GRAIN_MOVE, ACT_ALIGN, scale_span, &j);
}

static void softcap_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const act_job *j = ctx;
    (void)i_thread;
    j->k->softcap(j->y + begin, j->a + begin, j->o->u.map.scalar, end - begin);
}

void cpu_softcap(cpu_run *r, const op *o)
{
    act_job j = act_start(r, o);
    cpu_spans(r, act_size(r, o), CPU_GRAIN_MATH, ACT_ALIGN, softcap_span, &j);
}

void cpu_gate(cpu_run *r, const op *o)
{
    const size_t n = (size_t)r->x->pl->p->value[o->in[0]].cols;
    const float *x = cpu_val(r, o->in[0]), *g = cpu_val(r, o->in[1]);
    float *y = cpu_val(r, o->out[0]);
    for (size_t i = 0; i < (size_t)cpu_rows(r, o->in[0]); i++)
        r->x->d->k.vec.scale(y + i * n, x + i * n, 1.0f / (1.0f + kern_exp(-g[i])), n);
}
