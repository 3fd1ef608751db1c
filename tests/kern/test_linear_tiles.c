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
enum { N_Y = MAX_VEC * TILE_ROWS + 16 };

/* Those of the levels that run here; reference: the first. */
typedef struct kernels {
    kern_linear k;
    const char *name;
    int least; /* vectors */
} kernels;

static kernels levels[N_LEVEL];
static int n_level;

static void find_levels(void)
{
    n_level = 0;
    for (int i = 0; i < N_LEVEL; i++) {
        if (!level_kernels(i, &levels[n_level].k)) continue;
        levels[n_level].name = level_name(i);
        levels[n_level++].least = level_least(i);
    }
}

/* A product.  group: of the activations; poison: vector 1 holds a NaN, vector 2 an infinity. */
typedef struct trial {
    tile_type t;
    int group, n_block, rows, terms;
    fill fw, fx;
    bool poison;
} trial;

/* The same for all levels, and what the reference makes of it. */
typedef struct data {
    int n_vec, n_group, n_block, cols;
    size_t one, stride;
    guarded x, tile, act;
    float *y;
} data;

static bool is_fine(const trial *c)
{
    return c->group < tile_elems(c->t);
}

static void quantise(const kern_linear *k, const trial *c, const data *d, uint8_t *to)
{
    for (int r = 0; r < c->rows; r++, to += (size_t)c->terms * d->one) {
        const float *x = (const float *)(const void *)d->x.ptr + (size_t)r * (size_t)d->cols;
        if (c->group == 32)
            k->quant32(x, d->n_group, c->terms, (a8_32 *)(void *)to, d->stride);
        else
            k->quant256(x, d->n_group, c->terms, (a8_256 *)(void *)to, d->stride);
    }
}

static void multiply(const kern_linear *k, const trial *c, const data *d, const uint8_t *act,
                     float *y)
{
    static _Alignas(64) uint8_t panel[TILE_PANEL];
    for (size_t i = 0; i < N_Y; i++) y[i] = CANARY;
    kern_tile_fn *const more = is_fine(c) ? k->fine_more[c->t] : NULL;
    /* An even number of rows walks K in two parts, where the level does so. */
    const bool parts = more && d->n_block > 1 && c->terms == 1 && d->n_vec >= 16 && !(c->rows % 2);
    const int n_block = parts ? 1 : d->n_block;
    (is_fine(c) ? k->fine : k->tile)[c->t](d->tile.ptr, n_block, act, d->stride, d->n_vec, c->terms,
                                           y, panel);
    if (parts)
        more(d->tile.ptr + tile_block_bytes(c->t), d->n_block - 1, act + 8 * d->stride, d->stride,
             d->n_vec, 1, y, panel);
}

/* NVFP4: of one row in three.  GGUF's have no sign, those of other files may. */
static void negate_scales(uint8_t *tile, int n_block)
{
    for (int b = 0; b < n_block; b++, tile += tile_block_bytes(TILE_NVFP4))
        for (int i = 0; i < TILE_LINE; i += 3) tile[i] |= 0x80;
}

static void data_init(data *d, const trial *c)
{
    static _Alignas(64) float y[N_Y];
    const dtype dt = tile_dtype(c->t);
    const size_t row = (size_t)c->n_block * (size_t)dtype_block_bytes(dt);
    d->cols = dtype_block(dt) * c->n_block;
    d->n_vec = c->rows * c->terms;
    d->n_group = d->cols / c->group;
    d->n_block = d->cols / tile_elems(c->t);
    d->one = c->group == 32 ? sizeof(a8_32) : sizeof(a8_256);
    d->stride = d->one * (size_t)d->n_vec;
    d->x = grab(sizeof(float) * (size_t)(d->cols * c->rows));
    d->tile = grab(tile_bytes(c->t, d->n_block));
    d->act = grab(d->stride * (size_t)d->n_group);
    d->y = y;
    guarded w = grab(row * TILE_ROWS);
    float *xf = (float *)(void *)d->x.ptr;
    fill_weights(dt, c->fw, 100 + (uint64_t)((int)c->t * 7 + d->n_block),
                 (size_t)(TILE_ROWS * c->n_block), w.ptr);
    fill_floats(c->fx, (uint64_t)(c->rows + 1), (size_t)(d->cols * c->rows), xf);
    if (c->poison && c->rows > 1) xf[d->cols + d->cols / 2] = NAN;
    if (c->poison && c->rows > 2) xf[2 * d->cols + 1] = -INFINITY;
    tiles_pack(c->t, w.ptr, row, c->rows % 2 ? TILE_ROWS : 19, d->n_block, d->tile.ptr);
    if (c->fw == FILL_WILD && c->t == TILE_NVFP4) negate_scales(d->tile.ptr, d->n_block);
    drop(&w);
    quantise(&levels[0].k, c, d, d->act.ptr);
    multiply(&levels[0].k, c, d, d->act.ptr, y);
    assert_true(y[c->rows * TILE_ROWS] == CANARY);
    if (c->poison && c->rows > 1)
        assert_true(isnan(y[TILE_ROWS]) && (c->fw == FILL_WILD || !isnan(y[0])));
}

