#!/usr/bin/env python3
"""Writes tests/unit/sample/golden_samplers.inc and golden_dry.inc: what each sampler leaves, and DRY's penalties.

Each sampler is stated in numpy, in f64, from its paper (sorts and cumulative sums, which share no method with the
selection under test); llama.cpp's own sampler gets the same logits, and what it keeps must be the same values
before anything is written.  Where llama.cpp is known to differ (docs/sampling.md) the case says so.  A case whose
cut lies within rounding of a token is drawn anew.

Run: python3 tools/golden/make_samplers.py [FOLDER]   (of libllama.so; else bench/get-llama.cpp is asked)"""
import ctypes as C
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).parent
OUT = HERE.parents[1] / "tests/unit/sample"
LOW = np.float32(-3e38)
f32, f64 = np.float32, np.float64


# logits: made alike by the test
def logits(kind, seed, vocab):
    h = (np.arange(vocab, dtype=np.uint32) * np.uint32(2654435761)) ^ np.uint32(seed * 40503 % 2**32)
    for shift, by in ((15, 2246822519), (13, 3266489917), (16, 1)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(by)
    x = ((h >> np.uint32(8)).astype(f32) / f32(2**24) - f32(0.5)) * f32(16)
    if kind == "TIES":
        x = np.floor(x) / f32(2)
    if kind == "HOLES":
        x = np.floor(x) / f32(2)
        x[h % np.uint32(3) == 0] = -np.inf
    if kind == "FAR":
        x[h % np.uint32(4) == 0] = LOW
        x[h % np.uint32(4) == 1] *= f32(1000)
    if kind == "PEAK":  # halves of the vocabulary lie ever higher: few tokens have the mass
        zeros = np.zeros(vocab, f32)
        for bit in range(31, -1, -1):
            zeros += (h >> np.uint32(bit)) == 0
        x = zeros * f32(1.5) + (h & np.uint32(1023)).astype(f32) / f32(1024)
    return x if np.isfinite(x).any() else logits(kind, seed + 1000, vocab)


class Close(Exception):
    """A cut within rounding of a token."""


def apart(a, b, what=1e-5):
    if a != b and abs(a - b) < what * max(abs(a), abs(b)):
        raise Close


def softmax(x):
    with np.errstate(invalid="ignore", over="ignore"):
        e = np.exp(x.astype(f64) - f64(x.max()))
    return e / e.sum()


def descending(x):
    return np.lexsort((np.arange(len(x)), -x.astype(f64)))


def fewest(p, order, mass, eps):
    cum = np.cumsum(p[order])
    k = int(np.searchsorted(cum, mass))
    for i in (k - 1, k):
        if 0 <= i < len(p) - 1:
            apart(cum[i], mass, eps)
    return order[:k + 1]


# one sampler each: ids and logits in, ids that stay (rising)
def top_k(x, c, eps):
    return descending(x)[:c["top_k"]]


def top_p(x, c, eps):
    return fewest(softmax(x), descending(x), f64(f32(c["top_p"])), eps)


def min_p(x, c, eps):
    p = softmax(x)
    least = p.max() * f64(f32(c["min_p"]))
    for v in set(p[p > 0]):
        apart(v, least)
    return np.flatnonzero(p >= least)


def typical(x, c, eps):
    p = softmax(x)
    surprise = -np.log(np.maximum(p, 1e-300))
    entropy = (p * surprise).sum()
    shift = np.abs(surprise - entropy)
    order = np.lexsort((np.arange(len(x)), shift))
    kept = fewest(p, order, f64(f32(c["typical_p"])), eps)
    outside = order[len(kept):]
    if len(outside) and x[outside[0]] != x[kept[-1]]:
        apart(shift[outside[0]], shift[kept[-1]])
    return kept


def xtc(x, c, eps):
    p = softmax(x)
    for v in set(p):
        apart(v, f64(f32(c["xtc_threshold"])))
    order = descending(x)
    n = int((p[order] >= f64(f32(c["xtc_threshold"]))).sum())
    return order[max(n - 1, 0):]


def mirostat_2(x, c, eps):
    p = softmax(x)
    order = descending(x)
    surprise = -np.log2(np.maximum(p[order], 1e-300))
    for s in surprise[:2000]:
        apart(s, c["mu"], 1e-6)
    return order[:max(1, int((surprise <= c["mu"]).sum()))]


def mirostat_1(x, c, eps):
    p = softmax(x)
    v = p[descending(x)][:100]
    n, t = len(x), np.log(np.arange(2, len(v) + 1) / np.arange(1, len(v)))
    s = (t * np.log(v[:-1] / v[1:])).sum() / (t * t).sum()
    e = s - 1
    k = (e * 2.0**c["mu"] / (1 - f64(n)**-e))**(1 / s)
    apart(k, np.round(k), 1e-3)
    return descending(x)[:max(1, min(int(k), n))]


STEPS = {"top_k": top_k, "top_p": top_p, "min_p": min_p, "typical_p": typical, "xtc_threshold": xtc}


# llama.cpp
class Datum(C.Structure):
    _fields_ = [("id", C.c_int32), ("logit", C.c_float), ("p", C.c_float)]


class Data(C.Structure):
    _fields_ = [("data", C.POINTER(Datum)), ("size", C.c_size_t), ("selected", C.c_int64), ("sorted", C.c_bool)]


class Llama:
    def __init__(self, folder):
        for name in ("ggml-base", "ggml-cpu", "ggml"):
            C.CDLL(f"{folder}/lib{name}.so", C.RTLD_GLOBAL)
        self.lib = C.CDLL(f"{folder}/libllama.so", C.RTLD_GLOBAL)
        with tempfile.TemporaryDirectory() as d:
            subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", f"{d}/dry.so", HERE / "llama_dry.cpp",
                            f"{folder}/libllama.so"], check=True)
            self.dry = C.CDLL(f"{d}/dry.so").make_dry
        self.dry.restype = C.c_void_p

    def make(self, name, *args):
        f = getattr(self.lib, "llama_sampler_init_" + name)
        f.restype = C.c_void_p
        return f(*args)

    def apply(self, sampler, x):
        """What is left, as (id, logit) pairs; the chosen id."""
        data = (Datum * len(x))(*[(i, v, 0) for i, v in enumerate(x.tolist())])
        cur = Data(data, len(x), -1, False)
        self.lib.llama_sampler_apply(C.c_void_p(sampler), C.byref(cur))
        left = [(cur.data[i].id, cur.data[i].logit) for i in range(cur.size)]
        return left, left[cur.selected][0] if cur.selected >= 0 else -1

    def free(self, sampler):
        self.lib.llama_sampler_free(C.c_void_p(sampler))

    def samplers(self, c):
        k1 = C.c_size_t(1)
        flt = lambda n: C.c_float(c[n])
        for name in c["order"]:
            if name == "top_k":
                yield self.make("top_k", C.c_int32(c["top_k"]))
            if name == "top_p":
                yield self.make("top_p", flt("top_p"), k1)
            if name == "min_p":
                yield self.make("min_p", flt("min_p"), k1)
            if name == "typical_p":
                yield self.make("typical", flt("typical_p"), k1)
            if name == "xtc_threshold":
                yield self.make("xtc", C.c_float(1), flt("xtc_threshold"), k1, C.c_uint32(1))

    def chain(self, c, x):
        ids, left = np.arange(len(x)), x
        for s in self.samplers(c):
            got, _ = self.apply(s, left)
            self.free(s)
            at = [g[0] for g in got]
            ids, left = ids[at], left[at]
        return np.sort(left)


