/* The machine's limits, measured with all threads of the device: what bench divides by. */
#include "backend/cpu/cpu_priv.h"
#include "base/clock.h"
#include "base/thread.h"

enum {
    READ_CHUNK = 1 << 20,
    READ_CHUNKS = 1024, /* 1 GiB: far above any last-level cache that we met */
    READ_PASSES = 2,    /* the best one counts: neighbours only ever slow a pass down */
    WEIGHT_PASSES = 4,  /* the first brings them to the caches that keep them */
    PEAK_ROUNDS = 1 << 16,
    PEAK_TASKS = 64,
    PEAK_PASSES = 3
};

typedef struct measure_job {
    const kern_linear *k;
    uint8_t *mem;
    const slabs *weights;
    atomic_i64 ops, sink;
} measure_job;

static void touch_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    measure_job *j = ctx;
    (void)i_thread;
    __builtin_memset(j->mem + (size_t)i_task * READ_CHUNK, i_task & 0x7f, READ_CHUNK);
}

static void read_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    measure_job *j = ctx;
    (void)i_thread;
    uint64_t sum = j->k->read_sum(j->mem + (size_t)i_task * READ_CHUNK, READ_CHUNK);
    atomic_add(&j->sink, (int64_t)(sum & 0xff)); /* the sum is used, so the reads stay */
}

static void weights_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    measure_job *j = ctx;
    (void)i_thread;
    const uint8_t *p = slabs_chunk(j->weights, READ_CHUNK, (size_t)i_task);
    atomic_add(&j->sink, (int64_t)(j->k->read_sum(p, READ_CHUNK) & 0xff));
}

static void dot_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    measure_job *j = ctx;
    (void)i_task;
    (void)i_thread;
    atomic_add(&j->ops, (int64_t)j->k->peak_dot(PEAK_ROUNDS));
}

static void fma_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    measure_job *j = ctx;
    (void)i_task;
    (void)i_thread;
    atomic_add(&j->ops, (int64_t)j->k->peak_fma(PEAK_ROUNDS));
}

/* Seconds of the fastest of some passes. */
static double fastest(dev *d, int32_t passes, int32_t n_tasks, worker_fn fn, measure_job *j)
{
    double best = 1e30;
    workers_begin(d->pool);
    for (int32_t i = 0; i < passes; i++) {
        double t0 = clock_s();
        workers_run(d->pool, n_tasks, fn, j);
        double t = clock_s() - t0;
        if (t < best) best = t;
    }
    workers_end(d->pool);
    return best;
}

/* 10^12 operations a second of a task that counts them. */
static double peak(dev *d, worker_fn fn)
{
    measure_job j = {.k = &d->k.lin};
    const double s = fastest(d, PEAK_PASSES, PEAK_TASKS, fn, &j);
    return (double)atomic_get(&j.ops) / PEAK_PASSES / s / 1e12;
}

static double read_weights(dev *d)
{
    measure_job j = {.k = &d->k.lin, .weights = &d->tile_memory};
    int32_t n = 0;
    while (n < READ_CHUNKS && slabs_chunk(j.weights, READ_CHUNK, (size_t)n)) n++;
    if (n == 0) return 0;
    return (double)n * READ_CHUNK / fastest(d, WEIGHT_PASSES, n, weights_task, &j) / 1e9;
}

cairn_status cpu_measure(dev *d, dev_limits *out)
{
    const size_t size = (size_t)READ_CHUNK * READ_CHUNKS;
    measure_job j = {.k = &d->k.lin, .mem = mem_map(size, MEM_SCRATCH)};
    if (!j.mem) return CAIRN_E_NOMEM;
    workers_run(d->pool, READ_CHUNKS, touch_task, &j);
    out->read_gbs = (double)size / fastest(d, READ_PASSES, READ_CHUNKS, read_task, &j) / 1e9;
    mem_unmap(j.mem, size, MEM_SCRATCH);
    out->weights_gbs = read_weights(d);
    out->int8_tops = peak(d, dot_task);
    out->f32_tflops = peak(d, fma_task);
    return CAIRN_OK;
}
