/* Tiles of Q4_K, Q5_K and Q6_K times fine activations, AMX.  A group of 32 has a scale of its own, so its sums leave
   the tile registers as whole numbers and become floats, as in linear_tile32_amx.c.  Of Q4_K and Q5_K the scale of a
   group is multiplied behind that.  Q6_K has two a group, which go into the weights, as two planes of bytes:

     scale · (w − 32) = 256 · high + low      high −16 … 16, low 0 … 255

   whose sums are put together as floats, exactly: below 2^24 in all.

   What minima add is summed up before, away from AMX's instructions, beside which multiplications are slow
   (tiles_amx.h). */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tiles_amx.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#include "backend/cpu/kern/body/linear_tile256_form.h"

#include "backend/cpu/kern/x86/linear_tile256_avx512.h"

enum { GROUPS = 8, LEAST = 16 /* fewer vectors cost less by vpdpbusd */ };

/* One block, unpacked, by groups of 16 rows.  Q4_K, Q5_K use the first plane. */
struct panel256 {
    uint8_t w[2][GROUPS][2][8][TILE_LINE]; /* [rows][32 weights][plane][word] */
    float sc[2][GROUPS][16], min[2][GROUPS][16];
    float d[TILE_ROWS], dmin[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

INLINE void unpack_group_k45(const int bits, const uint8_t *p, const int g, panel256 *u)
{
    const uint8_t *high = p + 4 * TILE_LINE, *low = high + (bits == 5 ? 8 * TILE_LINE : 0);
    __m512i sc[8], pair[8];
    scales_k45(p + TILE_LINE, sc, pair);
    for (int j = 0; j < GROUPS; j++) _mm512_store_ps(u->sc[g][j], _mm512_cvtepi32_ps(sc[j]));
    for (int i = 0; i < 4; i++) {
        const int j = i / 2 * 4 + i % 2;
        const __m512i first = _mm512_and_si512(pair[i], _mm512_set1_epi32(0xffff));
        _mm512_store_ps(u->min[g][j], _mm512_cvtepi32_ps(first));
        _mm512_store_ps(u->min[g][j + 2], _mm512_cvtepi32_ps(_mm512_srli_epi32(pair[i], 16)));
    }
    _mm512_store_ps(u->d + 16 * g, halves(p));
    _mm512_store_ps(u->dmin + 16 * g, halves(p + 32));
#pragma GCC unroll 4
    for (int pr = 0; pr < GROUPS / 2; pr++) {
        for (int s = 0; s < 8; s++) {
            __m512i lo, hi, fifth = _mm512_setzero_si512();
            if (bits == 5) fifth = load(high + TILE_LINE * s);
            unpack_k45(bits, load(low + TILE_LINE * (8 * pr + s)), fifth, pr, &lo, &hi);
            _mm512_store_si512(u->w[g][2 * pr][0][s], lo);
            _mm512_store_si512(u->w[g][2 * pr + 1][0][s], hi);
        }
    }
}

/* d16: d of the group's rows. */
INLINE void unpack_group_k6(const uint8_t *d16, const uint8_t *p, const int g, panel256 *u)
{
    __m512i sc[16];
    scales_k6(p, sc);
    for (int i = 0; i < 16; i++) sc[i] = twice(sc[i]);
    _mm512_store_ps(u->d + 16 * g, halves(d16));
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            __m512i x[4];
            unpack_k6(p + TILE_LINE * (4 + 3 * (8 * h + s)), x);
            for (int k = 0; k < 4; k++)
                store_planes(u->w[g][4 * h + k][0][s], u->w[g][4 * h + k][1][s], x[k],
                             sc[8 * h + 2 * k + s / 4], 5);
        }
    }
}

INLINE void unpack_panel(const int bits, const uint8_t *tile, panel256 *u)
{
    const uint8_t *p = tile + TILE_LINE * head_lines(bits);
    for (int g = 0; g < 2; g++, p += TILE_LINE * group_lines(bits)) {
        if (bits == 6)
            unpack_group_k6(tile + 32 * g, p, g, u);
        else
            unpack_group_k45(bits, p, g, u);
    }
    amx_panel_ready();
}

/* Sums of both groups of rows over what minima meet, of AMX_VEC vectors. */
typedef struct min_sums {
    _Alignas(64) float of[AMX_VEC][2][16];
} min_sums;

INLINE void add_minima(const panel256 *u, const uint8_t *act, size_t stride, min_sums *m)
{
    __m512 min[2][GROUPS];
#pragma GCC unroll 8
    for (int j = 0; j < GROUPS; j++) {
        min[0][j] = _mm512_load_ps(u->min[0][j]);
        min[1][j] = _mm512_load_ps(u->min[1][j]);
    }
    for (int i = 0; i < AMX_VEC; i++, act += sizeof(a8_32)) {
        __m512 sum0 = _mm512_setzero_ps(), sum1 = sum0;
        const uint8_t *p = act;
#pragma GCC unroll 8
        for (int j = 0; j < GROUPS; j++, p += stride) {
            const __m512 s = _mm512_set1_ps(((const a8_32 *)(const void *)p)->s);
            sum0 = _mm512_fmadd_ps(min[0][j], s, sum0);
            sum1 = _mm512_fmadd_ps(min[1][j], s, sum1);
        }
        _mm512_store_ps(m->of[i][0], sum0);
        _mm512_store_ps(m->of[i][1], sum1);
    }
}

