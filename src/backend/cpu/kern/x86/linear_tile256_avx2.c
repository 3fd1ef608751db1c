/* Tiles of Q4_K, Q5_K and Q6_K, AVX2.  A lane is an output row; a register holds one word of 8 rows.

   Exactness, |q| ≤ 127 and stored weights from 0 up: vpmaddubsw's pairs are at most 2·15·127 = 3,810
   (4 bits), 7,874 (5) and 16,002 (6); so 8, 4 and 2 lines add up in 16 bits (30,480; 31,496; 32,004)
   before one vpmaddwd with the sub-block's scale in both places takes them to 32 bits:
   |sum| ≤ 256·63·127·128 = 262 M.  Q6_K's centring is undone at the end: −32·Σ sc·Σ q, at most 133 M.

   One vector or two: weights are unpacked in registers.  More: a block is unpacked once into a panel
   in L1 and met by all vectors. */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))
/* Keeps a chain of sums a chain: rearranged into a tree, it needs more registers than there are. */
#define KEEP(v) __asm__("" : "+x"(v))

enum { N_HALF = 4, N_LINE = 64 };
#define DIRECT_CASES(X) X(1) X(2)

#include "backend/cpu/kern/x86/linear_tile256_body.h"

/* One block, unpacked, half by half of 8 rows. */
struct panel256 {
    uint8_t w[N_HALF][N_LINE][32];
    int16_t sc[N_HALF][16][16];  /* each scale twice a row */
    int16_t pair[N_HALF][8][16]; /* what meets sums of q: minima, Q6_K's scales */
    float d[TILE_ROWS], dmin[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
INLINE __m256i word(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}
INLINE __m256 halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
INLINE __m256i and8(__m256i v, int mask)
{
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}
/* Both halves of a line come by: the first asks for a line far ahead, the second for one nearby. */
INLINE void ahead(const uint8_t *p, const int half)
{
    if (half)
        _mm_prefetch((const char *)p + 1024, _MM_HINT_T0);
    else
        _mm_prefetch((const char *)p + 6144, _MM_HINT_T1);
}

/* Byte n of each row's word, unsigned, as both 16-bit numbers of the word. */
INLINE __m256i spread(__m256i v, const int n)
{
    const char z = (char)0x80, a = (char)n, b = (char)(n + 4), c = (char)(n + 8),
               d = (char)(n + 12);
    return _mm256_shuffle_epi8(v, _mm256_setr_epi8(a, z, a, z, b, z, b, z, c, z, c, z, d, z, d, z,
                                                   a, z, a, z, b, z, b, z, c, z, c, z, d, z, d, z));
}
/* Bytes m and n likewise, signed. */
INLINE __m256i spread_signed(__m256i v, const int m, const int n)
{
    const char z = (char)0x80, a = (char)m, b = (char)n;
    const __m256i order =
        _mm256_setr_epi8(z, a, z, b, z, a + 4, z, b + 4, z, a + 8, z, b + 8, z, a + 12, z, b + 12,
                         z, a, z, b, z, a + 4, z, b + 4, z, a + 8, z, b + 8, z, a + 12, z, b + 12);
    return _mm256_srai_epi16(_mm256_shuffle_epi8(v, order), 8);
}

/* Q4_K, Q5_K: the 8 scales and the 4 pairs of minima of 8 rows. */
INLINE void scales_k45(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    const __m256i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    const __m256i byte = _mm256_set1_epi16(0xff);
    const __m256i s0 = and8(a, 63), m0 = and8(b, 63);
    const __m256i s1 = _mm256_or_si256(and8(c, 15), and8(_mm256_srli_epi16(a, 2), 0x30));
    const __m256i m1 =
        _mm256_or_si256(and8(_mm256_srli_epi16(c, 4), 15), and8(_mm256_srli_epi16(b, 2), 0x30));
    sc[0] = spread(s0, 0), sc[1] = spread(s0, 1), sc[2] = spread(s0, 2), sc[3] = spread(s0, 3);
    sc[4] = spread(s1, 0), sc[5] = spread(s1, 1), sc[6] = spread(s1, 2), sc[7] = spread(s1, 3);
    pair[0] = _mm256_and_si256(m0, byte), pair[1] = _mm256_srli_epi16(m0, 8);
    pair[2] = _mm256_and_si256(m1, byte), pair[3] = _mm256_srli_epi16(m1, 8);
}

/* Q6_K: 16 scales, 8 pairs of them. */
INLINE void scales_k6(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    for (int i = 0; i < 4; i++) {
        const __m256i v = load(p + TILE_LINE * i);
        sc[4 * i] = spread_signed(v, 0, 0), sc[4 * i + 1] = spread_signed(v, 1, 1);
        sc[4 * i + 2] = spread_signed(v, 2, 2), sc[4 * i + 3] = spread_signed(v, 3, 3);
        pair[2 * i] = spread_signed(v, 0, 1), pair[2 * i + 1] = spread_signed(v, 2, 3);
    }
}

/* Word 8p+s of 8 rows, from its line and the fifth bits of s: sub-blocks 2p and 2p+1. */
INLINE void unpack_k45(const int bits, __m256i v, __m256i fifth, const int p, __m256i *lo,
                       __m256i *hi)
{
    *lo = and8(v, 15);
    *hi = and8(_mm256_srli_epi16(v, 4), 15);
    if (bits == 5) {
        const int up = 4 - 2 * p; /* from bit 2p to bit 4 */
        const __m256i l = up >= 0 ? _mm256_slli_epi32(fifth, up) : _mm256_srli_epi32(fifth, -up);
        const __m256i h =
            up >= 1 ? _mm256_slli_epi32(fifth, up - 1) : _mm256_srli_epi32(fifth, 1 - up);
        *lo = _mm256_or_si256(*lo, and8(l, 16));
        *hi = _mm256_or_si256(*hi, and8(h, 16));
    }
}

/* Triple s of a half block: words s of its four sub-blocks of 32. */
INLINE void unpack_k6(const uint8_t *p, __m256i *w)
{
    const __m256i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    w[0] = _mm256_or_si256(and8(a, 15), and8(_mm256_slli_epi16(c, 4), 0x30));
    w[1] = _mm256_or_si256(and8(b, 15), and8(_mm256_slli_epi16(c, 2), 0x30));
    w[2] = _mm256_or_si256(and8(_mm256_srli_epi16(a, 4), 15), and8(c, 0x30));
    w[3] = _mm256_or_si256(and8(_mm256_srli_epi16(b, 4), 15), and8(_mm256_srli_epi16(c, 2), 0x30));
}

INLINE void accumulate_k45(__m256i i, __m256i mn, __m256 d, __m256 dmin, const a8_256 *a, float *y)
{
    __m256 t = _mm256_mul_ps(d, _mm256_cvtepi32_ps(i));
    t = _mm256_fnmadd_ps(dmin, _mm256_cvtepi32_ps(mn), t);
    _mm256_store_ps(y, _mm256_fmadd_ps(t, _mm256_broadcast_ss(&a->d), _mm256_load_ps(y)));
}
INLINE void accumulate_k6(__m256i i, __m256i c, __m256 d, const a8_256 *a, float *y)
{
    const __m256i whole = _mm256_sub_epi32(i, _mm256_slli_epi32(c, 5));
    const __m256 t = _mm256_mul_ps(d, _mm256_cvtepi32_ps(whole));
    _mm256_store_ps(y, _mm256_fmadd_ps(t, _mm256_broadcast_ss(&a->d), _mm256_load_ps(y)));
}
/* Σ pair · sums, n pairs. */
INLINE __m256i pair_dot(const __m256i *pair, const int16_t *sums, const int n)
{
    __m256i s = _mm256_madd_epi16(pair[0], word(sums));
    for (int i = 1; i < n; i++)
        s = _mm256_add_epi32(s, _mm256_madd_epi16(pair[i], word(sums + 2 * i)));
    return s;
}

/* 8 rows of a Q4_K or Q5_K block times n vectors; p: the half's place in its group, d16: its d. */
INLINE void direct_k45(const int bits, const int h, const uint8_t *d16, const uint8_t *p,
                       const a8_256 *a, const int n, int32_t shift, float *y)
{
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    __m256i sc[8], pair[4], sum[2];
    for (int i = 0; i < 4; i++) ahead(p + TILE_LINE * i, h);
    scales_k45(p + TILE_LINE, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        __m256i lo16[2], hi16[2];
        for (int t = 0; t < n; t++) lo16[t] = hi16[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const uint8_t *line = low + TILE_LINE * (8 * pr + s);
            __m256i lo, hi, fifth = _mm256_setzero_si256();
            ahead(line, h);
            if (bits == 5 && pr == 0) ahead(high + TILE_LINE * s, h);
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(line), fifth, pr, &lo, &hi);
            for (int t = 0; t < n; t++) {
                const int8_t *q = a[t].q + 64 * pr + 4 * s;
                const __m256i l = _mm256_maddubs_epi16(lo, word(q));
                const __m256i u = _mm256_maddubs_epi16(hi, word(q + 32));
                lo16[t] = _mm256_add_epi16(lo16[t], l);
                KEEP(lo16[t]);
                hi16[t] = _mm256_add_epi16(hi16[t], u);
                KEEP(hi16[t]);
                if (s != 7 && !(bits == 5 && s == 3)) continue;
                sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(lo16[t], sc[2 * pr]));
                KEEP(sum[t]);
                sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(hi16[t], sc[2 * pr + 1]));
                KEEP(sum[t]);
                lo16[t] = hi16[t] = _mm256_setzero_si256();
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate_k45(sum[t], pair_dot(pair, a[t].s32, 4), halves(d16), halves(d16 + 32), &a[t],
                       y + (t >> shift) * TILE_ROWS);
}

/* 8 rows of a Q6_K block times n vectors; p: the half's place in its group, d16: its d. */
INLINE void direct_k6(const int which, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                      const int n, int32_t shift, float *y)
{
    __m256i sc[16], pair[8], sum[2];
    for (int i = 0; i < 4; i++) ahead(p + TILE_LINE * i, which);
    scales_k6(p, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
#pragma GCC unroll 4
        for (int s = 0; s < 8; s += 2) {
            __m256i w0[4], w1[4];
            const uint8_t *triple = p + TILE_LINE * (4 + 3 * (8 * h + s));
            for (int i = 0; i < 6; i++) ahead(triple + TILE_LINE * i, which);
            unpack_k6(triple, w0);
            unpack_k6(triple + 3 * TILE_LINE, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = a[t].q + 128 * h + 32 * k + 4 * s;
                    const __m256i x = _mm256_add_epi16(_mm256_maddubs_epi16(w0[k], word(q)),
                                                       _mm256_maddubs_epi16(w1[k], word(q + 4)));
                    sum[t] =
                        _mm256_add_epi32(sum[t], _mm256_madd_epi16(x, sc[8 * h + 2 * k + s / 4]));
                }
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate_k6(sum[t], pair_dot(pair, a[t].s16, 8), halves(d16), &a[t],
                      y + (t >> shift) * TILE_ROWS);
}

INLINE void direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                   size_t stride, const int n, int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++) {
        const a8_256 *a = (const a8_256 *)(const void *)(act + (size_t)b * stride);
        const uint8_t *p = tile + TILE_LINE * head_lines(bits);
        if (bits == 6) prefetch(tile);
        for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
            for (int h = 0; h < 2; h++) {
                const int row = 16 * g + 8 * h;
                if (bits == 6)
                    direct_k6(h, tile + 2 * row, p + 32 * h, a, n, shift, y + row);
                else
                    direct_k45(bits, h, p + 16 * h, p + 32 * h, a, n, shift, y + row);
            }
        }
        tile = p;
    }
}

INLINE void unpack_half(const int bits, const uint8_t *d16, const uint8_t *p, const int half,
                        panel256 *u)
{
    __m256i(*w)[1] = (__m256i(*)[1])(void *)u->w[half];
    __m256i *sc = (__m256i *)(void *)u->sc[half], *pair = (__m256i *)(void *)u->pair[half];
    _mm256_store_ps(u->d + 8 * half, halves(d16));
    if (bits == 6) {
        scales_k6(p, sc, pair);
        for (int h = 0; h < 2; h++) {
            for (int s = 0; s < 8; s++) {
                __m256i x[4];
                unpack_k6(p + TILE_LINE * (4 + 3 * (8 * h + s)), x);
                for (int k = 0; k < 4; k++) w[32 * h + 8 * k + s][0] = x[k];
            }
        }
        return;
    }
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    scales_k45(p + TILE_LINE, sc, pair);
    _mm256_store_ps(u->dmin + 8 * half, halves(d16 + 32));
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        for (int s = 0; s < 8; s++) {
            __m256i fifth = _mm256_setzero_si256();
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(low + TILE_LINE * (8 * pr + s)), fifth, pr, w[16 * pr + s],
                       w[16 * pr + 8 + s]);
        }
    }
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    const uint8_t *p = tile + TILE_LINE * head_lines(bits);
    const int lines = head_lines(bits) + 2 * group_lines(bits);
    for (int i = 0; i < lines; i++) prefetch(tile + TILE_LINE * i);
    for (int half = 0; half < N_HALF; half++) {
        const uint8_t *group = p + half / 2 * TILE_LINE * group_lines(bits);
        const uint8_t *d16 = bits == 6 ? tile + 16 * half : group + 16 * (half % 2);
        unpack_half(bits, d16, group + 32 * (half % 2), half, u);
    }
}

