/* Our own functions: one polynomial each, used by the reference and by every level, so that they
   agree to the bit.  Coefficients come from tools/fit_math.py; errors are measured by
   tests/kern/test_math.c and stated in docs/numerics.md.  NaN in gives NaN out.

   exp(x)     0 below -87, +inf above 88; else n = rint(RN(x·log2 e)), r = fma(n, -LN2_HI, x),
              r = fma(n, -LN2_LO, r), q = Horner(EXP_C, r) by fma,
              (fma(q, RN(r·r), r) + 1) with n added to its exponent
   tanh(x)    of a = |x|, with x's sign: a < 0.625: z = RN(a·a), fma(RN(z·Horner(TANH_C, z)), a, a);
              else 1 - 2 / (exp(2a) + 1)
   erfc(z)    z >= 0: t = 1 / fma(z, 0.5, 1), RN(t·Horner(ERFC_C, t)) · exp(-RN(z·z))
   silu(x)    x / (1 + exp(-x))
   sigmoid(x) 1 / (1 + exp(-x))
   softplus   of z = exp(-|x|): s = z / (z + 2), q = RN(s·s), p = Horner(1/15, 1/13, …, 1/3; q) by fma,
              l = RN(2·fma(RN(s·q), p, s));  x > 0: x + l, else l
   gelu_tanh  x / (1 + exp(-RN(x·fma(RN(x·x), GELU_C1, GELU_C0))));  ½x(1+tanh u) = x / (1+exp(-2u))
   xielu(x)   x > 0: RN(RN(alpha_p·x)·x) + RN(beta·x); else, of m = min(x, eps),
              RN(alpha_n·RN(rest(m) + RN(m - x))) + RN(beta·x), where rest(m) = exp(m) - 1 - m is
              RN(Horner(EXP_C, m)·RN(m·m)) from -0.25 on, below it RN(RN(exp(m) - 1) - m)
   gelu_erf   e = RN(x·0.5)·erfc(RN(|x|·√½));  x < 0: e, else x - e */
#ifndef KERN_MATH_H
#define KERN_MATH_H

#include "tensor/op.h"

#define EXP_LO   (-87.0f) /* e^-87 is the last result whose exponent needs no denormal */
#define EXP_HI   88.0f    /* above, n would reach 128 */
#define EXP_LOG2 1.44269504f
#define LN2_HI   0.693359375f /* few bits: n·LN2_HI is exact */
#define LN2_LO   (-2.12194440e-4f)
#define EXP_C5   0.000199696675f
#define EXP_C4   0.00139305042f
#define EXP_C3   0.0083331801f
#define EXP_C2   0.0416665114f
#define EXP_C1   0.166666672f
#define EXP_C0   0.5f

#define TANH_SMALL 0.625f
#define TANH_C4    (-0.00609607762f)
#define TANH_C3    0.0209958367f
#define TANH_C2    (-0.0538502075f)
#define TANH_C1    0.133327574f
#define TANH_C0    (-0.333333284f)

#define ERFC_C8 (-0.0579423308f)
#define ERFC_C7 0.279352814f
#define ERFC_C6 (-0.47698614f)
#define ERFC_C5 0.267098069f
#define ERFC_C4 (-0.0195774902f)
#define ERFC_C3 0.199922279f
#define ERFC_C2 0.243748248f
#define ERFC_C1 0.282293826f
#define ERFC_C0 0.282090694f

#define GELU_C0   1.59576912f   /* 2·sqrt(2/π) */
#define GELU_C1   0.0713548163f /* GELU_C0 · 0.044715 */
#define SQRT_HALF 0.707106781f

#define REST_SMALL (-0.25f) /* exp reduces nothing from here on: its polynomial serves as it is */

float kern_exp(float x);
float kern_tanh(float x);
float kern_erfc(float z);
float kern_silu(float x);
float kern_sigmoid(float x);
float kern_softplus(float x);
float kern_gelu_tanh(float x);
float kern_gelu_erf(float x);
float kern_xielu(float x, const xielu_params *p);
/* In double: reduction by π/2 in two parts, then polynomials; rounded once to f32. */
void kern_sincos(float angle, float *sine, float *cosine);

#endif
