/* The reference kernels of LINEAR against products in double precision of dequantised weights, within
   the error that 8-bit activations and f32 sums may make, computed from the data. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "backend/cpu/kern/kern.h"
#include "backend/cpu/tiles.h"
#include "base/num.h"
#include "kern/linear_data.h"

enum { ROWS = 37, VEC = 3 };

/* Half a step of each activation, times its weight: the bound of what rounding may do. */
static double step_of(const float *x, int group, int terms)
{
    double amax = 0;
    for (int i = 0; i < group; i++) amax = fmax(amax, fabs((double)x[i]));
    return terms == 1 ? amax / 254 : amax / 254 / 254;
}

static void check_tile(tile_type t, int group, int terms, fill f, int n_stored)
{
    if (left_out()) return;
    const dtype dt = tile_dtype(t);
    const int cols = dtype_block(dt) * n_stored, n_block = cols / tile_elems(t);
    const int n_group = cols / group;
    const size_t row = (size_t)n_stored * (size_t)dtype_block_bytes(dt);
    uint8_t *w = malloc(row * ROWS), *tile = aligned_alloc(64, tile_bytes(t, n_block));
    float *x = malloc(sizeof *x * (size_t)(cols * VEC)), *wf = malloc(sizeof *wf * (size_t)cols);
    const size_t size = group == 32 ? sizeof(a8_32) : sizeof(a8_256);
    const size_t stride = size * (size_t)(VEC * terms);
    uint8_t *act = aligned_alloc(64, round_up(stride * (size_t)n_group, 64));
    static _Alignas(64) float y[VEC * TILE_ROWS];
    static _Alignas(64) uint8_t panel[TILE_PANEL];
    kern_linear k;
    kern_linear_ref(&k);
    fill_weights(dt, f, 1 + (uint64_t)t, (size_t)(ROWS * n_stored), w);
    fill_floats(f, 2, (size_t)(cols * VEC), x);
    for (int v = 0; v < VEC; v++) {
        void *to = act + (size_t)v * size * (size_t)terms;
        if (group == 32)
            k.quant32(x + v * cols, n_group, terms, to, stride);
        else
            k.quant256(x + v * cols, n_group, terms, to, stride);
    }
    for (int r0 = 0; r0 < ROWS; r0 += TILE_ROWS) {
        const int n = ROWS - r0 < TILE_ROWS ? ROWS - r0 : TILE_ROWS;
        tiles_pack(t, w + (size_t)r0 * row, row, n, n_block, tile);
        (group < tile_elems(t) ? k.fine : k.tile)[t](tile, n_block, act, stride, VEC * terms, terms,
                                                     y, panel);
        for (int r = 0; r < n; r++) {
            dtype_to_f32(dt, w + (size_t)(r0 + r) * row, wf, (size_t)cols);
            for (int v = 0; v < VEC; v++) {
                double sum = 0, mag = 0, err = 0;
                for (int i = 0; i < cols; i++) {
                    sum += (double)wf[i] * (double)x[v * cols + i];
                    /* Minima cancel against scaled weights: their parts round apart. */
                    mag += 4 * fabs((double)wf[i]) * fabs((double)x[v * cols + i]) + 1e-9;
                    err += fabs((double)wf[i]) *
                           step_of(x + v * cols + i / group * group, group, terms);
                }
                const double bound = err * 1.001 + mag * (n_group * terms + 8) * 0x1p-24 +
                                     (terms == 2 ? 0x1p-20 * mag : 0);
                const double off = fabs((double)y[v * TILE_ROWS + r] - sum);
                if (off > bound)
                    fail_msg("%s by %d, row %d: %g off, bound %g", dtype_name(dt), group, r, off,
                             bound);
            }
        }
        for (int r = n; r < TILE_ROWS; r++) assert_true(y[r] == 0.0f);
    }
    free(w), free(tile), free(x), free(wf), free(act);
}

static void check_groups(tile_type t, int group)
{
    for (int terms = 1; terms <= 2; terms++) {
        check_tile(t, group, terms, FILL_RANDOM, 1);
        check_tile(t, group, terms, FILL_RANDOM, 5);
        check_tile(t, group, terms, FILL_MIXED, 3);
    }
}

