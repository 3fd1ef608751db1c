/* How far ahead of a walk along weights lines are fetched: one call a line, when the line itself is met.  Xeons with
   AVX-512 want two distances (Q4_K times a vector, of the read bandwidth: 86 to 92 %, with the near one alone 78 to
   79 %), and the far one leads where the walk goes on after its tile: far_ahead.  AMD Zen 3 loses by the far one: Q4_1
   77 to 85 %, with the near one alone 98 to 102 %; Q6_K 90 to 97 % and 98 to 100 %. */
#ifndef KERN_FETCH_H
#define KERN_FETCH_H

#include "base/far.h"

enum { FETCH_NEAR = 1024 };

/* To the first cache what is near, to the second what is far. */
INLINE void prefetch(const uint8_t *p)
{
    __builtin_prefetch(p + FETCH_NEAR, 0, 3);
#if defined(__AVX512F__)
    __builtin_prefetch((const void *)((uintptr_t)p + far_ahead), 0, 2);
#elif !defined(__AVX2__)
    __builtin_prefetch(p + FAR_AHEAD, 0, 2);
#endif
}

#endif
