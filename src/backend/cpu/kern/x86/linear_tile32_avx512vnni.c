/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1, AVX-512 VNNI.  A register
   holds one line: a word of each of 16 rows.  vpdpbusd takes stored weights from 0 up (Q8_0 and IQ4_NL's
   levels: with 128 added by flipping the sign bit) times signed q straight into int32; accumulators start
   at −centre·Σ q, so the dot comes out exact and centred: |D| ≤ 255·127·32 on the way, nothing saturates.

   Few vectors: weights are unpacked in registers.  Many: eight blocks are unpacked once into a panel in
   L1 and met by all vectors, six at a time: 12 dots and 12 sums, which stay in registers over the eight
   blocks.  Of a block's 12 vector instructions (11 without a minimum) 8 are dots: at most 67 % (73 %) of
   the peak. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/dots_avx512vnni.h"
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/words_avx512.h"

#define DIRECT_CASES(X) X(1) X(2) X(3) X(4)
enum {
    DIRECT_VEC = 4,
    PANEL_VEC = 6,
    HALVES_VEC =
        4, /* of NVFP4, whose blocks have two dots: 8 of each and 8 sums stay in registers */
    PANEL_BLOCKS = 8
};

typedef struct panel32 {
    uint8_t w[2][8][64]; /* one block: [group][line] */
    float d[TILE_ROWS], m[TILE_ROWS];
} panel32;
_Static_assert(PANEL_BLOCKS * sizeof(panel32) <= TILE_PANEL, "panel");

#include "backend/cpu/kern/body/linear_tile32_body.h"

#include "backend/cpu/kern/x86/linear_tile32_avx512.h"

/* 8-bit weights as vpdpbusd takes them; affine codes are so already. */
INLINE __m512i unsign(form f, __m512i v)
{
    return f.min ? v : _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80));
}

/* What undoes the centre of one vector: where its dot starts. */
INLINE __m512i start(form f, const a8_32 *a)
{
    switch (f.centre) {
    case 8:
        return own_word(&a->n8);
    case 16:
        return own_word(&a->n16);
    case 128:
        return own_word(&a->n128);
    default:
        return _mm512_setzero_si512();
    }
}

/* One block's exact dots of 16 rows, added to their sums. */
INLINE __m512 add_block(form f, __m512 sum, __m512i dot, __m512 d, __m512 m, const a8_32 *a)
{
    if (f.min) sum = _mm512_fmadd_ps(m, _mm512_set1_ps(a->s), sum);
    return _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(a->d)), _mm512_cvtepi32_ps(dot), sum);
}
INLINE void accumulate(form f, __m512i dot, __m512 d, __m512 m, const a8_32 *a, float *y)
{
    _mm512_store_ps(y, add_block(f, _mm512_load_ps(y), dot, d, m, a));
}

/* NVFP4: a group's lines s and 4 + s, whose scales differ, into l and h; then both into the sums. */
INLINE __m512i start16(const a8_32 *a, const int half) /* −16·Σ q */
{
    return _mm512_srai_epi32(word(&a->n32_16[half]), 1);
}
INLINE void add_halves(__m512i lo, __m512i hi, const a8_32 *a, const int n, const int s, __m512i *l,
                       __m512i *h)
{
    for (int t = 0; t < n; t++) {
        l[t] = _mm512_dpbusd_epi32(s ? l[t] : start16(&a[t], 0), lo, word(a[t].q + 4 * s));
        h[t] = _mm512_dpbusd_epi32(s ? h[t] : start16(&a[t], 1), hi, word(a[t].q + 16 + 4 * s));
    }
}
INLINE void accumulate_halves(__m512i l, __m512i h, __m512 s0, __m512 s1, const a8_32 *a, float *y)
{
    __m512 f = _mm512_mul_ps(s0, _mm512_cvtepi32_ps(l));
    f = _mm512_fmadd_ps(s1, _mm512_cvtepi32_ps(h), f);
    _mm512_store_ps(y, _mm512_fmadd_ps(f, _mm512_set1_ps(a->d), _mm512_load_ps(y)));
}
INLINE void direct_halves(form f, const uint8_t *p, const uint8_t *head, const a8_32 *a,
                          const int n, int32_t shift, float *y)
{
    const __m512 s0 = scales(f, head), s1 = scales(f, head_m(f, head, 0));
    __m512i l[DIRECT_VEC], h[DIRECT_VEC];
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
        __m512i lo, hi;
        prefetch(p + TILE_LINE * s);
        unpack_line(f, load(p + TILE_LINE * s), _mm512_setzero_si512(), (unsigned)s, &lo, &hi);
        add_halves(lo, hi, a, n, s, l, h);
    }
    for (int t = 0; t < n; t++)
        accumulate_halves(l[t], h[t], s0, s1, &a[t], y + (t >> shift) * TILE_ROWS);
}