def ours(c, x, eps):
    """top-k, top-p and min-p are judged over the whole vocabulary, the rest over what is left."""
    kept = np.ones(len(x), bool)
    for name in ("top_k", "top_p", "min_p"):
        if name in c["order"]:
            one = np.zeros(len(x), bool)
            one[STEPS[name](x, c, eps)] = True
            kept &= one
    kept &= x > -np.inf
    ids = np.flatnonzero(kept)
    for name in ("typical_p", "xtc_threshold"):
        if name in c["order"]:
            ids = np.sort(ids[STEPS[name](x[ids], c, eps)])
    return ids


def number(v):
    t = f"{float(v):.9g}"
    return t if any(ch in t for ch in ".einf") else t + ".0"


def emit(c, ids, x):
    scaled = x[ids].astype(f64) / f64(f32(c["temperature"]))
    p = softmax(scaled)
    best = ids[descending(scaled)[:4]]
    at = [int(np.flatnonzero(ids == b)[0]) for b in best] + [0] * 4
    how = "".join(f", .{n} = {number(c[n]) + 'f' if isinstance(c[n], float) else c[n]}"
                  for n in ("top_k", "top_p", "min_p", "typical_p", "xtc_threshold", "mirostat") if n in c)
    if "xtc_threshold" in c:
        how += ", .xtc_probability = 1.0f"
    checks = [int(ids.astype(np.uint64).sum()) % 2**32, int(np.bitwise_xor.reduce((ids * 2654435761) % 2**32))]
    return (f"{{{c['kind']}, {c['seed']}u, {c['vocab']}, {{.temperature = {number(c['temperature'])}f{how}}}, "
            f"{number(c.get('mu', 0.0))}, {len(ids)}, {checks[0]}u, {checks[1]}u, "
            f"{{{', '.join(f'{i}' for i in ids[at[:4]])}}}, {{{', '.join(f'{p[i]:.12g}' for i in at[:4])}}}}},\n")


