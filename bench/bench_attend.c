/* Attention alone: decode and prefill at depth as a share of what the machine's reads or multiply-adds
   allow, both measured in the same run beside every point.
     bench_attend [threads] [isa, -: the machine's] [shapes whose name has this] [rows at most [at least]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "ops/ops_rig.h"

enum { REPEATS = 5, READ_MB = 256, MAX_LAYERS = 28, FMA_ROUNDS = 100000, FMA_TASKS = 16 };

typedef struct shape {
    const char *name;
    int32_t n_head, n_kv, dim, dv, window;
    kv_pair codec;
    bool latent;
} shape;

#define BOTH(kind, group)                                                                          \
    {                                                                                              \
        {kind, group},                                                                             \
        {                                                                                          \
            kind, group                                                                            \
        }                                                                                          \
    }
static const shape shapes[] = {{"12/2 x 128 f16", 12, 2, 128, 128, 0, BOTH(KV_F16, 0), false},
                               {"12/2 x 128 bf16", 12, 2, 128, 128, 0, BOTH(KV_BF16, 0), false},
                               {"12/2 x 128 q8", 12, 2, 128, 128, 0, BOTH(KV_Q8, 64), false},
                               {"12/2 x 128 q4", 12, 2, 128, 128, 0, BOTH(KV_Q4, 64), false},
                               {"14/2 x 64 f16", 14, 2, 64, 64, 0, BOTH(KV_F16, 0), false},
                               {"9/3 x 64 f16", 9, 3, 64, 64, 0, BOTH(KV_F16, 0), false},
                               {"9/3 x 64 q8", 9, 3, 64, 64, 0, BOTH(KV_Q8, 64), false},
                               {"9/3 x 64 q4", 9, 3, 64, 64, 0, BOTH(KV_Q4, 64), false},
                               {"4/1 x 256 f16", 4, 1, 256, 256, 0, BOTH(KV_F16, 0), false},
                               {"8/8 x 64 f16", 8, 8, 64, 64, 0, BOTH(KV_F16, 0), false},
                               {"8/8 x 64 q8", 8, 8, 64, 64, 0, BOTH(KV_Q8, 64), false},
                               {"8/8 x 64 q4", 8, 8, 64, 64, 0, BOTH(KV_Q4, 64), false},
                               {"latent 16 f16", 16, 1, 576, 512, 0, BOTH(KV_F16, 0), true},
                               {"latent 128 f16", 128, 1, 576, 512, 0, BOTH(KV_F16, 0), true}};

typedef struct limits {
    uint8_t *mem;
    const kern_linear *lin; /* its peak of multiply-adds, of registers as wide as the level's */
    uint64_t fma_ops[FMA_TASKS];
    double read_gbs, fma_gflops;
} limits;

