/* exp, log and erf⁻¹ in double, ours: what is computed from them has the same bits with every C library. */
#ifndef BASE_FMATH_H
#define BASE_FMATH_H

#define FMATH_PI 3.14159265358979323846

double fmath_exp(double x);    /* |x| < 700; error below 4 ulp */
double fmath_log(double x);    /* x > 0, normal; error below 4 ulp */
double fmath_erfinv(double y); /* |y| <= 1 - 2^-25; relative error below 1e-9 */

#endif
