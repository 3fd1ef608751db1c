/* Every level's kernels of LINEAR against the reference, bit for bit: each format, any number of vectors,
   one and two terms, values at their extremes, NaN and infinity; inputs that end at an unmapped page,
   outputs with canaries. */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "backend/cpu/tiles.h"
#include "kern/fence.h"
#include "kern/linear_data.h"

enum { MAX_VEC = TILE_MAX_VEC, MAX_BLOCK = 3 };
typedef struct guarded {
    uint8_t *ptr;
    size_t size;
} guarded;

static guarded grab(size_t size)
{
    return (guarded){fence_new(size), size};
}
static void drop(guarded *g)
{
    fence_free(g->ptr, g->size);
}

static const float CANARY = 12345.0f;

static kern_linear ref, now;
static const char *level;
static int least; /* vectors */

static void same_act(int group, const float *x, int n_block, int terms, uint8_t *want, uint8_t *got,
                     size_t stride)
{
    if (group == 32) {
        ref.quant32(x, n_block, terms, (a8_32 *)(void *)want, stride);
        now.quant32(x, n_block, terms, (a8_32 *)(void *)got, stride);
    } else {
        ref.quant256(x, n_block, terms, (a8_256 *)(void *)want, stride);
        now.quant256(x, n_block, terms, (a8_256 *)(void *)got, stride);
    }
}

/* Equal but for the bits of a NaN in d and s. */
static bool same_groups(int group, const uint8_t *a, const uint8_t *b, size_t n)
{
    const size_t one = group == 32 ? sizeof(a8_32) : sizeof(a8_256);
    const size_t d = group == 32 ? offsetof(a8_32, d) : offsetof(a8_256, d);
    const size_t n_float = group == 32 ? 2 : 1, end = d + 4 * n_float; /* s follows d */
    for (size_t i = 0; i < n; i++, a += one, b += one) {
        float x[2], y[2];
        memcpy(x, a + d, 4 * n_float), memcpy(y, b + d, 4 * n_float);
        if (!same_bits(x, y, n_float) || memcmp(a, b, d) || memcmp(a + end, b + end, one - end))
            return false;
    }
    return true;
}

/* `poison`: vector 1 holds a NaN, vector 2 an infinity.  group: of the activations. */
static void check_group(tile_type t, int group, int n_block, int rows, int terms, fill fw, fill fx,
                        bool poison)
{
    if (left_out()) return;
    const dtype dt = tile_dtype(t);
    const bool fine = group < tile_elems(t);
    const int n_stored = n_block, cols = dtype_block(dt) * n_stored;
    const int n_vec = rows * terms, n_group = cols / group;
    n_block = cols / tile_elems(t);
    const size_t one = group == 32 ? sizeof(a8_32) : sizeof(a8_256), stride = one * (size_t)n_vec;
    const size_t row = (size_t)n_stored * (size_t)dtype_block_bytes(dt);
    const size_t tile_size = tile_bytes(t, n_block);
    guarded x = grab(sizeof(float) * (size_t)(cols * rows));
    guarded tile = grab(tile_size), w = grab(row * TILE_ROWS);
    guarded a0 = grab(stride * (size_t)n_group), a1 = grab(stride * (size_t)n_group);
    static _Alignas(64) float y0[MAX_VEC * TILE_ROWS + 16], y1[MAX_VEC * TILE_ROWS + 16];
    static _Alignas(64) uint8_t panel[TILE_PANEL];
    float *xf = (float *)(void *)x.ptr;
    fill_weights(dt, fw, 100 + (uint64_t)(t * 7 + n_block), (size_t)(TILE_ROWS * n_stored), w.ptr);
    fill_floats(fx, (uint64_t)(rows + 1), (size_t)(cols * rows), xf);
    if (poison && rows > 1) xf[cols + cols / 2] = NAN;
    if (poison && rows > 2) xf[2 * cols + 1] = -INFINITY;
    tiles_pack(t, w.ptr, row, rows % 2 ? TILE_ROWS : 19, n_block, tile.ptr);
    for (int r = 0; r < rows; r++) {
        const size_t at = (size_t)(r * terms) * one;
        same_act(group, xf + (size_t)r * (size_t)cols, n_group, terms, a0.ptr + at, a1.ptr + at,
                 stride);
    }
    assert_true(same_groups(group, a0.ptr, a1.ptr, (size_t)(n_vec * n_group)));
    for (size_t i = 0; i < sizeof y1 / sizeof *y1; i++) y0[i] = y1[i] = CANARY;
    (fine ? ref.fine : ref.tile)[t](tile.ptr, n_block, a0.ptr, stride, n_vec, terms, y0, panel);
    (fine ? now.fine : now.tile)[t](tile.ptr, n_block, a1.ptr, stride, n_vec, terms, y1, panel);
    if (!same_bits(y0, y1, sizeof y1 / sizeof *y1))
        fail_msg("%s %s: groups of %d, %d blocks, %d rows, %d terms, weights %d, x %d", level,
                 dtype_name(dt), group, n_block, rows, terms, (int)fw, (int)fx);
    assert_true(y1[rows * TILE_ROWS] == CANARY);
    if (poison && rows > 1) assert_true(isnan(y1[TILE_ROWS]) && !isnan(y1[0]));
    drop(&x), drop(&tile), drop(&w), drop(&a0), drop(&a1);
}

static void check(tile_type t, int n_block, int rows, int terms, fill fw, fill fx, bool poison)
{
    if (rows * terms < least) return;
    check_group(t, tile_elems(t), n_block, rows, terms, fw, fx, poison);
    if (ref.fine[t]) check_group(t, 32, n_block, rows, terms, fw, fx, poison);
}

