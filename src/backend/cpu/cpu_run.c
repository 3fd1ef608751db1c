/* Walks a program's ops over one step.  Owns how elementwise work is cut into tasks; what an op
   computes is in its own file.  How work is cut never changes a bit. */
#include "backend/cpu/cpu_priv.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/thread.h"

typedef struct span_job {
    cpu_span_fn fn;
    void *ctx;
    size_t n, chunk;
} span_job;

static void span_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const span_job *j = ctx;
    size_t begin = (size_t)i_task * j->chunk;
    size_t end = j->n - begin < j->chunk ? j->n : begin + j->chunk;
    j->fn(j->ctx, begin, end, i_thread);
}

void cpu_spans(const cpu_run *r, size_t n, size_t grain, size_t align, cpu_span_fn fn, void *ctx)
{
    workers *pool = r->x->d->pool;
    size_t threads = (size_t)workers_active(pool);
    if (n == 0) return;
    if (n <= grain || threads == 1) {
        fn(ctx, 0, n, 0);
        return;
    }
    /* A few tasks a thread even out what a neighbour takes away. */
    size_t chunk = n / (threads * 4) + 1;
    chunk = round_up(chunk > grain / 2 ? chunk : grain / 2 + 1, align);
    span_job j = {fn, ctx, n, chunk};
    workers_run(pool, (int32_t)((n + chunk - 1) / chunk), span_task, &j);
}

void cpu_row_spans(const cpu_run *r, int32_t n_rows, int32_t cols, size_t grain, cpu_span_fn fn,
                   void *ctx)
{
    size_t rows = grain / (size_t)cols;
    cpu_spans(r, (size_t)n_rows, rows > 0 ? rows : 1, 1, fn, ctx);
}

#define CPU_OP_LIST(X)                                                                             \
    X(INPUT, input)                                                                                \
    X(EMBED, embed)                                                                                \
    X(LINEAR, linear)                                                                              \
    X(RMS_NORM, rms_norm)                                                                          \
    X(LAYER_NORM, layer_norm)                                                                      \
    X(ROPE, rope)                                                                                  \
    X(ATTEND, attend)                                                                              \
    X(PICK, pick)                                                                                  \
    X(ATTEND_AT, attend)                                                                           \
    X(GLU, glu)                                                                                    \
    X(ACT, act)                                                                                    \
    X(XIELU, xielu)                                                                                \
    X(ADD, add)                                                                                    \
    X(SCALE, scale)                                                                                \
    X(SOFTCAP, softcap)                                                                            \
    X(SELECT, select)                                                                              \
    X(TAP, tap)                                                                                    \
    X(SLICE, slice)                                                                                \
    X(JOIN, join)                                                                                  \
    X(HEADS, heads)                                                                                \
    X(GATE, gate)                                                                                  \
    X(CONV, conv)                                                                                  \
    X(DELTA, delta)                                                                                \
    X(MIX, mix)                                                                                    \
    X(MATCH, match)                                                                                \
    X(CUTOFF, cutoff)                                                                              \
    X(SSM, ssm)                                                                                    \
    X(ROUTE, route)                                                                                \
    X(EXPERTS, experts)

static const cpu_op_fn run_op[OP_COUNT] = {
#define CPU_OP(kind, name) [OP_##kind] = cpu_##name,
    CPU_OP_LIST(CPU_OP)
#undef CPU_OP
};

static void run_one(cpu_run *r, const prog *p, int32_t i)
{
    r->i_op = i;
    if (p->op[i].kind == OP_LINEAR) cpu_shares_fetch(r);
    run_op[p->op[i].kind](r, &p->op[i]);
}

static void run_timed(cpu_run *r, const prog *p)
{
    uint64_t before = clock_ns();
    for (int32_t i = 0; i < p->n_op; i++) {
        run_one(r, p, i);
        const uint64_t now = clock_ns();
        r->x->op_ns[i] += now - before;
        before = now;
    }
}

void cpu_run_step(exec *x, const step *s)
{
    const prog *p = x->pl->p;
    cpu_run r = {.x = x, .s = s};
    cpu_rope_tables(&r);
    if (x->op_ns) {
        run_timed(&r, p);
        return;
    }
    for (int32_t i = 0; i < p->n_op && !(s->stop && note_get(s->stop)); i++) run_one(&r, p, i);
}

void cpu_time_ops(exec *x, uint64_t *ns)
{
    x->op_ns = ns;
}
