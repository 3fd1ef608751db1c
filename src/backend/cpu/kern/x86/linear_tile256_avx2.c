/* Tiles of Q4_K, Q5_K and Q6_K, AVX2.  A lane is an output row; a register holds one word of 8 rows.

   Exactness, |q| ≤ 127 and stored weights from 0 up: vpmaddubsw's pairs are at most 2·15·127 = 3,810
   (4 bits), 7,874 (5) and 16,002 (6); so 8, 4 and 2 lines add up in 16 bits (30,480; 31,496; 32,004)
   before one vpmaddwd with the sub-block's scale in both places takes them to 32 bits:
   |sum| ≤ 256·63·127·128 = 262 M.  Q6_K's centring is undone at the end: −32·Σ sc·Σ q, at most 133 M. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tile256_avx2_body.h"

#include "backend/cpu/kern/x86/panel256_avx2_body.h"

/* Q4_K, Q5_K: the 8 scales and the 4 pairs of minima of 8 rows. */
INLINE void scales_k45(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    const __m256i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    const __m256i byte = _mm256_set1_epi16(0xff);
    const __m256i s0 = and8(a, 63), m0 = and8(b, 63);
    const __m256i s1 = _mm256_or_si256(low_nibbles(c), and8(_mm256_srli_epi16(a, 2), 0x30));
    const __m256i m1 = _mm256_or_si256(high_nibbles(c), and8(_mm256_srli_epi16(b, 2), 0x30));
    sc[0] = spread(s0, 0, 0), sc[1] = spread(s0, 1, 1), sc[2] = spread(s0, 2, 2),
    sc[3] = spread(s0, 3, 3);
    sc[4] = spread(s1, 0, 0), sc[5] = spread(s1, 1, 1), sc[6] = spread(s1, 2, 2),
    sc[7] = spread(s1, 3, 3);
    pair[0] = _mm256_and_si256(m0, byte), pair[1] = _mm256_srli_epi16(m0, 8);
    pair[2] = _mm256_and_si256(m1, byte), pair[3] = _mm256_srli_epi16(m1, 8);
}

/* Q6_K: 16 scales, 8 pairs of them. */
INLINE void scales_k6(const uint8_t *p, __m256i *sc, __m256i *pair)
{
    for (int i = 0; i < 4; i++) signed_scales(load(p + TILE_LINE * i), sc + 4 * i, pair + 2 * i);
}

/* Word 8p+s of 8 rows, from its line and the fifth bits of s: sub-blocks 2p and 2p+1. */
INLINE void unpack_k45(const int bits, __m256i v, __m256i fifth, const int p, __m256i *lo,
                       __m256i *hi)
{
    *lo = low_nibbles(v);
    *hi = high_nibbles(v);
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
    w[0] = _mm256_or_si256(low_nibbles(a), and8(_mm256_slli_epi16(c, 4), 0x30));
    w[1] = _mm256_or_si256(low_nibbles(b), and8(_mm256_slli_epi16(c, 2), 0x30));
    w[2] = _mm256_or_si256(high_nibbles(a), and8(c, 0x30));
    w[3] = _mm256_or_si256(high_nibbles(b), and8(_mm256_srli_epi16(c, 2), 0x30));
}

/* Word 8p+s of 8 rows, from memory that is walked. */
INLINE void line_k45(const int bits, const int half, const uint8_t *group, const int p, const int s,
                     __m256i *lo, __m256i *hi)
{
    const uint8_t *high = group + TILE_LINE * (4 + s);
    const uint8_t *line = group + TILE_LINE * ((bits == 5 ? 12 : 4) + 8 * p + s);
    __m256i fifth = _mm256_setzero_si256();
    ahead(line, half);
    if (bits == 5) {
        fifth = load(high);
        if (p == 0) ahead(high, half);
    }
    unpack_k45(bits, load(line), fifth, p, lo, hi);
}

/* 8 rows of a Q4_K or Q5_K block times n vectors; p: the half's place in its group, d16: its d. */
INLINE void direct_k45(const int bits, const int h, const uint8_t *d16, const uint8_t *p,
                       const a8_256 *a, const int n, int32_t shift, float *y)
{
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
            __m256i lo, hi;
            line_k45(bits, h, p, pr, s, &lo, &hi);
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
            IN_ORDER();
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], pair, halves(d16), halves(d16 + 32), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

