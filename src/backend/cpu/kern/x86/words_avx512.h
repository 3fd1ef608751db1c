/* Words of weights in AVX-512 registers, for all tiles.  A register holds one line: a word of each of 16
   rows. */
#ifndef WORDS_AVX512_H
#define WORDS_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kern/kern_linear.h"
#include "tensor/dtype.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m512i words;

INLINE __m512i load(const void *p)
{
    return _mm512_loadu_si512(p);
}
INLINE __m512i word(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm512_set1_epi32(v);
}

INLINE words and8(words v, const int mask)
{
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}
/* a | (b & mask) */
INLINE words or_and8(words a, words b, const int mask)
{
    return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8((char)mask), 0xf8);
}
INLINE words sub8(words a, const int x)
{
    return _mm512_sub_epi8(a, _mm512_set1_epi8((char)x));
}
INLINE words shl16(words v, const unsigned n)
{
    return _mm512_slli_epi16(v, n);
}
INLINE words shr16(words v, const unsigned n)
{
    return _mm512_srli_epi16(v, n);
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
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), at);
}
/* Bit n of each row's word, everywhere in it. */
INLINE words fill_bit(words v, const unsigned n)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(v, 31 - n), 31);
}

/* The weights that nibbles of IQ4_NL and IQ4_XS stand for, plus 128: as vpdpbusd takes them. */
INLINE __m512i iq4_levels(__m512i nibbles)
{
    const __m128i level = _mm_setr_epi8(IQ4_LEVELS), flip = _mm_set1_epi8((char)0x80);
    return look_up(_mm_xor_si128(level, flip), nibbles);
}

#endif
