/* Formats with 256 weights a block, aarch64: how quads of them are taken apart, in words of words_neon.h.  p is a
   quad's part of its group's lines.

   Weights are stored from 0 up where minima or a centre are undone after, those of Q3_K and Q6_K where a dot
   starts; IQ4_XS, the codebook and the ternary types look up signed levels. */
#include "backend/cpu/kern/body/linear_grid_body.h"

#include "backend/cpu/kern/body/q2k_q3k_body.h"

/* Words of a line, of a triple of Q6_K: line_step lines of the row apart. */
INLINE int line_words(const int bits)
{
    if (bits >= GRID_IQ3_S) return n_word(bits);
    return bits == 4 || bits == 5 || bits == BITS_IQ4 ? 2 : 4;
}
INLINE int line_step(const int bits)
{
    return bits == BITS_IQ4 ? 4 : 8;
}
/* The place in the row of word c of a line. */
INLINE int word_at(const int bits, const int line, const int c)
{
    const int step = line_step(bits);
    return line / step * step * line_words(bits) + line % step + step * c;
}
/* The largest magnitude of a stored weight. */
INLINE int most(const int bits)
{
    if (bits == GRID_IQ2_XXS || bits == GRID_IQ2_S) return 43;
    if (bits >= GRID_IQ3_S) return bits == GRID_IQ3_XXS ? 31 : 15;
    return (1 << bits) - 1; /* 127: BITS_IQ4 is 7 */
}

/* Q2_K, Q3_K: a line of codes has the bits of four words, two each. */
INLINE void unpack_k23(const int bits, const uint8_t *p, const int line, words *w)
{
    const words v = load(p + TILE_LINE * (code_line(bits) + line));
    for (int k = 0; k < 4; k++) w[k] = and8(shr16(v, 2 * k), 3);
    if (bits == 2) return;
    const words t = load(p + TILE_LINE * (THIRD_LINE + line % 8));
    for (int k = 0; k < 4; k++) {
        const int up = 2 - 4 * (line / 8) - (k % 2 * 2 + k / 2); /* to bit 2 */
        w[k] = or_and8(w[k], shift16(t, up), 4);
    }
}
INLINE void unpack_k45(const int bits, const uint8_t *p, const int line, words *w)
{
    const words v = load(p + TILE_LINE * ((bits == 5 ? 12 : 4) + line));
    w[0] = low_nibbles(v), w[1] = high_nibbles(v);
    if (bits == 4) return;
    const words fifth = load(p + TILE_LINE * (4 + line % 8));
    const int up = 4 - line / 8 * 2; /* from bit 2p to bit 4 */
    w[0] = or_and8(w[0], shift16(fifth, up), 16);
    w[1] = or_and8(w[1], shift16(fifth, up - 1), 16);
}
INLINE void unpack_k6(const uint8_t *p, const int triple, words *w)
{
    p += TILE_LINE * (4 + 3 * triple);
    const words a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    w[0] = or_and8(low_nibbles(a), shl16(c, 4), 0x30);
    w[1] = or_and8(low_nibbles(b), shl16(c, 2), 0x30);
    w[2] = or_and8(high_nibbles(a), c, 0x30);
    w[3] = or_and8(high_nibbles(b), shr16(c, 2), 0x30);
}
INLINE void unpack_any(const int bits, const uint8_t *p, const int line, words *w)
{
    if (bits >= GRID_IQ3_S) {
        unpack(bits, p, word_at(bits, line, 0), w);
    } else if (bits == BITS_IQ4) {
        const words v = load(p + TILE_LINE * (2 + line));
        w[0] = iq4_levels(low_nibbles(v)), w[1] = iq4_levels(high_nibbles(v));
    } else if (bits == 6) {
        unpack_k6(p, line, w);
    } else if (bits >= 4) {
        unpack_k45(bits, p, line, w);
    } else {
        unpack_k23(bits, p, line, w);
    }
}

/* Where the dot of a sub-block starts whose first word is k. */
INLINE int32x4_t start(const int bits, const a8_256 *a, const int k)
{
    if (bits == 6) return vdupq_n_s32(2 * a->n16[k / 4]);
    if (bits == 3) return vdupq_n_s32(a->n16[k / 4] >> 2);
    return vdupq_n_s32(0);
}