/* Dots of a group with n vectors, from packed lines. */
INLINE void direct_dots(form f, const uint8_t *p, const a8_32 *a, const int n, __m512i *dot)
{
    for (int t = 0; t < n; t++) dot[t] = start(f, &a[t]);
    if (f.bits == BITS8) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const __m512i w = unsign(f, load(p + TILE_LINE * s));
            prefetch(p + TILE_LINE * s);
            for (int t = 0; t < n; t++)
                dot[t] = _mm512_dpbusd_epi32(dot[t], w, word(a[t].q + 4 * s));
        }
        return;
    }
    __m512i fifth = _mm512_setzero_si512();
    if (f.bits == BITS5) {
        fifth = load(p);
        prefetch(p);
        p += TILE_LINE;
    }
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
        __m512i lo, hi;
        prefetch(p + TILE_LINE * s);
        unpack_line(f, load(p + TILE_LINE * s), fifth, (unsigned)s, &lo, &hi);
        for (int t = 0; t < n; t++) {
            dot[t] = _mm512_dpbusd_epi32(dot[t], lo, word(a[t].q + 4 * s));
            dot[t] = _mm512_dpbusd_epi32(dot[t], hi, word(a[t].q + 16 + 4 * s));
        }
    }
}

/* The tile's n vectors, n ≤ DIRECT_VEC. */
INLINE void direct(form f, walk w, int32_t n_block, const uint8_t *act, size_t stride, const int n,
                   int32_t shift, float *y)
{
    for (int32_t b = 0; b < n_block; b++) {
        const a8_32 *a = (const a8_32 *)(const void *)(act + (size_t)b * stride);
        next_block(f, &w);
        for (int g = 0; g < 2; g++, w.codes += group_bytes(f)) {
            if (f.halves) {
                direct_halves(f, w.codes, head_d(f, w.head, 16 * g), a, n, shift, y + 16 * g);
                continue;
            }
            const __m512 d = scales(f, head_d(f, w.head, 16 * g));
            const __m512 m = f.min ? scales(f, head_m(f, w.head, 16 * g)) : d;
            __m512i dot[DIRECT_VEC];
            direct_dots(f, w.codes, a, n, dot);
            for (int t = 0; t < n; t++)
                accumulate(f, dot[t], d, m, &a[t], y + (t >> shift) * TILE_ROWS + 16 * g);
        }
    }
}

INLINE void unpack_panel(form f, const walk *at, panel32 *u)
{
    const int flipped = f.bits == BITS8 && !f.min;
    unpack_block(f, at, flipped ? 128 : 0, u->w, u->d, u->m);
}

/* NVFP4: one block of the panel, both groups, times n vectors, into their sums. */
INLINE void panel_halves(const panel32 *u, const a8_32 *a, const int n, const int shift, __m512 *f0,
                         __m512 *f1)
{
    __m512 t0[HALVES_VEC], t1[HALVES_VEC];
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const float *scale = h ? u->m : u->d;
        __m512i s0[HALVES_VEC], s1[HALVES_VEC];
        for (int t = 0; t < n; t++) s0[t] = s1[t] = start16(&a[t], h);
#pragma GCC unroll 4
        for (int s = 4 * h; s < 4 * h + 4; s++)
            dot_lines2(load(u->w[0][s]), load(u->w[1][s]), a->q + 4 * s, sizeof *a, n, s0, s1);
        const __m512 c0 = _mm512_load_ps(scale), c1 = _mm512_load_ps(scale + 16);
        for (int t = 0; t < n; t++) {
            const __m512 x0 = _mm512_cvtepi32_ps(s0[t]), x1 = _mm512_cvtepi32_ps(s1[t]);
            t0[t] = h ? _mm512_fmadd_ps(c0, x0, t0[t]) : _mm512_mul_ps(c0, x0);
            t1[t] = h ? _mm512_fmadd_ps(c1, x1, t1[t]) : _mm512_mul_ps(c1, x1);
        }
    }
    for (int t = 0; t < n; t++) {
        const __m512 dx = _mm512_set1_ps(a[t].d);
        f0[t >> shift] = _mm512_fmadd_ps(t0[t], dx, f0[t >> shift]);
        f1[t >> shift] = _mm512_fmadd_ps(t1[t], dx, f1[t >> shift]);
    }
}