static void check_level(void)
{
    for (int t = 0; t < TILE_COUNT; t++) {
        for (int terms = 1; terms <= 2; terms++) {
            for (int rows = 1; rows * terms <= MAX_VEC; rows += rows < 19 ? 1 : rows < 40 ? 3 : 11)
                check((tile_type)t, 1 + rows % MAX_BLOCK, rows, terms, FILL_RANDOM, FILL_MIXED,
                      rows == 5);
            for (int f = 0; f < FILL_COUNT * FILL_COUNT; f++) {
                const fill fw = (fill)(f / FILL_COUNT), fx = (fill)(f % FILL_COUNT);
                check((tile_type)t, 2, 1, terms, fw, fx, false);
                check((tile_type)t, 2, 2, terms, fw, fx, false);
                check((tile_type)t, 2, 4, terms, fw, fx, false);
                check((tile_type)t, 1, 7, terms, fw, fx, true);
                check((tile_type)t, 1, 18, terms, fw, fx, false);
                /* 68 vectors of one term: AMX begins at 64 of fine Q6_K */
                check((tile_type)t, 1, 91 - 23 * terms, terms, fw, fx, false);
            }
        }
    }
}

static void check_dense(kern_dense_fn *a, kern_dense_fn *b, dtype t, int n_w, int n_x, int k)
{
    if (left_out()) return;
    const size_t e = (size_t)dtype_block_bytes(t);
    /* Rows that start at odd addresses and end at the page. */
    guarded w = grab(e * (size_t)(n_w * k)), x = grab(sizeof(float) * (size_t)(n_x * k));
    float y0[12 * 40], y1[12 * 40];
    fill_weights(t, FILL_RANDOM, (uint64_t)k, (size_t)(n_w * k), w.ptr);
    fill_floats(FILL_MIXED, (uint64_t)n_x, (size_t)(n_x * k), (float *)(void *)x.ptr);
    for (size_t i = 0; i < sizeof y0 / sizeof *y0; i++) y0[i] = y1[i] = CANARY;
    a(w.ptr, e * (size_t)k, n_w, (float *)(void *)x.ptr, (size_t)k, n_x, k, y0, 40);
    b(w.ptr, e * (size_t)k, n_w, (float *)(void *)x.ptr, (size_t)k, n_x, k, y1, 40);
    if (!same_bits(y0, y1, sizeof y0 / sizeof *y0))
        fail_msg("%s dense %s: %d × %d × %d", level, dtype_name(t), n_w, n_x, k);
    drop(&w), drop(&x);
}

static void check_level_dense(void)
{
    for (int k = 1; k < 70; k++) {
        const int n_w = 1 + k % 7, n_x = 1 + k % 5;
        check_dense(ref.dense_f32, now.dense_f32, DT_F32, n_w, n_x, k);
        check_dense(ref.dense_f16, now.dense_f16, DT_F16, n_w, n_x, k);
        check_dense(ref.dense_bf16, now.dense_bf16, DT_BF16, n_w, n_x, k);
    }
    for (int n = 1; n <= 12; n++) {
        check_dense(ref.dense_bf16, now.dense_bf16, DT_BF16, 32, n, 96);
        check_dense(ref.dense_f32, now.dense_f32, DT_F32, 33 - n, n, 97);
        check_dense(ref.dense_f16, now.dense_f16, DT_F16, n, n, 257);
    }
}

/* Every code, at every place of a step, of a page's end; every magnitude of scale. */
static void check_widen(kern_widen_fn *a, kern_widen_fn *b, int32_t n, float s)
{
    guarded w = grab((size_t)n);
    float y0[600], y1[600];
    for (int32_t i = 0; i < n; i++) w.ptr[i] = (uint8_t)(i + n);
    for (size_t i = 0; i < 600; i++) y0[i] = y1[i] = CANARY;
    a(w.ptr, n, s, y0), b(w.ptr, n, s, y1);
    if (!same_bits(y0, y1, 600)) fail_msg("%s: %d floats of 8 bits", level, (int)n);
    drop(&w);
}

static void check_level_widen(void)
{
    static const float scales[] = {1.0f,     0.0173f,    -3.0f,      0x1p-140f, 0x1p-126f,
                                   0x1p118f, 0x1.8p119f, 0x1.8p127f, 0.0f};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        for (int32_t n = 1; n < 70; n++) {
            check_widen(ref.widen_e4m3, now.widen_e4m3, n, scales[i]);
            check_widen(ref.widen_e5m2, now.widen_e5m2, n, scales[i]);
        }
        check_widen(ref.widen_e4m3, now.widen_e4m3, 512, scales[i]);
        check_widen(ref.widen_e5m2, now.widen_e5m2, 513, scales[i]);
    }
}

static void test_measures(void **state)
{
    static _Alignas(64) uint64_t words[2048];
    uint64_t sum = 0;
    (void)state;
    for (size_t i = 0; i < 2048; i++) sum += words[i] = i * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < N_LEVEL; i++) {
        kern_linear k;
        if (!level_kernels(i, &k)) continue;
        assert_true(k.read_sum(words, sizeof words) == sum);
        assert_true(k.peak_dot(7) == 7 * k.peak_dot(1) && k.peak_dot(1) > 0);
    }
}

static void test_levels(void **state)
{
    int n = 0;
    (void)state;
    level_kernels(0, &ref);
    for (int i = 1; i < N_LEVEL; i++) {
        if (!level_kernels(i, &now)) continue;
        level = level_name(i);
        least = level_least(i);
        check_level();
        check_level_dense();
        check_level_widen();
        n++;
    }
    if (n == 0) skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_measures)};
    for (int i = 0; i < N_LEVEL; i++) {
        kern_linear k;
        printf("%s %s\n", level_kernels(i, &k) ? "here:   " : "skipped:", level_name(i));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
