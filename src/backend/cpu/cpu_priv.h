/* What the files of the CPU backend share: the device (its kernels, its threads), a compiled program
   with its scratch, and how an op reaches values, splits its rows and takes scratch.  Ops run one at a
   time on the thread that called run, and fork inside. */
#ifndef CPU_PRIV_H
#define CPU_PRIV_H

#include <string.h>

#include "backend/cpu/kern/kern.h"
#include "backend/cpu/slab.h"
#include "base/thread.h"
#include "base/workers.h"
#include "tensor/backend.h"
#include "tensor/prog.h"
#include "tensor/weight.h"

struct dev {
    kern k;
    workers *pool;
    cairn_compute compute;
    slabs tile_memory;
    size_t resident;
    int32_t n_busy; /* users whose steps follow closely; under the model's lock, like steps */
};

struct exec {
    dev *d;
    const plan *pl;
    int32_t max_ctx;
    uint8_t *values; /* plan's values */
    size_t values_size;
    uint8_t *shared; /* scratch of the running op, shared by the threads */
    size_t shared_size;
    uint8_t *thread; /* scratch of each thread: thread_size bytes, 64-aligned */
    size_t thread_size;
    float *rope; /* cosines and sines of the step's rows: cpu_rope_tables */
    size_t rope_size;
    uint64_t *op_ns; /* of each op, or NULL: nobody asks */
    uint8_t *with;   /* of each op: CPU_GATES … */
};

/* One run in progress. */
typedef struct cpu_run {
    exec *x;
    const step *s;
    int32_t i_op; /* the op that runs */
} cpu_run;

static inline int32_t cpu_rows(const cpu_run *r, val v)
{
    return r->x->pl->p->value[v].rows == ROWS_ALL ? r->s->n_rows : r->s->n_out;
}
static inline float *cpu_val(const cpu_run *r, val v)
{
    size_t at = r->x->pl->offset[v];
    return at == SIZE_MAX ? r->s->logits : (float *)(void *)(r->x->values + at);
}
/* n floats of a sequence's state from `at` on, as they are before its first row: once a step, by who goes through
   them. */
static inline float *cpu_state(const segment *g, size_t at, size_t n)
{
    if (g->from) memcpy(g->state + at, g->from + at, n * sizeof *g->state);
    return g->state + at;
}
static inline uint8_t *cpu_thread_scratch(const cpu_run *r, int32_t i_thread)
{
    return r->x->thread + (size_t)i_thread * r->x->thread_size;
}

/* cpu_gated.c: what an op does of its neighbours' work, or has done by them. */
enum {
    CPU_GATES = 1,      /* LINEAR of two weights: the GLU behind it too */
    CPU_CODES_OUT = 2,  /* in 8 bits, for the LINEAR behind that */
    CPU_CODES_IN = 4,   /* LINEAR: its input is so */
    CPU_DONE = 8,       /* GLU, RMS_NORM: nothing is left */
    CPU_NORMS = 16,     /* LINEAR: the RMS_NORM before it too, row by row as they become 8 bits */
    CPU_GATED_ROWS = 16 /* of fewer, all of it by itself: what they write stays in L2 */
};
void cpu_find_gated(const dev *d, const prog *p, uint8_t *with);
static inline uint8_t cpu_with(const cpu_run *r, const op *o)
{
    return cpu_rows(r, o->out[0]) < CPU_GATED_ROWS ? 0 : r->x->with[o - r->x->pl->p->op];
}

/* cpu_norm.c: rows row0 … row0+n-1 of an RMS_NORM. */
void cpu_norm_rows(cpu_run *r, const op *o, int32_t row0, int32_t n);

/* Calls fn for spans that cover [0, n), inline if n <= grain: a fork costs as much as some thousand
   elements do.  Spans begin at multiples of `align` (a power of two). */
typedef void (*cpu_span_fn)(void *ctx, size_t begin, size_t end, int32_t i_thread);
void cpu_spans(const cpu_run *r, size_t n, size_t grain, size_t align, cpu_span_fn fn, void *ctx);
/* The same over rows of `cols` elements. */
void cpu_row_spans(const cpu_run *r, int32_t n_rows, int32_t cols, size_t grain, cpu_span_fn fn,
                   void *ctx);

/* Elements that one thread should have before another is called (measured: 0.3 µs a fork). */
enum { CPU_GRAIN_MOVE = 8192, CPU_GRAIN_MATH = 2048 };

/* Row of the step that row i of a value is. */
static inline int32_t cpu_step_row(const cpu_run *r, val v, int32_t i)
{
    return r->x->pl->p->value[v].rows == ROWS_ALL ? i : r->s->out_row[i];
}

/* cpu_rope.c: bytes of all tables; fills those of a run. */
size_t cpu_rope_size(const plan *pl);
void cpu_rope_tables(const cpu_run *r);

