/* Tiles of Q4_K, Q5_K and Q6_K times fine activations, AVX2 registers: a group of 32 has a scale of its own, so
   its exact sum becomes a float.  Included after k456_avx2_body.h. */
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
    const int lines = sum_lines(bits);
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
                    part[k][t] = part_add(part[k][t], w[k], word(a[k][t].q + 4 * s));
                    KEEP(part[k][t]);
                    if ((s + 1) % lines) continue;
                    sum[k][t] = add_part(bits, sum[k][t], part[k][t], sc[2 * pr + k]);
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
        __m256i sum[4][2], x[4][2];
        for (int t = 0; t < n; t++)
            for (int k = 0; k < 4; k++) sum[k][t] = x[k][t] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int s = 0; s < 8; s += 2) {
            __m256i w0[4], w1[4];
            triples_k6(which, p, h, s, w0, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int8_t *q = group_of(act, stride, 4 * h + k, t)->q + 4 * s;
                    const __m256i scale = sc[8 * h + 2 * k + s / 4];
                    dots_k6(w0[k], w1[k], q, s, scale, &x[k][t], &sum[k][t]);
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
    for (int t = 0; t < n; t++) i0[t] = i1[t] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int s = 0; s < 8; s += lines) {
        __m256i s0[MAX_STEP], s1[MAX_STEP];
        for (int t = 0; t < n; t++) s0[t] = s1[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = s; k < s + lines; k++) {
            const __m256i a0 = load(u->w[2 * g][8 * j + k]), a1 = load(u->w[2 * g + 1][8 * j + k]);
            for (int t = 0; t < n; t++) {
                const __m256i q = word(a[t].q + 4 * k);
                s0[t] = part_add(s0[t], a0, q);
                KEEP(s0[t]);
                s1[t] = part_add(s1[t], a1, q);
                KEEP(s1[t]);
            }
        }
        for (int t = 0; t < n; t++) {
            i0[t] = add_part(bits, i0[t], s0[t], load(sc0[s / scale_lines(bits)]));
            i1[t] = add_part(bits, i1[t], s1[t], load(sc1[s / scale_lines(bits)]));
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

DEFINE_FINE(LEVEL(fine_q4_k), 4)
DEFINE_FINE(LEVEL(fine_q5_k), 5)
DEFINE_FINE(LEVEL(fine_q6_k), 6)
