/* Speed of the kernels of LINEAR against the limits of the machine, measured in the same run.
     build/bench/bench_linear [threads [level, -: CAIRN_ISA or the machine's [repeats [format]]]]
   Decode: one vector times 256 MB of tiles, share of what reading the same memory takes.  Prefill: 96
   vectors times 4 MB of tiles, share of the level's best int8 multiply-add loop on registers.  Each
   figure is the median of interleaved repeats, limits beside every point. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/kern/kern.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/half.h"
#include "base/machine.h"
#include "base/rng.h"
#include "base/workers.h"

enum { MAX_REPEAT = 31, K = 1536, GEMV_MB = 256, GEMM_MB = 4, N_VEC = TILE_MAX_VEC, RUNS = 16 };

typedef struct bench {
    kern_linear k;
    workers *pool;
    int32_t threads;
    tile_type type;
    uint8_t *data;
    size_t size, tile_bytes;
    int32_t n_tile, n_block, n_vec;
    bool fine; /* activations by 32 meet blocks of 256 */
    void *act;
    size_t stride;
    uint8_t *scratch;
} bench;

enum { SCRATCH = TILE_PANEL + TILE_MAX_VEC * TILE_ROWS * 4 };

static void read_task(void *ctx, int32_t i, int32_t i_thread)
{
    const bench *b = ctx;
    const size_t part = b->size / RUNS / 4096 * 4096;
    volatile uint64_t sink = b->k.read_sum(b->data + (size_t)i * part, part);
    (void)sink, (void)i_thread;
}

static void peak_task(void *ctx, int32_t i, int32_t i_thread)
{
    const bench *b = ctx;
    b->k.peak_dot(1000000);
    (void)i, (void)i_thread;
}

static void tile_task(void *ctx, int32_t i, int32_t i_thread)
{
    const bench *b = ctx;
    uint8_t *scratch = b->scratch + (size_t)i_thread * SCRATCH;
    const int32_t end = (int32_t)((int64_t)b->n_tile * (i + 1) / RUNS);
    for (int32_t t = (int32_t)((int64_t)b->n_tile * i / RUNS); t < end; t++)
        (b->fine ? b->k.fine : b->k.tile)[b->type](
            b->data + (size_t)t * b->tile_bytes, b->n_block, b->act, b->stride, b->n_vec, 1,
            (float *)(void *)(scratch + TILE_PANEL), scratch);
}

