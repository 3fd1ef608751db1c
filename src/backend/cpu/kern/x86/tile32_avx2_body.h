/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1, in AVX2's registers: once for the
   levels that dots_LEVEL.h is of, which a level's file includes before, with LEVEL(name).  A lane is an output
   row; a register holds one word of 8 rows, so a line is two halves and a tile four.

   Few vectors: weights are unpacked in registers.  Many: a block is unpacked once into a panel in L1 and met by
   all vectors.  Codes of e2m1 are looked up, 28 at most.  Weights of 8 bits and the levels of IQ4_NL are made
   unsigned by adding 128 where dots take them so (BYTE_DOTS); else, with |q| ≤ 127,
     few vectors  |w| as unsigned times q with w's sign: 2·128·127 = 32,512, one line;
                  codes from 0 up are made signed by w = code − 128, undone by 128·Σ q
     many         16 bits wide in the panel */
#define DIRECT_CASES(X) X(1) X(2) X(3) X(4)
enum { DIRECT_VEC = 4, PANEL_VEC = 4, PANEL_BLOCKS = 1, BYTE_CENTRE = BYTE_DOTS ? 128 : 0 };

typedef struct panel32 {
    uint8_t w[4][16][32]; /* one block: [half][line, 8 of bytes or 16 of 16-bit pairs] */
    float d[32], m[32];
} panel32;
_Static_assert(PANEL_BLOCKS * sizeof(panel32) <= TILE_PANEL, "panel");

#include "backend/cpu/kern/body/linear_tile32_body.h"

/* 2^(e − 128) of eight bytes: d, as codes are twice the values of e2m1. */
INLINE __m256 scales_e8m0(const uint8_t *p)
{
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    const __m256i whole = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e); /* denormal */
    return _mm256_castsi256_ps(
        _mm256_blendv_epi8(whole, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}
/* Likewise half of e4m3: as f16 its bits are 2^−8 of the value. */
INLINE __m256 scales_e4m3(const uint8_t *p)
{
    const __m128i v = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)p));
    const __m128i h = _mm_and_si128(_mm_slli_epi16(v, 7), _mm_set1_epi16((short)0xbfff));
    return _mm256_mul_ps(_mm256_cvtph_ps(h), _mm256_set1_ps(128.0f));
}
/* Eight of d or of the minimum. */
INLINE __m256 scales(form f, const uint8_t *p)
{
    if (f.head == HEAD_E8M0) return scales_e8m0(p);
    if (f.head == HEAD_E4M3) return scales_e4m3(p);
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    if (f.head == HEAD_F32) return _mm256_loadu_ps((const float *)(const void *)p);
    if (f.head == HEAD_F16) return _mm256_cvtph_ps(v);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}
/* Whether weights are signed, or 16 bits wide in the panel. */
INLINE int is_signed(form f)
{
    return !BYTE_DOTS && (f.bits == BITS8 || f.bits == IQ4);
}
/* Bits of stored weights. */
INLINE int stored_bits(form f)
{
    return f.bits == BITS4 ? 4 : f.bits == BITS8 || f.bits == IQ4 ? 8 : 5;
}
/* −centre · Σ q */
INLINE __m256i centring(form f, const a8_32 *a)
{
    if (f.centre == 0) return _mm256_setzero_si256();
    return word(f.centre == 8 ? &a->n8 : f.centre == 16 ? &a->n16 : &a->n128);
}

/* The two words of line s of 8 rows; `fifth`: their fifth bits. */
INLINE void unpack_line(form f, __m256i v, __m256i fifth, int s, __m256i *lo, __m256i *hi)
{
    *lo = low_nibbles(v);
    *hi = high_nibbles(v);
    if (f.bits == E2M1) {
        *lo = look_up(_mm_setr_epi8(E2M1_CODES), *lo);
        *hi = look_up(_mm_setr_epi8(E2M1_CODES), *hi);
    }
    if (f.bits == IQ4) {
        *lo = iq4_levels(*lo, f.centre);
        *hi = iq4_levels(*hi, f.centre);
    }
    if (f.bits == BITS5) {
        const __m256i bit = _mm256_set1_epi8(16);
        *lo = _mm256_or_si256(*lo, _mm256_and_si256(_mm256_slli_epi32(fifth, 4 - s), bit));
        *hi = _mm256_or_si256(*hi, _mm256_and_si256(_mm256_srli_epi32(fifth, s), bit));
    }
}