static void read_task(void *ctx, int32_t i, int32_t i_thread)
{
    const limits *m = ctx;
    const uint8_t *p = m->mem + ((size_t)i << 20), *end = p + (1 << 20);
    (void)i_thread;
    for (; p < end; p += 256)
        __asm__ volatile("vmovups (%0), %%ymm0; vmovups 32(%0), %%ymm1; vmovups 64(%0), %%ymm2;"
                         "vmovups 96(%0), %%ymm3; vmovups 128(%0), %%ymm4; vmovups 160(%0), %%ymm5;"
                         "vmovups 192(%0), %%ymm6; vmovups 224(%0), %%ymm7" ::"r"(p)
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

static void fma_task(void *ctx, int32_t i, int32_t i_thread)
{
    limits *m = ctx;
    (void)i_thread;
    m->fma_ops[i] = m->lin->peak_fma(FMA_ROUNDS);
}

/* Of one thread the time on its CPU: what others take of the machine is left out. */
static double now_s(int32_t threads)
{
    struct timespec t;
    if (threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return clock_s();
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure(limits *m, dev *d, int32_t threads)
{
    m->lin = &d->k.lin;
    double t0 = now_s(threads);
    workers_run(d->pool, READ_MB, read_task, m);
    double t1 = now_s(threads);
    workers_run(d->pool, FMA_TASKS, fma_task, m);
    double t2 = now_s(threads);
    m->read_gbs = (double)READ_MB * (1 << 20) / (t1 - t0) / 1e9;
    uint64_t ops = 0;
    for (int32_t i = 0; i < FMA_TASKS; i++) ops += m->fma_ops[i];
    m->fma_gflops = (double)ops / (t2 - t1) / 1e9;
}

typedef struct bench {
    rig g;
    step s;
    segment *seg;
    kv_layer kv[MAX_LAYERS];
    uint8_t **blocks; /* [sequence][n_block] */
    uint8_t *const **group;
    int32_t *pos, *out_row;
    int32_t n_layer, n_block;
    uint8_t *cache;
    size_t cache_size;
} bench;

/* Rows, positions before them, layers that are walked; whether the rows are of one sequence, or of one each that
   share what is before them, or nothing. */
typedef struct load {
    int32_t rows, depth, n_layer;
    enum { ONE, SHARED, APART } company;
} load;

static const load loads[] = {
    {1, 4096, MAX_LAYERS, ONE}, {1, 16384, 8, ONE},  {4, 4096, 8, ONE},
    {512, 0, MAX_LAYERS, ONE},  {48, 4096, 4, ONE},  {512, 4096, 1, ONE},
    {8, 4096, 4, SHARED},       {8, 4096, 4, APART}, {32, 4096, 4, SHARED}};

/* Each sequence's blocks in the pool: its own, or those of the first up to depth. */
static void bench_tables(bench *b, const load *w, int32_t n_seq, size_t block)
{
    const int32_t rows = w->rows / n_seq;
    b->blocks = calloc((size_t)(n_seq * b->n_block), sizeof *b->blocks);
    b->group = calloc((size_t)n_seq, sizeof *b->group);
    b->seg = calloc((size_t)n_seq, sizeof *b->seg);
    int32_t used = 0;
    for (int32_t q = 0; q < n_seq; q++) {
        uint8_t **table = b->blocks + q * b->n_block;
        for (int32_t i = 0; i < b->n_block; i++)
            table[i] = w->company == SHARED && q > 0 && i < w->depth / KV_BLOCK
                           ? b->blocks[i]
                           : b->cache + (size_t)used++ * block;
        b->group[q] = table;
        b->seg[q] =
            (segment){.row0 = q * rows, .n_rows = rows, .pos0 = w->depth, .blocks = &b->group[q]};
        for (int32_t i = 0; i < rows; i++) b->pos[q * rows + i] = w->depth + i;
    }
}

static void bench_open(bench *b, const shape *sh, int32_t threads, const char *isa, const load *w)
{
    const int32_t rows = w->rows, depth = w->depth, n_layer = w->n_layer;
    const int32_t n_seq = w->company == ONE ? 1 : rows;
    const int32_t k = sh->n_kv * sh->dim, val_cols = sh->n_kv * sh->dv;
    const value v[] = {{sh->n_head * sh->dim, ROWS_ALL, false},
                       {k, ROWS_ALL, false},
                       {val_cols, ROWS_ALL, false},
                       {sh->n_head * sh->dv, ROWS_ALL, false}};
    op o = {.kind = OP_ATTEND, .in = {0, 1, sh->latent ? VAL_NONE : 2}, .out = {3, -1, -1}};
    o.u.attend.n_head = sh->n_head;
    o.u.attend.n_kv_head = sh->n_kv;
    o.u.attend.dk = sh->dim;
    o.u.attend.dv = sh->dv;
    o.u.attend.window = sh->window;
    o.u.attend.scale = 0.08f;
    memset(b, 0, sizeof *b);
    rig_open(&b->g, isa, threads, &o, v, 4, rows, depth + rows, NULL);
    for (val i = 0; i < 3; i++)
        for (int32_t j = 0; j < rows * v[i].cols; j++)
            rig_val(&b->g, i)[j] = rig_rand(7, (uint64_t)j);
    const kv_layer kv = {.k = sh->codec.k,
                         .v = sh->codec.v,
                         .n_kv_head = sh->n_kv,
                         .dk = sh->dim,
                         .dv = sh->dv,
                         .latent = sh->latent};
    const size_t per_head = (size_t)sh->n_kv * KV_BLOCK, layer = per_head * kv_pos_bytes(&kv);
    const size_t half = per_head * kv_row_bytes(kv.k, kv.dk);
    b->n_layer = n_layer;
    b->n_block = (depth + rows) / KV_BLOCK + 1;
    const int32_t n = w->company == APART ? b->n_block * n_seq : b->n_block + n_seq;
    b->cache_size = layer * (size_t)n_layer * (size_t)n;
    b->cache = mem_map(b->cache_size, MEM_CACHE);
    /* Any bytes but those of numbers that are not finite or so small that they slow a machine down. */
    for (size_t i = 0; i < b->cache_size; i++) b->cache[i] = (uint8_t)(0x2c + i * 37 % 8);
    for (int32_t i = 0; i < n_layer; i++) {
        b->kv[i] = kv;
        b->kv[i].k_off = (size_t)i * layer;
        b->kv[i].v_off = (size_t)i * layer + (sh->latent ? 0 : half);
    }
    b->pos = calloc((size_t)rows, sizeof *b->pos);
    bench_tables(b, w, n_seq, layer * (size_t)n_layer);
    b->s = (step){
        .n_rows = rows, .n_seg = n_seq, .pos = b->pos, .seg = b->seg, .kv = b->kv, .n_group = 1};
}

static void bench_close(bench *b)
{
    mem_unmap(b->cache, b->cache_size, MEM_CACHE);
    free(b->blocks);
    free(b->group);
    free(b->seg);
    free(b->pos);
    rig_close(&b->g);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Seconds that the limits allow for one layer. */
static double allowed(const shape *sh, const load *w, const limits *m)
{
    double pairs = 0;
    for (int32_t i = 0; i < w->rows; i++) pairs += w->depth + (w->company == ONE ? i : 0) + 1;
    const double flops = pairs * sh->n_head * (sh->dim + sh->dv) * 2;
    const size_t row =
        kv_row_bytes(sh->codec.k, sh->dim) + (sh->latent ? 0 : kv_row_bytes(sh->codec.v, sh->dv));
    const double seen = w->company == APART ? pairs : w->depth + w->rows;
    const double bytes = seen * sh->n_kv * (double)row;
    const double read = bytes / (m->read_gbs * 1e9), compute = flops / (m->fma_gflops * 1e9);
    return read > compute ? read : compute;
}

/* The share of the limit: the median over rounds, each beside its own limits; and of the best layer of
   all, beside the best limits: what the code does when nobody else runs. */
static void point(const shape *sh, int32_t threads, const char *isa, const load *w)
{
    bench b;
    limits m = {.mem = mem_map((size_t)READ_MB << 20, MEM_MISC)}, best = {0};
    double secs[REPEATS], share[REPEATS], least = 1e9;
    memset(m.mem, 1, (size_t)READ_MB << 20);
    bench_open(&b, sh, threads, isa, w);
    workers_begin(b.g.d->pool);
    for (int32_t r = 0; r < REPEATS; r++) {
        measure(&m, b.g.d, threads);
        if (m.read_gbs > best.read_gbs) best.read_gbs = m.read_gbs;
        if (m.fma_gflops > best.fma_gflops) best.fma_gflops = m.fma_gflops;
        double all = 0;
        for (int32_t i = 0; i < w->n_layer; i++) {
            double t0 = now_s(threads);
            b.g.op.u.attend.cache = i;
            backend_cpu.run(b.g.x, &b.s);
            double t = now_s(threads) - t0;
            all += t;
            if (t < least) least = t;
        }
        secs[r] = all / w->n_layer;
        share[r] = allowed(sh, w, &m) / secs[r];
    }
    workers_end(b.g.d->pool);
    qsort(secs, REPEATS, sizeof *secs, by_value);
    qsort(share, REPEATS, sizeof *share, by_value);
    printf(
        "%-16s %d thread(s) %-9s rows %3d%-7s depth %5d: median %9.1f us a layer, %3.0f%% of the "
        "limit; "
        "best %9.1f us, %3.0f%% of %4.1f GB/s, %5.1f GFLOP/s\n",
        sh->name, (int)threads, backend_cpu.isa(b.g.d), (int)w->rows,
        (const char *const[]){"", " shared", " apart"}[w->company], (int)w->depth,
        secs[REPEATS / 2] * 1e6, 100 * share[REPEATS / 2], least * 1e6,
        100 * allowed(sh, w, &best) / least, best.read_gbs, best.fma_gflops);
    fflush(stdout);
    bench_close(&b);
    mem_unmap(m.mem, (size_t)READ_MB << 20, MEM_MISC);
}

int main(int argc, char **argv)
{
    const int32_t threads = argc > 1 ? atoi(argv[1]) : 2;
    const char *isa = argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : NULL;
    const char *only = argc > 3 ? argv[3] : "";
    const int32_t most = argc > 4 ? atoi(argv[4]) : INT32_MAX;
    const int32_t least = argc > 5 ? atoi(argv[5]) : 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; strstr(shapes[i].name, only) && k < sizeof loads / sizeof *loads; k++)
            if (loads[k].rows <= most && loads[k].rows >= least)
                point(&shapes[i], threads, isa, &loads[k]);
    return 0;
}
