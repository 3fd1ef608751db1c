/* Tiles of Q4_K, Q5_K and Q6_K, AVX-512 VNNI. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tile256_avx512vnni_body.h"

/* Word 8p+s of 16 rows, from memory that is walked. */
INLINE void line_k45(const int bits, const uint8_t *group, const int p, const int s, __m512i *lo,
                     __m512i *hi)
{
    const uint8_t *high = group + TILE_LINE * (4 + s);
    const uint8_t *line = group + TILE_LINE * ((bits == 5 ? 12 : 4) + 8 * p + s);
    __m512i fifth = _mm512_setzero_si512();
    prefetch(line);
    if (bits == 5) {
        fifth = load(high);
        if (p == 0) prefetch(high);
    }
    unpack_k45(bits, load(line), fifth, p, lo, hi);
}

/* 16 rows of a Q4_K or Q5_K block times n vectors. */
INLINE void direct_k45(const int bits, const uint8_t *p, const a8_256 *a, const int n,
                       int32_t shift, float *y)
{
    __m512i sc[8], pair[8], sum[DIRECT_VEC];
    for (int i = 0; i < 4; i++) prefetch(p + TILE_LINE * i);
    scales_k45(p + TILE_LINE, sc, pair);
    for (int t = 0; t < n; t++) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        __m512i l[DIRECT_VEC], h[DIRECT_VEC];
        for (int t = 0; t < n; t++) {
            l[t] = start(bits, &a[t], 16 * pr);
            h[t] = start(bits, &a[t], 16 * pr + 8);
        }
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m512i lo, hi;
            line_k45(bits, p, pr, s, &lo, &hi);
            for (int t = 0; t < n; t++) {
                const int8_t *q = a[t].q + 64 * pr + 4 * s;
                l[t] = _mm512_dpbusd_epi32(l[t], lo, word(q));
                h[t] = _mm512_dpbusd_epi32(h[t], hi, word(q + 32));
                if (bits == 5 && s == 3) {
                    sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr], l[t]);
                    sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr + 1], h[t]);
                    l[t] = start(bits, &a[t], 16 * pr + 4);
                    h[t] = start(bits, &a[t], 16 * pr + 12);
                }
            }
        }
        for (int t = 0; t < n; t++) {
            sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr], l[t]);
            sum[t] = _mm512_dpwssd_epi32(sum[t], sc[2 * pr + 1], h[t]);
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(bits, sum[t], pair, halves(p), halves(p + 32), &a[t],
                   y + (t >> shift) * TILE_ROWS);
}

/* 16 rows of a Q6_K block times n vectors; d16: their d. */
INLINE void direct_k6(const uint8_t *d16, const uint8_t *p, const a8_256 *a, const int n,
                      int32_t shift, float *y)
{
    __m512i sc[16], sum[DIRECT_VEC];
    for (int i = 0; i < 4; i++) prefetch(p + TILE_LINE * i);
    scales_k6(p, sc);
    for (int t = 0; t < n; t++) sum[t] = _mm512_setzero_si512();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
#pragma GCC unroll 4
        for (int s = 0; s < 8; s += 2) {
            __m512i w0[4], w1[4];
            const uint8_t *triple = p + TILE_LINE * (4 + 3 * (8 * h + s));
            for (int i = 0; i < 6; i++) prefetch(triple + TILE_LINE * i);
            unpack_k6(triple, w0);
            unpack_k6(triple + 3 * TILE_LINE, w1);
            for (int t = 0; t < n; t++) {
                for (int k = 0; k < 4; k++) {
                    const int line = 32 * h + 8 * k + s;
                    __m512i x = start(6, &a[t], line);
                    x = _mm512_dpbusd_epi32(x, w0[k], word(a[t].q + 4 * line));
                    x = _mm512_dpbusd_epi32(x, w1[k], word(a[t].q + 4 * line + 4));
                    sum[t] = _mm512_dpwssd_epi32(sum[t], sc[line / 4], x);
                }
            }
        }
    }
    for (int t = 0; t < n; t++)
        accumulate(6, sum[t], sc, halves(d16), halves(d16), &a[t], y + (t >> shift) * TILE_ROWS);
}

INLINE void direct_group(const int bits, const uint8_t *d16, const uint8_t *p, const a8_256 *a,
                         const int n, int32_t shift, float *y)
{
    if (bits == 6)
        direct_k6(d16, p, a, n, shift, y);
    else
        direct_k45(bits, p, a, n, shift, y);
}

