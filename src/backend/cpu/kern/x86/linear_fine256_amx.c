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

enum {
    GROUPS = 8,
    /* Fewer vectors cost less by vpdpbusd. */
    LEAST_K45 = 32,
    LEAST_K6 = 64,
};

/* One block, unpacked, by groups of 16 rows.  Q4_K, Q5_K use the first plane. */
struct panel256 {
    uint8_t w[2][GROUPS][2][8][TILE_LINE]; /* [rows][32 weights][plane][word] */
    float sc[2][GROUPS][16], min[2][GROUPS][16];
    float d[TILE_ROWS], dmin[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");
_Static_assert(sizeof(a8_32) == TILE_LINE, "activations are fetched by lines");

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
    /* A sum of less than 22 bits on top of 1.5 · 2^23, times sc, less that times sc: exactly sum · sc. */
    const __m512i one = _mm512_set1_epi32(0x4b400000);
    const __m512 off = _mm512_mul_ps(sc, _mm512_set1_ps(-0x1.8p23f));
#pragma GCC unroll 16
    for (int i = 0; i < AMX_VEC; i++) {
        const __m512 x =
            bits == 6 ? amx_float_planes(load(c[1].of[i]), load(c[0].of[i]))
                      : _mm512_fmadd_ps(
                            _mm512_castsi512_ps(_mm512_add_epi32(load(c[0].of[i]), one)), sc, off);
        f[i] = _mm512_fmadd_ps(x, _mm512_set1_ps(a[i].d), f[i]);
    }
}

/* A group of 16 rows times AMX_VEC vectors: where their first activations, weights and scales lie, and y. */
typedef struct item {
    const uint8_t *a, *w;
    const float (*sc)[16];
    float *y;
    int32_t g, from; /* the first `from` vectors have had it */
} item;

/* A step: the products of a group of 32 into C register c and, of Q6_K, p, unless all are `done`; those of the group
   before, in e and q, are stored; the sums of the group before that, whose activations and scales are at sa and
   sc, are added up. */
#define STEP(c, p, e, q, done, sa, sc)                                                             \
    if (!(done)) {                                                                                 \
        _tile_loadd(4, a, sizeof(a8_32));                                                          \
        _tile_loadd(6, w, TILE_LINE);                                                              \
        if (bits == 6) _tile_loadd(7, w + sizeof u->w[0][0][0], TILE_LINE);                        \
    }                                                                                              \
    _tile_stored(e, buf[e][0].of, TILE_LINE);                                                      \
    if (bits == 6) _tile_stored(q, buf[e][1].of, TILE_LINE);                                       \
    if (!(done)) {                                                                                 \
        _tile_zero(c);                                                                             \
        _tile_dpbsud(c, 4, 6);                                                                     \
        if (bits == 6) {                                                                           \
            _tile_zero(p);                                                                         \
            _tile_dpbssd(p, 4, 7);                                                                 \
        }                                                                                          \
    }                                                                                              \
    add_sums(bits, *(sc), (const a8_32 *)(const void *)(sa), buf[c], f);                           \
    a += stride, w += sizeof u->w[0][0];

/* What the item is due, all its groups added up. */
INLINE void add_item(const int bits, const panel256 *u, const item *t, const min_sums *m,
                     const __m512 *f)
{
    const __m512 d = _mm512_load_ps(u->d + 16 * t->g), dmin = _mm512_load_ps(u->dmin + 16 * t->g);
#pragma GCC unroll 16
    for (int i = 0; i < AMX_VEC; i++) {
        __m512 sum = _mm512_fmadd_ps(d, f[i], _mm512_load_ps(t->y + TILE_ROWS * i));
        if (has_min(bits)) sum = _mm512_fnmadd_ps(dmin, _mm512_load_ps(m->of[i][t->g]), sum);
        if (i >= t->from) _mm512_store_ps(t->y + TILE_ROWS * i, sum);
    }
}

INLINE void prefetch_near(const uint8_t *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}

/* The panel times all vectors.  Products run two groups ahead of their sums, from one item into the next.  Beside
   them the next block comes into the second cache and, half with each group of rows, the next vectors' activations
   into the first: those of long rows lie in the third. */
INLINE void panel_all(const int bits, const uint8_t *next, size_t block, const panel256 *u,
                      const uint8_t *act, size_t stride, int32_t n_vec, float *y)
{
    amx_sums buf[2][2];
    min_sums m[2];
    __m512 f[AMX_VEC];
    const int32_t n = 2 * ((n_vec + AMX_VEC - 1) / AMX_VEC);
    item last = {.a = act, .w = u->w[0][0][0][0], .sc = u->sc[0], .from = AMX_VEC};
    last.y = y;
    memset(buf, 0, sizeof buf);
    memset(m, 0, sizeof m);
    for (int i = 0; i < AMX_VEC; i++) f[i] = _mm512_setzero_ps();
    for (int32_t i = 0;; i++) {
        const int32_t g = i % 2, v = i / 2 * AMX_VEC, set = v / AMX_VEC % 2;
        const int32_t first = v + AMX_VEC <= n_vec ? v : n_vec - AMX_VEC;
        const item now = {.a = act + (size_t)first * sizeof(a8_32),
                          .w = u->w[g][0][0][0],
                          .sc = u->sc[g],
                          .y = y + first * TILE_ROWS + 16 * g,
                          .g = g,
                          .from = v - first};
        for (size_t k = 0; k < block / (size_t)n; k += TILE_LINE)
            _mm_prefetch((const char *)next + block * (size_t)i / (size_t)n + k, _MM_HINT_T1);
        const uint8_t *ahead =
            v + AMX_VEC < n_vec ? now.a + AMX_VEC * sizeof(a8_32) : act + GROUPS * stride;
        ahead += AMX_VEC / 2 * TILE_LINE * g;
        const uint8_t *a = now.a, *w = now.w, *sa = last.a + (GROUPS - 2) * stride;
        const float(*sc)[16] = last.sc + GROUPS - 2;
#pragma GCC unroll 1
        for (int j = 0; j < GROUPS; j += 2) {
            STEP(0, 2, 1, 3, i == n, sa, sc)
            STEP(1, 3, 0, 2, i == n, sa + stride, sc + 1)
            for (int k = 0; k < AMX_VEC / 2; k++) {
                prefetch_near(ahead + TILE_LINE * k);
                prefetch_near(ahead + stride + TILE_LINE * k);
            }
            ahead += 2 * stride;
            if (j > 0) {
                sa += 2 * stride, sc += 2;
                continue;
            }
            add_item(bits, u, &last, &m[g ? set : 1 - set], f);
            if (i == n) return;
            if (has_min(bits) && g == 0) add_minima(u, now.a, stride, &m[set]);
            for (int k = 0; k < AMX_VEC; k++) f[k] = _mm512_setzero_ps();
            sa = now.a, sc = now.sc;
        }
        last = now;
    }
}

INLINE void fine256(const int bits, const uint8_t *tile, int32_t n_block, const uint8_t *act,
                    size_t stride, int32_t n_vec, float *y, panel256 *u)
{
    const size_t block = (size_t)TILE_LINE * (size_t)(head_lines(bits) + 2 * group_lines(bits));
    amx_begin(AMX_VEC, 32);
    for (int32_t b = 0; b < n_block; b++, tile += block, act += GROUPS * stride) {
        unpack_panel(bits, tile, u);
        panel_all(bits, tile + block, block, u, act, stride, n_vec, y);
    }
    _tile_release();
}

#define DEFINE_FINE(name, bits)                                                                    \
    void amx_fine_##name(const uint8_t *tile, int32_t n_block, const void *act, size_t stride,     \
                         int32_t n_vec, int32_t terms, float *y, void *panel)                      \
    {                                                                                              \
        if (n_vec < (bits == 6 ? LEAST_K6 : LEAST_K45) || terms > 1) {                             \
            vnni_fine_##name(tile, n_block, act, stride, n_vec, terms, y, panel);                  \
            return;                                                                                \
        }                                                                                          \
        memset(y, 0, (size_t)n_vec *TILE_ROWS * sizeof *y);                                        \
        fine256(bits, tile, n_block, act, stride, n_vec, y, panel);                                \
    }                                                                                              \
    void amx_fine_more_##name(const uint8_t *tile, int32_t n_block, const void *act,               \
                              size_t stride, int32_t n_vec, int32_t terms, float *y, void *panel)  \
    {                                                                                              \
        (void)terms;                                                                               \
        fine256(bits, tile, n_block, act, stride, n_vec, y, panel);                                \
    }
DEFINE_FINE(q4_k, 4)
DEFINE_FINE(q5_k, 5)
DEFINE_FINE(q6_k, 6)
