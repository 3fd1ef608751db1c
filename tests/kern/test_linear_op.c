/* The op LINEAR: every row of every step equals what the kernels give for that row alone, whatever the
   number of rows and threads, at every level of this machine; bias, then residual, come last. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/tiles.h"
#include "base/far.h"
#include "base/num.h"
#include "kern/linear_data.h"

enum { MAX_ROWS = 101, MAX_W = 3 };

/* One op on one device. */
typedef struct rig {
    dev d;
    arena a;
    prog p;
    plan pl;
    exec x;
    weight w[MAX_W];
    float *bias[MAX_W];
    uint8_t *data[MAX_W];
    val in, res;
    float *in_f, *res_f;
    op o;
    uint8_t with; /* of the op: no other goes with it */
} rig;

typedef struct shape {
    dtype type;
    int32_t rows;
    weight_class klass;
    bool bias;
} shape;

static float *value_at(rig *g, val v)
{
    return (float *)(void *)(g->x.values + g->pl.offset[v]);
}

static void rig_init(rig *g, const kern_linear *k, cairn_compute compute, int32_t threads,
                     int32_t cols, const shape *s, int32_t n_w, bool residual)
{
    cairn_diag dg = {0};
    memset(g, 0, sizeof *g);
    g->d.k.lin = *k;
    kern_vec_ref(&g->d.k.vec);
    g->d.compute = compute;
    assert_ok(workers_new(threads, &g->d.pool));
    arena_init(&g->a, MEM_MISC);
    prog_init(&g->p, &g->a);
    g->o = (op){.kind = OP_LINEAR, .n_w = n_w};
    for (int i = 0; i < OP_MAX_IN; i++) g->o.in[i] = VAL_NONE;
    for (int i = 0; i < OP_MAX_OUT; i++) g->o.out[i] = VAL_NONE;
    g->pl.offset = calloc(8, sizeof *g->pl.offset);
    g->pl.p = &g->p;
    g->p.op = &g->o;
    g->p.n_op = 1;
    size_t at = 0;
    g->in = prog_value(&g->p, cols);
    g->pl.offset[g->in] = at;
    at += sizeof(float) * (size_t)cols * MAX_ROWS;
    for (int i = 0; i < n_w; i++) {
        size_t n = 0;
        weight *w = &g->w[i];
        *w = (weight){.name = "w",
                      .type = s[i].type,
                      .rows = s[i].rows,
                      .cols = cols,
                      .klass = s[i].klass,
                      .matmul = true};
        assert_true(dtype_bytes(w->type, (uint64_t)cols * (uint64_t)w->rows, &w->size));
        g->data[i] = malloc(w->size);
        n = (size_t)cols * (size_t)w->rows / (size_t)dtype_block(w->type);
        fill_weights(w->type, FILL_RANDOM, 40 + (uint64_t)i, n, g->data[i]);
        w->data = g->data[i];
        if (s[i].bias) {
            g->bias[i] = malloc(sizeof(float) * (size_t)w->rows);
            fill_floats(FILL_RANDOM, 50, (size_t)w->rows, g->bias[i]);
            w->bias = g->bias[i];
        }
        assert_ok(cpu_weight_adopt(&g->d, w, &dg));
        g->o.w[i] = w;
        g->o.out[i] = prog_value(&g->p, w->rows);
        g->pl.offset[g->o.out[i]] = at;
        at += sizeof(float) * (size_t)w->rows * MAX_ROWS;
    }
    g->o.in[0] = g->in;
    if (residual) {
        g->res = g->o.in[1] = prog_value(&g->p, s[0].rows);
        g->pl.offset[g->res] = at;
        at += sizeof(float) * (size_t)s[0].rows * MAX_ROWS;
    }
    const cpu_need need = cpu_linear_need(&g->d, &g->o, MAX_ROWS);
    g->x = (exec){.d = &g->d,
                  .pl = &g->pl,
                  .with = &g->with,
                  .shared_size = need.shared,
                  .thread_size = need.thread};
    g->x.values = aligned_alloc(64, (at + 63) / 64 * 64);
    g->x.shared = aligned_alloc(64, round_up(need.shared + 64, 64));
    g->x.thread = aligned_alloc(64, (need.thread * (size_t)threads + 63) / 64 * 64);
    memset(g->x.values, 0, at);
    fill_floats(FILL_MIXED, 60, (size_t)cols * MAX_ROWS, value_at(g, g->in));
    if (residual) fill_floats(FILL_RANDOM, 61, (size_t)s[0].rows * MAX_ROWS, value_at(g, g->res));
}

