/* Tiles of 256 weights a block in AVX-512: lines into unsigned weights, scales into numbers, a block's exact
   sums into y.  What the levels above AVX-512 share; each file includes it once after
   linear_tile256_form.h and words_avx512.h. */
#include "backend/cpu/kern/x86/dots_avx512vnni.h"

INLINE __m512 halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
/* Byte n of each word, alone and unsigned. */
INLINE __m512i byte_of(__m512i v, const unsigned n)
{
    const __m512i x = n ? _mm512_srli_epi32(v, 8 * n) : v;
    return n == 3 ? x : _mm512_and_si512(x, _mm512_set1_epi32(0xff));
}
/* Likewise signed in the low half, the high half 0. */
INLINE __m512i signed_byte_of(__m512i v, const unsigned n)
{
    const __m512i top = n == 3 ? v : _mm512_slli_epi32(v, 24 - 8 * n);
    return _mm512_srli_epi32(_mm512_srai_epi32(top, 8), 16);
}

/* Four signed scales, one a byte. */
INLINE void signed_scales(__m512i v, __m512i *sc)
{
    sc[0] = signed_byte_of(v, 0), sc[1] = signed_byte_of(v, 1);
    sc[2] = signed_byte_of(v, 2), sc[3] = signed_byte_of(v, 3);
}

/* Σ pair · sums, n pairs. */
INLINE __m512i pair_dot(const __m512i *pair, const int16_t *sums, const int n)
{
    __m512i s = _mm512_setzero_si512();
    for (int i = 0; i < n; i++) s = pairs_word(s, pair[i], sums + 2 * i);
    return s;
}

/* Q4_K, Q5_K: 8 scales; 4 pairs of minima, 4 of scales in the order 0 2, 1 3, 4 6, 5 7. */
INLINE void scales_k45(const uint8_t *p, __m512i *sc, __m512i *pair)
{
    const __m512i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    const __m512i even = _mm512_set1_epi16(0xff);
    const __m512i s0 = and8(a, 63), m0 = and8(b, 63);
    const __m512i s1 = or_and8(low_nibbles(c), _mm512_srli_epi16(a, 2), 0x30);
    const __m512i m1 = or_and8(high_nibbles(c), _mm512_srli_epi16(b, 2), 0x30);
    sc[0] = byte_of(s0, 0), sc[1] = byte_of(s0, 1), sc[2] = byte_of(s0, 2), sc[3] = byte_of(s0, 3);
    sc[4] = byte_of(s1, 0), sc[5] = byte_of(s1, 1), sc[6] = byte_of(s1, 2), sc[7] = byte_of(s1, 3);
    pair[0] = _mm512_and_si512(m0, even), pair[1] = _mm512_srli_epi16(m0, 8);
    pair[2] = _mm512_and_si512(m1, even), pair[3] = _mm512_srli_epi16(m1, 8);
    pair[4] = _mm512_and_si512(s0, even), pair[5] = _mm512_srli_epi16(s0, 8);
    pair[6] = _mm512_and_si512(s1, even), pair[7] = _mm512_srli_epi16(s1, 8);
}

INLINE void scales_k6(const uint8_t *p, __m512i *sc)
{
    for (int i = 0; i < 4; i++) signed_scales(load(p + TILE_LINE * i), sc + 4 * i);
}

/* Word 8p+s of 16 rows, from its line and the fifth bits of s: sub-blocks 2p and 2p+1. */
INLINE void unpack_k45(const int bits, __m512i v, __m512i fifth, const int p, __m512i *lo,
                       __m512i *hi)
{
    *lo = low_nibbles(v);
    *hi = high_nibbles(v);
    if (bits == 5) {
        const int up = 4 - 2 * p; /* from bit 2p to bit 4 */
        const __m512i l = up >= 0 ? _mm512_slli_epi32(fifth, (unsigned)up)
                                  : _mm512_srli_epi32(fifth, (unsigned)-up);
        const __m512i h = up >= 1 ? _mm512_slli_epi32(fifth, (unsigned)(up - 1))
                                  : _mm512_srli_epi32(fifth, (unsigned)(1 - up));
        *lo = or_and8(*lo, l, 16);
        *hi = or_and8(*hi, h, 16);
    }
}

/* Triple s of a half block: words s of its four sub-blocks of 32.  (nibble or shifted high bits) by a
   mask that picks low or high four bits, then six bits. */
INLINE void unpack_k6(const uint8_t *p, __m512i *w)
{
    const __m512i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    w[0] = or_and8(low_nibbles(a), _mm512_slli_epi16(c, 4), 0x30);
    w[1] = or_and8(low_nibbles(b), _mm512_slli_epi16(c, 2), 0x30);
    w[2] = or_and8(high_nibbles(a), c, 0x30);
    w[3] = or_and8(high_nibbles(b), _mm512_srli_epi16(c, 2), 0x30);
}

/* A scale, 32 bits wide with a high half of 0, as both 16-bit numbers of its word. */
INLINE __m512i twice(__m512i sc)
{
    return _mm512_or_si512(sc, _mm512_slli_epi32(sc, 16));
}

/* (v − 2^log) · sc of the even and of the odd bytes; sc as both 16-bit numbers of its word. */
INLINE void products16(__m512i v, __m512i sc, const unsigned log, __m512i *even, __m512i *odd)
{
    const __m512i byte = _mm512_set1_epi16(0xff), centre = _mm512_slli_epi16(sc, log);
    *even = _mm512_sub_epi16(_mm512_maddubs_epi16(v, _mm512_and_si512(sc, byte)), centre);
    *odd = _mm512_sub_epi16(_mm512_maddubs_epi16(v, _mm512_slli_epi16(sc, 8)), centre);
}
/* 256 · high + low of a word: products of 16 bits, whose bytes are sorted. */
INLINE void store_planes(uint8_t *low, uint8_t *high, __m512i v, __m512i sc, const unsigned log)
{
    const __m512i byte = _mm512_set1_epi16(0xff);
    __m512i even, odd;
    products16(v, sc, log, &even, &odd);
    /* byte ? a : b */
    _mm512_store_si512(low, _mm512_ternarylogic_epi32(byte, even, _mm512_slli_epi16(odd, 8), 0xca));
    _mm512_store_si512(high,
                       _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(even, 8), odd, 0xca));
}

/* y += dx · (d · whole − dmin · m), the latter where there are minima. */
INLINE void add_whole(const int bits, __m512i whole, __m512i m, __m512 d, __m512 dmin, __m512 dx,
                      float *y)
{
    __m512 t = _mm512_mul_ps(d, _mm512_cvtepi32_ps(whole));
    if (has_min(bits)) t = _mm512_fnmadd_ps(dmin, _mm512_cvtepi32_ps(m), t);
    _mm512_store_ps(y, _mm512_fmadd_ps(t, dx, _mm512_load_ps(y)));
}
/* Likewise, m = Σ minimum · Σ q. */
INLINE void add_block(const int bits, __m512i whole, const __m512i *pair, __m512 d, __m512 dmin,
                      const a8_256 *a, float *y)
{
    __m512i m = whole;
    if (has_min(bits)) m = bits == 2 ? pair_dot(pair, a->s16, 8) : pair_dot(pair, a->s32, 4);
    add_whole(bits, whole, m, d, dmin, _mm512_set1_ps(a->d), y);
}
