/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1, aarch64: once for all levels, in
   the words of words_neon.h and dots_LEVEL.h, which a level's file includes before, with LEVEL(name).

   Dots are exact in 32 bits: stored weights have 8 bits, signed.  Centres of nibbles and of 5 bits, and the 128
   by which codes of 8 bits are too large to be signed, are undone where a dot starts. */
#define DIRECT_CASES(X) X(1) X(2)
enum { DIRECT_VEC = 2, PANEL_BLOCKS = 1 };

typedef struct panel32 {
    int8_t w[2][8][TILE_LINE]; /* one block: [group][line] */
    float d[TILE_ROWS], m[TILE_ROWS];
} panel32;
_Static_assert(PANEL_BLOCKS * sizeof(panel32) <= TILE_PANEL, "panel");

#include "backend/cpu/kern/body/linear_tile32_body.h"

/* Four bytes of scales, one a lane. */
INLINE int32x4_t four_bytes(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s32_u32(
        vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four))))));
}
/* 2^(e − 128): d, as codes are twice the values of e2m1. */
INLINE float32x4_t scales_e8m0(const uint8_t *p)
{
    const int32x4_t e = four_bytes(p);
    const int32x4_t whole = vshlq_n_s32(vsubq_s32(e, vdupq_n_s32(1)), 23);
    const int32x4_t tiny = vshlq_s32(vdupq_n_s32(0x00200000), e); /* denormal */
    return vreinterpretq_f32_s32(vbslq_s32(vcltq_s32(e, vdupq_n_s32(2)), tiny, whole));
}
/* Likewise half of e4m3: as f16 its bits are 2^−8 of the value. */
INLINE float32x4_t scales_e4m3(const uint8_t *p)
{
    const int32x4_t e = four_bytes(p);
    const int32x4_t sign = vshlq_n_s32(vandq_s32(e, vdupq_n_s32(0x80)), 8);
    const int32x4_t h = vorrq_s32(sign, vshlq_n_s32(vandq_s32(e, vdupq_n_s32(0x7f)), 7));
    return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32(h))), 128.0f);
}
/* Four of d or of the minimum. */
INLINE float32x4_t scales(form f, const uint8_t *p)
{
    if (f.head == HEAD_E8M0) return scales_e8m0(p);
    if (f.head == HEAD_E4M3) return scales_e4m3(p);
    if (f.head == HEAD_F32) return vreinterpretq_f32_u8(vld1q_u8(p));
    if (f.head == HEAD_F16) return halves(p);
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

/* The largest magnitude of a stored weight. */
INLINE int most(form f)
{
    return f.bits == BITS8 ? 128 : f.bits == IQ4 ? 127 : f.bits == BITS5 ? 31 : 15;
}
INLINE int32x4_t start(form f, const a8_32 *a)
{
    if (f.bits == BITS8 && f.min) return vnegq_s32(word(&a->n128));
    if (f.bits == BITS4 && f.centre) return word(&a->n8);
    if (f.bits == BITS5 && f.centre) return word(&a->n16);
    return vdupq_n_s32(0);
}
INLINE words bytes(form f, words v)
{
    return f.min ? veorq_s8(v, vdupq_n_s8((int8_t)0x80)) : v;
}
/* The two words of line s of a quad; `fifth`: their fifth bits. */
INLINE void unpack_line(form f, words v, words fifth, const int s, words *lo, words *hi)
{
    *lo = low_nibbles(v);
    *hi = high_nibbles(v);
    if (f.bits == E2M1) {
        const table codes = sub8(TABLE(E2M1_CODES), 16);
        *lo = look_up(codes, *lo), *hi = look_up(codes, *hi);
    }
    if (f.bits == IQ4) *lo = iq4_levels(*lo), *hi = iq4_levels(*hi);
    if (f.bits == BITS5) {
        *lo = or_and8(*lo, shl16(fifth, 4 - s), 16);
        *hi = or_and8(*hi, shr16(fifth, s), 16);
    }
}

/* One block's exact dots into the sums of a quad. */
INLINE void accumulate(form f, int32x4_t dot, float32x4_t d, float32x4_t m, const a8_32 *a,
                       float *y)
{
    float32x4_t sum = vld1q_f32(y);
    if (f.min) sum = vfmaq_n_f32(sum, m, a->s);
    vst1q_f32(y, vfmaq_f32(sum, vmulq_n_f32(d, a->d), vcvtq_f32_s32(dot)));
}
/* NVFP4, whose 16 first and 16 last weights have scales of their own. */
INLINE void accumulate_halves(int32x4_t l, int32x4_t h, float32x4_t s0, float32x4_t s1,
                              const a8_32 *a, float *y)
{
    const float32x4_t t = vfmaq_f32(vmulq_f32(s0, vcvtq_f32_s32(l)), s1, vcvtq_f32_s32(h));
    vst1q_f32(y, vfmaq_n_f32(vld1q_f32(y), t, a->d));
}
INLINE void accumulate_any(form f, int32x4_t dot, int32x4_t high, float32x4_t d, float32x4_t m,
                           const a8_32 *a, float *y)
{
    if (f.halves)
        accumulate_halves(dot, high, d, m, a, y);
    else
        accumulate(f, dot, d, m, a, y);
}

/* Dots of QUADS quads from packed lines with n vectors; of the last 16 weights apart where f.halves. */
INLINE void direct_dots(form f, const uint8_t *lines, const uint8_t *high, const a8_32 *a,
                        const int n, int32x4_t (*dot)[DIRECT_VEC][QUADS])
{
    const int n_line = f.bits == BITS8 ? 8 : 4;
    const int word_lines = part_words(most(f)) / (f.bits == BITS8 ? 1 : 2);
    const int step = word_lines < n_line ? word_lines : n_line;
#pragma GCC unroll 8
    for (int from = 0; from < n_line; from += step) {
        part x[2][DIRECT_VEC][QUADS];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int i = 0; i < QUADS; i++) {
                x[0][t][i] = part_begin(dot[0][t][i]);
                if (f.halves) x[1][t][i] = part_begin(dot[1][t][i]);
            }
#pragma GCC unroll 8
        for (int s = from; s < from + step; s++)
#pragma GCC unroll 4
            for (int i = 0; i < QUADS; i++) {
                const words v = load(lines + TILE_LINE * s + QUAD_BYTES * i);
                words lo = v, hi = v;
                if (f.bits == BITS8)
                    lo = bytes(f, v);
                else
                    unpack_line(f, v, f.bits == BITS5 ? load(high + QUAD_BYTES * i) : v, s, &lo,
                                &hi);
#pragma GCC unroll 4
                for (int t = 0; t < n; t++) {
                    x[0][t][i] = part_add(x[0][t][i], lo, a[t].q, s);
                    if (f.bits == BITS8) continue;
                    part *to = &x[f.halves][t][i];
                    *to = part_add(*to, hi, a[t].q, 4 + s);
                }
            }
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int i = 0; i < QUADS; i++) {
                dot[0][t][i] = part_end(x[0][t][i], dot[0][t][i]);
                if (f.halves) dot[1][t][i] = part_end(x[1][t][i], dot[1][t][i]);
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
        for (int row = 0; row < TILE_ROWS; row += 4 * QUADS) {
            const uint8_t *high = w.codes + QUAD_BYTES * (row % 16 / 4);
            int32x4_t dot[2][DIRECT_VEC][QUADS];
            if (row % 16 == 0)
                for (int i = 0; i < group; i += TILE_LINE) prefetch(w.codes + i);
#pragma GCC unroll 4
            for (int t = 0; t < n; t++)
#pragma GCC unroll 4
                for (int i = 0; i < QUADS; i++)
                    dot[0][t][i] = start(f, &a[t]), dot[1][t][i] = vdupq_n_s32(0);
            direct_dots(f, f.bits == BITS5 ? high + TILE_LINE : high, high, a, n, dot);
#pragma GCC unroll 4
            for (int i = 0; i < QUADS; i++) {
                const float32x4_t d = scales(f, head_d(f, w.head, row + 4 * i));
                const float32x4_t m =
                    f.min || f.halves ? scales(f, head_m(f, w.head, row + 4 * i)) : d;
#pragma GCC unroll 4
                for (int t = 0; t < n; t++)
                    accumulate_any(f, dot[0][t][i], dot[1][t][i], d, m, &a[t],
                                   y + (t >> shift) * TILE_ROWS + row + 4 * i);
            }
            if (row % 16 + 4 * QUADS == 16) w.codes += group;
        }
    }
}

