/* Floats of 8 bits made f32: the loop that the levels share.  Each file includes it once, after its header of kernels,
   and defines

     put16(type, w, s, y)  y = RN(w·s) of sixteen, by way of f16, whose conversion takes denormals as they are;
                           of E4M3 only 2^−8 of that

   An e4m3 moved to an f16's places is 2^−8 of its value, which goes into the scale: exact, as long as that stays
   finite; where not, the reference does it. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/ref/linear_ref.h"

enum { E4M3, E5M2, WIDE = 16 };

INLINE void put16(const int type, const uint8_t *w, float s, float *y);

INLINE void widen(const int type, const uint8_t *w, int32_t n, float s, float *y)
{
    const float up = type == E4M3 ? s * 256.0f : s;
    int32_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        __builtin_prefetch(w + i + 1024, 0, 3);
        put16(type, w + i, up, y + i);
    }
    if (i == n) return;
    uint8_t last[WIDE] = {0};
    float out[WIDE];
    memcpy(last, w + i, (size_t)(n - i));
    put16(type, last, up, out);
    memcpy(y + i, out, (size_t)(n - i) * sizeof *y);
}

#define DEFINE_WIDEN(level)                                                                        \
    void level##_widen_e4m3(const uint8_t *w, int32_t n, float s, float *y)                        \
    {                                                                                              \
        if (fabsf(s) > 0x1p119f)                                                                   \
            ref_widen_e4m3(w, n, s, y);                                                            \
        else                                                                                       \
            widen(E4M3, w, n, s, y);                                                               \
    }                                                                                              \
    void level##_widen_e5m2(const uint8_t *w, int32_t n, float s, float *y)                        \
    {                                                                                              \
        widen(E5M2, w, n, s, y);                                                                   \
    }