/* Triples s and s + 1 of half block h, from memory that is walked. */
INLINE void triples_k6(const int which, const uint8_t *group, const int h, const int s, __m256i *w0,
                       __m256i *w1)
{
    const uint8_t *triple = group + TILE_LINE * (4 + 3 * (8 * h + s));
    for (int i = 0; i < 6; i++) ahead(triple + TILE_LINE * i, which);
    unpack_k6(triple, w0);
    unpack_k6(triple + 3 * TILE_LINE, w1);
}

/* Two words of a sub-block with theirs of a vector, scaled. */
INLINE __m256i dots_k6(__m256i w0, __m256i w1, const int8_t *q, __m256i scale)
{
    const __m256i x =
        _mm256_add_epi16(_mm256_maddubs_epi16(w0, word(q)), _mm256_maddubs_epi16(w1, word(q + 4)));
    return _mm256_madd_epi16(x, scale);
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
            triples_k6(which, p, h, s, w0, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = a[t].q + 128 * h + 32 * k + 4 * s;
                    const __m256i x = dots_k6(w0[k], w1[k], q, sc[8 * h + 2 * k + s / 4]);
                    sum[t] = _mm256_add_epi32(sum[t], x);
                }
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(6, sum[t], pair, halves(d16), halves(d16), &a[t], y + (t >> shift) * TILE_ROWS);
}

INLINE void direct_half(const int bits, const int half, const uint8_t *d16, const uint8_t *p,
                        const a8_256 *a, const int n, int32_t shift, float *y)
{
    if (bits == 6)
        direct_k6(half, d16, p, a, n, shift, y);
    else
        direct_k45(bits, half, d16, p, a, n, shift, y);
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

DEFINE_TILE(avx2_tile_q4_k, 4)
DEFINE_TILE(avx2_tile_q5_k, 5)
DEFINE_TILE(avx2_tile_q6_k, 6)

/* Fine activations: a group of 32 has a scale of its own, so its exact sum becomes a float. */
INLINE const a8_32 *group_of(const uint8_t *act, size_t stride, int j, int32_t v)
{
    return (const a8_32 *)(const void *)(act + (size_t)j * stride) + v;
}
/* Minima as floats, from their pairs. */
INLINE void float_minima(const __m256i *pair, __m256 *m)
{
    for (int i = 0; i < 4; i++) {
        const int j = i / 2 * 4 + i % 2;
        m[j] = _mm256_cvtepi32_ps(_mm256_and_si256(pair[i], _mm256_set1_epi32(0xffff)));
        m[j + 2] = _mm256_cvtepi32_ps(_mm256_srli_epi32(pair[i], 16));
    }
}
/* f + Σ scale · dot · dx of one group; Q6_K's scales undo its centring. */
INLINE __m256 add_group(const int bits, __m256 f, __m256i i, __m256i pair, const a8_32 *a)
{
    if (bits == 6) {
        const __m256i c = _mm256_madd_epi16(pair, word(a->s16));
        i = _mm256_sub_epi32(i, _mm256_slli_epi32(c, 5));
    }
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(i), _mm256_broadcast_ss(&a->d), f);
}
INLINE void fine_store(const int bits, __m256 f, __m256 g, __m256 d, __m256 dmin, float *y)
{
    __m256 sum = _mm256_fmadd_ps(d, f, _mm256_load_ps(y));
    if (has_min(bits)) sum = _mm256_fnmadd_ps(dmin, g, sum);
    _mm256_store_ps(y, sum);
}