static void data_deinit(data *d)
{
    drop(&d->x), drop(&d->tile), drop(&d->act);
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

static void compare(const kernels *l, const trial *c, const data *d)
{
    static _Alignas(64) float y[N_Y];
    guarded act = grab(d->act.size);
    quantise(&l->k, c, d, act.ptr);
    if (!same_groups(c->group, d->act.ptr, act.ptr, (size_t)(d->n_vec * d->n_group)))
        fail_msg("%s: activations in groups of %d, %d terms, x %d", l->name, c->group, c->terms,
                 (int)c->fx);
    multiply(&l->k, c, d, act.ptr, y);
    if (!same_bits(d->y, y, N_Y))
        fail_msg("%s %s: groups of %d, %d blocks, %d rows, %d terms, weights %d, x %d", l->name,
                 dtype_name(tile_dtype(c->t)), c->group, d->n_block, c->rows, c->terms, (int)c->fw,
                 (int)c->fx);
    drop(&act);
}

/* Every level, of the data that all share. */
static void check_group(const trial *c)
{
    data d;
    bool ready = false;
    for (const kernels *l = levels + 1; l < levels + n_level; l++) {
        if (c->rows * c->terms < l->least || left_out()) continue;
        if (!ready) data_init(&d, c);
        ready = true;
        compare(l, c, &d);
    }
    if (ready) data_deinit(&d);
}

static void check(trial c)
{
    c.group = tile_elems(c.t);
    check_group(&c);
    if (!levels[0].k.fine[c.t]) return;
    c.group = 32;
    check_group(&c);
}

static void check_tiles(tile_type t, int terms)
{
    /* 18 and 45 or 68 vectors: tails of AMX's 16, which begins at 64 of fine Q6_K */
    const int many = 91 - 23 * terms;
    for (int rows = 1; rows * terms <= MAX_VEC; rows += rows < 19 ? 1 : rows < 40 ? 3 : 11)
        check((trial){t, 0, 1 + rows % MAX_BLOCK, rows, terms, FILL_RANDOM, FILL_MIXED, rows == 5});
    for (int f = 0; f < FILL_COUNT * FILL_COUNT; f++) {
        const fill fw = (fill)(f / FILL_COUNT), fx = (fill)(f % FILL_COUNT);
        check((trial){t, 0, 2, 1, terms, fw, fx, false});
        check((trial){t, 0, 2, 2, terms, fw, fx, false});
        check((trial){t, 0, 2, 4, terms, fw, fx, false});
        check((trial){t, 0, 1, 7, terms, fw, fx, true});
        check((trial){t, 0, 1, 18, terms, fw, fx, true});
        check((trial){t, 0, 1, many, terms, fw, fx, true});
    }
    /* More blocks of 32 than a panel has, 8, in parts of an even and an odd number. */
    for (int n_block = 9; n_block <= 18 && tile_elems(t) == 32; n_block += 9)
        check((trial){t, 0, n_block, 50 / terms, terms, FILL_RANDOM, FILL_MIXED, true});
    static const int some[] = {1, 3, 8, 25};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        check((trial){t, 0, 2, some[i], terms, FILL_WILD, FILL_MIXED, true});
        check((trial){t, 0, 2, some[i], terms, FILL_RANDOM, FILL_WILD, true});
    }
    check((trial){t, 0, 2, many, terms, FILL_WILD, FILL_WILD, true});
}

static void check_dense(kern_dense_fn *a, const kernels *l, kern_dense_fn *b, dtype t, int n_w,
                        int n_x, int k, fill f)
{
    if (left_out()) return;
    /* Rows that start at odd addresses and end at the page, or a byte before it. */
    const size_t e = (size_t)dtype_block_bytes(t), odd = (size_t)(k % 2);
    guarded w = grab(e * (size_t)(n_w * k) + odd), x = grab(sizeof(float) * (size_t)(n_x * k));
    float y0[12 * 40], y1[12 * 40];
    fill_weights(t, f, (uint64_t)k, (size_t)(n_w * k), w.ptr);
    fill_floats(f == FILL_WILD ? f : FILL_MIXED, (uint64_t)n_x, (size_t)(n_x * k),
                (float *)(void *)x.ptr);
    for (size_t i = 0; i < sizeof y0 / sizeof *y0; i++) y0[i] = y1[i] = CANARY;
    a(w.ptr, e * (size_t)k, n_w, (float *)(void *)x.ptr, (size_t)k, n_x, k, y0, 40);
    b(w.ptr, e * (size_t)k, n_w, (float *)(void *)x.ptr, (size_t)k, n_x, k, y1, 40);
    if (!same_bits(y0, y1, sizeof y0 / sizeof *y0))
        fail_msg("%s dense %s: %d × %d × %d", l->name, dtype_name(t), n_w, n_x, k);
    drop(&w), drop(&x);
}

