#!/usr/bin/env python3
"""Speed beside llama.cpp: same files, same threads, interleaved, medians.

    bench/compare-llama.cpp [-t THREADS] [-p 512] [-n 64] [-r ROUNDS] [MODEL.gguf...]

Each round runs llama-bench and `cairn bench` once, one after the other; machines are noisy, so the
median of the rounds' ratios is printed beside the medians themselves.  Default models: all fetched.
"""
import argparse, json, os, pathlib, statistics, subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "cairn" / "models"


def llama(home, model, a):
    out = subprocess.run(
        [f"{home}/build/bin/llama-bench", "-m", model, "-p", str(a.p), "-n", str(a.n), "-t", str(a.t), "-r", "1", "-o", "json"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    rows = json.loads(out)
    return (next(r["avg_ts"] for r in rows if r["n_prompt"]), next(r["avg_ts"] for r in rows if r["n_gen"]))


def cairn(model, a):
    out = subprocess.run(
        [ROOT / "build" / "cairn", "bench", model, "-p", str(a.p), "-n", str(a.n), "-t", str(a.t), "-r", "1", "--json"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-t", type=int, default=os.cpu_count())
    ap.add_argument("-p", type=int, default=512)
    ap.add_argument("-n", type=int, default=64)
    ap.add_argument("-r", type=int, default=5)
    ap.add_argument("models", nargs="*")
    a = ap.parse_args()
    home = subprocess.run([ROOT / "bench" / "get-llama.cpp"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    med = statistics.median
    print(f"{a.t} threads, pp{a.p} and tg{a.n} in tokens/s, medians of {a.r} interleaved rounds; ratios: cairn / llama.cpp")
    for m in a.models or sorted(map(str, CACHE.glob("*.gguf"))):
        ours, theirs = [], []
        for _ in range(a.r):
            theirs.append(llama(home, m, a))
            ours.append(cairn(m, a))
        pp = [o["prefill_tokens_per_second"] for o in ours]
        tg = [o["decode_tokens_per_second"] for o in ours]
        print(f"{pathlib.Path(m).name:45s} prefill {med(pp):8.1f} : {med(t[0] for t in theirs):8.1f} = "
              f"{med(p / t[0] for p, t in zip(pp, theirs)):5.2f} x ({100 * med(o['prefill_share_of_peak'] for o in ours):.0f}% of peak)   "
              f"decode {med(tg):7.2f} : {med(t[1] for t in theirs):7.2f} = {med(d / t[1] for d, t in zip(tg, theirs)):5.2f} x "
              f"({100 * med(o['decode_share_of_bandwidth'] for o in ours):.0f}% of bandwidth)", flush=True)


main()
