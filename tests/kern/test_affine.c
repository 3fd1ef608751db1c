/* Affine tiles: what is packed into them from every number of bits, group and type of scale; the reference
   kernel against products in double of the values that the format states; every level's kernels against
   the reference, bit for bit. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "backend/cpu/tiles.h"
#include "base/half.h"
#include "base/num.h"
#include "base/rng.h"
#include "kern/fence.h"
#include "kern/linear_data.h"

enum { ROWS = 45, MOST_VEC = 68 };

typedef struct matrix {
    packed p;
    weight w;
    uint8_t *code, *scale, *offset;
} matrix;

static void put(dtype t, uint8_t *to, size_t i, float x)
{
    const uint16_t half = t == DT_F16 ? f16_from_f32(x) : bf16_from_f32(x);
    if (t == DT_F32)
        memcpy(to + 4 * i, &x, 4);
    else
        memcpy(to + 2 * i, &half, 2);
}

static void matrix_init(matrix *m, int bits, int group, dtype scale, int n_group)
{
    const size_t cols = (size_t)(group * n_group), n = (size_t)(ROWS * n_group);
    const size_t item = scale == DT_F32 ? 4 : 2;
    memset(m, 0, sizeof *m);
    m->p = (packed){.kind = PACKED_AFFINE,
                    .bits = bits,
                    .group = group,
                    .block_rows = 1,
                    .rows = ROWS,
                    .cols = (int32_t)cols,
                    .scale_type = scale,
                    .code_size = ROWS * cols * (size_t)bits / 8,
                    .scale_size = n * item,
                    .offset_size = n * item};
    m->p.code = m->code = fence_new(m->p.code_size);
    m->p.scale = m->scale = fence_new(m->p.scale_size);
    m->p.offset = m->offset = fence_new(m->p.offset_size);
    for (size_t i = 0; i < m->p.code_size; i++) m->code[i] = (uint8_t)rng_u64(1, (uint64_t)bits, i);
    memset(m->code, 255, cols * (size_t)bits / 8); /* the first row: largest codes */
    for (size_t i = 0; i < n; i++) {
        const float s = (float)(rng_unit(3, 1, i) * 0.02 - 0.005);
        put(scale, m->scale, i, s);
        put(scale, m->offset, i, -s * (float)(1 << bits) * (float)rng_unit(3, 2, i));
    }
    m->w = (weight){.name = "w",
                    .type = DT_PACKED,
                    .rows = ROWS,
                    .cols = (int32_t)cols,
                    .packed = &m->p,
                    .packed_step = 1,
                    .data = m->p.code,
                    .size = m->p.code_size + m->p.scale_size + m->p.offset_size,
                    .matmul = true};
}

static void matrix_deinit(matrix *m)
{
    fence_free(m->code, m->p.code_size);
    fence_free(m->scale, m->p.scale_size);
    fence_free(m->offset, m->p.offset_size);
}

/* Codes that the bits of a row spell, counted one bit at a time; s·q + m of them. */
static float value_at(const matrix *m, size_t row, size_t col)
{
    const size_t bits = (size_t)m->p.bits, first = (row * (size_t)m->p.cols + col) * bits;
    const size_t g = row * (size_t)(m->p.cols / m->p.group) + col / (size_t)m->p.group;
    unsigned q = 0;
    float s, o;
    for (size_t b = 0; b < bits; b++)
        q |= (unsigned)(m->code[(first + b) / 8] >> (first + b) % 8 & 1) << b;
    const size_t item = m->p.scale_type == DT_F32 ? 4 : 2;
    dtype_to_f32(m->p.scale_type, m->scale + g * item, &s, 1);
    dtype_to_f32(m->p.scale_type, m->offset + g * item, &o, 1);
    return s * (float)q + o;
}

typedef struct acts {
    float *x;
    uint8_t *q;
    size_t stride, size;
} acts;

static acts acts_new(const kern_linear *k, int cols, int rows, int terms)
{
    acts a = {.x = malloc(sizeof(float) * (size_t)(cols * rows)),
              .stride = sizeof(a8_32) * (size_t)(rows * terms)};
    a.size = a.stride * (size_t)(cols / 32);
    a.q = fence_new(a.size);
    fill_floats(FILL_MIXED, 9, (size_t)(cols * rows), a.x);
    for (int r = 0; r < rows; r++)
        k->quant32(a.x + r * cols, cols / 32, terms,
                   (a8_32 *)(void *)(a.q + sizeof(a8_32) * (size_t)(r * terms)), a.stride);
    return a;
}

static void acts_free(acts *a)
{
    free(a->x);
    fence_free(a->q, a->size);
}