INLINE void fine_direct_k45(const int bits, const int h, const uint8_t *d16, const uint8_t *p,
                            const uint8_t *act, size_t stride, const int n, int32_t shift, float *y)
{
    __m256i sc[8], pair[4];
    __m256 m[8], f[2], g[2];
    for (int i = 0; i < 4; i++) ahead(p + TILE_LINE * i, h);
    scales_k45(p + TILE_LINE, sc, pair);
    float_minima(pair, m);
    for (int t = 0; t < n; t++) f[t] = g[t] = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        const a8_32 *a[2] = {group_of(act, stride, 2 * pr, 0),
                             group_of(act, stride, 2 * pr + 1, 0)};
        __m256i sum[2][2], part[2][2];
        for (int t = 0; t < n; t++)
            sum[0][t] = sum[1][t] = part[0][t] = part[1][t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m256i w[2];
            line_k45(bits, h, p, pr, s, &w[0], &w[1]);
            for (int k = 0; k < 2; k++) {
                for (int t = 0; t < n; t++) {
                    const __m256i x = _mm256_maddubs_epi16(w[k], word(a[k][t].q + 4 * s));
                    part[k][t] = _mm256_add_epi16(part[k][t], x);
                    KEEP(part[k][t]);
                    if (s != 7 && !(bits == 5 && s == 3)) continue;
                    const __m256i scaled = _mm256_madd_epi16(part[k][t], sc[2 * pr + k]);
                    sum[k][t] = _mm256_add_epi32(sum[k][t], scaled);
                    part[k][t] = _mm256_setzero_si256();
                }
            }
        }
        for (int k = 0; k < 2; k++) {
            for (int t = 0; t < n; t++) {
                f[t] = add_group(bits, f[t], sum[k][t], pair[0], &a[k][t]);
                g[t] = _mm256_fmadd_ps(m[2 * pr + k], _mm256_broadcast_ss(&a[k][t].s), g[t]);
            }
        }
    }
    for (int t = 0; t < n; t++)
        fine_store(bits, f[t], g[t], halves(d16), halves(d16 + 32), y + (t >> shift) * TILE_ROWS);
}

INLINE void fine_direct_k6(const int which, const uint8_t *d16, const uint8_t *p,
                           const uint8_t *act, size_t stride, const int n, int32_t shift, float *y)
{
    __m256i sc[16], pair[8];
    __m256 f[2];
    for (int i = 0; i < 4; i++) ahead(p + TILE_LINE * i, which);
    scales_k6(p, sc, pair);
    for (int t = 0; t < n; t++) f[t] = _mm256_setzero_ps();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256i sum[4][2];
        for (int t = 0; t < n; t++)
            sum[0][t] = sum[1][t] = sum[2][t] = sum[3][t] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int s = 0; s < 8; s += 2) {
            __m256i w0[4], w1[4];
            triples_k6(which, p, h, s, w0, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = group_of(act, stride, 4 * h + k, t)->q + 4 * s;
                    const __m256i x = dots_k6(w0[k], w1[k], q, sc[8 * h + 2 * k + s / 4]);
                    sum[k][t] = _mm256_add_epi32(sum[k][t], x);
                }
            }
        }
        for (int k = 0; k < 4; k++) {
            for (int t = 0; t < n; t++)
                f[t] = add_group(6, f[t], sum[k][t], pair[4 * h + k],
                                 group_of(act, stride, 4 * h + k, t));
        }
    }
    for (int t = 0; t < n; t++)
        fine_store(6, f[t], f[t], halves(d16), halves(d16), y + (t >> shift) * TILE_ROWS);
}

INLINE void fine_direct(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                        size_t stride, const int n, int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++, act += 8 * stride) {
        const uint8_t *p = tile + TILE_LINE * head_lines(bits);
        if (head_lines(bits)) prefetch(tile);
        for (int i = 0; i < N_HALF; i++, p += i % 2 ? 0 : TILE_LINE * group_lines(bits)) {
            const uint8_t *d16 = half_d(bits, tile, p, i), *half = p + 32 * (i % 2);
            if (bits == 6)
                fine_direct_k6(i % 2, d16, half, act, stride, n, shift, y + 8 * i);
            else
                fine_direct_k45(bits, i % 2, d16, half, act, stride, n, shift, y + 8 * i);
        }
        tile = p;
    }
}

/* The panel's minima become floats, in place of their pairs. */
INLINE void fine_panel(const int bits, panel256 *u)
{
    for (int half = 0; half < N_HALF && has_min(bits); half++) {
        __m256i pair[4];
        __m256 m[8];
        for (int i = 0; i < 4; i++) pair[i] = load(u->pair[half][i]);
        float_minima(pair, m);
        for (int i = 0; i < 8; i++) _mm256_store_ps((float *)(void *)u->pair[half][i], m[i]);
    }
}