def one_case(llama, c):
    for seed in range(c["seed"], c["seed"] + 60):
        c["seed"] = seed
        x = logits(c["kind"], seed, c["vocab"])
        big = c["vocab"] > 1000
        try:
            ids = ours(c, x, 3e-7 if big else 1e-5)
        except Close:
            continue
        if not c.get("differs"):
            theirs = llama.chain(c, x)
            theirs = theirs[theirs > -np.inf]
            mine = np.sort(x[ids])
            if big and {"top_p", "typical_p"} & set(c["order"]):  # sums of 262,144 weights in f32
                assert abs(len(mine) - len(theirs)) <= 0.02 * len(mine) + 1, (c, len(mine), len(theirs))
            else:
                assert np.array_equal(mine, theirs), (c, mine, theirs)
        return emit(c, ids, x)
    sys.exit(f"no clear case: {c}")


SMALL = [("SMOOTH", 64), ("TIES", 64), ("HOLES", 40), ("FAR", 40), ("SMOOTH", 7), ("TIES", 3), ("HOLES", 2), ("SMOOTH", 1)]
KNOBS = [dict(top_k=1), dict(top_k=5), dict(top_k=63), dict(top_p=0.1), dict(top_p=0.5), dict(top_p=0.97),
         dict(min_p=0.02), dict(min_p=0.9), dict(typical_p=0.2), dict(typical_p=0.5), dict(typical_p=0.95),
         dict(xtc_threshold=0.02), dict(xtc_threshold=0.1), dict(xtc_threshold=0.5),
         dict(top_k=20, typical_p=0.6), dict(min_p=0.01, xtc_threshold=0.05), dict(top_k=30, min_p=0.05),
         dict(top_k=12, top_p=0.8, differs=True), dict(top_p=0.9, typical_p=0.5, xtc_threshold=0.05, differs=True)]
LARGE = [("PEAK", 262144), ("TIES", 262144), ("PEAK", 50257)]
LARGE_KNOBS = [dict(top_k=1), dict(top_k=40), dict(top_k=3000), dict(top_p=0.3), dict(min_p=0.05),
               dict(typical_p=0.3), dict(xtc_threshold=0.001), dict(top_k=200, top_p=0.5, min_p=0.01, differs=True)]


def cases(llama):
    text, n = "", 0
    for shapes, knobs in ((SMALL, KNOBS), (LARGE, LARGE_KNOBS)):
        for kind, vocab in shapes:
            for knob in knobs:
                if kind == "TIES" and vocab > 1000 and {"top_p", "typical_p"} & knob.keys():
                    continue  # equal weights of 1e-5: no clear cut
                c = dict(kind=kind, vocab=vocab, seed=n, temperature=(0.7, 1.0, 1.3)[n % 3], **knob)
                if kind in ("HOLES", "FAR") and "typical_p" in knob:
                    c["differs"] = True  # 0 · log 0: llama.cpp's entropy is not a number
                c["order"] = [k for k in ("top_k", "typical_p", "top_p", "min_p", "xtc_threshold") if k in knob]
                text += one_case(llama, c)
                n += 1
    return text


def mirostat(llama):
    """llama.cpp's sampler runs over steps; mu follows the tokens that it draws."""
    text = ""
    for version, kind, vocab, tau, eta in ((2, "SMOOTH", 64, 2.5, 0.3), (2, "TIES", 40, 1.0, 0.5),
                                           (2, "FAR", 40, 3.0, 0.1), (2, "PEAK", 50257, 5.0, 0.1),
                                           (1, "SMOOTH", 64, 2.0, 0.3), (1, "PEAK", 50257, 4.0, 0.2),
                                           (1, "TIES", 300, 3.0, 0.1)):
        args = (C.c_float(tau), C.c_float(eta))
        s = (llama.make("mirostat_v2", C.c_uint32(5), *args) if version == 2 else
             llama.make("mirostat", C.c_int32(vocab), C.c_uint32(5), *args, C.c_int32(100)))
        mu = 2 * tau
        for seed in range(12):
            x = logits(kind, seed, vocab)
            c = dict(kind=kind, seed=seed, vocab=vocab, temperature=1.0, mirostat=version, mu=mu)
            got, chosen = llama.apply(s, x)
            try:
                ids = np.sort((mirostat_1 if version == 1 else mirostat_2)(x, c, 0))
                assert np.array_equal(np.sort(x[ids]), np.sort(f32([g[1] for g in got]))), c
                text += emit(c, ids, x)
            except Close:
                pass
            kept = f32([g[1] for g in got])
            p = softmax(kept)[[g[0] for g in got].index(chosen)]
            mu -= eta * (-np.log2(p) - tau)
        llama.free(s)
    return text