static void rig_free(rig *g)
{
    for (int i = 0; i < g->o.n_w; i++) {
        cpu_weight_release(&g->d, &g->w[i]);
        free(g->data[i]), free(g->bias[i]);
    }
    assert_int_equal(g->d.resident, 0);
    free(g->pl.offset), free(g->x.values), free(g->x.shared), free(g->x.thread);
    workers_free(g->d.pool);
    arena_deinit(&g->a);
}

static void rig_run(rig *g, int32_t n_rows)
{
    const step s = {.n_rows = n_rows};
    cpu_run r = {.x = &g->x, .s = &s};
    cpu_linear(&r, &g->o);
    assert_int_equal(far_ahead, FAR_AHEAD);
}

static const int32_t row_counts[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                     12, 13, 17, 31, 33, 40, 66, 97, MAX_ROWS};

/* Row by row on one thread of the reference, then every level, count and number of threads. */
static void check_op(cairn_compute compute, int32_t cols, const shape *s, int32_t n_w,
                     bool residual)
{
    if (left_out()) return;
    rig g;
    kern_linear k;
    float *want[MAX_W];
    level_kernels(0, &k);
    rig_init(&g, &k, compute, 1, cols, s, n_w, residual);
    for (int i = 0; i < n_w; i++) want[i] = malloc(sizeof(float) * (size_t)s[i].rows * MAX_ROWS);
    float *in = value_at(&g, g.in), *res = residual ? value_at(&g, g.res) : NULL;
    float *in0 = malloc(sizeof(float) * (size_t)cols),
          *res0 = malloc(sizeof(float) * (size_t)s[0].rows);
    memcpy(in0, in, sizeof(float) * (size_t)cols);
    if (res) memcpy(res0, res, sizeof(float) * (size_t)s[0].rows);
    for (int32_t r = 0; r < MAX_ROWS; r++) {
        memcpy(in, in + (size_t)r * (size_t)cols, sizeof(float) * (size_t)cols);
        if (res)
            memcpy(res, res + (size_t)r * (size_t)s[0].rows, sizeof(float) * (size_t)s[0].rows);
        if (r == 0) {
            memcpy(in, in0, sizeof(float) * (size_t)cols);
            if (res) memcpy(res, res0, sizeof(float) * (size_t)s[0].rows);
        }
        rig_run(&g, 1);
        for (int i = 0; i < n_w; i++)
            memcpy(want[i] + (size_t)r * (size_t)s[i].rows, value_at(&g, g.o.out[i]),
                   sizeof(float) * (size_t)s[i].rows);
    }
    rig_free(&g);
    for (int level = 0; level < N_LEVEL; level++) {
        if (!level_kernels(level, &k)) continue;
        for (int32_t threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
            rig_init(&g, &k, compute, threads, cols, s, n_w, residual);
            workers_begin(g.d.pool);
            for (size_t c = 0; c < sizeof row_counts / sizeof *row_counts; c++) {
                if (threads > 2 && row_counts[c] % 2 == 0) continue;
                rig_run(&g, row_counts[c]);
                for (int i = 0; i < n_w; i++) {
                    const float *got = value_at(&g, g.o.out[i]);
                    if (!same_bits(got, want[i], (size_t)row_counts[c] * (size_t)s[i].rows))
                        fail_msg("%s: %s, %d rows, %d threads", level_name(level),
                                 dtype_name(s[i].type), row_counts[c], threads);
                }
            }
            workers_end(g.d.pool);
            rig_free(&g);
        }
    }
    for (int i = 0; i < n_w; i++) free(want[i]);
    free(in0), free(res0);
}