/* Words s and 4 + s of 8 rows. */
INLINE void two_words(form f, const uint8_t *lines, __m256i fifth, int s, __m256i *lo, __m256i *hi)
{
    if (f.bits == BITS8) {
        *lo = sub8(load(lines + TILE_LINE * s), f.centre);
        *hi = sub8(load(lines + TILE_LINE * (4 + s)), f.centre);
        return;
    }
    unpack_line(f, load(lines + TILE_LINE * s), fifth, s, lo, hi);
}

/* One block's dots into the sums of 8 rows. */
INLINE void accumulate(form f, __m256i dot, __m256 d, __m256 m, const a8_32 *a, float *y)
{
    const __m256 dx = _mm256_broadcast_ss(&a->d);
    __m256 sum = _mm256_load_ps(y);
    if (f.centre) dot = part_plus(dot, centring(f, a));
    if (f.min) sum = _mm256_fmadd_ps(m, _mm256_broadcast_ss(&a->s), sum);
    sum = _mm256_fmadd_ps(_mm256_mul_ps(d, dx), _mm256_cvtepi32_ps(dot), sum);
    _mm256_store_ps(y, sum);
}

/* Likewise into those of 16 rows. */
INLINE void accumulate_pair(form f, __m256i d0, __m256i d1, const float *d, const float *m,
                            const a8_32 *a, float *y)
{
    const __m256 dx = _mm256_broadcast_ss(&a->d);
    __m256 y0 = _mm256_load_ps(y), y1 = _mm256_load_ps(y + 8);
    if (f.centre) {
        d0 = part_plus(d0, centring(f, a));
        d1 = part_plus(d1, centring(f, a));
    }
    if (f.min) {
        const __m256 sum = _mm256_broadcast_ss(&a->s);
        y0 = _mm256_fmadd_ps(_mm256_load_ps(m), sum, y0);
        y1 = _mm256_fmadd_ps(_mm256_load_ps(m + 8), sum, y1);
    }
    y0 = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(d), dx), _mm256_cvtepi32_ps(d0), y0);
    y1 = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(d + 8), dx), _mm256_cvtepi32_ps(d1), y1);
    _mm256_store_ps(y, y0);
    _mm256_store_ps(y + 8, y1);
}

/* NVFP4, whose 16 first and 16 last weights have scales of their own: −16 · Σ q of either. */
INLINE __m256i half_centring(const a8_32 *a, const int half)
{
    return _mm256_srai_epi32(word(&a->n32_16[half]), 1);
}
/* 8 rows' lines s and 4 + s. */
INLINE void add_halves(__m256i lo, __m256i hi, const a8_32 *a, const int n, const int s, __m256i *l,
                       __m256i *h)
{
    for (int t = 0; t < n; t++) {
        if (s == 0) l[t] = part_from(half_centring(&a[t], 0));
        if (s == 0) h[t] = part_from(half_centring(&a[t], 1));
        l[t] = part_add(l[t], lo, word(a[t].q + 4 * s));
        KEEP(l[t]);
        h[t] = part_add(h[t], hi, word(a[t].q + 16 + 4 * s));
        KEEP(h[t]);
    }
}
INLINE void accumulate_halves(__m256i l, __m256i h, __m256 s0, __m256 s1, const a8_32 *a, float *y)
{
    const __m256i d0 = part_plus(part_whole(l), half_centring(a, 0));
    const __m256i d1 = part_plus(part_whole(h), half_centring(a, 1));
    __m256 f = _mm256_mul_ps(s0, _mm256_cvtepi32_ps(d0));
    f = _mm256_fmadd_ps(s1, _mm256_cvtepi32_ps(d1), f);
    _mm256_store_ps(y, _mm256_fmadd_ps(f, _mm256_broadcast_ss(&a->d), _mm256_load_ps(y)));
}
INLINE void direct_halves(form f, const uint8_t *lines, const uint8_t *head, const a8_32 *a,
                          const int n, int32_t shift, float *y)
{
    const __m256 s0 = scales(f, head), s1 = scales(f, head_m(f, head, 0));
    const __m256i none = _mm256_setzero_si256();
    __m256i l[DIRECT_VEC], h[DIRECT_VEC];
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
        __m256i lo, hi;
        unpack_line(f, load(lines + TILE_LINE * s), none, s, &lo, &hi);
        add_halves(lo, hi, a, n, s, l, h);
    }
    for (int t = 0; t < n; t++)
        accumulate_halves(l[t], h[t], s0, s1, &a[t], y + (t >> shift) * TILE_ROWS);
}

