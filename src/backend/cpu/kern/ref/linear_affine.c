/* Affine tiles: the definition of their product.
     D = Σ q_w·q, exact;  y = fma(RN(d·dx), D, y);  y = fma(RN(m·dx), Σ q, y)
   blocks of 32 ascending from y = +0; with two terms, the first and then the second within each block.
   It is that of Q4_1 tiles, but for codes of 4, 5 or 8 bits, and d and m that serve several blocks. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/ref/linear_ref.h"
#include "base/half.h"

static float head_at(affine_head h, const uint8_t *line, int32_t r)
{
    uint16_t half;
    float f;
    if (h == HEAD_F32) {
        memcpy(&f, line + 4 * r, sizeof f);
        return f;
    }
    memcpy(&half, line + 2 * r, sizeof half);
    return h == HEAD_BF16 ? bf16_to_f32(half) : f16_to_f32(half);
}

/* Code i of row r of a block. */
static int32_t code_at(affine_code c, const uint8_t *block, int32_t r, int32_t i)
{
    const uint8_t *group = block + (size_t)(r / 16) * (affine_block_bytes(c) / 2);
    const int32_t row = 4 * (r % 16), s = i % 16 / 4, n = i % 4;
    if (c == AFFINE_8) return group[TILE_LINE * (i / 4) + row + n];
    const uint8_t *line = c == AFFINE_5 ? group + TILE_LINE : group;
    const int32_t low = line[TILE_LINE * s + row + n] >> (i < 16 ? 0 : 4) & 15;
    if (c == AFFINE_4) return low;
    return low | (group[row + n] >> (s + (i < 16 ? 0 : 4)) & 1) << 4;
}

static void affine(affine_code c, const affine_form *f, const uint8_t *p, int32_t n_block,
                   const void *act, size_t stride, int32_t n_vec, int32_t terms, float *y)
{
    const size_t lines = affine_head_bytes(f->head) / 2;
    const uint8_t *head = p;
    memset(y, 0, (size_t)(n_vec / terms) * TILE_ROWS * sizeof *y);
    for (int32_t b = 0; b < n_block; b++, p += affine_block_bytes(c)) {
        const a8_32 *a = (const void *)((const uint8_t *)act + (size_t)b * stride);
        if (b % f->per_head == 0) {
            head = p;
            p += 2 * lines;
        }
        for (int32_t r = 0; r < TILE_ROWS; r++) {
            const float d = head_at(f->head, head, r), m = head_at(f->head, head + lines, r);
            int32_t w[32];
            for (int32_t i = 0; i < 32; i++) w[i] = code_at(c, p, r, i);
            for (int32_t v = 0; v < n_vec; v++) {
                float *out = y + (size_t)(v / terms) * TILE_ROWS + r;
                int32_t dot = 0;
                for (int32_t i = 0; i < 32; i++) dot += w[i] * a[v].q[i];
                *out = fmaf(m, a[v].s, *out);
                *out = fmaf(d * a[v].d, (float)dot, *out);
            }
        }
    }
}

#define DEFINE_AFFINE(name, code)                                                                  \
    void name(const affine_form *f, const uint8_t *tile, int32_t n_block, const void *act,         \
              size_t stride, int32_t n_vec, int32_t terms, float *y, void *panel)                  \
    {                                                                                              \
        (void)panel;                                                                               \
        affine(code, f, tile, n_block, act, stride, n_vec, terms, y);                              \
    }
DEFINE_AFFINE(ref_affine_4, AFFINE_4)
DEFINE_AFFINE(ref_affine_5, AFFINE_5)
DEFINE_AFFINE(ref_affine_8, AFFINE_8)