static double timed(bench *b, int32_t n_tasks, worker_fn fn)
{
    const double t = clock_s();
    workers_run(b->pool, n_tasks, fn, b);
    return clock_s() - t;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

/* One tile of random weights with small scales, repeated. */
static void fill(bench *b, uint64_t seed)
{
    const size_t block = tile_block_bytes(b->type);
    for (size_t i = 0; i < b->tile_bytes; i++) b->data[i] = (uint8_t)rng_u64(seed, 0, i);
    for (size_t at = 0; at < b->tile_bytes; at += block) {
        const bool in_group = b->type == TILE_Q2_K || b->type == TILE_IQ4_XS ||
                              b->type == TILE_Q4_K || b->type == TILE_Q5_K; /* d is */
        for (size_t g = 0; g < block; g += in_group ? block / 2 : block) {
            for (size_t i = 0; i < 64; i++) {
                const uint16_t h = f16_from_f32(0.001f);
                if (i < 32 || b->type == TILE_Q4_1 || b->type == TILE_Q5_1)
                    memcpy(b->data + at + g + 2 * i, &h, 2);
            }
        }
    }
    for (int32_t t = 1; t < b->n_tile; t++)
        memcpy(b->data + (size_t)t * b->tile_bytes, b->data, b->tile_bytes);
}

static void setup(bench *b, tile_type t, size_t mb, int32_t n_vec)
{
    const int32_t e = b->fine ? 32 : tile_elems(t);
    const size_t one = e == 32 ? sizeof(a8_32) : sizeof(a8_256);
    float x[K];
    b->type = t;
    b->n_block = K / tile_elems(t);
    b->tile_bytes = tile_bytes(t, b->n_block);
    b->n_tile = (int32_t)((mb << 20) / b->tile_bytes);
    b->n_vec = n_vec;
    b->stride = one * (size_t)n_vec;
    for (int32_t v = 0; v < n_vec; v++) {
        void *to = (uint8_t *)b->act + (size_t)v * one;
        for (size_t i = 0; i < K; i++) x[i] = (float)rng_unit(9, (uint64_t)v, i) - 0.5f;
        if (e == 32)
            b->k.quant32(x, K / e, 1, to, b->stride);
        else
            b->k.quant256(x, K / e, 1, to, b->stride);
    }
    fill(b, 5);
}

static const char *const names[] = {
#define NAME(name, elems, bytes) #name,
    TILE_LIST(NAME)
#undef NAME
};

static void decode(bench *b, tile_type t, int repeats)
{
    double share[MAX_REPEAT], rate[MAX_REPEAT];
    setup(b, t, GEMV_MB, 1);
    for (int i = 0; i < repeats; i++) {
        const double r = timed(b, RUNS, read_task), w = timed(b, RUNS, tile_task);
        const double r2 = timed(b, RUNS, read_task);
        const double bytes = (double)b->tile_bytes * b->n_tile;
        rate[i] = bytes / w * 1e-9;
        share[i] = rate[i] / ((double)b->size * 2 / (r + r2) * 1e-9);
    }
    const double s = median(share, repeats), g = median(rate, repeats);
    printf("%-6s%s decode  %7.1f GB/s  %5.1f%% of read\n", names[t], b->fine ? " fine" : "", g,
           100 * s);
}

static void prefill(bench *b, tile_type t, int repeats, int32_t n_vec)
{
    double share[MAX_REPEAT], rate[MAX_REPEAT];
    setup(b, t, GEMM_MB, n_vec);
    for (int i = 0; i < repeats; i++) {
        const double p = timed(b, b->threads, peak_task);
        const double w = timed(b, RUNS, tile_task);
        const double p2 = timed(b, b->threads, peak_task);
        const double ops = 2.0 * TILE_ROWS * b->n_tile * K * n_vec;
        rate[i] = ops / w * 1e-9;
        share[i] = rate[i] / ((double)b->k.peak_dot(1) * 1e6 * b->threads * 2 / (p + p2) * 1e-9);
    }
    const double s = median(share, repeats), g = median(rate, repeats);
    printf("%-6s%s %2d rows %7.0f GOPS  %5.1f%% of peak\n", names[t], b->fine ? " fine" : "", n_vec,
           g, 100 * s);
}

int main(int argc, char **argv)
{
    kern table;
    bench b = {.threads = argc > 1 ? atoi(argv[1]) : 1};
    isa_level level = isa_detect();
    int repeats = argc > 3 ? atoi(argv[3]) : 9;
    const char *asked = argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : machine_isa();
    if (asked && !(isa_parse(asked, &level) && isa_runs(level))) return 2;
    if (repeats > MAX_REPEAT) repeats = MAX_REPEAT;
    kern_init(&table, level);
    b.k = table.lin;
    b.size = (size_t)GEMV_MB << 20;
    b.data = mem_map(b.size + TILE_SLACK, MEM_MISC);
    const size_t one = sizeof(a8_32) * (K / 32), other = sizeof(a8_256) * (K / 256);
    b.act = mem_map((one > other ? one : other) * N_VEC, MEM_MISC);
    b.scratch = mem_map((size_t)SCRATCH * (size_t)b.threads, MEM_MISC);
    if (!b.data || !b.act || !b.scratch || workers_new(b.threads, &b.pool) != CAIRN_OK) return 1;
    memset(b.data, 1, b.size);
    workers_begin(b.pool);
    printf("level %s, %d threads, read %.1f GB/s, peak %.0f GOPS\n", isa_name(level), b.threads,
           (double)b.size / timed(&b, RUNS, read_task) * 1e-9,
           (double)b.k.peak_dot(1) * 1e6 * b.threads / timed(&b, b.threads, peak_task) * 1e-9);
    const char *only = argc > 4 ? argv[4] : NULL;
    for (int t = 0; t < TILE_COUNT; t++) {
        if (only && strcmp(only, names[t])) continue;
        for (int fine = 0; fine <= (b.k.fine[t] != NULL); fine++) {
            b.fine = fine;
            decode(&b, (tile_type)t, repeats);
            prefill(&b, (tile_type)t, repeats, 4);
            prefill(&b, (tile_type)t, repeats, N_VEC);
        }
    }
    workers_end(b.pool);
    workers_free(b.pool);
    return 0;
}