static void check_level_dense(const kernels *l)
{
    const kern_linear *ref = &levels[0].k, *k = &l->k;
    for (int n = 1; n < 70; n++) {
        const int n_w = 1 + n % 7, n_x = 1 + n % 5;
        const fill f = n % 3 ? FILL_RANDOM : FILL_WILD;
        check_dense(ref->dense_f32, l, k->dense_f32, DT_F32, n_w, n_x, n, f);
        check_dense(ref->dense_f16, l, k->dense_f16, DT_F16, n_w, n_x, n, f);
        check_dense(ref->dense_bf16, l, k->dense_bf16, DT_BF16, n_w, n_x, n, f);
    }
    for (int n = 1; n <= 12; n++) {
        check_dense(ref->dense_bf16, l, k->dense_bf16, DT_BF16, 32, n, 96, FILL_RANDOM);
        check_dense(ref->dense_f32, l, k->dense_f32, DT_F32, 33 - n, n, 97, FILL_RANDOM);
        check_dense(ref->dense_f16, l, k->dense_f16, DT_F16, n, n, 257, FILL_RANDOM);
    }
}

/* Every code, at every place of a step, of a page's end; every magnitude of scale. */
static void check_widen(kern_widen_fn *a, const kernels *l, kern_widen_fn *b, int32_t n, float s)
{
    guarded w = grab((size_t)n);
    float y0[600], y1[600];
    for (int32_t i = 0; i < n; i++) w.ptr[i] = (uint8_t)(i + n);
    for (size_t i = 0; i < 600; i++) y0[i] = y1[i] = CANARY;
    a(w.ptr, n, s, y0), b(w.ptr, n, s, y1);
    if (!same_bits(y0, y1, 600)) fail_msg("%s: %d floats of 8 bits", l->name, (int)n);
    drop(&w);
}

static void check_level_widen(const kernels *l)
{
    static const float scales[] = {1.0f,       0.0173f,    -3.0f, 0x1p-140f, 0x1p-126f, 0x1p118f,
                                   0x1.8p119f, 0x1.8p127f, 0.0f,  INFINITY,  NAN};
    const kern_linear *ref = &levels[0].k, *k = &l->k;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        for (int32_t n = 1; n < 70; n++) {
            check_widen(ref->widen_e4m3, l, k->widen_e4m3, n, scales[i]);
            check_widen(ref->widen_e5m2, l, k->widen_e5m2, n, scales[i]);
        }
        check_widen(ref->widen_e4m3, l, k->widen_e4m3, 512, scales[i]);
        check_widen(ref->widen_e5m2, l, k->widen_e5m2, 513, scales[i]);
    }
}

static void test_measures(void **state)
{
    static _Alignas(64) uint64_t words[2048];
    uint64_t sum = 0;
    (void)state;
    for (size_t i = 0; i < 2048; i++) sum += words[i] = i * 0x9e3779b97f4a7c15u;
    for (const kernels *l = levels; l < levels + n_level; l++) {
        assert_true(l->k.read_sum(words, sizeof words) == sum);
        assert_true(l->k.peak_dot(7) == 7 * l->k.peak_dot(1) && l->k.peak_dot(1) > 0);
    }
}

static void test_tiles(void **state)
{
    (void)state;
    if (n_level == 1) skip();
    for (int t = 0; t < TILE_COUNT; t++)
        for (int terms = 1; terms <= 2; terms++) check_tiles((tile_type)t, terms);
}

static void test_floats(void **state)
{
    (void)state;
    if (n_level == 1) skip();
    for (const kernels *l = levels + 1; l < levels + n_level; l++) {
        check_level_dense(l);
        check_level_widen(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiles), cmocka_unit_test(test_floats),
                                       cmocka_unit_test(test_measures)};
    find_levels();
    for (int i = 0; i < N_LEVEL; i++) {
        kern_linear k;
        printf("%s %s\n", level_kernels(i, &k) ? "here:   " : "skipped:", level_name(i));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
