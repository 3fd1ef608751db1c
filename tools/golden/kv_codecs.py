#!/usr/bin/env python3
"""The cache codecs of docs/numerics.md in NumPy, and what they make of some keys and values.

    tools/golden/kv_codecs.py            writes tests/ops/golden_codecs.inc
    tools/golden/kv_codecs.py centroids  prints TurboQuant's centroids and bounds, derived

Rows are made by integer arithmetic, so that the test makes the same.  A golden is a hash (FNV-1a) of the bytes of
a cache block after ROWS positions were written to a block of 0xff, and of what reading its keys and values gives:
codes, numbers, their places and the dequantised values are equal if the hashes are.
"""
import math, pathlib, sys
from fractions import Fraction
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "ops" / "golden_codecs.inc"
BLOCK, TILE, ROWS, HEADS = 64, 16, 19, 2
f4, f2 = np.float32, np.float16
MASK = (1 << 64) - 1
CENTROIDS = {2: [0.45278, 1.51042], 3: [0.24509, 0.75601, 1.34391, 2.15195],
             4: [0.12840, 0.38805, 0.65676, 0.94234, 1.25623, 1.61805, 2.06902, 2.73259]}


def mix64(i, seed):
    """Output i of SplitMix64 from `seed`."""
    z = (seed + i * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def inputs(seed, n, width):
    """[n][width]; each row has its own kind: plain, far from 0, one outlier, constant, tiny, 0, beyond f16, NaN."""
    x = np.empty((n, width), f4)
    for r in range(n):
        for i in range(width):
            u = f4(mix64(r * width + i + 1, seed) >> 40) * f4(2.0**-24) - f4(0.5)
            kind = r % 9
            v = u * f4(3)
            if kind == 1: v = u + f4(40)
            if kind == 2 and i == width // 3: v = f4(300)
            if kind == 3: v = f4(-2.5)
            if kind == 4: v = u * f4(2.0**-20)
            if kind == 5: v = f4(0)
            if kind == 6: v = u * f4(400000)
            if kind == 7 and i == 5: v = f4(np.nan)
            if kind == 8: v = u * f4(0.25) - f4(9)
            x[r, i] = v
    return x


def f16_sat(x):
    """f32 to f16, to nearest even, saturating."""
    x = np.asarray(x, f4)
    with np.errstate(over="ignore"):
        h = x.astype(f2)
    return np.where(np.isinf(h), np.copysign(f2(65504), x).astype(f2), h).astype(f2)


def clamp(x):
    return np.clip(x, f4(-65504), f4(65504)).astype(f4)


def affine(x, bits):
    """One group: codes, scale, bias, values (mlx's affine quantisation)."""
    x = clamp(x)
    if np.isnan(x).any():
        return np.zeros(len(x), np.uint8), f2(np.nan), f2(np.nan), np.full(len(x), np.nan, f4)
    top = f4(2**bits - 1)
    lo, hi = x.min(), x.max()
    scale = max((hi - lo) / top, f4(1e-7))
    low = abs(lo) > abs(hi)
    edge = lo if low else hi
    if not low: scale = -scale
    q0 = np.rint(edge / scale)
    bias = f4(0)
    if q0 != 0: scale, bias = edge / q0, edge
    codes = np.clip(np.rint((x - bias) / scale), 0, top)
    s, b = f16_sat(scale), f16_sat(bias)
    values = (codes.astype(np.float64) * np.float64(s) + np.float64(b)).astype(f4)  # exact, then one rounding
    return codes.astype(np.uint8), s, b, values


def turbo_key(x, bits):
    x = clamp(x)
    if np.isnan(x).any():
        return np.zeros(len(x), np.uint8), f2(np.nan), f2(np.nan), np.full(len(x), np.nan, f4)
    lo, hi = x.min(), x.max()
    amax = max(abs(lo), abs(hi))
    scale = max((hi - lo) / f4(254 if bits == 8 else 15), amax * f4(1 / 2048), f4(1e-7))
    s = f16_sat(scale)
    scale = f4(s)
    zero = np.rint((hi + lo) / (f4(2) * scale)) if bits == 8 else np.rint(lo / scale)
    z = f16_sat(zero + f4(0))  # no -0
    least, most = (-127, 127) if bits == 8 else (0, 15)
    q = np.clip(np.rint(x / scale - f4(z)), least, most)
    return (q - f4(least)).astype(np.uint8), s, z, ((q + f4(z)) * scale).astype(f4)


def round_f32(v):
    """A Fraction to f32 in one rounding."""
    if v == 0: return f4(0)
    e = max(math.floor(math.log2(abs(v))), -126)
    while abs(v) >= Fraction(2) ** (e + 1): e += 1
    while abs(v) < Fraction(2) ** e and e > -126: e -= 1
    unit = Fraction(2) ** (e - 23)
    return f4(float(round(v / unit) * unit))  # round(): ties to even


def mean_square(x):
    lane = [f4(0)] * 16
    for i, v in enumerate(x):
        if np.isfinite(v) and np.isfinite(lane[i % 16]):
            lane[i % 16] = round_f32(Fraction(float(v)) ** 2 + Fraction(float(lane[i % 16])))
        else:
            lane[i % 16] = f4(np.nan)
    lane = np.array(lane, f4)
    for step in (8, 4, 2, 1): lane[:step] += lane[step:2 * step]
    return lane[0] / f4(len(x))


def turbo_value(x, bits):
    """One group of a rotated row."""
    half = 2 ** (bits - 1)
    c = np.array(CENTROIDS[bits], f4)
    bound = [f4(f"{(CENTROIDS[bits][i] + CENTROIDS[bits][i + 1]) / 2:.6f}") for i in range(half - 1)]
    s = f16_sat(np.sqrt(mean_square(x)))
    y = x / (f4(s) + f4(1e-8))
    n = sum((np.abs(y) > b).astype(int) for b in bound) + np.zeros(len(x), int)
    codes = np.where(y > 0, half + n, half - 1 - n)
    table = np.concatenate([-c[::-1], c])
    return codes.astype(np.uint8), s, None, (table[codes] * f4(s)).astype(f4)


def signs(n):
    bit = [mix64(n + i // 64, 42) >> i % 64 & 1 for i in range(n)]
    return np.where(np.array(bit) == 1, f4(-1), f4(1)).astype(f4)


def hadamard(x):
    x, h = x.copy(), 1
    while h < len(x):
        y = x.reshape(-1, 2, h)
        x = np.stack([y[:, 0] + y[:, 1], y[:, 0] - y[:, 1]], axis=1).reshape(-1)
        h *= 2
    return (x * (f4(1) / np.sqrt(f4(len(x))))).astype(f4)


KINDS = {"KV_Q8": (affine, 8), "KV_Q4": (affine, 4), "KV_TURBO_K8": (turbo_key, 8), "KV_TURBO_K4": (turbo_key, 4),
         "KV_TURBO_V4": (turbo_value, 4), "KV_TURBO_V3": (turbo_value, 3), "KV_TURBO_V2": (turbo_value, 2)}


def pack(codes, bits):
    """Low bits first."""
    stream = np.unpackbits(codes[:, None], axis=1, bitorder="little", count=8)[:, :bits].reshape(-1)
    return np.packbits(stream, bitorder="little")


def code_row(kind, group, x):
    """A head's vector: [(packed codes, numbers)] a group, and its values."""
    fn, bits = KINDS[kind]
    if fn is turbo_value: x = hadamard(clamp(x) * signs(len(x)))
    groups, values = [], []
    for at in range(0, len(x), group):
        codes, a, b, v = fn(x[at:at + group], bits)
        groups.append((codes, [f2(n) for n in (a, b) if n is not None]))
        values.append(v)
    return groups, np.concatenate(values)


def number_bytes(n):
    return np.array([f2(np.nan) if np.isnan(v) else v for v in n], f2).tobytes()


def rows_block(kind, group, x):
    """[position][head][width]: rows, head by head."""
    bits, out = KINDS[kind][1], b""
    for h in range(x.shape[1]):
        for p in range(BLOCK):
            groups = code_row(kind, group, x[p % len(x), h])[0]
            row = b"".join(number_bytes(n) + pack(c, bits).tobytes() for c, n in groups)
            out += row if p < len(x) else b"\xff" * len(row)
    return out


def tiles_block(kind, group, x):
    bits, width, out = KINDS[kind][1], x.shape[2], b""
    for h in range(x.shape[1]):
        for t in range(0, BLOCK, TILE):
            lanes = [code_row(kind, group, x[p, h])[0] if p < len(x) else None for p in range(t, t + TILE)]
            for g in range(width // group):
                for i in range(2):
                    out += b"".join(number_bytes([l[g][1][i]]) if l else b"\xff\xff" for l in lanes)
                codes = np.full((group * bits // 8, TILE), 255, np.uint8)
                for k, l in enumerate(lanes):
                    if l: codes[:, k] = pack(l[g][0], bits)
                out += codes.tobytes()
    return out


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data: h = ((h ^ b) * 0x100000001B3) & MASK
    return h


def values_hash(kind, group, x):
    """Of all positions and heads; NaN of one payload."""
    v = np.concatenate([code_row(kind, group, x[p, h])[1] for p in range(len(x)) for h in range(x.shape[1])])
    v = np.where(np.isnan(v), f4(np.nan), v).astype(f4) + f4(0)
    return fnv(v.tobytes())


CASES = [("KV_Q8", 64, 64, "KV_Q8", 64, 64, False), ("KV_Q8", 32, 96, "KV_Q4", 32, 64, False),
         ("KV_Q4", 128, 128, "KV_Q4", 64, 128, False), ("KV_Q4", 16, 48, "KV_Q8", 16, 16, False),
         ("KV_Q8", 64, 128, "KV_Q8", 64, 64, True), ("KV_Q4", 32, 96, "KV_Q4", 32, 64, True),
         ("KV_TURBO_K8", 32, 64, "KV_TURBO_V4", 32, 64, False), ("KV_TURBO_K8", 32, 128, "KV_TURBO_V3", 32, 128, False),
         ("KV_TURBO_K8", 32, 64, "KV_TURBO_V2", 32, 256, False), ("KV_TURBO_K4", 32, 64, "KV_TURBO_V3", 32, 512, False)]


def centroids():
    pdf = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    cdf = lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2)))
    for bits in (2, 3, 4):
        n = 2 ** (bits - 1)
        c, old = [(i + 0.5) * 3 / n for i in range(n)], None
        while c != old:  # Lloyd: bounds half way, centroids the means between them
            old = c
            e = [0] + [(c[i] + c[i + 1]) / 2 for i in range(n - 1)] + [40]
            c = [round((pdf(e[i]) - pdf(e[i + 1])) / (cdf(e[i + 1]) - cdf(e[i])), 12) for i in range(n)]
        print(bits, [round(v, 5) for v in c])
        assert [round(v, 5) for v in c] == CENTROIDS[bits]


def main():
    if sys.argv[1:] == ["centroids"]: return centroids()
    lines = []
    for i, (k, kg, dk, v, vg, dv, latent) in enumerate(CASES):
        x = inputs(1000 + i, ROWS * HEADS, dk).reshape(ROWS, HEADS, dk)
        y = inputs(2000 + i, ROWS * HEADS, dv).reshape(ROWS, HEADS, dv)
        keys = fnv((rows_block if latent else tiles_block)(k, kg, x))
        values = [0, 0] if latent else [fnv(rows_block(v, vg, y)), values_hash(v, vg, y)]
        lines.append(f"    {{{{{k}, {kg}}}, {{{v}, {vg}}}, {dk}, {dv}, {str(latent).lower()}, 0x{keys:016x}u, "
                     f"0x{values_hash(k, kg, x):016x}u, 0x{values[0]:016x}u, 0x{values[1]:016x}u}},")
    OUT.write_text("/* Made by tools/golden/kv_codecs.py. */\n"
                   f"enum {{ GOLDEN_ROWS = {ROWS}, GOLDEN_HEADS = {HEADS} }};\n"
                   "static const struct golden {\n    kv_codec k, v;\n    int32_t dk, dv;\n    bool latent;\n"
                   "    uint64_t key_bytes, keys, value_bytes, values; /* hashes */\n} goldens[] = {\n"
                   + "\n".join(lines) + "\n};\n")


main()