INLINE void unpack_group(const int bits, const uint8_t *d16, const uint8_t *p, const int g,
                         panel256 *u)
{
    __m512i sc[16], pair[8];
    _mm512_store_ps(u->d + 16 * g, halves(d16));
    if (bits == 6) {
        scales_k6(p, sc);
        for (int i = 0; i < 16; i++) _mm512_store_si512(u->sc[g][i], sc[i]);
        for (int h = 0; h < 2; h++) {
            for (int s = 0; s < 8; s++) {
                __m512i x[4];
                unpack_k6(p + TILE_LINE * (4 + 3 * (8 * h + s)), x);
                for (int k = 0; k < 4; k++) _mm512_store_si512(u->w[g][32 * h + 8 * k + s], x[k]);
            }
        }
        return;
    }
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    scales_k45(p + TILE_LINE, sc, pair);
    for (int i = 0; i < 8; i++) {
        _mm512_store_si512(u->sc[g][i], sc[i]);
        /* scales · centre: at most 63·16 */
        _mm512_store_si512(u->pair[g][i], i < 4 ? pair[i] : shl16(pair[i], bits == 4 ? 3 : 4));
    }
    _mm512_store_ps(u->dmin + 16 * g, halves(d16 + 32));
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        for (int s = 0; s < 8; s++) {
            __m512i lo, hi, fifth = _mm512_setzero_si512();
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(low + TILE_LINE * (8 * pr + s)), fifth, pr, &lo, &hi);
            _mm512_store_si512(u->w[g][16 * pr + s], lo);
            _mm512_store_si512(u->w[g][16 * pr + 8 + s], hi);
        }
    }
}

DEFINE_TILE(vnni_tile_q4_k, 4)
DEFINE_TILE(vnni_tile_q5_k, 5)
DEFINE_TILE(vnni_tile_q6_k, 6)

/* Fine activations: a group of 32 has a scale of its own, so its exact sum becomes a float. */

/* Scales as floats, and minima where there are any: else `pair` and `fm` are not touched. */
INLINE void float_scales(const int bits, const __m512i *sc, const __m512i *pair, __m512 *fsc,
                         __m512 *fm)
{
    for (int j = 0; j < N_LINE / scale_lines(bits); j++) {
        const __m512i low = bits == 6 ? _mm512_slli_epi32(sc[j], 16) : sc[j];
        fsc[j] = _mm512_cvtepi32_ps(bits == 6 ? _mm512_srai_epi32(low, 16) : low);
    }
    for (int i = 0; i < 4 && has_min(bits); i++) {
        const int j = i / 2 * 4 + i % 2;
        fm[j] = _mm512_cvtepi32_ps(_mm512_and_si512(pair[i], _mm512_set1_epi32(0xffff)));
        fm[j + 2] = _mm512_cvtepi32_ps(_mm512_srli_epi32(pair[i], 16));
    }
}

INLINE const a8_32 *group_of(const uint8_t *act, size_t stride, int j, int32_t v)
{
    return (const a8_32 *)(const void *)(act + (size_t)j * stride) + v;
}
/* f + scale · dot · dx; the first product is exact. */
INLINE __m512 add_group(__m512 f, __m512i dot, __m512 scale, const a8_32 *a)
{
    return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dot), scale), _mm512_set1_ps(a->d), f);
}
INLINE void fine_store(const int bits, __m512 f, __m512 g, __m512 d, __m512 dmin, float *y)
{
    __m512 sum = _mm512_fmadd_ps(d, f, _mm512_load_ps(y));
    if (has_min(bits)) sum = _mm512_fnmadd_ps(dmin, g, sum);
    _mm512_store_ps(y, sum);
}

INLINE void fine_direct_k45(const int bits, const uint8_t *p, const uint8_t *act, size_t stride,
                            const int n, int32_t shift, float *y)
{
    __m512i sc[8], pair[8];
    __m512 fsc[8], fm[8], f[DIRECT_VEC], g[DIRECT_VEC];
    for (int i = 0; i < 4; i++) prefetch(p + TILE_LINE * i);
    scales_k45(p + TILE_LINE, sc, pair);
    float_scales(bits, sc, pair, fsc, fm);
    for (int t = 0; t < n; t++) f[t] = g[t] = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        const a8_32 *a = group_of(act, stride, 2 * pr, 0),
                    *b = group_of(act, stride, 2 * pr + 1, 0);
        __m512i l[DIRECT_VEC], h[DIRECT_VEC];
        for (int t = 0; t < n; t++) l[t] = h[t] = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m512i lo, hi;
            line_k45(bits, p, pr, s, &lo, &hi);
            for (int t = 0; t < n; t++) {
                l[t] = _mm512_dpbusd_epi32(l[t], lo, word(a[t].q + 4 * s));
                h[t] = _mm512_dpbusd_epi32(h[t], hi, word(b[t].q + 4 * s));
            }
        }
        for (int t = 0; t < n; t++) {
            f[t] = add_group(f[t], l[t], fsc[2 * pr], &a[t]);
            f[t] = add_group(f[t], h[t], fsc[2 * pr + 1], &b[t]);
            g[t] = _mm512_fmadd_ps(fm[2 * pr], _mm512_set1_ps(a[t].s), g[t]);
            g[t] = _mm512_fmadd_ps(fm[2 * pr + 1], _mm512_set1_ps(b[t].s), g[t]);
        }
    }
    for (int t = 0; t < n; t++)
        fine_store(bits, f[t], g[t], halves(p), halves(p + 32), y + (t >> shift) * TILE_ROWS);
}