/* Q4_K, Q5_K: the bytes of the 8 scales and of the 8 minima. */
INLINE void bytes_k45(const uint8_t *p, words *s, words *m)
{
    const words a = load(p + TILE_LINE), b = load(p + 2 * TILE_LINE), c = load(p + 3 * TILE_LINE);
    s[0] = and8(a, 63), m[0] = and8(b, 63);
    s[1] = or_and8(low_nibbles(c), shr16(a, 2), 0x30);
    m[1] = or_and8(high_nibbles(c), shr16(b, 2), 0x30);
}
/* IQ4_XS: scales 0 2 4 6, then 1 3 5 7. */
INLINE void bytes_iq4(const uint8_t *high16, const uint8_t *p, words *s)
{
    const words low = load(p + TILE_LINE);
    /* Nibble i of the high bits to byte i. */
    uint32x4_t x = vmovl_u16(vreinterpret_u16_u8(vld1_u8(high16)));
    x = (x | x << 8) & 0xff00ff;
    const words h = (words)(x | x << 4);
    s[0] = sub8(or_and8(low_nibbles(low), shl16(h, 4), 0x30), 32);
    s[1] = sub8(or_and8(high_nibbles(low), shl16(h, 2), 0x30), 32);
}
/* Codebook types: 16 scales 2s + 1, of nibbles s, one for each sub-block or for two. */
INLINE void scales_grid(const int bits, const uint8_t *p, int32x4_t *sc)
{
    const int each = n_scale_line(bits) == 1 ? 2 : 1;
    for (int j = 0; j < 16; j++) sc[j] = vdupq_n_s32(1);
    for (int i = 0; i < n_scale_line(bits); i++) {
        const words v = load(p + TILE_LINE * i), s[2] = {low_nibbles(v), high_nibbles(v)};
        for (int j = 0; j < 8; j++)
            for (int e = 0; e < each; e++) {
                const int32x4_t x = byte_of(s[j % 2], j / 2);
                sc[8 * i + each * j + e] = x + x + vdupq_n_s32(1);
            }
    }
}
/* The scales of a quad, one a sub-block; d16: its d, p: its part of the lines. */
INLINE void scales(const int bits, const uint8_t *d16, const uint8_t *p, int32x4_t *sc)
{
    words s[4], m[2];
    if (bits >= GRID_IQ3_S) {
        scales_grid(bits, p, sc);
        return;
    }
    if (bits == 3) scale_bytes_k3(p, s);
    if (bits == 4 || bits == 5) bytes_k45(p, s, m);
    if (bits == BITS_IQ4) bytes_iq4(d16 + 32, p, s);
    for (int i = 0; i < 4 && bits == 2; i++) s[i] = low_nibbles(load(p + TILE_LINE * (1 + i)));
    for (int i = 0; i < 4 && bits == 6; i++) s[i] = load(p + TILE_LINE * i);
    for (int j = 0; j < 64 / scale_lines(bits); j++) {
        if (bits == BITS_IQ4)
            sc[j] = signed_byte(s[j % 2], j / 2);
        else
            sc[j] = signed_byte(s[j / 4], j % 4);
    }
}

/* d of four rows. */
INLINE float32x4_t quad_d(const int bits, const uint8_t *d16)
{
    const float32x4_t d = halves(d16);
    return bits >= GRID_IQ3_S ? vmulq_n_f32(d, grid_unit(bits)) : d;
}

/* The minima in pairs, as numbers of 16 bits, in the order of s16 or s32. */
INLINE void minima(const int bits, const uint8_t *p, int16x8_t *pair)
{
    if (bits == 2) {
        for (int i = 0; i < 4; i++) {
            const words m = high_nibbles(load(p + TILE_LINE * (1 + i)));
            const int32x4_t a = vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(m)));
            const int32x4_t b = vreinterpretq_s32_s16(vmovl_high_s8(m));
            pair[2 * i] = vreinterpretq_s16_s32(vuzp1q_s32(a, b));
            pair[2 * i + 1] = vreinterpretq_s16_s32(vuzp2q_s32(a, b));
        }
    } else if (bits == 4 || bits == 5) {
        words s[2], m[2];
        bytes_k45(p, s, m);
        for (int i = 0; i < 2; i++) {
            pair[2 * i] = vandq_s16((int16x8_t)m[i], vdupq_n_s16(0xff));
            pair[2 * i + 1] = (int16x8_t)shr16(m[i], 8);
        }
    }
}
INLINE int n_pair(const int bits)
{
    return bits == 2 ? 8 : 4;
}