/* Both groups of one block of the panel times n vectors, into their sums. */
INLINE void panel_block(form f, const panel32 *u, const a8_32 *a, const int n, const int shift,
                        __m512 *f0, __m512 *f1)
{
    __m512i s0[PANEL_VEC], s1[PANEL_VEC];
    for (int t = 0; t < n; t++) {
        s0[t] = start(f, &a[t]);
        s1[t] = start(f, &a[t]);
    }
#pragma GCC unroll 8
    for (int s = 0; s < 8; s++)
        dot_lines2(load(u->w[0][s]), load(u->w[1][s]), a->q + 4 * s, sizeof *a, n, s0, s1);
    for (int t = 0; t < n; t++) {
        const int i = t >> shift;
        f0[i] = add_block(f, f0[i], s0[t], _mm512_load_ps(u->d), _mm512_load_ps(u->m), &a[t]);
        f1[i] =
            add_block(f, f1[i], s1[t], _mm512_load_ps(u->d + 16), _mm512_load_ps(u->m + 16), &a[t]);
    }
}

INLINE const a8_32 *vectors(const uint8_t *act, size_t stride, int32_t block)
{
    return (const a8_32 *)(const void *)(act + (size_t)block * stride);
}
/* Both groups of n_block blocks of the panel times vectors v … v+n-1, n a multiple of the terms. */
INLINE void panel_vecs(form f, const panel32 *u, int32_t n_block, const uint8_t *act, size_t stride,
                       const int n, int32_t v, const int shift, float *y)
{
    __m512 f0[PANEL_VEC], f1[PANEL_VEC];
    float *out = y + (v >> shift) * TILE_ROWS;
    for (int i = 0; i < n >> shift; i++) {
        f0[i] = _mm512_load_ps(out + TILE_ROWS * i);
        f1[i] = _mm512_load_ps(out + TILE_ROWS * i + 16);
    }
    for (int32_t b = 0; b < n_block; b++, u++) {
        const a8_32 *a = vectors(act, stride, b) + v;
        if (f.halves)
            panel_halves(u, a, n, shift, f0, f1);
        else
            panel_block(f, u, a, n, shift, f0, f1);
    }
    for (int i = 0; i < n >> shift; i++) {
        _mm512_store_ps(out + TILE_ROWS * i, f0[i]);
        _mm512_store_ps(out + TILE_ROWS * i + 16, f1[i]);
    }
}

INLINE void panel_terms(form f, const panel32 *u, int32_t n, const uint8_t *act, size_t stride,
                        int32_t n_vec, const int shift, float *y)
{
    const int step = f.halves ? HALVES_VEC : PANEL_VEC;
    int32_t v = 0;
    for (; v + step <= n_vec; v += step) panel_vecs(f, u, n, act, stride, step, v, shift, y);
    for (; v + 2 <= n_vec; v += 2) panel_vecs(f, u, n, act, stride, 2, v, shift, y);
    if (v < n_vec) panel_vecs(f, u, n, act, stride, 1, v, 0, y);
}

INLINE void panel_all(form f, const panel32 *u, int32_t n, const uint8_t *act, size_t stride,
                      int32_t n_vec, int32_t shift, float *y)
{
    if (shift)
        panel_terms(f, u, n, act, stride, n_vec, 1, y);
    else
        panel_terms(f, u, n, act, stride, n_vec, 0, y);
}

DEFINE_TILE(vnni_tile_q4_0, BITS4, 8, 0)
DEFINE_TILE(vnni_tile_q4_1, BITS4, 0, 1)
DEFINE_TILE(vnni_tile_q5_0, BITS5, 16, 0)
DEFINE_TILE(vnni_tile_q5_1, BITS5, 0, 1)
DEFINE_TILE(vnni_tile_q8_0, BITS8, 128, 0)
DEFINE_TILE(vnni_tile_iq4_nl, IQ4, 128, 0)
DEFINE_AFFINE(vnni_affine_4, BITS4)
DEFINE_AFFINE(vnni_affine_5, BITS5)
DEFINE_AFFINE(vnni_affine_8, BITS8)
DEFINE_FP4(vnni_tile_mxfp4, HEAD_E8M0, 2)
DEFINE_FP4(vnni_tile_nvfp4, HEAD_E4M3, 1)