/* Each op of the list: runs whole, forking as it needs. */
typedef void (*cpu_op_fn)(cpu_run *r, const op *o);
void cpu_input(cpu_run *r, const op *o);
void cpu_embed(cpu_run *r, const op *o);
void cpu_linear(cpu_run *r, const op *o);
void cpu_rms_norm(cpu_run *r, const op *o);
void cpu_layer_norm(cpu_run *r, const op *o);
void cpu_rope(cpu_run *r, const op *o);
void cpu_attend(cpu_run *r, const op *o);
void cpu_pick(cpu_run *r, const op *o);
void cpu_glu(cpu_run *r, const op *o);
void cpu_act(cpu_run *r, const op *o);
void cpu_xielu(cpu_run *r, const op *o);
void cpu_add(cpu_run *r, const op *o);
void cpu_scale(cpu_run *r, const op *o);
void cpu_softcap(cpu_run *r, const op *o);
void cpu_select(cpu_run *r, const op *o);
void cpu_tap(cpu_run *r, const op *o);
void cpu_slice(cpu_run *r, const op *o);
void cpu_join(cpu_run *r, const op *o);
void cpu_heads(cpu_run *r, const op *o);
void cpu_gate(cpu_run *r, const op *o);
void cpu_conv(cpu_run *r, const op *o);
void cpu_delta(cpu_run *r, const op *o);
void cpu_mix(cpu_run *r, const op *o);
void cpu_match(cpu_run *r, const op *o);
void cpu_cutoff(cpu_run *r, const op *o);
void cpu_ssm(cpu_run *r, const op *o);
void cpu_route(cpu_run *r, const op *o);
void cpu_experts(cpu_run *r, const op *o);

/* Scratch that an op needs at most: shared bytes and bytes a thread. */
typedef struct cpu_need {
    size_t shared, thread;
} cpu_need;
/* out[i][row] = w[i] · x[row] (+ bias_i) (+ residual[row]), the rows packed; `shared` has the bytes that
   cpu_products_need says.  Forks; each row's bits are those of LINEAR. */
typedef struct cpu_products {
    const weight *const *w;
    int32_t n_w, n_rows;
    const float *x, *residual; /* residual: n_w 1, or NULL */
    float *out[OP_MAX_OUT];
    uint8_t *shared;
    uint8_t *codes;   /* or NULL: x in 8 bits as cpu_meets_codes says, [group][row] */
    const op *norm;   /* or NULL: the RMS_NORM that makes x, not done yet */
    const op *glu;    /* or NULL: that of the results, which are not written themselves (n_w 2) */
    bool crossed;     /* the second is its gate */
    bool glued_codes; /* the form of its result, at out[0]: 8 bits as above, or floats */
} cpu_products;
/* The weight meets 8-bit activations in groups of 32, one term. */
bool cpu_meets_codes(const dev *d, const weight *w);
cpu_need cpu_products_need(const dev *d, const weight *const *w, int32_t n_w, int32_t max_rows);
void cpu_products_run(cpu_run *r, const cpu_products *p);
enum { CPU_DEQUANT_ROWS = 4 }; /* rows dequantised at a time: they share the reads of x */
/* n_t rows of floats x, ldx apart, and where their products go: y[t][i], ldy apart. */
typedef struct cpu_floats {
    const float *x;
    size_t ldx;
    float *y;
    size_t ldy;
    int32_t n_t;
} cpu_floats;
/* Rows row0 … row0 + n - 1 of w, n <= TILE_ROWS, times f's.  `scratch`: CPU_DEQUANT_ROWS rows of floats. */
void cpu_float_rows(const kern_linear *k, const weight *w, int32_t row0, int32_t n,
                    const cpu_floats *f, uint8_t *scratch);

/* cpu_shares.c: how the units of a product, or of attention, of few rows are cut. */
enum { CPU_SHARES_ROWS = 8 }; /* steps measured: docs/kernels.md, "A share a thread" */
typedef struct cpu_shares {
    int32_t n_unit, n_thread, n_run; /* runs a share */
} cpu_shares;
typedef struct cpu_stretch {
    int32_t begin, end; /* units */
    bool more;          /* the thread likely goes on at `end` */
} cpu_stretch;
/* Answers how many tasks to run; each is one stretch of units, of the share of the thread that owns it. */
int32_t cpu_shares_cut(const cpu_run *r, int32_t n_unit, cpu_shares *s);
cpu_stretch cpu_shares_stretch(const cpu_shares *s, int32_t i_task);
/* Lets waiting threads fetch their shares of the first LINEAR after the op that runs. */
void cpu_shares_fetch(const cpu_run *r);
/* What far_ahead should be while the only thread multiplies `unit` of these weights. */
uintptr_t cpu_shares_far(const cpu_run *r, const cpu_shares *s, const weight *const *w,
                         int32_t unit);

cpu_need cpu_heads_need(const op *o);
cpu_need cpu_delta_need(const op *o);
cpu_need cpu_route_need(int32_t n_expert);
cpu_need cpu_experts_need(const dev *d, const op *o, int32_t max_rows);
cpu_need cpu_linear_need(const dev *d, const op *o, int32_t max_rows);
cpu_need cpu_attend_need(const dev *d, const plan *pl, const op *o, int32_t max_ctx);
cpu_need cpu_pick_need(const dev *d, const op *o, int32_t max_rows, int32_t max_ctx);

/* cpu_run.c, cpu_measure.c: backend.run, time_ops and measure. */
void cpu_run_step(exec *x, const step *s);
void cpu_time_ops(exec *x, uint64_t *ns);
cairn_status cpu_measure(dev *d, dev_limits *out);

/* repack.c: backend.adopt, release and held for one weight. */
cairn_status cpu_weight_adopt(dev *d, weight *w, cairn_diag *dg);
void cpu_weight_release(dev *d, weight *w);
size_t cpu_weight_held(cairn_compute compute, const weight *w);
bool cpu_weight_repacks(cairn_compute compute, const weight *w);

#endif
