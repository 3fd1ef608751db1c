/* Which of the next bytes of a text are ASCII letters, digits, blanks: a bit for each, so that the end of a
   run is found without a step for each of its characters. */
#ifndef TEXT_ASCII_H
#define TEXT_ASCII_H

#include <string.h>

#include "cairn/status.h"

typedef uint8_t byte16 __attribute__((vector_size(16)));
typedef int8_t lane16 __attribute__((vector_size(16)));

/* Bit i for byte i of a block.  The classes hold no bit of `stop`, which always has the last one. */
typedef struct ascii_block {
    uint64_t letter, upper, digit, blank, line,
        mark;            /* line: CR, LF; mark: all that is printed besides */
    uint64_t wide, stop; /* beyond ASCII; those and what lies behind n */
    uint32_t n;          /* bytes that are there, 63 at most */
    const char *p;       /* 64 bytes, zeros behind the text's end */
    char own[64];        /* p of a text that ends sooner */
} ascii_block;

/* The high bits of 16 bytes. */
static inline uint64_t ascii_bits(lane16 x)
{
#ifdef __SSE2__
    typedef char char16 __attribute__((vector_size(16)));
    return (uint32_t)__builtin_ia32_pmovmskb128((char16)x);
#else
    uint64_t half[2], bits = 0;
    memcpy(half, &x, sizeof half);
    for (int i = 0; i < 2; i++)
        bits |= ((half[i] >> 7 & 0x0101010101010101u) * 0x0102040810204080u >> 56) << 8 * i;
    return bits;
#endif
}

/* Which bytes are from `lo` to `hi`? */
static inline lane16 ascii_range(byte16 x, uint8_t lo, uint8_t hi)
{
    return (lane16)((byte16)(x - lo) <= (uint8_t)(hi - lo));
}

/* Bytes 16i … 16i + 15 of the block. */
static inline void ascii_sixteen(ascii_block *b, int i)
{
    byte16 x;
    memcpy(&x, b->p + 16 * i, sizeof x);
    const lane16 letter = ascii_range(x | 0x20, 'a', 'z'), digit = ascii_range(x, '0', '9');
    b->letter |= ascii_bits(letter) << 16 * i;
    b->upper |= ascii_bits(ascii_range(x, 'A', 'Z')) << 16 * i;
    b->digit |= ascii_bits(digit) << 16 * i;
    b->blank |= ascii_bits(ascii_range(x, '\t', '\r') | (lane16)(x == ' ')) << 16 * i;
    b->line |= ascii_bits((lane16)(x == '\n') | (lane16)(x == '\r')) << 16 * i;
    b->mark |= ascii_bits(ascii_range(x, '!', '~') & ~letter & ~digit) << 16 * i;
    b->wide |= ascii_bits((lane16)x) << 16 * i;
}

/* The bytes of s from `at` on, of which there is one at least. */
static inline void ascii_load(ascii_block *b, cairn_str s, size_t at)
{
    const size_t left = s.len - at;

    b->p = s.ptr + at;
    b->n = left < 64 ? (uint32_t)left : 63;
    b->letter = b->upper = b->digit = b->blank = b->line = b->mark = b->wide = 0;
    if (left < 64) { /* texts are cut into short pieces before they come here */
        memset(b->own, 0, sizeof b->own);
        memcpy(b->own, b->p, left);
        b->p = b->own;
        for (int i = 0; 16 * (size_t)i < left; i++) ascii_sixteen(b, i);
    } else {
        for (int i = 0; i < 4; i++) ascii_sixteen(b, i);
    }
    b->stop = b->wide | ~(uint64_t)0 << b->n;
    b->letter &= ~b->stop;
    b->upper &= ~b->stop;
    b->digit &= ~b->stop;
    b->blank &= ~b->stop;
    b->line &= ~b->stop;
    b->mark &= ~b->stop;
}

/* Eight bytes are ASCII and neither blanks nor controls? */
static inline bool ascii_printed8(uint64_t x)
{
    const uint64_t one = 0x0101010101010101u;

    return !((x | (x + one) | (x - 0x21 * one)) & 0x80 * one);
}

/* The same of a short text. */
static inline bool ascii_printed(cairn_str s)
{
    uint64_t x;
    uint32_t u, v;

    if (s.len < sizeof u) {
        for (size_t i = 0; i < s.len; i++)
            if (s.ptr[i] <= ' ' || s.ptr[i] > '~') return false;
        return true;
    }
    if (s.len < sizeof x) { /* two halves, which overlap */
        memcpy(&u, s.ptr, sizeof u);
        memcpy(&v, s.ptr + s.len - sizeof v, sizeof v);
        return ascii_printed8(u | (uint64_t)v << 32);
    }
    for (size_t i = 0; i + sizeof x <= s.len; i += sizeof x) {
        memcpy(&x, s.ptr + i, sizeof x);
        if (!ascii_printed8(x)) return false;
    }
    memcpy(&x, s.ptr + s.len - sizeof x, sizeof x);
    return ascii_printed8(x);
}

/* End of the run of set bits from `at` on; the last bit is clear. */
static inline uint32_t ascii_end(uint64_t bits, uint32_t at)
{
    return at + (uint32_t)__builtin_ctzll(~(bits >> at));
}

#endif
