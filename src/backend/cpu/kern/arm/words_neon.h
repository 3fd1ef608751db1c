/* Words of weights in NEON registers, for all tiles.  A lane is an output row; a register holds one word of a
   quad, 4 rows, so a line is four of them. */
#ifndef WORDS_NEON_H
#define WORDS_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kern/kern_linear.h"
#include "tensor/dtype.h"

#define INLINE static inline __attribute__((always_inline))

enum { QUAD_BYTES = 16 };

typedef int8x16_t words;
/* An array of arrays as one of arrays that are not changed. */
#define DOTS(x) ((const int32x4_t(*)[QUADS])(x))

INLINE words load(const void *p)
{
    return vld1q_s8(p);
}
/* A word of numbers in every lane. */
INLINE int32x4_t word(const void *p)
{
    return vld1q_dup_s32(p);
}

INLINE words and8(words v, const int mask)
{
    return vandq_s8(v, vdupq_n_s8((int8_t)mask));
}
/* a | (b & mask) */
INLINE words or_and8(words a, words b, const int mask)
{
    return vorrq_s8(a, and8(b, mask));
}
INLINE words sub8(words a, const int x)
{
    return vsubq_s8(a, vdupq_n_s8((int8_t)x));
}
INLINE words shl16(words v, const int n)
{
    return (words)((uint16x8_t)v << n);
}
INLINE words shr16(words v, const int n)
{
    return (words)((uint16x8_t)v >> n);
}
/* To the left, for n < 0 to the right. */
INLINE words shift16(words v, const int n)
{
    return (words)vshlq_u16((uint16x8_t)v, vdupq_n_s16((int16_t)n));
}
INLINE words low_nibbles(words v)
{
    return and8(v, 15);
}
INLINE words high_nibbles(words v)
{
    return (words)((uint8x16_t)v >> 4);
}

/* Sixteen bytes to look up: signed, as the dots take them. */
typedef int8x16_t table;
#define TABLE(...) ((int8x16_t){__VA_ARGS__})
INLINE table raise_table(table t, const int n)
{
    (void)n; /* dots take signed weights */
    return t;
}
/* Bytes at places 0 … 15. */
INLINE words look_up(table bytes, words at)
{
    return vqtbl1q_s8(bytes, vreinterpretq_u8_s8(at));
}
/* Bit n of each row's word, everywhere in it. */
INLINE words fill_bit(words v, const int n)
{
    return (words)(((int32x4_t)v << (31 - n)) >> 31);
}
/* The weights that nibbles of IQ4_NL and IQ4_XS stand for. */
INLINE words iq4_levels(words nibbles)
{
    return look_up(TABLE(IQ4_LEVELS), nibbles);
}

/* Byte n of each row's word, unsigned and signed. */
INLINE int32x4_t byte_of(words v, const int n)
{
    return (int32x4_t)(((uint32x4_t)v << (24 - 8 * n)) >> 24);
}
INLINE int32x4_t signed_byte(words v, const int n)
{
    return ((int32x4_t)v << (24 - 8 * n)) >> 24;
}

/* Four f16 of any alignment. */
INLINE float32x4_t halves(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

#endif
