/* Tiles of 256 weights a block in AVX2's registers: what the files of the formats share, after dots_LEVEL.h.  A
   half is 8 rows.  One vector or two: weights are unpacked in registers.  More: a block is unpacked once into
   a panel in L1 and met by all vectors.  Each file includes this once and defines

     direct_half(…)  8 rows of one block times n vectors
     unpack_half(…)  8 rows of one block into the panel
     panel_vecs(…)   the panel times n vectors, and panel_step(…), how many at a time
                     (panel256_avx2_body.h has them for unsigned weights) */
#include "backend/cpu/kern/x86/words_avx2.h"

enum { N_HALF = 4, N_LINE = 64, MAX_STEP = 4 };
#define DIRECT_CASES(X, fn) X(1, fn) X(2, fn)

#include "backend/cpu/kern/body/linear_tile256_body.h"

INLINE __m256 halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Both halves of a line come by; the first fetches. */
INLINE void ahead(const uint8_t *p, const int half)
{
    if (half == 0) prefetch(p);
}

/* The bits of a weight as stored, from 0 up. */
INLINE int stored_bits(const int bits)
{
    return bits == 2 ? 2 : centre_log(bits) + 1;
}
/* Lines that add up before their scale. */
INLINE int sum_lines(const int bits)
{
    return part_lines(stored_bits(bits), scale_lines(bits));
}
/* sum + scale · x, the part of a sub-block's lines. */
INLINE __m256i add_part(const int bits, __m256i sum, __m256i x, __m256i scale)
{
    return add_scaled(stored_bits(bits), scale_lines(bits), sum, x, scale);
}
/* Four signed scales, one a byte, and their two pairs. */
INLINE void signed_scales(const int bits, __m256i v, __m256i *sc, __m256i *pair)
{
    for (int m = 0; m < 4; m++) sc[m] = signed_scale_of(stored_bits(bits), scale_lines(bits), v, m);
    pair[0] = spread_signed(v, 0, 1), pair[1] = spread_signed(v, 2, 3);
}

/* Σ pair · sums, n pairs. */
INLINE __m256i pair_dot(const __m256i *pair, const int16_t *sums, const int n)
{
    __m256i s = _mm256_setzero_si256();
    for (int i = 0; i < n; i++) s = add_madd(s, pair[i], word(sums + 2 * i));
    return s;
}
/* i: Σ scale · dot of stored weights; `pair` of minima, or of the scales that undo the centring. */
INLINE void accumulate(const int bits, __m256i i, const __m256i *pair, __m256 d, __m256 dmin,
                       const a8_256 *a, float *y)
{
    const __m256i m =
        scale_lines(bits) == 8 ? pair_dot(pair, a->s32, 4) : pair_dot(pair, a->s16, 8);
    if (!has_min(bits)) i = _mm256_sub_epi32(i, _mm256_slli_epi32(m, centre_log(bits)));
    __m256 t = _mm256_mul_ps(d, _mm256_cvtepi32_ps(i));
    if (has_min(bits)) t = _mm256_fnmadd_ps(dmin, _mm256_cvtepi32_ps(m), t);
    _mm256_store_ps(y, _mm256_fmadd_ps(t, _mm256_broadcast_ss(&a->d), _mm256_load_ps(y)));
}

/* p: the half's part of its group's lines, d16: its d, and its dmin 32 bytes further. */
INLINE void direct_half(const int bits, const int half, const uint8_t *d16, const uint8_t *p,
                        const a8_256 *a, const int n, int32_t shift, float *y);
INLINE void unpack_half(const int bits, const uint8_t *d16, const uint8_t *p, const int half,
                        panel256 *u);
/* The panel times n vectors, panel_step at a time at most. */
INLINE void panel_vecs(const int bits, const panel256 *u, const a8_256 *a, const int n, int32_t v,
                       int32_t shift, float *y);
INLINE int panel_step(const int bits);

/* d of half 0 … 3 of a block, whose group is at p. */
INLINE const uint8_t *half_d(const int bits, const uint8_t *block, const uint8_t *p, const int half)
{
    return head_lines(bits) ? block + 16 * half : p + 16 * (half % 2);
}

INLINE void direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                   size_t stride, const int n, int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++) {
        const a8_256 *a = (const a8_256 *)(const void *)(act + (size_t)b * stride);
        const uint8_t *p = tile + TILE_LINE * head_lines(bits);
        if (head_lines(bits)) prefetch(tile);
        for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
            for (int h = 0; h < 2; h++)
                direct_half(bits, h, half_d(bits, tile, p, 2 * g + h), p + 32 * h, a, n, shift,
                            y + 16 * g + 8 * h);
        }
        tile = p;
    }
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    const int lines = head_lines(bits) + 2 * group_lines(bits);
    for (int i = 0; i < lines; i++) prefetch(tile + TILE_LINE * i);
    for (int half = 0; half < N_HALF; half++) {
        const uint8_t *p = tile + TILE_LINE * (head_lines(bits) + half / 2 * group_lines(bits));
        unpack_half(bits, half_d(bits, tile, p, half), p + 32 * (half % 2), half, u);
    }
}

INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y)
{
    const int step = panel_step(bits);
    int32_t v = 0;
    (void)tile, (void)block;
    for (; v + step <= n_vec; v += step) panel_vecs(bits, u, a + v, step, v, shift, y);
    switch (n_vec - v) {
    case 3:
        panel_vecs(bits, u, a + v, 3, v, shift, y);
        break;
    case 2:
        panel_vecs(bits, u, a + v, 2, v, shift, y);
        break;
    case 1:
        panel_vecs(bits, u, a + v, 1, v, shift, y);
        break;
    default:
        break;
    }
}