INLINE void unpack_panel(form f, const walk *at, panel32 *u)
{
    for (int i = 0; i < TILE_ROWS; i += 4) {
        vst1q_f32(u->d + i, scales(f, head_d(f, at->head, i)));
        if (f.min || f.halves) vst1q_f32(u->m + i, scales(f, head_m(f, at->head, i)));
    }
    for (int i = 0; i < 8; i++) {
        const uint8_t *lines = at->codes + i / 4 * group_bytes(f) + QUAD_BYTES * (i % 4);
        int8_t(*w)[TILE_LINE] = u->w[i / 4];
        const int column = QUAD_BYTES * (i % 4);
        words fifth = vdupq_n_s8(0);
        if (f.bits == BITS5) fifth = load(lines), lines += TILE_LINE;
        const int n_line = f.bits == BITS8 ? 8 : 4;
#pragma GCC unroll 8
        for (int s = 0; s < n_line; s++) {
            const words v = load(lines + TILE_LINE * s);
            words lo, hi;
            if (f.bits == BITS8) {
                vst1q_s8(w[s] + column, bytes(f, v));
                continue;
            }
            unpack_line(f, v, fifth, s, &lo, &hi);
            vst1q_s8(w[s] + column, lo), vst1q_s8(w[4 + s] + column, hi);
        }
    }
    for (int g = 0; g < 2; g++) panel_order(u->w[g][0], 8);
}

