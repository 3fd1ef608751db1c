/* Recurrent ops alone: decode as a share of what the machine reads and writes in place, prefill of 512 rows
   as a share of its multiply-adds on one cache line after another; both limits measured in the same run.  Behind a hit
   a row reads its state where the cache keeps it.
     bench_recur [threads] [isa] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ops/ops_rig.h"

enum {
    REPEATS = 5,
    PREFILL = 512,
    LIMIT_FLOATS = 16 << 20,
    LINE_FLOATS = 2048,
    LINE_ROUNDS = 20000
};

typedef struct recur_shape {
    const char *name;
    op o;
    int32_t in_cols[2], cols;
    size_t n_state;
    double flops; /* a row */
} recur_shape;

typedef struct limits {
    double gbs, gflops;
} limits;

typedef struct limit_job {
    const kern_vec *k;
    float *x;
    size_t each;
} limit_job;

static void in_place(void *ctx, int32_t i, int32_t i_thread)
{
    const limit_job *j = ctx;
    float *x = j->x + (size_t)i * j->each;
    (void)i_thread;
    j->k->scale(x, x, 1.0001f, j->each);
}

static void multiply_add(void *ctx, int32_t i, int32_t i_thread)
{
    const limit_job *j = ctx;
    float *y = j->x + (size_t)i * 2 * LINE_FLOATS;
    (void)i_thread;
    for (int32_t n = 0; n < LINE_ROUNDS; n++) j->k->axpy(y, 1e-6f, y + LINE_FLOATS, LINE_FLOATS);
}

static limits measure(const dev *d, float *x)
{
    enum { TASKS = 64 };
    limit_job j = {&d->k.vec, x, LIMIT_FLOATS / TASKS};
    const int32_t n = workers_active(d->pool);
    limits best = {0, 0};
    for (int32_t i = 0; i < REPEATS; i++) {
        const double t0 = clock_s();
        workers_run(d->pool, TASKS, in_place, &j);
        const double t1 = clock_s();
        workers_run(d->pool, n, multiply_add, &j);
        const double t2 = clock_s();
        best.gbs = fmax(best.gbs, 2.0 * LIMIT_FLOATS * sizeof(float) / (t1 - t0) / 1e9);
        best.gflops = fmax(best.gflops, 2.0 * LINE_FLOATS * LINE_ROUNDS * n / (t2 - t1) / 1e9);
    }
    return best;
}

/* Best seconds of one run over `rows`; each run takes another of n_copy states, and reads it in another one's place if
   `apart`. */
static double best_run(const recur_shape *s, rig *g, int32_t rows, float *states, size_t n_copy,
                       bool apart)
{
    const kv_layer kv = {.group = -1};
    double best = 1e9;
    for (size_t i = 0; i < REPEATS * n_copy; i++) {
        float *from = states + (i + n_copy / 2) % n_copy * s->n_state;
        const segment seg = {.n_rows = rows,
                             .state = states + i % n_copy * s->n_state,
                             .from = apart ? from : NULL};
        const double t0 = clock_s();
        backend_cpu.run(g->x, &(step){.n_rows = rows, .n_seg = 1, .seg = &seg, .kv = &kv});
        const double t = clock_s() - t0;
        if (t < best) best = t;
    }
    return best;
}

static void point(const recur_shape *s, int32_t threads, const char *isa)
{
    const value v[] = {{s->in_cols[0], ROWS_ALL, false},
                       {s->in_cols[1], ROWS_ALL, false},
                       {s->cols, ROWS_ALL, false}};
    const size_t n_copy = LIMIT_FLOATS / s->n_state + 1; /* more than caches hold */
    float *x = calloc(LIMIT_FLOATS, sizeof *x), *states = calloc(n_copy * s->n_state, sizeof *x);
    rig g;
    if (!x || !states) exit(1);
    rig_open(&g, isa, threads, &s->o, v, 3, PREFILL, 1, NULL);
    for (val k = 0; k < 2; k++)
        for (int32_t i = 0; i < PREFILL * v[k].cols; i++)
            rig_val(&g, k)[i] = rig_rand((uint64_t)k, (uint64_t)i);
    const limits m = measure(g.d, x);
    const double row = best_run(s, &g, 1, states, n_copy, false);
    const double apart = best_run(s, &g, 1, states, n_copy, true);
    const double many = best_run(s, &g, PREFILL, states, 3, false);
    const double gbs = 2.0 * (double)s->n_state * sizeof(float) / row / 1e9;
    const double gflops = s->flops * PREFILL / many / 1e9;
    printf("%-24s row %8.1f us %7.2f GB/s = %5.1f %%, behind a hit %8.1f us   %d rows %8.1f us "
           "%7.2f GFLOP/s = %5.1f %%\n",
           s->name, row * 1e6, gbs, 100 * gbs / m.gbs, apart * 1e6, PREFILL, many * 1e6, gflops,
           100 * gflops / m.gflops);
    rig_close(&g);
    free(x);
    free(states);
}

static void conv_point(int32_t cols, int32_t threads, const char *isa)
{
    enum { K = 4 };
    float *w = calloc((size_t)(K * cols), sizeof *w);
    const weight kernel = {.rows = K, .cols = cols, .f32 = w};
    char name[32];
    (void)snprintf(name, sizeof name, "CONV %d x %d, silu", K, (int)cols);
    const recur_shape s = {.name = name,
                           .o = {.kind = OP_CONV,
                                 .in = {0, VAL_NONE, VAL_NONE},
                                 .out = {2, VAL_NONE, VAL_NONE},
                                 .w = {&kernel},
                                 .u.conv.silu = true},
                           .in_cols = {cols, 1},
                           .cols = cols,
                           .n_state = (size_t)((K - 1) * cols),
                           .flops = 2.0 * K * cols};
    point(&s, threads, isa);
    free(w);
}

static void ssm_point(const ssm_spec *h, int32_t threads, const char *isa)
{
    float *one = calloc((size_t)h->n_head, sizeof *one);
    const weight w = {.rows = 1, .cols = h->n_head, .f32 = one};
    const int32_t inner = h->n_head * h->dim;
    char name[32];
    (void)snprintf(name, sizeof name, "SSM %d x %d x %d", (int)h->n_head, (int)h->dim,
                   (int)h->n_state);
    const recur_shape s = {.name = name,
                           .o = {.kind = OP_SSM,
                                 .in = {0, 1, VAL_NONE},
                                 .out = {2, VAL_NONE, VAL_NONE},
                                 .w = {&w, &w, &w},
                                 .u.ssm.s = *h},
                           .in_cols = {inner + 2 * h->n_group * h->n_state, h->n_head},
                           .cols = inner,
                           .n_state = (size_t)inner * (size_t)h->n_state,
                           .flops = 5.0 * inner * h->n_state};
    point(&s, threads, isa);
    free(one);
}

int main(int argc, char **argv)
{
    static const ssm_spec specs[] = {{80, 64, 128, 1, 0, 1},
                                     {48, 64, 128, 1, 0, 1},
                                     {24, 64, 128, 1, 0, 1},
                                     {32, 64, 16, 1, 0, 1}};
    const int32_t threads = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 1;
    const char *isa = argc > 2 ? argv[2] : NULL;
    conv_point(5376, threads, isa);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) ssm_point(&specs[i], threads, isa);
    return 0;
}