/* Group j of halves 2g and 2g+1 of the panel times n vectors, into their sums. */
INLINE void fine_group(const int bits, const panel256 *u, const int g, const int j, const a8_32 *a,
                       const int n, __m256 *f0, __m256 *f1)
{
    const int lines = sum_lines(bits);
    const int16_t(*sc0)[16] = u->sc[2 * g] + 8 * j / scale_lines(bits);
    const int16_t(*sc1)[16] = u->sc[2 * g + 1] + 8 * j / scale_lines(bits);
    __m256i i0[MAX_STEP], i1[MAX_STEP];
#pragma GCC unroll 4
    for (int s = 0; s < 8; s += lines) {
        __m256i s0[MAX_STEP], s1[MAX_STEP];
        for (int t = 0; t < n; t++) s0[t] = s1[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = s; k < s + lines; k++) {
            const __m256i a0 = load(u->w[2 * g][8 * j + k]), a1 = load(u->w[2 * g + 1][8 * j + k]);
            for (int t = 0; t < n; t++) {
                const __m256i q = word(a[t].q + 4 * k);
                s0[t] = _mm256_add_epi16(s0[t], _mm256_maddubs_epi16(a0, q));
                KEEP(s0[t]);
                s1[t] = _mm256_add_epi16(s1[t], _mm256_maddubs_epi16(a1, q));
                KEEP(s1[t]);
            }
        }
        for (int t = 0; t < n; t++) {
            const __m256i x0 = _mm256_madd_epi16(s0[t], load(sc0[s / scale_lines(bits)]));
            const __m256i x1 = _mm256_madd_epi16(s1[t], load(sc1[s / scale_lines(bits)]));
            i0[t] = s ? _mm256_add_epi32(i0[t], x0) : x0;
            i1[t] = s ? _mm256_add_epi32(i1[t], x1) : x1;
        }
    }
    for (int t = 0; t < n; t++) {
        f0[t] = add_group(bits, f0[t], i0[t], load(u->pair[2 * g][j]), &a[t]);
        f1[t] = add_group(bits, f1[t], i1[t], load(u->pair[2 * g + 1][j]), &a[t]);
    }
}

/* Halves 2g and 2g+1 of the panel times vectors v … v+n-1. */
INLINE void fine_halves(const int bits, const panel256 *u, const int g, const uint8_t *act,
                        size_t stride, const int n, int32_t v, int32_t shift, float *y)
{
    __m256 f[2][MAX_STEP], m[2][MAX_STEP];
    for (int t = 0; t < n; t++) f[0][t] = f[1][t] = m[0][t] = m[1][t] = _mm256_setzero_ps();
    for (int j = 0; j < 8; j++)
        fine_group(bits, u, g, j, group_of(act, stride, j, v), n, f[0], f[1]);
    for (int j = 0; j < 8 && has_min(bits); j++) {
        const a8_32 *a = group_of(act, stride, j, v);
        for (int t = 0; t < n; t++) {
            const __m256 s = _mm256_broadcast_ss(&a[t].s);
            for (int h = 0; h < 2; h++) {
                const float *min = (const float *)(const void *)u->pair[2 * g + h][j];
                m[h][t] = _mm256_fmadd_ps(_mm256_load_ps(min), s, m[h][t]);
            }
        }
    }
    for (int t = 0; t < n; t++) {
        for (int h = 0; h < 2; h++) {
            const int row = 16 * g + 8 * h;
            fine_store(bits, f[h][t], m[h][t], _mm256_load_ps(u->d + row),
                       _mm256_load_ps(u->dmin + row), y + ((v + t) >> shift) * TILE_ROWS + row);
        }
    }
}

INLINE void fine_vecs(const int bits, const panel256 *u, const uint8_t *act, size_t stride,
                      const int n, int32_t v, int32_t shift, float *y)
{
    for (int g = 0; g < 2; g++) fine_halves(bits, u, g, act, stride, n, v, shift, y);
}

INLINE void fine_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                     const uint8_t *act, size_t stride, int32_t n_vec, int32_t shift, float *y)
{
    int32_t v = 0;
    (void)tile, (void)block;
    for (; v + MAX_STEP <= n_vec; v += MAX_STEP)
        fine_vecs(bits, u, act, stride, MAX_STEP, v, shift, y);
    for (; v + 2 <= n_vec; v += 2) fine_vecs(bits, u, act, stride, 2, v, shift, y);
    if (v < n_vec) fine_vecs(bits, u, act, stride, 1, v, shift, y);
}

#include "backend/cpu/kern/body/fine256_body.h"

DEFINE_FINE(avx2_fine_q4_k, 4)
DEFINE_FINE(avx2_fine_q5_k, 5)
DEFINE_FINE(avx2_fine_q6_k, 6)
