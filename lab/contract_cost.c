/* What the one-numerics contract costs: its kernels beside the free ones of free.h, on the same data, in turns.
     build/lab/contract_cost [repeats]
   Each repeat times both and the machine's limit (dot loop on registers, read, FMA loop) in a row; a figure
   is the median over repeats of the ratio of the two times, and the share of the limit that the best time
   of each reaches.  One thread, its CPU time.  Both results are compared with one another first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/kern/kern.h"
#include "base/alloc.h"
#include "base/half.h"
#include "base/rng.h"
#include "free.h"

enum {
    K = 1536,
    N_BLOCK = K / 256,
    GEMV_TILES = 2048, /* 56 MB, beyond most caches */
    N_VEC = TILE_MAX_VEC,
    N_POS = 4096,
    DIM = FREE_DIM,
    HEADS = FREE_HEADS,
    MAX_REPEAT = 401,
    PEAK_ROUNDS = 20000
};

typedef struct lab {
    kern k;
    uint8_t *tile; /* GEMV_TILES of them */
    size_t tile_bytes;
    int32_t n_tile, n_vec;
    a8_256 *act;
    free_act *free_act;
    float *free_d;
    uint16_t *key, *value;
    float *q;
    float *y, *free_y;
    void *panel;
    double ops, bytes; /* of one run */
} lab;

static void *map(size_t n)
{
    void *p = mem_map(n, MEM_MISC);
    if (!p) exit(1);
    return p;
}
static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static float random_at(uint64_t stream, size_t i)
{
    return (float)rng_unit(stream, 1, i) - 0.5f;
}

static void contract_linear(lab *l)
{
    for (int32_t i = 0; i < l->n_tile; i++)
        l->k.lin.tile[TILE_Q4_K](l->tile + (size_t)i * l->tile_bytes, N_BLOCK, l->act,
                                 sizeof *l->act * (size_t)l->n_vec, l->n_vec, 1, l->y, l->panel);
}
static void free_linear(lab *l)
{
    for (int32_t i = 0; i < l->n_tile; i++) {
        const uint8_t *tile = l->tile + (size_t)i * l->tile_bytes;
        if (l->n_vec == 1)
            free_gemv_q4_k(tile, N_BLOCK, l->free_act, l->free_d[0], l->free_y);
        else
            free_gemm_q4_k(tile, N_BLOCK, l->free_act, l->free_d, l->n_vec, l->free_y, l->panel);
    }
}

/* ATTEND of docs/numerics.md for one row and whole splits, as cpu_attend_split.c calls the kernels. */
static void contract_attend(lab *l)
{
    enum { SPLIT = ATTEND_SPLIT, N_SPLIT = N_POS / SPLIT };
    static float s[HEADS][SPLIT] __attribute__((aligned(64)));
    static float o[N_SPLIT][HEADS][DIM] __attribute__((aligned(64)));
    float m[HEADS][N_SPLIT], sum[HEADS][N_SPLIT];
    const kern_vec *k = &l->k.vec;
    for (int c = 0; c < N_SPLIT; c++) {
        const uint16_t *key = l->key + (size_t)c * SPLIT * DIM;
        const uint16_t *rows = l->value + (size_t)c * SPLIT * DIM;
        kern_mm qk = {s[0],  l->q,       key, SPLIT, DIM,   16,    16 * DIM,
                      HEADS, SPLIT / 16, DIM, 0,     false, {rows}};
        kern_mm pv = {o[c][0],
                      s[0],
                      rows,
                      DIM,
                      SPLIT,
                      DIM,
                      16,
                      HEADS,
                      DIM / 16,
                      SPLIT,
                      0,
                      false,
                      {key + SPLIT * DIM}};
        k->mm[KV_F16](&qk);
        for (int h = 0; h < HEADS; h++)
            sum[h][c] = k->softmax(s[h], 0, SPLIT - 1, 0.08f, 0.0f, &m[h][c]);
        k->mm[KV_F16](&pv);
    }
    for (int h = 0; h < HEADS; h++) {
        float top = m[h][0], total = 0.0f, *out = l->y + h * DIM;
        for (int c = 1; c < N_SPLIT; c++) top = m[h][c] > top ? m[h][c] : top;
        memset(out, 0, sizeof *out * DIM);
        for (int c = 0; c < N_SPLIT; c++) {
            const float w = expf(m[h][c] - top);
            total = fmaf(w, sum[h][c], total);
            k->axpy(out, w, o[c][h], DIM);
        }
        k->divide(out, out, total, DIM);
    }
}
static void free_attention(lab *l)
{
    free_attend(l->q, l->key, l->value, N_POS, 0.08f, l->free_y);
}

