/* kern_math.h over sixteen lanes: the steps of ref/math_ref.c, once for every width.  The file that
   includes it has included lanes_LEVEL.h before, which says

     v16, b16, i16            sixteen f32; a truth for each; sixteen integers
     loadf16, store16         floats, at any address; with _first: the first n < 16, others +0 or kept
     set16, first16           one float in each lane; the first n lanes, others +0
     add16 … andnot16         a lane at a time; max16: b where either is NaN; andnot16: ~a & b
     fma16, fms16             a·b + c, a·b - c, rounded once
     less16, pick16, clear16  a < b, false for NaN; yes where true, else no; +0 where true
     to_int16, of_int16       to nearest even, anything where that is no integer, of NaN 0 or
                              1 << 31; back
     raise16                  x · 2^n by adding n to its exponent
     v16_max, v16_tree        over the lanes, of which none is NaN: the largest; all: +8, +4, +2, +1 */
#include "backend/cpu/kern/kern_math.h"

INLINE v16 negate16(v16 x)
{
    return xor16(x, set16(-0.0f));
}

INLINE v16 abs16(v16 x)
{
    return andnot16(set16(-0.0f), x);
}

/* Horner's rule from the two highest coefficients on. */
INLINE v16 poly16(v16 x, const float *c, const int n)
{
    v16 p = fma16(set16(c[0]), x, set16(c[1]));
#pragma GCC unroll 8
    for (int i = 2; i < n; i++) p = fma16(p, x, set16(c[i]));
    return p;
}

static const float exp_c[] = {EXP_C5, EXP_C4, EXP_C3, EXP_C2, EXP_C1, EXP_C0};
static const float tanh_c[] = {TANH_C4, TANH_C3, TANH_C2, TANH_C1, TANH_C0};

/* Of n vectors whose elements are not above EXP_HI; step by step over all of them, since a core does not
   look far enough ahead to run two such chains side by side. */
INLINE void exp_low_each(v16 *x, const int n)
{
    i16 ni[4];
    v16 r[4], q[4], f;
#define EACH _Pragma("GCC unroll 4") for (int i = 0; i < n; i++)
    EACH ni[i] = to_int16(mul16(x[i], set16(EXP_LOG2)));
    EACH
    {
        f = of_int16(ni[i]);
        r[i] = fma16(f, set16(-LN2_HI), x[i]);
        r[i] = fma16(f, set16(-LN2_LO), r[i]);
    }
    EACH q[i] = fma16(set16(exp_c[0]), r[i], set16(exp_c[1]));
#pragma GCC unroll 4
    for (int k = 2; k < 6; k++) EACH q[i] = fma16(q[i], r[i], set16(exp_c[k]));
    EACH q[i] = fma16(q[i], mul16(r[i], r[i]), r[i]);
    EACH q[i] = add16(q[i], set16(1.0f));
    EACH q[i] = raise16(q[i], ni[i]); /* NaN: what ni is, the shift drops */
    EACH x[i] = clear16(less16(x[i], set16(EXP_LO)), q[i]);
#undef EACH
}

INLINE v16 exp_low16(v16 x)
{
    exp_low_each(&x, 1);
    return x;
}

INLINE v16 exp16(v16 x)
{
    return pick16(less16(set16(EXP_HI), x), set16(__builtin_inff()), exp_low16(x));
}

INLINE v16 tanh16(v16 x)
{
    const v16 sign = set16(-0.0f), one = set16(1.0f);
    const v16 a = abs16(x), z = mul16(a, a);
    const v16 low = fma16(mul16(z, poly16(z, tanh_c, 5)), a, a);
    const v16 e = add16(exp16(add16(a, a)), one);
    const v16 high = sub16(one, div16(set16(2.0f), e));
    const v16 y = abs16(pick16(less16(a, set16(TANH_SMALL)), low, high));
    return or16(y, and16(sign, x));
}

INLINE v16 erfc16(v16 z)
{
    static const float c[] = {ERFC_C8, ERFC_C7, ERFC_C6, ERFC_C5, ERFC_C4,
                              ERFC_C3, ERFC_C2, ERFC_C1, ERFC_C0};
    const v16 one = set16(1.0f);
    const v16 t = div16(one, fma16(z, set16(0.5f), one));
    return mul16(mul16(t, poly16(t, c, 9)), exp_low16(negate16(mul16(z, z))));
}

/* x / (1 + exp(-u)) */
INLINE v16 gate16(v16 x, v16 u)
{
    return div16(x, add16(set16(1.0f), exp16(negate16(u))));
}

INLINE v16 silu16(v16 x)
{
    return gate16(x, x);
}

/* NaN stays. */
INLINE v16 relu16(v16 x)
{
    return clear16(less16(x, set16(0.0f)), x);
}

INLINE v16 gelu_tanh16(v16 x)
{
    return gate16(x, mul16(x, fma16(mul16(x, x), set16(GELU_C1), set16(GELU_C0))));
}

INLINE v16 gelu_erf16(v16 x)
{
    const v16 e = mul16(mul16(x, set16(0.5f)), erfc16(mul16(abs16(x), set16(SQRT_HALF))));
    return pick16(less16(x, set16(0.0f)), e, sub16(x, e));
}

/* exp(m) - 1 - m for m <= 0 */
INLINE v16 exp_rest16(v16 m)
{
    const v16 near = mul16(poly16(m, exp_c, 6), mul16(m, m));
    const v16 far = sub16(sub16(exp_low16(m), set16(1.0f)), m);
    return pick16(less16(m, set16(REST_SMALL)), far, near);
}

INLINE v16 xielu16(v16 x, const xielu_params *p)
{
    const v16 eps = set16(p->eps);
    const v16 line = mul16(set16(p->beta), x);
    const v16 up = mul16(mul16(set16(p->alpha_p), x), x);
    const v16 m = pick16(less16(x, eps), x, eps);
    const v16 down = mul16(set16(p->alpha_n), add16(exp_rest16(m), sub16(m, x)));
    return add16(pick16(less16(set16(0.0f), x), up, down), line);
}