INLINE void fine_direct_k6(const uint8_t *d16, const uint8_t *p, const uint8_t *act, size_t stride,
                           const int n, int32_t shift, float *y)
{
    __m512i sc[16];
    __m512 fsc[16], f[DIRECT_VEC];
    for (int i = 0; i < 4; i++) prefetch(p + TILE_LINE * i);
    scales_k6(p, sc);
    float_scales(6, sc, sc, fsc, fsc);
    for (int t = 0; t < n; t++) f[t] = _mm512_setzero_ps();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m512 part[4][DIRECT_VEC]; /* Σ scale · dot of each group of 32: exact */
#pragma GCC unroll 2
        for (int sub = 0; sub < 2; sub++) {
            __m512i dot[4][DIRECT_VEC];
            for (int k = 0; k < 4; k++) {
                for (int t = 0; t < n; t++)
                    dot[k][t] = word(&group_of(act, stride, 4 * h + k, t)->n32_16[sub]);
            }
#pragma GCC unroll 4
            for (int s = 4 * sub; s < 4 * sub + 4; s++) {
                const uint8_t *triple = p + TILE_LINE * (4 + 3 * (8 * h + s));
                __m512i w[4];
                for (int i = 0; i < 3; i++) prefetch(triple + TILE_LINE * i);
                unpack_k6(triple, w);
                for (int k = 0; k < 4; k++) {
                    for (int t = 0; t < n; t++)
                        dot[k][t] = _mm512_dpbusd_epi32(
                            dot[k][t], w[k], word(group_of(act, stride, 4 * h + k, t)->q + 4 * s));
                }
            }
            for (int k = 0; k < 4; k++) {
                const __m512 scale = fsc[8 * h + 2 * k + sub];
                for (int t = 0; t < n; t++) {
                    const __m512 x = _mm512_cvtepi32_ps(dot[k][t]);
                    part[k][t] =
                        sub ? _mm512_fmadd_ps(x, scale, part[k][t]) : _mm512_mul_ps(x, scale);
                }
            }
        }
        for (int k = 0; k < 4; k++) {
            for (int t = 0; t < n; t++)
                f[t] = _mm512_fmadd_ps(
                    part[k][t], _mm512_set1_ps(group_of(act, stride, 4 * h + k, t)->d), f[t]);
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
        for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
            if (bits == 6)
                fine_direct_k6(tile + 32 * g, p, act, stride, n, shift, y + 16 * g);
            else
                fine_direct_k45(bits, p, act, stride, n, shift, y + 16 * g);
        }
        tile = p;
    }
}

/* The panel's scales, and its minima in place of pairs, become floats. */
INLINE void fine_panel(const int bits, panel256 *u)
{
    for (int g = 0; g < 2; g++) {
        __m512i sc[16], pair[4];
        __m512 fsc[16], fm[8];
        for (int i = 0; i < 16; i++) sc[i] = load(u->sc[g][i]);
        for (int i = 0; i < 4; i++) pair[i] = load(u->pair[g][i]);
        float_scales(bits, sc, pair, fsc, fm);
        for (int i = 0; i < N_LINE / scale_lines(bits); i++)
            _mm512_store_ps((float *)(void *)u->sc[g][i], fsc[i]);
        for (int i = 0; i < 8 && has_min(bits); i++)
            _mm512_store_ps((float *)(void *)u->pair[g][i], fm[i]);
    }
}
INLINE __m512 floats(const uint8_t *p)
{
    return _mm512_load_ps((const float *)(const void *)p);
}

/* Lines first … last-1 of a group of 32, of 16 rows at w and 16 a panel's half further, times n
   vectors. */
INLINE void fine_dots(const uint8_t (*w)[64], const int first, const int last, const a8_32 *a,
                      const int n, __m512i *s0, __m512i *s1)
{
#pragma GCC unroll 8
    for (int k = first; k < last; k++) {
        const __m512i w0 = load(w[k]), w1 = load(w[N_LINE + k]);
        dot_lines2(w0, w1, a->q + 4 * k, sizeof *a, n, s0, s1);
    }
}

