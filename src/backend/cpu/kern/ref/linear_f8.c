/* Floats of 8 bits made f32: the definition.  y = RN(w·s), w exact, of e4m3 (0x7f and 0xff are NaN) or of
   e5m2, which is the upper half of an f16.  Rows so widened meet float activations by lane16: e4m3 has
   18 bits from its least to its largest, so that no 8-bit product holds it, and widening in front of the
   product costs less than the memory's time. */
#include "backend/cpu/kern/ref/linear_ref.h"
#include "base/half.h"

void ref_widen_e4m3(const uint8_t *w, int32_t n, float s, float *y)
{
    for (int32_t i = 0; i < n; i++) y[i] = e4m3_to_f32(w[i]) * s;
}

void ref_widen_e5m2(const uint8_t *w, int32_t n, float s, float *y)
{
    for (int32_t i = 0; i < n; i++) y[i] = f16_to_f32((uint16_t)(w[i] << 8)) * s;
}
