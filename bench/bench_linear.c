/* Speed of the kernels of LINEAR against the limits of the machine, measured in the same run.
     build/bench/bench_linear [threads [level, -: CAIRN_ISA or the machine's [repeats [format, -: all [rows]]]]]
   Decode: one vector times 256 MB of weights, share of what reading the same memory takes.  Prefill: 4 and 96
   vectors, or as many as asked, times 4 MB of weights, share of the level's best loop on registers: int8
   multiply-adds, where 8-bit activations meet the format, else those of floats.  Each figure is the median of
   interleaved repeats, limits beside every point. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern.h"
#include "backend/cpu/tiles.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/half.h"
#include "base/machine.h"
#include "base/rng.h"
#include "base/workers.h"

enum { MAX_REPEAT = 31, K = 1536, GEMV_MB = 256, GEMM_MB = 4, N_VEC = TILE_MAX_VEC, RUNS = 16 };

/* A format: tiles of a type, of affine codes, or a dense type. */
typedef enum kind { TILES, FINE /* activations by 32 meet blocks of 256 */, AFFINE, DENSE } kind;
typedef struct format {
    const char *name;
    kind kind;
    tile_type type;
    affine_form form;
    dtype dense;
} format;

static const format formats[] = {
#define TILE_FORMAT(name, elems, bytes) {#name, TILES, TILE_##name, {0}, 0},
    TILE_LIST(TILE_FORMAT)
#undef TILE_FORMAT
        {"Q4_K fine", FINE, TILE_Q4_K, {0}, 0},
    {"Q5_K fine", FINE, TILE_Q5_K, {0}, 0},
    {"Q6_K fine", FINE, TILE_Q6_K, {0}, 0},
    {"affine4", AFFINE, 0, {AFFINE_4, HEAD_F16, 2}, 0}, /* 2 to 4 bits; MLX groups 64 */
    {"affine5", AFFINE, 0, {AFFINE_5, HEAD_F16, 2}, 0},
    {"affine8", AFFINE, 0, {AFFINE_8, HEAD_F16, 2}, 0}, /* 6 and 8 bits */
    {"e4m3", DENSE, 0, {0}, DT_F8_E4M3},
    {"e5m2", DENSE, 0, {0}, DT_F8_E5M2},
    {"f16", DENSE, 0, {0}, DT_F16},
    {"bf16", DENSE, 0, {0}, DT_BF16},
    {"f32", DENSE, 0, {0}, DT_F32},
};
enum { N_FORMAT = sizeof formats / sizeof *formats };

typedef struct bench {
    kern_linear k;
    workers *pool;
    int32_t threads;
    format f;
    weight w; /* of a dense type: the rows of all units */
    uint8_t *data;
    size_t size, tile_bytes; /* of 32 rows */
    int32_t n_tile, n_block, n_vec;
    void *act; /* 8-bit activations */
    float *x;  /* floats */
    size_t stride;
    uint8_t *scratch;
} bench;

enum { SCRATCH = TILE_PANEL + TILE_MAX_VEC * TILE_ROWS * 4 + CPU_DEQUANT_ROWS * K * 4 };

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

static void peak_fma_task(void *ctx, int32_t i, int32_t i_thread)
{
    const bench *b = ctx;
    b->k.peak_fma(1000000);
    (void)i, (void)i_thread;
}

static void one_tile(const bench *b, int32_t t, float *y, uint8_t *scratch)
{
    const uint8_t *tile = b->data + (size_t)t * b->tile_bytes;
    const cpu_floats to = {.x = b->x, .ldx = K, .y = y, .ldy = TILE_ROWS, .n_t = b->n_vec};
    switch (b->f.kind) {
    case TILES:
        b->k.tile[b->f.type](tile, b->n_block, b->act, b->stride, b->n_vec, 1, y, scratch);
        break;
    case FINE:
        b->k.fine[b->f.type](tile, b->n_block, b->act, b->stride, b->n_vec, 1, y, scratch);
        break;
    case AFFINE:
        b->k.affine[b->f.form.code](&b->f.form, tile, b->n_block, b->act, b->stride, b->n_vec, 1, y,
                                    scratch);
        break;
    case DENSE:
        cpu_float_rows(&b->k, &b->w, t * TILE_ROWS, TILE_ROWS, &to, scratch);
        break;
    }
}