/* QUADS quads of the panel from row on, times vectors v … v+n-1. */
INLINE void panel_quads(form f, const panel32 *u, const int row, const a8_32 *a, const int n,
                        int32_t v, int32_t shift, float *y)
{
    const int8_t *w = u->w[row / 16][0] + QUAD_BYTES * (row % 16 / 4);
    int32x4_t s[PANEL_VEC], dot[PANEL_VEC][QUADS], high[PANEL_VEC][QUADS];
#pragma GCC unroll 4
    for (int t = 0; t < n; t++) s[t] = start(f, &a[t]);
#pragma GCC unroll 4
    for (int t = 0; t < panel_n(n); t++)
#pragma GCC unroll 4
        for (int i = 0; i < QUADS; i++)
            dot[t][i] = panel_start(s, n, t), high[t][i] = vdupq_n_s32(0);
    if (f.halves) {
        panel_dots(w, 4, QUADS, a->q, sizeof *a, n, most(f), dot);
        panel_dots(w + 4 * TILE_LINE, 4, QUADS, a->q + 16, sizeof *a, n, most(f), high);
    } else {
        panel_dots(w, 8, QUADS, a->q, sizeof *a, n, most(f), dot);
    }
#pragma GCC unroll 4
    for (int i = 0; i < QUADS; i++) {
        const float32x4_t d = vld1q_f32(u->d + row + 4 * i), m = vld1q_f32(u->m + row + 4 * i);
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
            accumulate_any(f, panel_out(DOTS(dot), t, i), panel_out(DOTS(high), t, i), d, m, &a[t],
                           y + ((v + t) >> shift) * TILE_ROWS + row + 4 * i);
    }
}

INLINE void panel_vecs(form f, const panel32 *u, const a8_32 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    for (int row = 0; row < TILE_ROWS; row += 4 * QUADS) panel_quads(f, u, row, a, n, v, shift, y);
}

INLINE void panel_all(form f, const panel32 *u, int32_t n, const uint8_t *act, size_t stride,
                      int32_t n_vec, int32_t shift, float *y)
{
    const a8_32 *a = (const a8_32 *)(const void *)act;
    int32_t v = 0;
    (void)n, (void)stride; /* one block */
    for (; v + PANEL_VEC <= n_vec; v += PANEL_VEC) panel_vecs(f, u, a + v, PANEL_VEC, v, shift, y);
    for (; v + 2 <= n_vec; v += 2) panel_vecs(f, u, a + v, 2, v, shift, y);
    if (v < n_vec) panel_vecs(f, u, a + v, 1, v, shift, y);
}

DEFINE_TILE(LEVEL(tile_q4_0), BITS4, 8, 0)
DEFINE_TILE(LEVEL(tile_q4_1), BITS4, 0, 1)
DEFINE_TILE(LEVEL(tile_q5_0), BITS5, 16, 0)
DEFINE_TILE(LEVEL(tile_q5_1), BITS5, 0, 1)
DEFINE_TILE(LEVEL(tile_q8_0), BITS8, 0, 0)
DEFINE_TILE(LEVEL(tile_iq4_nl), IQ4, 0, 0)
DEFINE_AFFINE(LEVEL(affine_4), BITS4)
DEFINE_AFFINE(LEVEL(affine_5), BITS5)
DEFINE_AFFINE(LEVEL(affine_8), BITS8)
DEFINE_FP4(LEVEL(tile_mxfp4), HEAD_E8M0, 2)
DEFINE_FP4(LEVEL(tile_nvfp4), HEAD_E4M3, 1)
