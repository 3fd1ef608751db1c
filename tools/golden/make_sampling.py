#!/usr/bin/env python3
"""Writes tests/unit/sample/golden_sampling.inc: the sampling chain by numpy, in f64.

The processors and truncations follow mlx-lm's definitions (sort, cumulative sum), which share no
method with the selection under test.  Run: python3 tools/golden/make_sampling.py"""
import pathlib

import numpy as np

VOCAB = 40
OUT = pathlib.Path(__file__).parents[2] / "tests/unit/sample/golden_sampling.inc"


def process(x, c):
    x = x.astype(np.float64)
    for i, v in c["bias"]:
        x[i] += v
    window = c["ids"][-c["window"]:]  # 0: everything
    for i in sorted(set(window)):
        x[i] = x[i] * c["repetition"] if x[i] < 0 else x[i] / c["repetition"]
    new = c["ids"][c["n_prompt"]:]
    for i in sorted(set(new)):
        x[i] -= c["presence"] + c["frequency"] * new.count(i)
    return x


def keep(lp, c):
    kept = np.ones(VOCAB, bool)
    p = np.exp(lp)
    if c["top_p"] < 1:
        order = np.argsort(p, kind="stable")
        cum = np.cumsum(p[order])
        kept[order[cum <= 1 - c["top_p"]]] = False
    if c["min_p"] > 0:
        kept &= lp >= lp.max() + np.log(c["min_p"])
    if c["top_k"] > 0:
        kept[np.argsort(-lp, kind="stable")[c["top_k"]:]] = False
    kept[np.argmax(lp)] = True
    return kept


def case(rng, **over):
    c = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repetition=1.0, window=0, presence=0.0,
             frequency=0.0, bias=[], n_prompt=6)
    c.update(over)
    c["ids"] = [int(i) for i in rng.integers(0, VOCAB, 18)]
    c["logits"] = (rng.standard_normal(VOCAB) * 2.5).astype(np.float32)
    return c


def f(x):
    return f"{np.float32(x)!s}f" if "." in str(np.float32(x)) or "e" in str(np.float32(x)) else f"{x}.0f"


def emit(c):
    x = process(c["logits"], c)
    lp = x - (x.max() + np.log(np.exp(x - x.max()).sum()))
    kept = keep(lp, c)
    w = np.where(kept, np.exp((lp - lp.max()) / c["temperature"]), 0.0)
    bias = "".join(f"{{{i}, {f(v)}}}, " for i, v in c["bias"])
    floats = lambda v: ", ".join(f"{float(a):.9g}" if "." in f"{float(a):.9g}" or "e" in f"{float(a):.9g}"
                                 else f"{float(a):.1f}" for a in v)
    c_floats = lambda v: ", ".join(t + "f" for t in floats(v).split(", "))
    return (f"{{{f(c['temperature'])}, {c['top_k']}, {f(c['top_p'])}, {f(c['min_p'])}, "
            f"{f(c['repetition'])}, {c['window']}, {f(c['presence'])}, {f(c['frequency'])}, "
            f"{{{bias or '{0, 0.0f}'}}}, {len(c['bias'])}, {c['n_prompt']},\n"
            f" {{{', '.join(map(str, c['ids']))}}},\n {{{c_floats(c['logits'])}}},\n"
            f" {{{floats(lp)}}},\n {{{floats(w / w.sum())}}}}},\n")


def main():
    rng = np.random.default_rng(11)
    cases = [
        case(rng),
        case(rng, temperature=0.7),
        case(rng, bias=[(3, 2.5), (17, -4.0), (3, 0.5)]),
        case(rng, repetition=1.3),
        case(rng, repetition=1.3, window=5),
        case(rng, repetition=0.8, window=100),
        case(rng, presence=0.9),
        case(rng, frequency=0.4),
        case(rng, presence=-0.5, frequency=0.3, repetition=1.1, window=8, bias=[(0, 1.0)]),
        case(rng, top_k=1),
        case(rng, top_k=7, temperature=1.4),
        case(rng, top_p=0.5),
        case(rng, top_p=0.95, temperature=0.3),
        case(rng, min_p=0.1),
        case(rng, top_k=12, top_p=0.8, min_p=0.05, temperature=0.9),
        case(rng, top_k=30, top_p=0.99, min_p=0.2, presence=1.0, repetition=1.2),
    ]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("/* Made by tools/golden/make_sampling.py. */\n" + "".join(map(emit, cases)))


main()