/* One group of 32 of the panel, whose first scale is `scale`, into the sums of n vectors. */
INLINE void fine_group_k45(const panel256 *u, const int j, const a8_32 *a, const int n, __m512 *f0,
                           __m512 *f1)
{
    __m512i s0[PANEL_VEC], s1[PANEL_VEC];
    for (int t = 0; t < n; t++) s0[t] = s1[t] = _mm512_setzero_si512();
    fine_dots(u->w[0] + 8 * j, 0, 8, a, n, s0, s1);
    for (int t = 0; t < n; t++) {
        f0[t] = add_group(f0[t], s0[t], floats(u->sc[0][j]), &a[t]);
        f1[t] = add_group(f1[t], s1[t], floats(u->sc[1][j]), &a[t]);
    }
}
INLINE void fine_group_k6(const panel256 *u, const int j, const a8_32 *a, const int n, __m512 *f0,
                          __m512 *f1)
{
    __m512 part0[PANEL_VEC], part1[PANEL_VEC];
    __m512i s0[PANEL_VEC], s1[PANEL_VEC];
    for (int t = 0; t < n; t++) s0[t] = s1[t] = word(&a[t].n32_16[0]);
    fine_dots(u->w[0] + 8 * j, 0, 4, a, n, s0, s1);
    for (int t = 0; t < n; t++) {
        part0[t] = _mm512_mul_ps(_mm512_cvtepi32_ps(s0[t]), floats(u->sc[0][2 * j]));
        part1[t] = _mm512_mul_ps(_mm512_cvtepi32_ps(s1[t]), floats(u->sc[1][2 * j]));
        s0[t] = s1[t] = word(&a[t].n32_16[1]);
    }
    fine_dots(u->w[0] + 8 * j, 4, 8, a, n, s0, s1);
    for (int t = 0; t < n; t++) {
        const __m512 dx = _mm512_set1_ps(a[t].d);
        part0[t] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(s0[t]), floats(u->sc[0][2 * j + 1]), part0[t]);
        part1[t] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(s1[t]), floats(u->sc[1][2 * j + 1]), part1[t]);
        f0[t] = _mm512_fmadd_ps(part0[t], dx, f0[t]);
        f1[t] = _mm512_fmadd_ps(part1[t], dx, f1[t]);
    }
}

/* Both groups of rows of the panel times vectors v … v+n-1. */
INLINE void fine_vecs(const int bits, const panel256 *u, const uint8_t *act, size_t stride,
                      const int n, int32_t v, int32_t shift, float *y)
{
    __m512 f0[PANEL_VEC], f1[PANEL_VEC], g0[PANEL_VEC], g1[PANEL_VEC];
    for (int t = 0; t < n; t++) f0[t] = f1[t] = g0[t] = g1[t] = _mm512_setzero_ps();
    for (int j = 0; j < 8; j++) {
        if (bits == 6)
            fine_group_k6(u, j, group_of(act, stride, j, v), n, f0, f1);
        else
            fine_group_k45(u, j, group_of(act, stride, j, v), n, f0, f1);
    }
    for (int j = 0; j < 8 && has_min(bits); j++) {
        const a8_32 *a = group_of(act, stride, j, v);
        for (int t = 0; t < n; t++) {
            const __m512 s = _mm512_set1_ps(a[t].s);
            g0[t] = _mm512_fmadd_ps(floats(u->pair[0][j]), s, g0[t]);
            g1[t] = _mm512_fmadd_ps(floats(u->pair[1][j]), s, g1[t]);
        }
    }
    for (int t = 0; t < n; t++) {
        float *out = y + ((v + t) >> shift) * TILE_ROWS;
        fine_store(bits, f0[t], g0[t], _mm512_load_ps(u->d), _mm512_load_ps(u->dmin), out);
        fine_store(bits, f1[t], g1[t], _mm512_load_ps(u->d + 16), _mm512_load_ps(u->dmin + 16),
                   out + 16);
    }
}

INLINE void fine_all(const int bits, const uint8_t *tile, size_t block, const panel256 *u,
                     const uint8_t *act, size_t stride, int32_t n_vec, int32_t shift, float *y)
{
    const int step = bits == 6 ? 4 : PANEL_VEC; /* Q6_K keeps a third sum for each dot */
    int32_t v = 0;
    for (; v + step <= n_vec; v += step) {
        fetch_next(tile, block, v, step, n_vec);
        fine_vecs(bits, u, act, stride, step, v, shift, y);
    }
    for (; v + 2 <= n_vec; v += 2) fine_vecs(bits, u, act, stride, 2, v, shift, y);
    for (; v < n_vec; v++) fine_vecs(bits, u, act, stride, 1, v, shift, y);
}

#include "backend/cpu/kern/body/fine256_body.h"

DEFINE_FINE(vnni_fine_q4_k, 4)
DEFINE_FINE(vnni_fine_q5_k, 5)
DEFINE_FINE(vnni_fine_q6_k, 6)