/* Halves 2g and 2g+1 of the panel times n vectors. */
INLINE void panel_group(const int bits, const panel256 *u, const int g, const a8_256 *a,
                        const int n, int32_t v, int32_t shift, float *y)
{
    enum { MOST = 4 };
    const int lines = bits == 4 ? 8 : bits == 5 ? 4 : 2; /* that add up in 16 bits */
    const int scale_lines = bits == 6 ? 4 : 8;
    const uint8_t *w0 = u->w[2 * g][0], *w1 = u->w[2 * g + 1][0];
    __m256i i0[MOST], i1[MOST];
    for (int t = 0; t < n; t++) i0[t] = i1[t] = _mm256_setzero_si256();
    for (int s = 0; s < N_LINE; s += lines) {
        const __m256i c0 = load(u->sc[2 * g][s / scale_lines]);
        const __m256i c1 = load(u->sc[2 * g + 1][s / scale_lines]);
        __m256i s0[MOST], s1[MOST];
        for (int t = 0; t < n; t++) s0[t] = s1[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = 0; k < lines; k++) {
            const __m256i a0 = load(w0 + 32 * (s + k)), a1 = load(w1 + 32 * (s + k));
            for (int t = 0; t < n; t++) {
                const __m256i q = word(a[t].q + 4 * (s + k));
                const __m256i p0 = _mm256_maddubs_epi16(a0, q), p1 = _mm256_maddubs_epi16(a1, q);
                s0[t] = _mm256_add_epi16(s0[t], p0);
                KEEP(s0[t]);
                s1[t] = _mm256_add_epi16(s1[t], p1);
                KEEP(s1[t]);
            }
        }
        for (int t = 0; t < n; t++) {
            i0[t] = _mm256_add_epi32(i0[t], _mm256_madd_epi16(s0[t], c0));
            KEEP(i0[t]);
            i1[t] = _mm256_add_epi32(i1[t], _mm256_madd_epi16(s1[t], c1));
            KEEP(i1[t]);
        }
    }
    for (int t = 0; t < n; t++) {
        float *out = y + ((v + t) >> shift) * TILE_ROWS + 16 * g;
        const float *d = u->d + 16 * g, *dmin = u->dmin + 16 * g;
        const __m256i *p0 = (const __m256i *)(const void *)u->pair[2 * g];
        const __m256i *p1 = (const __m256i *)(const void *)u->pair[2 * g + 1];
        if (bits == 6) {
            accumulate_k6(i0[t], pair_dot(p0, a[t].s16, 8), _mm256_load_ps(d), &a[t], out);
            accumulate_k6(i1[t], pair_dot(p1, a[t].s16, 8), _mm256_load_ps(d + 8), &a[t], out + 8);
        } else {
            accumulate_k45(i0[t], pair_dot(p0, a[t].s32, 4), _mm256_load_ps(d),
                           _mm256_load_ps(dmin), &a[t], out);
            accumulate_k45(i1[t], pair_dot(p1, a[t].s32, 4), _mm256_load_ps(d + 8),
                           _mm256_load_ps(dmin + 8), &a[t], out + 8);
        }
    }
}

INLINE void panel_vecs(const int bits, const panel256 *u, const a8_256 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    panel_group(bits, u, 0, a, n, v, shift, y);
    panel_group(bits, u, 1, a, n, v, shift, y);
}

INLINE void panel_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                      const a8_256 *a, int32_t n_vec, int32_t shift, float *y)
{
    const int step = bits == 4 ? 4 : 2; /* vectors at a time */
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

DEFINE_TILE(avx2_tile_q4_k, 4)
DEFINE_TILE(avx2_tile_q5_k, 5)
DEFINE_TILE(avx2_tile_q6_k, 6)