static void test_tiles(void **state)
{
    kern_linear k;
    (void)state;
    kern_linear_ref(&k);
    for (int t = 0; t < TILE_COUNT; t++) {
        check_groups((tile_type)t, tile_elems((tile_type)t));
        if (k.fine[t]) check_groups((tile_type)t, 32);
    }
}

static void test_quant_limits(void **state)
{
    float x[32] = {0};
    a8_32 a[2];
    (void)state;
    {
        kern_linear k;
        kern_linear_ref(&k);
        k.quant32(x, 1, 2, a, sizeof a);
        assert_true(a[0].d == 0.0f && a[0].q[0] == 0 && a[1].d == 0.0f);
        x[3] = -127.0f, x[4] = 2.5f, x[5] = 3.5f, x[6] = -2.5f;
        k.quant32(x, 1, 2, a, sizeof a);
        assert_true(a[0].d == 1.0f);
        assert_int_equal(a[0].q[3], -127);
        assert_int_equal(a[0].q[4], 2); /* ties to even */
        assert_int_equal(a[0].q[5], 4);
        assert_int_equal(a[0].q[6], -2);
        assert_true(a[1].d == 0.5f / 127.0f);
        assert_int_equal(a[1].q[4], 127);
        assert_int_equal(a[1].q[5], -127);
        assert_true(a[0].s == -127.0f + 2 + 4 - 2);
        assert_true(a[0].s16[0] == -123 && a[0].s16[1] == 0 && a[0].n32_16[0] == 32 * 123);
        x[9] = INFINITY;
        k.quant32(x, 1, 1, a, sizeof a);
        assert_true(isnan(a[0].d) && a[0].q[3] == 0);
        x[9] = NAN;
        k.quant32(x, 1, 2, a, sizeof a);
        assert_true(isnan(a[0].d) && a[1].d == 0.0f);
        x[9] = 0x1p-149f, x[3] = x[4] = x[5] = x[6] = 0.0f;
        k.quant32(x, 1, 1, a, sizeof a);
        assert_true(a[0].d == 0.0f && a[0].q[9] == 0);
    }
}

static void test_dense(void **state)
{
    enum { K = 77, N_W = 5, N_X = 3 };
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const size_t e = (size_t)dtype_block_bytes(types[i]);
        uint8_t w[N_W * K * 4 + 1];
        float x[N_X * K], y[N_X * 8], wf[K];
        kern_linear k;
        kern_linear_ref(&k);
        fill_weights(types[i], FILL_RANDOM, 5, (size_t)N_W * K, w + 1);
        fill_floats(FILL_MIXED, 6, (size_t)N_X * K, x);
        kern_dense_fn *f = i == 0 ? k.dense_f32 : i == 1 ? k.dense_f16 : k.dense_bf16;
        f(w + 1, e * K, N_W, x, K, N_X, K, y, 8);
        for (int r = 0; r < N_W; r++) {
            dtype_to_f32(types[i], w + 1 + (size_t)r * K * e, wf, K);
            for (int t = 0; t < N_X; t++) {
                double sum = 0, mag = 0;
                for (int c = 0; c < K; c++) {
                    sum += (double)wf[c] * (double)x[t * K + c];
                    mag += fabs((double)wf[c] * (double)x[t * K + c]);
                }
                assert_true(fabs((double)y[t * 8 + r] - sum) <= (K + 2) * 0x1p-24 * mag);
            }
        }
    }
}

/* Twelve chains of multiply-adds, two operations each, over the lanes of the level's registers: what bench
   divides by.  No rounds are none, and rounds add up. */
static void test_peak_fma(void **state)
{
    static const uint64_t lanes[ISA_COUNT] = {
        [ISA_AVX2] = 8, [ISA_AVX512] = 16, [ISA_AVX512VNNI] = 16, [ISA_AMX] = 16};
    (void)state;
    for (isa_level level = ISA_REF; level < ISA_COUNT; level++) {
        kern k;
        if (!isa_runs(level)) continue;
        kern_init(&k, level);
        const uint64_t one = k.lin.peak_fma(1);
        assert_true(one > 0 && k.lin.peak_fma(0) == 0);
        assert_int_equal(k.lin.peak_fma(1000), 1000 * one);
        if (lanes[level]) assert_int_equal(one, 12 * 2 * lanes[level]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles), cmocka_unit_test(test_quant_limits),
        cmocka_unit_test(test_dense), cmocka_unit_test(test_peak_fma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
