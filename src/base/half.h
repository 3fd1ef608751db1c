/* Conversions of small floats.  Exact towards f32; from f32 to nearest, ties to even. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}
uint16_t bf16_from_f32(float x); /* NaN stays NaN */
float f16_to_f32(uint16_t h);
uint16_t f16_from_f32(float x);     /* overflow becomes infinity */
uint16_t f16_from_f32_sat(float x); /* overflow becomes ±65504; NaN stays NaN */
float e4m3_to_f32(uint8_t b);       /* fp8, finite-only variant (e4m3fn) */
float e8m0_to_f32(uint8_t b);       /* 2^(b-127); 255 is NaN */
/* Of fp4: twice the value of a code of e2m1, and the half of its scale, 2^(b-128), that goes with it. */
extern const int8_t e2m1_level[16];
float e8m0_half(uint8_t b); /* denormal for b < 2; 255 is 2^127, as in ggml */

#endif