/* Dots of 8 rows of signed weights with n vectors, from packed lines. */
INLINE void direct_signed(form f, const uint8_t *lines, const a8_32 *a, int n, __m256i *dot)
{
    const __m256i one = _mm256_set1_epi16(1);
    for (int t = 0; t < n && f.min; t++) dot[t] = _mm256_sub_epi32(dot[t], word(&a[t].n128));
    if (f.bits == BITS8) {
#pragma GCC unroll 8
        for (int s = 0; s < 8; s++) {
            const __m256i raw = load(lines + TILE_LINE * s);
            const __m256i w = f.min ? _mm256_xor_si256(raw, _mm256_set1_epi8((char)0x80)) : raw;
            add_signed(w, one, a->q + 4 * s, sizeof *a, n, dot);
        }
        return;
    }
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
        __m256i lo, hi;
        unpack_line(f, load(lines + TILE_LINE * s), one, s, &lo, &hi);
        add_signed(lo, one, a->q + 4 * s, sizeof *a, n, dot);
        add_signed(hi, one, a->q + 16 + 4 * s, sizeof *a, n, dot);
    }
}

/* Dots of 8 rows with n vectors, from packed lines. */
INLINE void direct_dots(form f, const uint8_t *lines, __m256i fifth, const a8_32 *a, int n,
                        __m256i *dot)
{
    __m256i x[DIRECT_VEC];
    for (int t = 0; t < n; t++) {
        x[t] = part_from(centring(f, &a[t]));
        dot[t] = _mm256_setzero_si256();
    }
    if (is_signed(f)) {
        direct_signed(f, lines, a, n, dot);
        return;
    }
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
        __m256i lo, hi;
        two_words(f, lines, fifth, s, &lo, &hi);
        for (int t = 0; t < n; t++) {
            const int8_t *q = a[t].q + 4 * s;
            x[t] = part_add_two(x[t], lo, word(q), hi, word(q + 16));
            KEEP(x[t]);
            if ((2 * s + 2) % whole_lines(stored_bits(f))) continue;
            dot[t] = _mm256_add_epi32(dot[t], part_whole(x[t]));
            KEEP(dot[t]);
            x[t] = _mm256_setzero_si256();
        }
    }
}

/* The tile's n vectors, n ≤ DIRECT_VEC. */
INLINE void direct(form f, walk w, int32_t n_block, const uint8_t *act, size_t stride, const int n,
                   int32_t shift, float *y)
{
    const int group = group_bytes(f);
    for (int32_t b = 0; b < n_block; b++) {
        const a8_32 *a = (const a8_32 *)(const void *)(act + (size_t)b * stride);
        next_block(f, &w);
        for (int g = 0; g < 2; g++, w.codes += group) {
            for (int i = 0; i < group; i += TILE_LINE) prefetch(w.codes + i);
            for (int h = 0; h < 2; h++) {
                const int row = 16 * g + 8 * h;
                if (f.halves) {
                    direct_halves(f, w.codes + 32 * h, w.head + row, a, n, shift, y + row);
                    continue;
                }
                const __m256 d = scales(f, head_d(f, w.head, row));
                const __m256 m = f.min ? scales(f, head_m(f, w.head, row)) : d;
                const uint8_t *lines = w.codes + 32 * h;
                __m256i fifth = _mm256_setzero_si256(), dot[DIRECT_VEC];
                if (f.bits == BITS5) fifth = load(lines), lines += TILE_LINE;
                direct_dots(f, lines, fifth, a, n, dot);
                for (int t = 0; t < n; t++)
                    accumulate(f, dot[t], d, m, &a[t], y + (t >> shift) * TILE_ROWS + row);
            }
        }
    }
}

