#!/usr/bin/env python3
"""Fits the polynomials of kern_math.h: least squares at Chebyshev nodes in high precision (within a
factor of two of minimax), each coefficient rounded to f32 and the higher ones refitted."""
import sys

try:
    import mpmath as mp
    import numpy as np
except ImportError as e:
    sys.exit(f"fit_math.py: {e.name} is missing; expected a python with mpmath and numpy (pip install mpmath numpy)")

mp.mp.dps = 40


def fit(f, lo, hi, deg):
    lo, hi, n = mp.mpf(lo), mp.mpf(hi), 40
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    rest = [f(x) for x in xs]
    c = []
    for k in range(deg + 1):
        a = mp.matrix(n, deg + 1 - k)
        for i, x in enumerate(xs):
            for j in range(k, deg + 1):
                a[i, j - k] = x**j
        first = mp.lu_solve(a, mp.matrix(rest))[0]
        first = mp.mpf(float(np.float32(float(first))))
        c.append(first)
        rest = [r - first * x**k for r, x in zip(rest, xs)]
    grid = [lo + (hi - lo) * i / 2000 for i in range(2001)]
    err = max(abs(f(x) - mp.polyval(c[::-1], x)) for x in grid)
    return c, err


def show(name, c, err):
    print(f"{name}: largest error {float(err):.3g}")
    for k, v in enumerate(c):
        print(f"    {k}: {float(v):.9g}")


def exp_q(r):
    return mp.mpf(1) / 2 + r / 6 if abs(r) < mp.mpf(10) ** -12 else (mp.exp(r) - 1 - r) / r**2


def tanh_q(z):
    x = mp.sqrt(z)
    return (mp.tanh(x) - x) / (x * z)


ERFC_P = mp.mpf("0.5")


def erfc_q(t):
    z = (1 / t - 1) / ERFC_P
    return mp.erfc(z) * mp.exp(z * z) / t


half_ln2 = mp.log(2) / 2 * mp.mpf("1.0001")
show("exp: (e^r - 1 - r) / r^2, |r| <= ln(2)/2", *fit(exp_q, -half_ln2, half_ln2, 5))
show("tanh: (tanh x - x) / x^3 in x^2, |x| <= 0.625", *fit(tanh_q, "1e-12", "0.390625", 4))
for d in (7, 8, 9):
    show("erfc: erfc(z) e^(z^2) / t in t = 1 / (1 + z/2), z <= 9.4",
         *fit(erfc_q, 1 / (1 + ERFC_P * mp.mpf("9.4")), 1, d))
