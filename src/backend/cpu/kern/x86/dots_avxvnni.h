/* Dots of words by vpdpbusd, four products a lane straight into 32 bits.  dots_avx2.h has the list.

   A scale is multiplied in one instruction, vpdpwssd, where the dot of all its lines fits 16 bits: the scale is
   zero-extended to 32 bits, and the dot's high half, a sign, meets the zero.  Else a vpmulld, which takes two of
   the multiplier's turns, and an addition cost less than more parts: their sums have no registers left. */
#ifndef DOTS_AVXVNNI_H
#define DOTS_AVXVNNI_H

#include "backend/cpu/kern/x86/words_avx2.h"

enum { BYTE_DOTS = 1 };

INLINE __m256i part_from(__m256i c)
{
    return c;
}
INLINE __m256i part_add(__m256i x, words w, words q)
{
    return _mm256_dpbusd_avx_epi32(x, w, q);
}
INLINE __m256i part_add_two(__m256i x, words w0, words q0, words w1, words q1)
{
    return part_add(part_add(x, w0, q0), w1, q1);
}
INLINE __m256i part_whole(__m256i x)
{
    return x;
}
INLINE __m256i part_plus(__m256i x, __m256i c)
{
    (void)c;
    return x;
}
INLINE __m256i add_madd(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_dpwssd_avx_epi32(sum, a, b);
}

INLINE int whole_lines(const int bits)
{
    (void)bits;
    return 8;
}
/* A line of |q| ≤ 127 is at most 4·127·(2^bits − 1). */
INLINE int short_lines(const int bits)
{
    return bits <= 3 ? 8 : bits == 4 ? 4 : bits == 5 ? 2 : bits == 6;
}
INLINE int part_lines(const int bits, const int n)
{
    (void)bits;
    return n;
}
INLINE __m256i add_scaled(const int bits, const int n, __m256i sum, __m256i x, __m256i scale)
{
    if (short_lines(bits) >= n) return add_madd(sum, x, scale);
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(x, scale));
}

INLINE __m256i scale_of(__m256i v, const int m)
{
    const __m256i x = m ? _mm256_srli_epi32(v, 8 * m) : v;
    return m == 3 ? x : _mm256_and_si256(x, _mm256_set1_epi32(0xff));
}
INLINE __m256i signed_scale_of(const int bits, const int n, __m256i v, const int m)
{
    const __m256i x = _mm256_srai_epi32(m == 3 ? v : _mm256_slli_epi32(v, 24 - 8 * m), 24);
    return short_lines(bits) >= n ? _mm256_and_si256(x, _mm256_set1_epi32(0xffff)) : x;
}
INLINE __m256i scale_one(void)
{
    return _mm256_set1_epi32(1);
}
INLINE __m256i scale_pair(__m256i a, __m256i b)
{
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
}

#endif
