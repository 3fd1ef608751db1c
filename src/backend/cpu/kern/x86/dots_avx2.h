/* Dots of words by vpmaddubsw: products add up in 16 bits over as many lines as fit, then in 32.  dots_avxvnni.h
   has the same words:

     BYTE_DOTS                 whether stored weights of 8 bits make dots as narrower ones do
     part_from(c)              the dots of a register of words on the way, no word yet, …
     part_add(x, w, q)         … plus the products of stored weights w, from 0 up, with q
     part_add_two(x, …)        … of two words, each with its q
     part_whole(x)             its dots so far in 32 bits
     part_plus(x, c)           dots plus the c that part_from had
     whole_lines(bits)         lines that a part takes until part_whole; stored weights have `bits` bits
     part_lines(bits, n)       likewise until add_scaled, of n lines under one scale; divides n
     add_scaled(bits, n, …)    sum + scale · part
     short_lines(bits)         likewise until add_madd of part and scale, if n ≤ short_lines(bits) for the scale
     add_madd(sum, a, b)       sum plus the products of 16-bit numbers
   and scales as add_scaled takes them:
     scale_of(v, m)            byte m of each row's word
     signed_scale_of(bits, n, v, m)
     scale_one()
     scale_pair(a, b)          of two, as the 16-bit numbers of a word */
#ifndef DOTS_AVX2_H
#define DOTS_AVX2_H

#include "backend/cpu/kern/x86/words_avx2.h"

enum { BYTE_DOTS = 0 };

INLINE __m256i part_from(__m256i c)
{
    (void)c;
    return _mm256_setzero_si256();
}
INLINE __m256i part_add(__m256i x, words w, words q)
{
    return _mm256_add_epi16(x, _mm256_maddubs_epi16(w, q));
}
INLINE __m256i part_add_two(__m256i x, words w0, words q0, words w1, words q1)
{
    const __m256i p = _mm256_add_epi16(_mm256_maddubs_epi16(w0, q0), _mm256_maddubs_epi16(w1, q1));
    return _mm256_add_epi16(x, p);
}
INLINE __m256i part_whole(__m256i x)
{
    return _mm256_madd_epi16(x, _mm256_set1_epi16(1));
}
INLINE __m256i part_plus(__m256i x, __m256i c)
{
    return _mm256_add_epi32(x, c);
}
INLINE __m256i add_madd(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

/* Exactness, |q| ≤ 127: a pair of products is at most 2·15·127 = 3,810 (4 bits), 7,874 (5), 16,002 (6) and
   27,178 (levels of at most 107); so 8, 4, 2 and 1 lines add up in 16 bits (30,480; 31,496; 32,004). */
INLINE int whole_lines(const int bits)
{
    return bits <= 4 ? 8 : bits == 5 ? 4 : bits == 6 ? 2 : 1;
}
INLINE int short_lines(const int bits)
{
    return whole_lines(bits);
}
INLINE int part_lines(const int bits, const int n)
{
    return whole_lines(bits) < n ? whole_lines(bits) : n;
}
INLINE __m256i add_scaled(const int bits, const int n, __m256i sum, __m256i x, __m256i scale)
{
    (void)bits, (void)n;
    return add_madd(sum, x, scale);
}

/* Twice a row. */
INLINE __m256i scale_of(__m256i v, const int m)
{
    return spread(v, m, m);
}
INLINE __m256i signed_scale_of(const int bits, const int n, __m256i v, const int m)
{
    (void)bits, (void)n;
    return spread_signed(v, m, m);
}
INLINE __m256i scale_one(void)
{
    return _mm256_set1_epi16(1);
}
INLINE __m256i scale_pair(__m256i a, __m256i b)
{
    return _mm256_blend_epi16(a, b, 0xaa);
}

#endif