INLINE void widen(form f, __m256i v, __m256i *w)
{
    widen_high(v, w);
    for (int i = 0; i < 2; i++)
        w[i] = f.min ? _mm256_srli_epi16(w[i], 8) : _mm256_srai_epi16(w[i], 8);
}

INLINE void unpack_panel(form f, const walk *at, panel32 *u)
{
    for (int i = 0; i < 4; i++) {
        _mm256_store_ps(u->d + 8 * i, scales(f, head_d(f, at->head, 8 * i)));
        if (f.min || f.halves) _mm256_store_ps(u->m + 8 * i, scales(f, head_m(f, at->head, 8 * i)));
    }
    for (int h = 0; h < 4; h++) {
        const uint8_t *lines = at->codes + h / 2 * group_bytes(f) + 32 * (h % 2);
        __m256i *w = (__m256i *)(void *)u->w[h], fifth = _mm256_setzero_si256();
        if (f.bits == BITS5) fifth = load(lines), lines += TILE_LINE;
        if (f.bits == BITS8 && is_signed(f)) {
            for (int s = 0; s < 8; s++) widen(f, load(lines + TILE_LINE * s), w + 2 * s);
            continue;
        }
        for (int s = 0; s < 4; s++) {
            __m256i lo, hi;
            two_words(f, lines, fifth, s, &lo, &hi);
            if (is_signed(f))
                widen(f, lo, w + 2 * s), widen(f, hi, w + 8 + 2 * s);
            else
                w[s] = lo, w[4 + s] = hi;
        }
    }
}

/* Halves 2g and 2g+1 of the panel times n vectors. */
INLINE void panel_group(form f, const panel32 *u, const int g, const a8_32 *a, const int n,
                        int32_t v, int32_t shift, float *y)
{
    const uint8_t *w0 = u->w[2 * g][0], *w1 = u->w[2 * g + 1][0];
    __m256i s0[PANEL_VEC], s1[PANEL_VEC], d0[PANEL_VEC], d1[PANEL_VEC];
    for (int t = 0; t < n; t++) {
        s0[t] = s1[t] = part_from(centring(f, &a[t]));
        d0[t] = d1[t] = _mm256_setzero_si256();
    }
#pragma GCC unroll 8
    for (int s = 0; s < 8; s++) {
        const __m256i a0 = load(w0 + 32 * s), a1 = load(w1 + 32 * s);
        for (int t = 0; t < n; t++) {
            const __m256i q = word(a[t].q + 4 * s);
            s0[t] = part_add(s0[t], a0, q);
            KEEP(s0[t]);
            s1[t] = part_add(s1[t], a1, q);
            KEEP(s1[t]);
        }
        IN_ORDER();
        if ((s + 1) % whole_lines(stored_bits(f))) continue;
        for (int t = 0; t < n; t++) {
            d0[t] = _mm256_add_epi32(d0[t], part_whole(s0[t]));
            KEEP(d0[t]);
            d1[t] = _mm256_add_epi32(d1[t], part_whole(s1[t]));
            KEEP(d1[t]);
            s0[t] = s1[t] = _mm256_setzero_si256();
        }
    }
    for (int t = 0; t < n; t++)
        accumulate_pair(f, d0[t], d1[t], u->d + 16 * g, u->m + 16 * g, &a[t],
                        y + ((v + t) >> shift) * TILE_ROWS + 16 * g);
}