static void dot_peak(lab *l)
{
    l->k.lin.peak_dot(PEAK_ROUNDS);
}
static void fma_peak(lab *l)
{
    l->k.lin.peak_fma(PEAK_ROUNDS);
}
static void read_all(lab *l)
{
    volatile uint64_t sink = l->k.lin.read_sum(l->tile, l->tile_bytes * GEMV_TILES / 4096 * 4096);
    (void)sink;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Times the contract's kernel, the free one and the limit in turns; `limit`: what the limit's run does. */
static void compare(lab *l, const char *name, int repeats, void (*contract)(lab *),
                    void (*free_one)(lab *), void (*peak)(lab *), double work, double limit,
                    size_t n_y)
{
    static double ratio[MAX_REPEAT];
    double best[3] = {1e9, 1e9, 1e9}, worst = 0, most = 0;
    contract(l), free_one(l);
    for (size_t i = 0; i < n_y; i++) {
        most = fmax(most, fabs((double)l->y[i]));
        worst = fmax(worst, fabs((double)l->y[i] - (double)l->free_y[i]));
    }
    for (int i = 0; i < repeats; i++) {
        double t[4] = {cpu_s()};
        (i % 2 ? free_one : contract)(l);
        t[1] = cpu_s();
        (i % 2 ? contract : free_one)(l);
        t[2] = cpu_s();
        peak(l);
        t[3] = cpu_s();
        const double c = i % 2 ? t[2] - t[1] : t[1] - t[0], f = i % 2 ? t[1] - t[0] : t[2] - t[1];
        ratio[i] = c / f;
        best[0] = fmin(best[0], c), best[1] = fmin(best[1], f),
        best[2] = fmin(best[2], t[3] - t[2]);
    }
    qsort(ratio, (size_t)repeats, sizeof *ratio, by_value);
    const double top = limit / best[2];
    printf("%-18s contract %5.1f%%  free %5.1f%% of the limit;  contract / free %.3f (%.3f best);  "
           "apart by %.1e of the largest\n",
           name, 100 * work / best[0] / top, 100 * work / best[1] / top, ratio[repeats / 2],
           best[0] / best[1], worst / most);
}

/* Random codes, scales of 0.001; one tile many times. */
static void fill_tiles(lab *l)
{
    const uint16_t h = f16_from_f32(0.001f);
    l->tile_bytes = tile_bytes(TILE_Q4_K, N_BLOCK);
    l->tile = map(l->tile_bytes * GEMV_TILES + TILE_SLACK);
    for (size_t i = 0; i < l->tile_bytes; i++) l->tile[i] = (uint8_t)rng_u64(1, 1, i);
    for (size_t at = 0; at < l->tile_bytes; at += tile_block_bytes(TILE_Q4_K) / 2) {
        for (size_t i = 0; i < 32; i++) memcpy(l->tile + at + 2 * i, &h, 2);
    }
    for (size_t t = 1; t < GEMV_TILES; t++)
        memcpy(l->tile + t * l->tile_bytes, l->tile, l->tile_bytes);
}

/* Where a8_256 keeps the sum of each 32. */
static const int pair_order[8] = {0, 2, 1, 3, 4, 6, 5, 7};

static void fill_row(lab *l, int32_t v)
{
    float x[K], most = 0.0f;
    for (size_t i = 0; i < K; i++) x[i] = random_at(7 + (uint64_t)v, i);
    for (size_t i = 0; i < K; i++) most = fmaxf(most, fabsf(x[i]));
    l->k.lin.quant256(x, N_BLOCK, 1, l->act + v, sizeof *l->act * (size_t)l->n_vec);
    l->free_d[v] = most / 127.0f;
    for (int32_t b = 0; b < N_BLOCK; b++) {
        free_act *a = l->free_act + (size_t)b * (size_t)l->n_vec + v;
        for (int j = 0; j < 8; j++) {
            int32_t sum = 0;
            for (int i = 32 * j; i < 32 * j + 32; i++) {
                a->q[i] = (int8_t)lrintf(x[256 * b + i] * (127.0f / most));
                sum += a->q[i];
            }
            a->s[pair_order[j]] = (int16_t)sum;
        }
    }
}
static void fill_rows(lab *l, int32_t n_vec)
{
    l->n_vec = n_vec;
    for (int32_t v = 0; v < n_vec; v++) fill_row(l, v);
}

int main(int argc, char **argv)
{
    lab l = {0};
    int repeats = argc > 1 ? atoi(argv[1]) : 101;
    if (!isa_runs(ISA_AVX2)) return 1;
    if (repeats > MAX_REPEAT) repeats = MAX_REPEAT;
    kern_init(&l.k, ISA_AVX2);
    fill_tiles(&l);
    l.act = map(sizeof *l.act * N_VEC * N_BLOCK);
    l.free_act = map(sizeof *l.free_act * N_VEC * N_BLOCK);
    l.free_d = map(sizeof *l.free_d * N_VEC);
    l.y = map(sizeof *l.y * TILE_ROWS * N_VEC);
    l.free_y = map(sizeof *l.y * TILE_ROWS * N_VEC);
    l.panel = map(2 * TILE_PANEL);
    const size_t cache = (size_t)N_POS * DIM;
    l.key = map(sizeof *l.key * (cache + 65536));
    l.value = map(sizeof *l.value * (cache + 65536));
    l.q = map(sizeof *l.q * HEADS * DIM);
    for (size_t i = 0; i < cache; i++) {
        l.key[i] = f16_from_f32(random_at(2, i));
        l.value[i] = f16_from_f32(random_at(3, i));
    }
    for (size_t i = 0; i < HEADS * DIM; i++) l.q[i] = 4.0f * random_at(4, i);

    const double peak = (double)l.k.lin.peak_dot(1) * PEAK_ROUNDS;
    l.n_tile = 1;
    fill_rows(&l, N_VEC);
    compare(&l, "Q4_K GEMM, 96 rows", repeats, contract_linear, free_linear, dot_peak,
            2.0 * TILE_ROWS * K * N_VEC, peak, (size_t)TILE_ROWS * N_VEC);
    fill_rows(&l, 1);
    l.n_tile = GEMV_TILES;
    compare(&l, "Q4_K GEMV", repeats, contract_linear, free_linear, read_all, 1, 1, TILE_ROWS);
    compare(&l, "attention, 4096", repeats, contract_attend, free_attention, fma_peak,
            4.0 * HEADS * DIM * N_POS, (double)l.k.lin.peak_fma(1) * PEAK_ROUNDS, HEADS * DIM);
    return 0;
}
