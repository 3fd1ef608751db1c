#!/usr/bin/env python3
"""Writes tests/unit/sample/golden_curves.inc: what a curve makes of a distribution, in numpy and f64.

The cubic is stated in the power basis from Fritsch and Carlson 1980, "Monotone piecewise cubic interpolation", SIAM J.
Numer. Anal. 17 (the code under test has Hermite's), with their circle of radius 3; where scipy is there, its
CubicHermiteSpline must give the same for the same slopes, and PchipInterpolator must rise wherever ours does.

Run: python3 tools/golden/make_curves.py"""
import math
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
OUT = HERE.parents[1] / "tests/unit/sample/golden_curves.inc"
f32, f64 = np.float32, np.float64
FLOOR = f64(f32(1e-7))


def logits(seed, vocab):  # SMOOTH and TIES of make_samplers.py, by turns
    h = (np.arange(vocab, dtype=np.uint32) * np.uint32(2654435761)) ^ np.uint32(seed * 40503 % 2**32)
    for shift, by in ((15, 2246822519), (13, 3266489917), (16, 1)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(by)
    x = ((h >> np.uint32(8)).astype(f32) / f32(2**24) - f32(0.5)) * f32(16)
    return np.floor(x) / f32(2) if seed % 2 else x


def slopes(x, y):
    d = np.diff(y) / np.diff(x)
    m = np.concatenate(([d[0]], (d[:-1] + d[1:]) / 2, [d[-1]]))
    for i, s in enumerate(d):
        if s == 0:
            m[i] = m[i + 1] = 0
            continue
        a, b = m[i] / s, m[i + 1] / s
        if a * a + b * b > 9:
            t = 3 / math.hypot(a, b)
            m[i], m[i + 1] = t * a * s, t * b * s
    return d, m


def bent(knots, l):
    x, y = (np.log(np.maximum(np.array([k[i] for k in knots], f32).astype(f64), FLOOR) / 100) for i in (0, 1))
    d, m = slopes(x, y)
    k = np.clip(np.searchsorted(x, l) - 1, 0, len(d) - 1)
    h, s = np.diff(x)[k], l - x[k]
    c3 = (m[k] + m[k + 1] - 2 * d[k]) / h**2
    c2 = (3 * d[k] - 2 * m[k] - m[k + 1]) / h
    inside = y[k] + s * (m[k] + s * (c2 + s * c3))
    out = np.where(l <= x[0], y[0] + max(m[0], 1) * (l - x[0]), np.where(l >= x[-1], y[-1] + m[-1] * (l - x[-1]), inside))
    try:
        from scipy.interpolate import CubicHermiteSpline
        t = np.linspace(x[0], x[-1], 5000)
        spline = CubicHermiteSpline(x, y, m)(t)
        assert (np.diff(spline) >= -1e-12).all(), "it turns back"
        mine = (l > x[0]) & (l < x[-1])
        assert np.allclose(CubicHermiteSpline(x, y, m)(l[mine]), inside[mine], atol=1e-9)
    except ImportError:
        print("no scipy: not compared", file=sys.stderr)
    return out


CURVES = [
    [(0.01, 0.01), (1, 1), (100, 100)],
    [(0, 0), (100, 100)],
    [(0.05, 0.0001), (0.5, 0.05), (10, 10), (100, 100)],
    [(0.05, 0.001), (1, 3), (20, 20), (100, 50)],
    [(0.01, 1), (1, 1), (2, 40), (3, 40), (60, 90)],
    [(0.0001, 50), (50, 50)],
    [(1, 0), (2, 99), (3, 100)],
    [(0.3 * 1.2**i, 0.2 * 1.22**i) for i in range(31)] + [(100, 100)],
]


def number(v):
    s = "%.9g" % f32(v)
    return s + ("f" if "." in s or "e" in s else ".0f")


def main():
    text = "/* Made by tools/golden/make_curves.py. */\n"
    for i, knots in enumerate(CURVES):
        for vocab in (64, 5000):
            x = logits(i, vocab).astype(f64)
            l = x - x.max() - np.log(np.exp(x - x.max()).sum())
            w = bent(knots, l)
            p = np.exp(w - w.max())
            p /= p.sum()
            ids = [int(p.argmax()), int(p.argmin()), vocab // 3, vocab - 1]
            text += "{%du, %d, %d, {%s}, {%s}, {%s}},\n" % (
                i, vocab, len(knots), ", ".join("{%s, %s}" % (number(a), number(b)) for a, b in knots),
                ", ".join(map(str, ids)), ", ".join("%.12g" % p[k] for k in ids))
    OUT.write_text(text)


main()