/* One product's sums, c[0] and of Q6_K c[1] the high plane's, into those of its vectors a. */
INLINE void add_sums(const int bits, const float *scale, const a8_32 *a, const amx_sums *c,
                     __m512 *f)
{
    const __m512 sc = bits == 6 ? _mm512_setzero_ps() : _mm512_load_ps(scale);
#pragma GCC unroll 16
    for (int i = 0; i < AMX_VEC; i++) {
        const __m512 x = bits == 6 ? amx_float_planes(load(c[1].of[i]), load(c[0].of[i]))
                                   : _mm512_mul_ps(amx_float(load(c[0].of[i])), sc);
        f[i] = _mm512_fmadd_ps(x, _mm512_set1_ps(a[i].d), f[i]);
    }
}

/* Step j: the products of group j into C register c and, of Q6_K, p; those of the group before, in e and q, are
   stored; the sums of the group before that are added up. */
#define STEP(j, c, p, e, q)                                                                        \
    if ((j) < GROUPS) {                                                                            \
        _tile_loadd(4, a, sizeof(a8_32));                                                          \
        _tile_loadd(6, w, TILE_LINE);                                                              \
        if (bits == 6) _tile_loadd(7, w + sizeof u->w[0][0][0], TILE_LINE);                        \
    }                                                                                              \
    if ((j) > 0 && (j) <= GROUPS) {                                                                \
        _tile_stored(e, buf[e][0].of, TILE_LINE);                                                  \
        if (bits == 6) _tile_stored(q, buf[e][1].of, TILE_LINE);                                   \
    }                                                                                              \
    if ((j) < GROUPS) {                                                                            \
        _tile_zero(c);                                                                             \
        _tile_dpbsud(c, 4, 6);                                                                     \
        if (bits == 6) {                                                                           \
            _tile_zero(p);                                                                         \
            _tile_dpbssd(p, 4, 7);                                                                 \
        }                                                                                          \
    }                                                                                              \
    if ((j) > 1)                                                                                   \
        add_sums(bits, u->sc[g][(j)-2], (const a8_32 *)(const void *)(a - 2 * stride), buf[c], f); \
    a += stride, w += sizeof u->w[0][0];

/* Group g of rows times the AMX_VEC vectors at a, the first `from` of which have had it. */
INLINE void vectors(const int bits, const panel256 *u, const int g, const uint8_t *a, size_t stride,
                    const min_sums *m, int32_t from, float *y)
{
    amx_sums buf[2][2];
    __m512 f[AMX_VEC];
    const uint8_t *w = u->w[g][0][0][0];
    for (int i = 0; i < AMX_VEC; i++) f[i] = _mm512_setzero_ps();
#pragma GCC unroll 1
    for (int j = 0; j < GROUPS + 2; j += 2) {
        STEP(j, 0, 2, 1, 3)
        STEP(j + 1, 1, 3, 0, 2)
    }
    const __m512 d = _mm512_load_ps(u->d + 16 * g), dmin = _mm512_load_ps(u->dmin + 16 * g);
#pragma GCC unroll 16
    for (int i = 0; i < AMX_VEC; i++) {
        __m512 sum = _mm512_fmadd_ps(d, f[i], _mm512_load_ps(y + TILE_ROWS * i));
        if (has_min(bits)) sum = _mm512_fnmadd_ps(dmin, _mm512_load_ps(m->of[i][g]), sum);
        if (i >= from) _mm512_store_ps(y + TILE_ROWS * i, sum);
    }
}

INLINE void fine256(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                    size_t stride, int32_t n_vec, float *y, panel256 *u)
{
    const size_t block = (size_t)TILE_LINE * (size_t)(head_lines(bits) + 2 * group_lines(bits));
    memset(y, 0, (size_t)n_vec * TILE_ROWS * sizeof *y);
    amx_begin(AMX_VEC, 32);
    for (int32_t b = 0; b < n_block; b++, tile += block, act += GROUPS * stride) {
        unpack_panel(bits, tile, u);
        for (int32_t v = 0; v < n_vec; v += AMX_VEC) {
            const int32_t first = v + AMX_VEC <= n_vec ? v : n_vec - AMX_VEC;
            /* The next block comes in beside the products. */
            for (size_t i = 0; i < block * AMX_VEC / (size_t)n_vec; i += TILE_LINE)
                _mm_prefetch((const char *)tile + block + block * (size_t)v / (size_t)n_vec + i,
                             _MM_HINT_T1);
            const uint8_t *a = act + (size_t)first * sizeof(a8_32);
            min_sums m;
            if (has_min(bits)) add_minima(u, a, stride, &m);
            for (int g = 0; g < 2; g++)
                vectors(bits, u, g, a, stride, &m, v - first, y + first * TILE_ROWS + 16 * g);
        }
    }
    _tile_release();
}

#define DEFINE_FINE(name, bits)                                                                    \
    void amx_fine_##name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride,     \
                         int32_t n_vec, int32_t terms, float *y, void *panel)                      \
    {                                                                                              \
        if (n_vec < LEAST || terms > 1)                                                            \
            vnni_fine_##name(tile, n_block, act, stride, n_vec, terms, y, panel);                  \
        else                                                                                       \
            fine256(bits, tile, n_block, act, stride, n_vec, y, panel);                            \
    }
DEFINE_FINE(q4_k, 4)
DEFINE_FINE(q5_k, 5)
DEFINE_FINE(q6_k, 6)
