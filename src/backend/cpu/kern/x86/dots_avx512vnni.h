/* The instructions of panels at AVX-512 VNNI: two lines of weights times a word of each of n vectors.

   Written as assembler for two reasons.  gcc 12 does not let vpdpbusd and vpdpwssd broadcast their memory
   operand, and it copies accumulators about.  Neither costs the multipliers anything, but instructions: a core
   whose other thread is busy starts half as many, and then these are the limit, not the dots (docs/kernels.md).
   Where two of three vectors' words are memory operands, dots, loads and instructions are balanced.

   DOTS_INTRINSICS (the emulation of the tests): without assembler. */
#ifndef DOTS_AVX512VNNI_H
#define DOTS_AVX512VNNI_H

#include "backend/cpu/kern/x86/words_avx512.h"

/* name: sum + a · b;  name_word: likewise, b the word at p in every lane. */
#ifdef DOTS_INTRINSICS
#define INSTRUCTION(name, op, intrinsic)                                                           \
    INLINE __m512i name(__m512i sum, __m512i a, __m512i b)                                         \
    {                                                                                              \
        return intrinsic(sum, a, b);                                                               \
    }                                                                                              \
    INLINE __m512i name##_word(__m512i sum, __m512i a, const void *p)                              \
    {                                                                                              \
        return intrinsic(sum, a, word(p));                                                         \
    }
INLINE __m512i own_word(const void *p)
{
    return word(p);
}
#else
typedef int32_t __attribute__((may_alias)) memory_word;
/* volatile keeps them in the order written, in which they need the fewest registers. */
#define INSTRUCTION(name, op, intrinsic)                                                           \
    INLINE __m512i name(__m512i sum, __m512i a, __m512i b)                                         \
    {                                                                                              \
        __asm__ volatile(op " %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));                           \
        return sum;                                                                                \
    }                                                                                              \
    INLINE __m512i name##_word(__m512i sum, __m512i a, const void *p)                              \
    {                                                                                              \
        __asm__ volatile(op " %2%{1to16%}, %1, %0"                                                 \
                         : "+v"(sum)                                                               \
                         : "v"(a), "m"(*(const memory_word *)p));                                  \
        return sum;                                                                                \
    }
/* A word in every lane of a register of its own: where an accumulator starts. */
INLINE __m512i own_word(const void *p)
{
    __m512i v;
    __asm__ volatile("vpbroadcastd %1, %0" : "=v"(v) : "m"(*(const memory_word *)p));
    return v;
}
#endif
INSTRUCTION(dot, "vpdpbusd", _mm512_dpbusd_epi32)
INSTRUCTION(pairs, "vpdpwssd", _mm512_dpwssd_epi32)
#undef INSTRUCTION

/* Lines w0 and w1 times the word at q of n vectors `size` bytes apart. */
INLINE void dot_lines2(__m512i w0, __m512i w1, const int8_t *q, const size_t size, const int n,
                       __m512i *s0, __m512i *s1)
{
    for (int t = 0; t < n; t++, q += size) {
        if (t % 3) {
            s0[t] = dot_word(s0[t], w0, q);
            s1[t] = dot_word(s1[t], w1, q);
        } else {
            const __m512i x = word(q);
            s0[t] = dot(s0[t], w0, x);
            s1[t] = dot(s1[t], w1, x);
        }
    }
}

#endif
