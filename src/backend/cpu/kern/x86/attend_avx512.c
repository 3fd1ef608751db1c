/* AVX-512: attention.  A tile of mm holds up to 8 vectors × 32 columns in 16 registers of sums, enough
   chains to hide the latency of both FMA pipes; a strip's 16 columns are one register. */
#include <string.h>

#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/lanes_avx512.h"

#include "backend/cpu/kern/body/math_body.h"

INLINE v16 load16(kv_kind c, const uint8_t *p)
{
    if (c == KV_F32) return _mm512_loadu_ps(p);
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
    if (c == KV_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

enum { TILE_A = 8, TILE_FULL_T = 2, EXP_EACH = 4 };
/* Widening takes the ports of the multiply-adds: 4 of 20 operations of an 8 × 32 tile. */
enum { MM_DIRECT = 12 };
#define TILE_SHAPES(X) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 2) X(6, 2) X(7, 2) X(8, 2)

/* x / d rounded once, in a quarter of a division's cycles: q is next to it after one correction, its rest is exact,
   and so is what the second one rounds to (Markstein 1990, theorem 8.1), as long as nothing underflows. */
INLINE v16 over16(v16 x, v16 d, v16 inv)
{
    const v16 least = set16(0x1p-60f), most = set16(0x1p60f), a = abs16(x), minus = negate16(d);
    const int fits = less16(least, a) & less16(a, most) & less16(least, d) & less16(d, most);
    if (__builtin_expect(fits != 0xffff, 0)) return div16(x, d);
    v16 q = mul16(x, inv);
    q = fma16(fma16(q, minus, x), inv, q);
    return fma16(fma16(q, minus, x), inv, q);
}

#include "backend/cpu/kern/body/attend_body.h"
#include "backend/cpu/kern/body/attend_tile_body.h"

/* Encoding stays AVX2's: a step has few new positions. */
void kern_attend_avx512(kern_vec *v)
{
    attend_install(v);
}