# DRY
def dry_penalties(c):
    """By comparing every suffix with every place: from the definition."""
    seq = c["ids"][-c["last_n"]:]
    n = len(seq)
    limit = n
    for i in range(n):  # tokens behind the last breaker
        if any(seq[n - i - len(b):n - i] == b for b in c["breakers"] if len(b) <= n - i):
            limit = i
            break
    longest = {}
    for at in range(n - 1):
        m = 0
        while m <= at and seq[at - m] == seq[n - 1 - m]:
            m += 1
        m = min(m, limit)
        if m >= c["allowed"]:
            longest[seq[at + 1]] = max(longest.get(seq[at + 1], 0), m)
    if n <= c["allowed"] or limit < c["allowed"]:
        return {}
    return {i: f64(f32(c["multiplier"])) * f64(f32(c["base"]))**(m - c["allowed"]) for i, m in longest.items()
            if [i] not in c["breakers"]}


def dry_case(llama, rng):
    letters = int(rng.integers(2, 12))
    ids = [int(i) for i in rng.integers(0, letters, int(rng.integers(1, 120)))]
    for _ in range(int(rng.integers(0, 4))):  # said again
        a = int(rng.integers(0, len(ids)))
        ids += ids[a:a + int(rng.integers(1, 40))]
    for _ in range(int(rng.integers(0, 6))):  # breakers of one, two and three letters: 12, 13 14, 15 13 13
        at = int(rng.integers(0, len(ids) + 1))
        ids[at:at] = [[12], [13, 14], [15, 13, 13], [13]][int(rng.integers(0, 4))]
    ids = ids[-200:]
    c = dict(ids=ids, multiplier=float(f32(rng.uniform(0.1, 3))), base=float(f32(rng.uniform(1, 2.5))),
             allowed=int(rng.integers(0, 5)), last_n=int(rng.choice([1, 5, 30, 64, 300])),
             breakers=[[12], [13, 14], [15, 13, 13]][:int(rng.integers(0, 4))])
    want = dry_penalties(c)
    breakers = c["breakers"] + [[99]]  # without any it warns
    flat = [i for b in breakers for i in b]
    s = llama.dry(C.c_float(c["multiplier"]), C.c_float(c["base"]), c["allowed"], c["last_n"],
                  (C.c_int32 * len(flat))(*flat), (C.c_int32 * 4)(*map(len, breakers)), len(breakers))
    for i in ids:
        llama.lib.llama_sampler_accept(C.c_void_p(s), i)
    got = {i: -v for i, v in llama.apply(s, np.zeros(16, f32))[0] if v != 0}
    llama.free(s)
    assert got.keys() == want.keys(), (c, want, got)
    for i, v in want.items():
        assert abs(got[i] - v) <= 1e-5 * v, (c, i, v, got[i])
    pairs = sorted(want.items()) + [(-1, 0.0)]
    return (f"{{{number(c['multiplier'])}f, {number(c['base'])}f, {c['allowed']}, {c['last_n']}, "
            f"{len(c['breakers'])}, {len(ids)},\n {{{', '.join(map(str, ids))}}},\n "
            f"{{{', '.join(f'{{{i}, {v:.10g}}}' for i, v in pairs)}}}}},\n", len(want))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else subprocess.run(
        [HERE.parents[1] / "bench/get-llama.cpp"], capture_output=True, text=True, check=True).stdout.strip() + "/build/bin"
    llama = Llama(folder)
    note = "/* Made by tools/golden/make_samplers.py. */\n"
    (OUT / "golden_samplers.inc").write_text(note + cases(llama) + mirostat(llama))
    rng = np.random.default_rng(5)
    all_dry = [dry_case(llama, rng) for _ in range(2000)]  # all are compared, some are kept
    kept = [t for t, n in all_dry if n > 1][:60] + [t for t, n in all_dry if n == 0][:10]
    (OUT / "golden_dry.inc").write_text(note + "".join(kept))


main()