/* Half a step of each activation, times its weight, and what f32 may lose. */
static void near_double(const matrix *m, const acts *a, int terms, int r0, int n, int rows,
                        const float *y)
{
    const int cols = m->p.cols;
    for (int r = 0; r < n; r++) {
        for (int v = 0; v < rows; v++) {
            const float *x = a->x + v * cols;
            double sum = 0, err = 0, mag = 0;
            for (int c = 0; c < cols; c++) {
                double amax = 0;
                const double w = (double)value_at(m, (size_t)(r0 + r), (size_t)c);
                for (int i = c / 32 * 32; i < c / 32 * 32 + 32; i++)
                    amax = fmax(amax, fabs((double)x[i]));
                sum += w * (double)x[c];
                err += fabs(w) * amax / (terms == 1 ? 254 : 254 * 254);
                mag += 4 * fabs((double)m->p.group * amax) * 0.02 + 1e-9;
            }
            const double off = fabs((double)y[v * TILE_ROWS + r] - sum);
            const double bound = err * 1.001 + mag * (cols / 32 * terms + 8) * 0x1p-20;
            if (!(off <= bound))
                fail_msg("%d bits g%d row %d: %g off, bound %g", m->p.bits, m->p.group, r0 + r, off,
                         bound);
        }
    }
}

static void check(int bits, int group, dtype scale, int n_group, int rows, int terms)
{
    static _Alignas(64) float want[MOST_VEC * TILE_ROWS + 16], got[MOST_VEC * TILE_ROWS + 16];
    static _Alignas(64) uint8_t panel[TILE_PANEL];
    kern_linear ref, now;
    matrix m;
    kern_linear_ref(&ref);
    matrix_init(&m, bits, group, scale, n_group);
    const affine_form f = affine_form_of(&m.p);
    const int n_block = m.p.cols / 32;
    const size_t size =
        affine_block_bytes(f.code) * (size_t)n_block + affine_head_bytes(f.head) * (size_t)n_group;
    uint8_t *tile = fence_new(size);
    acts a = acts_new(&ref, m.p.cols, rows, terms);
    for (int r0 = 0; r0 < ROWS; r0 += TILE_ROWS) {
        const int n = ROWS - r0 < TILE_ROWS ? ROWS - r0 : TILE_ROWS;
        affine_pack(&f, &m.w, r0, n, tile);
        for (size_t i = 0; i < sizeof want / sizeof *want; i++) want[i] = got[i] = 12345.0f;
        ref.affine[f.code](&f, tile, n_block, a.q, a.stride, rows * terms, terms, want, panel);
        near_double(&m, &a, terms, r0, n, rows, want);
        for (int i = 1; i < N_LEVEL; i++) {
            if (!level_kernels(i, &now)) continue;
            now.affine[f.code](&f, tile, n_block, a.q, a.stride, rows * terms, terms, got, panel);
            if (!same_bits(want, got, sizeof got / sizeof *got))
                fail_msg("%s: %d bits g%d %s, %d rows, %d terms", level_name(i), bits, group,
                         dtype_name(scale), rows, terms);
        }
    }
    acts_free(&a);
    fence_free(tile, size);
    matrix_deinit(&m);
}

static void every_form(void **state)
{
    static const int bits[] = {2, 3, 4, 5, 6, 8}, groups[] = {32, 64, 128};
    static const dtype scales[] = {DT_BF16, DT_F16, DT_F32};
    (void)state;
    for (size_t b = 0; b < 6; b++)
        for (size_t g = 0; g < 3; g++)
            for (size_t s = 0; s < 3; s++) {
                check(bits[b], groups[g], scales[s], 1 + (int)g % 2, 1, 1);
                check(bits[b], groups[g], scales[s], 3, 2, 2);
            }
}

static void many_rows(void **state)
{
    (void)state;
    for (int rows = 1; rows <= 12; rows++) {
        check(4, 64, DT_BF16, 2, rows, 2);
        check(5, 64, DT_BF16, 2, rows, 1);
        check(8, 32, DT_F16, 3, rows, 1);
    }
    /* AMX's: tails of 16 vectors, and more blocks than a panel has. */
    static const int bits[] = {4, 5, 8}, shape[][2] = {{34, 1}, {MOST_VEC, 1}, {34, 2}};
    for (size_t b = 0; b < 3; b++)
        for (size_t i = 0; i < 3; i++) check(bits[b], 64, DT_BF16, 9, shape[i][0], shape[i][1]);
}

/* Values by packed_row_f32, and d·q + m where the head must be wide: m of −d·zero needs more bits than d. */
static void values(void **state)
{
    static const int bits[] = {2, 3, 4, 5, 6, 8};
    (void)state;
    for (size_t b = 0; b < 6; b++) {
        matrix m;
        float y[192];
        matrix_init(&m, bits[b], 64, DT_F16, 3);
        for (size_t r = 0; r < ROWS; r++) {
            packed_row_f32(&m.p, r, y);
            for (size_t c = 0; c < 192; c++) {
                const float v = value_at(&m, r, c);
                assert_true(same_bits(&y[c], &v, 1));
            }
        }
        matrix_deinit(&m);
    }
    matrix m;
    matrix_init(&m, 4, 64, DT_F16, 3);
    m.p.kind = PACKED_CENTRED;
    m.p.offset = NULL;
    m.p.zero = 8;
    assert_int_equal(affine_form_of(&m.p).head, HEAD_F16);
    m.p.zero = 7;
    assert_int_equal(affine_form_of(&m.p).head, HEAD_F32);
    m.p.offset = m.offset;
    matrix_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_form), cmocka_unit_test(many_rows),
                                       cmocka_unit_test(values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
