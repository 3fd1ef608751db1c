"""The two programs that are compared, cairn and llama.cpp: each runs once and answers tokens a second.  One
round of a comparison calls both, one after the other, since a machine's speed wanders over minutes."""
import csv
import functools
import io
import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "cairn" / "models"
CAIRN = ROOT / "build" / "cairn"


@functools.cache
def home(*more):
    """The folder of llama.cpp, built if need be, with programs that only some want."""
    return subprocess.run([ROOT / "bench" / "get-llama.cpp", *more], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def output(*words):
    r = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: status {r.returncode}\n{r.stderr[-2000:]}")
    return r.stdout


def models(names):
    return [pathlib.Path(m) for m in names] or sorted(CACHE.glob("*.gguf"))


def llama(model, threads, prompt=0, tokens=0, depth=0):
    """(prefill, decode) tokens/s."""
    out = output(f"{home()}/build/bin/llama-bench", "-m", model, "-p", prompt, "-n", tokens, "-d", depth, "-t", threads,
                 "-r", 1, "-o", "json")
    rows = json.loads(out)
    return tuple(next((r["avg_ts"] for r in rows if r[key]), 0) for key in ("n_prompt", "n_gen"))


BATCH_DEPTH = 16  # llama.cpp's program for batches wants a prompt


def llama_batch(model, threads, tokens, batch, depth=0):
    """Tokens/s of `batch` sequences decoded together, all of them, each after a prompt of `depth`, at least BATCH_DEPTH."""
    prompt = max(BATCH_DEPTH, depth)
    out = output(f"{home()}/build/bin/llama-batched-bench", "-m", model, "-npp", prompt, "-ntg", tokens, "-npl", batch,
                 "-t", threads, "-tb", threads, "-c", (prompt + tokens) * batch, "--output-format", "jsonl")
    return next(json.loads(line)["speed_tg"] for line in out.splitlines() if line.startswith("{"))


def cairn(model, threads, prompt=0, tokens=0, depth=0, batch=1, ops=False):
    """The object of `cairn bench --json`."""
    return json.loads(output(CAIRN, "bench", model, "-p", prompt, "-n", tokens, "-d", depth, "-b", batch, "-t", threads,
                             "-r", 1, "--json", *(["--ops"] if ops else [])))


def info(model):
    """The object of `cairn info --json`."""
    return json.loads(output(CAIRN, "info", model, "--json"))


def first_token(model, threads):
    """Seconds from nothing to the logits of a short prompt, the file in the page cache: (cairn, llama.cpp)."""
    ids = list(range(100, 108))
    with tempfile.TemporaryDirectory() as d:
        where = pathlib.Path(d)
        (where / "ids.json").write_text(json.dumps(ids))
        (where / "ids.txt").write_text(" ".join(map(str, ids)))
        t0 = time.monotonic()
        output(CAIRN, "logits", model, "--ids", where / "ids.json", "--out", where / "l.npy", "-t", threads)
        t1 = time.monotonic()
        output(f"{home()}/llama_logits", model, where / "ids.txt", where / "l.f32", threads)
        return t1 - t0, time.monotonic() - t1


def share(run, phase, kinds):
    """What the ops of these kinds reached of the machine's limits."""
    mine = [o for o in run["ops"] if o["phase"] == phase and o["op"].split()[0] in kinds]
    seconds = sum(o["seconds"] for o in mine)
    return sum(o["limit_seconds"] for o in mine) / seconds if seconds else float("nan")


def to_csv(rows, fields):
    text = io.StringIO()
    w = csv.DictWriter(text, fields, lineterminator="\n")
    w.writeheader()
    w.writerows(rows)
    return text.getvalue()


def write(path, text):
    if path:
        pathlib.Path(path).write_text(text, encoding="utf-8")
