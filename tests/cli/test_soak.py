"""Load for CAIRN_SOAK_SECONDS (make test-soak: 30 minutes), or of so many requests: memory, descriptors and threads end where they were
after the first part.  And many connections that ask for nothing beside many that do."""
import json
import os
import resource
import subprocess
import time

import pytest
from test_serve import model, start, stop  # noqa: F401
from tiny import CAIRN, PATIENCE

LOAD = os.path.join(os.path.dirname(CAIRN), "bench", "bench_serve")
SECONDS = float(os.environ.get("CAIRN_SOAK_SECONDS", 0))
MODEL = os.environ.get("CAIRN_SOAK_MODEL")
ROUNDS = 12
EACH = ["--seconds", SECONDS / ROUNDS] if SECONDS else ["--requests", 1000]  # a round: some 3 s in all
WARM = 4  # rounds: arenas, caches of prompts and the allocator's pools fill
# Pages that pools touch late; in seconds all the more are touched late.  100 bytes a request show within a minute.
GROWTH_KB = 4096 if SECONDS >= 60 else 16384
IDLE, ACTIVE = 1000, 64
SHORT = ["--words", "4:60", "--tokens", "1:40"]  # fits the tiny model
# Each kind of client in turn: they stay, they leave, they ask whole, they share a beginning.
KINDS = [["--leave", "30"], ["--fresh", "--leave", "30"], ["--whole"], ["--fresh", "--shared", "20"]]


def load(url, *words):
    r = subprocess.run([LOAD, url.rsplit(":", 1)[1], *SHORT, *map(str, words)], capture_output=True, text=True,
                       timeout=SECONDS + 4 * PATIENCE, check=False)
    assert r.returncode == 0, r
    return json.loads(r.stdout)


def held(pid):
    """(descriptors, threads, resident KiB)"""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        field = dict(line.split(":", 1) for line in f)
    return len(os.listdir(f"/proc/{pid}/fd")), int(field["Threads"]), int(field["VmRSS"].split()[0])


def settled(pid, least):
    """What is held once no connection is left."""
    end = time.monotonic() + PATIENCE
    while True:
        now = held(pid)
        if now[0] <= least or time.monotonic() > end:
            return now
        time.sleep(0.02)


def test_soak(model):  # noqa: F811
    p, url = start(MODEL or model, "--parallel", 8, "--prompt-cache", 4 << 20)
    try:
        begin, seen, n = held(p.pid), [], 0
        for k in range(ROUNDS):
            got = load(url, "--clients", 16, *EACH, "--warm", 0, "--seed", k, "--repeat", 40,
                       *KINDS[k % len(KINDS)])
            n += got["requests"] + got["left"]
            assert got["requests"] and not got["refused"], got
            seen.append(settled(p.pid, begin[0]))
        print(f"{n} requests; descriptors, threads, KiB: {begin}, then {seen}")
        assert {s[:2] for s in seen} == {begin[:2]}, (begin, seen)
        assert seen[-1][2] <= max(s[2] for s in seen[:WARM]) + GROWTH_KB, seen
    finally:
        assert stop(p) == 0


def test_many_idle(model):  # noqa: F811
    """None is shut out, none is cut."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < IDLE + ACTIVE + 200:
        pytest.skip("a hard limit of %d open files" % hard)
    p, url = start(MODEL or model)
    try:
        got = load(url, "--idle", IDLE, "--clients", ACTIVE, "--requests", 2 * ACTIVE)
        assert (got["requests"], got["refused"], got["idle_alive"]) == (2 * ACTIVE, 0, IDLE), got
    finally:
        assert stop(p) == 0