static void test_mixed(void **state)
{
    (void)state;
    const shape qkv[] = {{DT_Q4_K, 70, WEIGHT_PLAIN, true},
                         {DT_Q5_0, 32, WEIGHT_KV, false},
                         {DT_Q6_K, 33, WEIGHT_HEAD, true}};
    check_op(CAIRN_COMPUTE_FAST, 512, qkv, 3, false);
    const shape dense[] = {{DT_BF16, 35, WEIGHT_PLAIN, false},
                           {DT_F32, 1, WEIGHT_PLAIN, true},
                           {DT_NVFP4, 9, WEIGHT_HEAD, false}};
    check_op(CAIRN_COMPUTE_FAST, 192, dense, 3, false);
}

/* Classes that meet activations of their own form. */
static void test_classes(void **state)
{
    static const dtype types[] = {DT_Q4_K, DT_Q5_K, DT_Q6_K, DT_Q2_K, DT_Q4_1};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const shape s = {types[i], 66, types[i] == DT_Q4_1 ? WEIGHT_KV : WEIGHT_FFN_DOWN, false};
        check_op(CAIRN_COMPUTE_FAST, 512, &s, 1, true);
    }
    /* Ten tiles through three parts of K. */
    const shape parts = {DT_Q6_K, 300, WEIGHT_FFN_DOWN, false};
    check_op(CAIRN_COMPUTE_FAST, 1280, &parts, 1, true);
}

/* The groups and terms that docs/numerics.md names for each class, one row at the reference. */
static void test_forms(void **state)
{
    static const struct {
        dtype type;
        weight_class klass;
        int32_t group, terms;
    } want[] = {
        {DT_Q4_1, WEIGHT_PLAIN, 32, 1},    {DT_Q4_1, WEIGHT_FFN_DOWN, 32, 1},
        {DT_Q4_1, WEIGHT_ATTN_OUT, 32, 1}, {DT_Q4_1, WEIGHT_KV, 32, 2},
        {DT_Q4_1, WEIGHT_HEAD, 32, 2},     {DT_NVFP4, WEIGHT_FFN_DOWN, 32, 1},
        {DT_NVFP4, WEIGHT_KV, 32, 2},      {DT_Q6_K, WEIGHT_PLAIN, 256, 1},
        {DT_Q6_K, WEIGHT_KV, 256, 1},      {DT_Q6_K, WEIGHT_HEAD, 256, 2},
        {DT_Q6_K, WEIGHT_FFN_DOWN, 32, 1}, {DT_Q3_K, WEIGHT_FFN_DOWN, 256, 2},
    };
    enum { COLS = 512, MOST = 2 };
    (void)state;
    kern_linear k;
    level_kernels(0, &k);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        static a8_32 a32[COLS / 32 * MOST];
        static a8_256 a256[COLS / 256 * MOST];
        float y[TILE_ROWS];
        rig g;
        tile_type t;
        const shape s = {want[i].type, TILE_ROWS, want[i].klass, false};
        const int32_t terms = want[i].terms;
        rig_init(&g, &k, CAIRN_COMPUTE_FAST, 1, COLS, &s, 1, false);
        rig_run(&g, 1);
        const tiles *w = g.w[0].dev;
        assert_true(tiles_type(want[i].type, &t));
        const bool fine = want[i].group < tile_elems(t);
        if (want[i].group == 32) {
            const size_t stride = sizeof *a32 * (size_t)terms;
            k.quant32(value_at(&g, g.in), COLS / 32, terms, a32, stride);
            (fine ? k.fine : k.tile)[t](w->data, w->n_block, a32, stride, terms, terms, y, NULL);
        } else {
            const size_t stride = sizeof *a256 * (size_t)terms;
            k.quant256(value_at(&g, g.in), COLS / 256, terms, a256, stride);
            k.tile[t](w->data, w->n_block, a256, stride, terms, terms, y, NULL);
        }
        if (!same_bits(value_at(&g, g.o.out[0]), y, TILE_ROWS))
            fail_msg("%s of class %d: not %d terms in groups of %d", dtype_name(want[i].type),
                     want[i].klass, terms, want[i].group);
        rig_free(&g);
    }
}

