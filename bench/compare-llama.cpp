#!/usr/bin/env python3
"""Speed beside llama.cpp: same files, same threads, interleaved, medians.

    bench/compare-llama.cpp [-t THREADS] [-p 512] [-n 64] [-d 0] [-b 1] [-r ROUNDS] [MODEL.gguf...]

-d: positions in the cache before; -b: sequences that decode together, each from that depth and at least from 16 (decode
alone, speeds in sum).  -p 0 leaves prefill out.  Each round runs both programs once, one after the other; machines
are noisy, so the median of the rounds' ratios is printed beside the medians themselves.  Default models: all
fetched.
"""
import argparse, os, statistics

import peers


def llama(model, a):
    """Tokens a second of prefill and of decode; 0: not measured."""
    if a.b > 1:
        return 0, peers.llama_batch(model, a.t, a.n, a.b, a.d)
    return peers.llama(model, a.t, a.p, a.n, a.d)


def column(kind, ours, theirs, shares, limit):
    med = statistics.median
    return (f"{kind} {med(ours):8.2f} : {med(theirs):8.2f} = {med(o / t for o, t in zip(ours, theirs)):5.2f} x "
            f"({100 * med(shares):.0f}% of {limit})")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-t", type=int, default=os.cpu_count())
    ap.add_argument("-p", type=int, default=512)
    ap.add_argument("-n", type=int, default=64)
    ap.add_argument("-d", type=int, default=0)
    ap.add_argument("-b", type=int, default=1)
    ap.add_argument("-r", type=int, default=5)
    ap.add_argument("models", nargs="*")
    a = ap.parse_args()
    if a.b > 1:
        a.p = 0
    what = [f"pp{a.p}"] * (a.p > 0) + [f"tg{a.n}"] * (a.n > 0)
    print(f"{a.t} threads, {' and '.join(what)} of {a.b} at depth {a.d} in tokens/s, medians of {a.r} interleaved rounds; ratios: cairn / llama.cpp")
    for m in peers.models(a.models):
        ours, theirs = [], []
        for _ in range(a.r):
            theirs.append(llama(m, a))
            ours.append(peers.cairn(m, a.t, a.p, a.n, max(peers.BATCH_DEPTH, a.d) if a.b > 1 else a.d, a.b))
        columns = []
        if a.p > 0:
            columns.append(column("prefill", [o["prefill_tokens_per_second"] for o in ours], [t[0] for t in theirs],
                                  [o["prefill_share_of_peak"] for o in ours], "peak"))
        if a.n > 0:
            columns.append(column("decode", [o["decode_tokens_per_second"] for o in ours], [t[1] for t in theirs],
                                  [o["decode_share_of_bandwidth"] for o in ours], "bandwidth"))
        print(f"{m.name:45s} " + "   ".join(columns), flush=True)


main()