static void tile_task(void *ctx, int32_t i, int32_t i_thread)
{
    const bench *b = ctx;
    uint8_t *scratch = b->scratch + (size_t)i_thread * SCRATCH;
    float *y = (float *)(void *)scratch;
    const int32_t end = (int32_t)((int64_t)b->n_tile * (i + 1) / RUNS);
    scratch += TILE_MAX_VEC * TILE_ROWS * sizeof *y;
    for (int32_t t = (int32_t)((int64_t)b->n_tile * i / RUNS); t < end; t++)
        one_tile(b, t, y, scratch);
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

static void put_halves(uint8_t *p, size_t n)
{
    const uint16_t h = f16_from_f32(0.001f);
    for (size_t i = 0; i < n; i++) memcpy(p + 2 * i, &h, 2);
}

/* Small scales into the tile at hand. */
static void fill_scales(bench *b)
{
    const tile_type t = b->f.type;
    if (b->f.kind == AFFINE) {
        const size_t head = affine_head_bytes(b->f.form.head);
        const size_t apart = head + affine_block_bytes(b->f.form.code) * (size_t)b->f.form.per_head;
        for (size_t at = 0; at < b->tile_bytes; at += apart) put_halves(b->data + at, head / 2);
    }
    if (b->f.kind == AFFINE || t == TILE_MXFP4 || t == TILE_NVFP4) return;
    const size_t block = tile_block_bytes(t);
    const bool in_group = t == TILE_Q2_K || t == TILE_IQ4_XS || t == TILE_Q4_K || t == TILE_Q5_K;
    for (size_t at = 0; at < b->tile_bytes; at += in_group ? block / 2 : block)
        put_halves(b->data + at, t == TILE_Q4_1 || t == TILE_Q5_1 ? 64
                                 : in_group && t == TILE_IQ4_XS   ? 16
                                                                  : 32);
}

/* Floats as trained weights have them: no denormals, at which processors stumble. */
static void fill_dense(bench *b)
{
    for (size_t i = 0; i < (size_t)TILE_ROWS * K; i++) {
        const float v = (float)rng_unit(5, 1, i) - 0.5f;
        const uint16_t h = b->f.dense == DT_F16 ? f16_from_f32(v) : bf16_from_f32(v);
        const uint64_t u = rng_u64(5, 2, i);
        if (b->f.dense == DT_F32)
            memcpy(b->data + 4 * i, &v, 4);
        else if (dtype_block_bytes(b->f.dense) == 2)
            memcpy(b->data + 2 * i, &h, 2);
        else /* exponents in the middle */
            b->data[i] =
                (uint8_t)((u & 0x87) | (b->f.dense == DT_F8_E4M3 ? 4 + u / 256 % 4 : 6) << 3);
    }
}

/* One tile of random weights, repeated. */
static void fill(bench *b)
{
    for (size_t i = 0; i < b->tile_bytes; i++) {
        b->data[i] = (uint8_t)rng_u64(5, 0, i);
        if (b->f.kind == TILES && b->f.type == TILE_MXFP4) b->data[i] = 118 + b->data[i] % 4;
    }
    if (b->f.kind == DENSE)
        fill_dense(b);
    else
        fill_scales(b);
    for (int32_t t = 1; t < b->n_tile; t++)
        memcpy(b->data + (size_t)t * b->tile_bytes, b->data, b->tile_bytes);
}

/* Elements of a group of activations. */
static int32_t act_group(const format *f)
{
    return f->kind == TILES ? tile_elems(f->type) : 32;
}

static void setup_weights(bench *b, size_t mb)
{
    const format *f = &b->f;
    if (f->kind == AFFINE) {
        b->n_block = K / 32;
        b->tile_bytes = affine_block_bytes(f->form.code) * (size_t)b->n_block +
                        affine_head_bytes(f->form.head) * (size_t)(b->n_block / f->form.per_head);
    } else if (f->kind == DENSE) {
        b->tile_bytes = (size_t)TILE_ROWS * K * (size_t)dtype_block_bytes(f->dense);
    } else {
        b->n_block = K / tile_elems(f->type);
        b->tile_bytes = tile_bytes(f->type, b->n_block);
    }
    b->n_tile = (int32_t)((mb << 20) / b->tile_bytes);
    b->w = (weight){.type = f->dense, .rows = b->n_tile * TILE_ROWS, .cols = K, .data = b->data};
    b->w.size = b->tile_bytes * (size_t)b->n_tile;
    fill(b);
}

static void setup(bench *b, size_t mb, int32_t n_vec)
{
    const int32_t e = act_group(&b->f);
    const size_t one = e == 32 ? sizeof(a8_32) : sizeof(a8_256);
    b->n_vec = n_vec;
    b->stride = one * (size_t)n_vec;
    for (int32_t v = 0; v < n_vec; v++) {
        void *to = (uint8_t *)b->act + (size_t)v * one;
        float *x = b->x + (size_t)v * K;
        for (size_t i = 0; i < K; i++) x[i] = (float)rng_unit(9, (uint64_t)v, i) - 0.5f;
        if (e == 32)
            b->k.quant32(x, K / e, 1, to, b->stride);
        else
            b->k.quant256(x, K / e, 1, to, b->stride);
    }
    setup_weights(b, mb);
}

static void decode(bench *b, int repeats)
{
    double share[MAX_REPEAT], rate[MAX_REPEAT];
    setup(b, GEMV_MB, 1);
    for (int i = 0; i < repeats; i++) {
        const double r = timed(b, RUNS, read_task), w = timed(b, RUNS, tile_task);
        const double r2 = timed(b, RUNS, read_task);
        const double bytes = (double)b->tile_bytes * b->n_tile;
        rate[i] = bytes / w * 1e-9;
        share[i] = rate[i] / ((double)b->size * 2 / (r + r2) * 1e-9);
    }
    const double s = median(share, repeats), g = median(rate, repeats);
    printf("%-9s decode  %7.1f GB/s  %5.1f%% of read\n", b->f.name, g, 100 * s);
}

static void prefill(bench *b, int repeats, int32_t n_vec)
{
    const bool floats = b->f.kind == DENSE;
    const uint64_t a_round = floats ? b->k.peak_fma(1) : b->k.peak_dot(1);
    double share[MAX_REPEAT], rate[MAX_REPEAT];
    setup(b, GEMM_MB, n_vec);
    for (int i = 0; i < repeats; i++) {
        const double p = timed(b, b->threads, floats ? peak_fma_task : peak_task);
        const double w = timed(b, RUNS, tile_task);
        const double p2 = timed(b, b->threads, floats ? peak_fma_task : peak_task);
        const double ops = 2.0 * TILE_ROWS * b->n_tile * K * n_vec;
        rate[i] = ops / w * 1e-9;
        share[i] = rate[i] / ((double)a_round * 1e6 * b->threads * 2 / (p + p2) * 1e-9);
    }
    const double s = median(share, repeats), g = median(rate, repeats);
    printf("%-9s %2d rows %7.0f GOPS  %5.1f%% of peak\n", b->f.name, n_vec, g, 100 * s);
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
    b.x = mem_map(sizeof *b.x * K * N_VEC, MEM_MISC);
    if (!b.data || !b.act || !b.x || !b.scratch || workers_new(b.threads, &b.pool) != CAIRN_OK)
        return 1;
    memset(b.data, 1, b.size);
    workers_begin(b.pool);
    printf("level %s, %d threads, read %.1f GB/s, peak %.0f GOPS\n", isa_name(level), b.threads,
           (double)b.size / timed(&b, RUNS, read_task) * 1e-9,
           (double)b.k.peak_dot(1) * 1e6 * b.threads / timed(&b, b.threads, peak_task) * 1e-9);
    const char *only = argc > 4 && strcmp(argv[4], "-") != 0 ? argv[4] : NULL;
    const int rows = argc > 5 ? atoi(argv[5]) : 0;
    for (const format *f = formats; f < formats + N_FORMAT; f++) {
        if (only && strncmp(only, f->name, strlen(only))) continue;
        b.f = *f;
        if (rows > 0 && rows <= N_VEC) {
            prefill(&b, repeats, rows);
            continue;
        }
        decode(&b, repeats);
        prefill(&b, repeats, 4);
        prefill(&b, repeats, N_VEC);
    }
    workers_end(b.pool);
    workers_free(b.pool);
    return 0;
}