static void test_each(void **state)
{
    static const dtype types[] = {DT_Q4_0,  DT_Q4_1,    DT_Q5_0,   DT_Q5_1,    DT_Q8_0,  DT_IQ4_NL,
                                  DT_Q2_K,  DT_Q3_K,    DT_IQ4_XS, DT_Q4_K,    DT_Q5_K,  DT_Q6_K,
                                  DT_MXFP4, DT_NVFP4,   DT_IQ3_S,  DT_IQ2_XXS, DT_IQ1_M, DT_TQ2_0,
                                  DT_F16,   DT_F8_E4M3, DT_F8_E5M2};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const shape s = {types[i], 66, i % 2 ? WEIGHT_HEAD : WEIGHT_PLAIN, i % 3 == 0};
        check_op(CAIRN_COMPUTE_FAST, 256, &s, 1, true);
    }
}

static void test_f32_mode(void **state)
{
    (void)state;
    const shape s[] = {{DT_Q4_K, 37, WEIGHT_HEAD, true}, {DT_Q8_0, 64, WEIGHT_PLAIN, false}};
    check_op(CAIRN_COMPUTE_F32, 256, s, 2, false);
}

static uintptr_t tile_at(const rig *g, int32_t unit)
{
    int i = 0;
    for (; unit >= ceil_div(g->w[i].rows, TILE_ROWS); i++)
        unit -= ceil_div(g->w[i].rows, TILE_ROWS);
    const tiles *t = g->w[i].dev;
    return (uintptr_t)t->data + (size_t)unit * t->tile_bytes;
}

/* A thread alone fetches one stream: each tile while an earlier one is met, then the first of the next product, here
   the same again. */
static void test_stream(void **state)
{
    const shape s[] = {{DT_Q4_1, 2000, WEIGHT_PLAIN, false}, {DT_Q4_1, 70, WEIGHT_PLAIN, false}};
    const step one = {.n_rows = 1};
    rig g;
    kern_linear k;
    cpu_shares cut;
    (void)state;
    level_kernels(0, &k);
    rig_init(&g, &k, CAIRN_COMPUTE_FAST, 1, 256, s, 2, false);
    const cpu_run r = {.x = &g.x, .s = &one};
    const int32_t n = ceil_div(s[0].rows, TILE_ROWS) + ceil_div(s[1].rows, TILE_ROWS);
    const size_t size = ((const tiles *)g.w[0].dev)->tile_bytes;
    (void)cpu_shares_cut(&r, n, &cut);
    assert_int_equal(cpu_shares_far(&r, &cut, g.o.w, 0), FAR_AHEAD);
    g.d.k.lin.leads = true;
    const int32_t lead = (int32_t)(cpu_shares_far(&r, &cut, g.o.w, 0) / size);
    assert_true(lead >= 1 && lead <= n / 2);
    for (int32_t u = 0; u < n; u++) {
        const uintptr_t to = tile_at(&g, u) + cpu_shares_far(&r, &cut, g.o.w, u);
        assert_true(to == (u + lead < n ? tile_at(&g, u + lead) : tile_at(&g, u + lead - n)));
    }
    rig_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),    cmocka_unit_test(test_classes),
        cmocka_unit_test(test_forms),    cmocka_unit_test(test_each),
        cmocka_unit_test(test_f32_mode), cmocka_unit_test(test_stream)};
    for (int i = 0; i < N_LEVEL; i++) {
        kern_linear k;
        if (!level_kernels(i, &k)) printf("skipped: this machine has no %s\n", level_name(i));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
