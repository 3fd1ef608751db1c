/* Words of weights in AVX2 registers, for all tiles.  A lane is an output row; a register holds one word
   of 8 rows.  Weights wider than vpmaddubsw takes become 16 bits: two vpmaddwd a word then beat the four
   instructions of the sign trick, if more than a few vectors meet them. */
#ifndef WORDS_AVX2_H
#define WORDS_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "tensor/dtype.h"

#define INLINE static inline __attribute__((always_inline))
/* Keeps a chain of sums a chain: rearranged into a tree, it needs more registers than there are. */
#define KEEP(v) __asm__("" : "+x"(v))
/* Keeps loads of weights where they stand: taken ahead, more are alive than there are registers. */
#define IN_ORDER() __asm__ volatile("" ::: "memory")

typedef __m256i words;

INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
INLINE __m256i word(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

INLINE words and8(words v, const int mask)
{
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}
/* a | (b & mask) */
INLINE words or_and8(words a, words b, const int mask)
{
    return _mm256_or_si256(a, and8(b, mask));
}
INLINE words sub8(words a, const int x)
{
    return _mm256_sub_epi8(a, _mm256_set1_epi8((char)x));
}
INLINE words shl16(words v, const int n)
{
    return _mm256_slli_epi16(v, n);
}
INLINE words shr16(words v, const int n)
{
    return _mm256_srli_epi16(v, n);
}
INLINE words low_nibbles(words v)
{
    return and8(v, 15);
}
INLINE words high_nibbles(words v)
{
    return and8(shr16(v, 4), 15);
}

/* Sixteen bytes to look up, and the same plus a number: dots take unsigned weights. */
typedef __m128i table;
#define TABLE(...) _mm_setr_epi8(__VA_ARGS__)
INLINE table raise_table(table t, const int n)
{
    return _mm_add_epi8(t, _mm_set1_epi8((char)n));
}
/* Bytes at places 0 … 15. */
INLINE words look_up(table bytes, words at)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), at);
}
/* Bit n of each row's word, everywhere in it. */
INLINE words fill_bit(words v, const int n)
{
    return _mm256_srai_epi32(_mm256_slli_epi32(v, 31 - n), 31);
}

/* Bytes m and n of each row's word, unsigned, as the 16-bit numbers of the word. */
INLINE __m256i spread(__m256i v, const int m, const int n)
{
    const char z = (char)0x80, a = (char)m, b = (char)n;
    return _mm256_shuffle_epi8(v,
                               _mm256_setr_epi8(a, z, b, z, a + 4, z, b + 4, z, a + 8, z, b + 8, z,
                                                a + 12, z, b + 12, z, a, z, b, z, a + 4, z, b + 4,
                                                z, a + 8, z, b + 8, z, a + 12, z, b + 12, z));
}
/* Likewise, signed. */
INLINE __m256i spread_signed(__m256i v, const int m, const int n)
{
    const char z = (char)0x80, a = (char)m, b = (char)n;
    const __m256i order =
        _mm256_setr_epi8(z, a, z, b, z, a + 4, z, b + 4, z, a + 8, z, b + 8, z, a + 12, z, b + 12,
                         z, a, z, b, z, a + 4, z, b + 4, z, a + 8, z, b + 8, z, a + 12, z, b + 12);
    return _mm256_srai_epi16(_mm256_shuffle_epi8(v, order), 8);
}

/* The weights that nibbles of IQ4_NL and IQ4_XS stand for, plus a number. */
INLINE words iq4_levels(words nibbles, const int plus)
{
    return look_up(raise_table(TABLE(IQ4_LEVELS), plus), nibbles);
}

/* One word of signed weights, |w| ≤ 128, into the dots with n vectors, whose words are `apart` bytes from
   each other; `scale` twice a row. */
INLINE void add_signed(__m256i w, __m256i scale, const int8_t *q, const size_t apart, const int n,
                       __m256i *dot)
{
    const __m256i mag = _mm256_abs_epi8(w);
    for (int t = 0; t < n; t++) {
        const __m256i x = _mm256_sign_epi8(word(q + apart * (size_t)t), w);
        const __m256i p = _mm256_madd_epi16(_mm256_maddubs_epi16(mag, x), scale);
        dot[t] = _mm256_add_epi32(dot[t], p);
        KEEP(dot[t]);
    }
}

/* Vector words of int8 to 16 bits, n of them. */
INLINE void widen_vec(const int8_t *q, const int n, int16_t *wide)
{
    for (int i = 0; i < n; i += 16) {
        const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(q + i));
        _mm256_store_si256((__m256i *)(void *)(wide + i), _mm256_cvtepi8_epi16(b));
    }
}

/* Bytes 0 and 1 of each word, into the high byte of each 16 bits; then 2 and 3. */
INLINE void widen_high(__m256i v, __m256i *w)
{
    w[0] = _mm256_blend_epi16(_mm256_slli_epi32(v, 8), _mm256_slli_epi32(v, 16), 0xaa);
    w[1] = _mm256_blend_epi16(_mm256_srli_epi32(v, 8), v, 0xaa);
}

/* s0, s1: the dots of 16-bit weights, n_line lines of 2, of twice 8 rows with n vectors, q_step values
   apart. */
INLINE void wide_dots(const void *w0, const void *w1, const int n_line, const int16_t *q,
                      const int q_step, const int n, __m256i *s0, __m256i *s1)
{
    for (int t = 0; t < n; t++) s0[t] = s1[t] = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (int s = 0; s < n_line; s++) {
        const __m256i a0 = load((const __m256i *)w0 + s), a1 = load((const __m256i *)w1 + s);
        for (int t = 0; t < n; t++) {
            const __m256i x = word(q + t * q_step + 2 * s);
            s0[t] = _mm256_add_epi32(s0[t], _mm256_madd_epi16(a0, x));
            KEEP(s0[t]);
            s1[t] = _mm256_add_epi32(s1[t], _mm256_madd_epi16(a1, x));
            KEEP(s1[t]);
        }
        IN_ORDER();
    }
}

#endif