/* NVFP4: 8 rows of the panel times n vectors. */
INLINE void panel_halves(const panel32 *u, const int half, const a8_32 *a, const int n, int32_t v,
                         int32_t shift, float *y)
{
    const __m256 s0 = _mm256_load_ps(u->d + 8 * half), s1 = _mm256_load_ps(u->m + 8 * half);
    __m256i l[PANEL_VEC], h[PANEL_VEC];
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++)
        add_halves(load(u->w[half][s]), load(u->w[half][4 + s]), a, n, s, l, h);
    for (int t = 0; t < n; t++)
        accumulate_halves(l[t], h[t], s0, s1, &a[t], y + ((v + t) >> shift) * TILE_ROWS + 8 * half);
}

/* Likewise for weights widened to 16 bits; q: the vectors' likewise. */
INLINE void panel_group_wide(form f, const panel32 *u, const int g, const int16_t (*q)[32],
                             const a8_32 *a, const int n, int32_t v, int32_t shift, float *y)
{
    __m256i s0[PANEL_VEC], s1[PANEL_VEC];
    wide_dots(u->w[2 * g][0], u->w[2 * g + 1][0], 16, q[0], 32, n, s0, s1);
    for (int t = 0; t < n; t++)
        accumulate_pair(f, s0[t], s1[t], u->d + 16 * g, u->m + 16 * g, &a[t],
                        y + ((v + t) >> shift) * TILE_ROWS + 16 * g);
}

INLINE void panel_vecs(form f, const panel32 *u, const a8_32 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    if (is_signed(f)) {
        int16_t q[PANEL_VEC][32] __attribute__((aligned(32)));
        for (int t = 0; t < n; t++) widen_vec(a[t].q, 32, q[t]);
        panel_group_wide(f, u, 0, (const int16_t(*)[32])q, a, n, v, shift, y);
        panel_group_wide(f, u, 1, (const int16_t(*)[32])q, a, n, v, shift, y);
        return;
    }
    if (f.halves) {
        for (int half = 0; half < 4; half++) panel_halves(u, half, a, n, v, shift, y);
        return;
    }
    panel_group(f, u, 0, a, n, v, shift, y);
    panel_group(f, u, 1, a, n, v, shift, y);
}

INLINE void panel_all(form f, const panel32 *u, int32_t n, const uint8_t *act, size_t stride,
                      int32_t n_vec, int32_t shift, float *y)
{
    const a8_32 *a = (const a8_32 *)(const void *)act;
    int32_t v = 0;
    (void)n, (void)stride; /* one block */
    for (; v + PANEL_VEC <= n_vec; v += PANEL_VEC) panel_vecs(f, u, a + v, PANEL_VEC, v, shift, y);
    switch (n_vec - v) {
    case 3:
        panel_vecs(f, u, a + v, 3, v, shift, y);
        break;
    case 2:
        panel_vecs(f, u, a + v, 2, v, shift, y);
        break;
    case 1:
        panel_vecs(f, u, a + v, 1, v, shift, y);
        break;
    default:
        break;
    }
}

DEFINE_TILE(LEVEL(tile_q4_0), BITS4, 8, 0)
DEFINE_TILE(LEVEL(tile_q4_1), BITS4, 0, 1)
DEFINE_TILE(LEVEL(tile_q5_0), BITS5, 16, 0)
DEFINE_TILE(LEVEL(tile_q5_1), BITS5, 0, 1)
DEFINE_TILE(LEVEL(tile_q8_0), BITS8, BYTE_CENTRE, 0)
DEFINE_TILE(LEVEL(tile_iq4_nl), IQ4, BYTE_CENTRE, 0)
DEFINE_AFFINE(LEVEL(affine_4), BITS4)
DEFINE_AFFINE(LEVEL(affine_5), BITS5)
DEFINE_AFFINE(LEVEL(affine_8), BITS8)
DEFINE_FP4(LEVEL(tile_mxfp4), HEAD_E8M0, 2)
DEFINE_FP4(LEVEL(tile_nvfp4), HEAD_E4M3, 1)
