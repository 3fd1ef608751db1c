"""Load for CAIRN_SOAK_SECONDS (make test-soak: 30 minutes), or of so many requests: memory, descriptors and threads end where they were
after the first part.  And many connections that ask for nothing beside many that do."""
import http.client
import json
import os
import resource
import subprocess
import threading
import time

import pytest
from test_serve import model, start, stop  # noqa: F401
from tiny import CAIRN, PATIENCE

LOAD = os.path.join(os.path.dirname(CAIRN), "bench", "bench_serve")
SECONDS = float(os.environ.get("CAIRN_SOAK_SECONDS", 0))
MODEL = os.environ.get("CAIRN_SOAK_MODEL")
ROUNDS = 12
EACH = ["--seconds", SECONDS / ROUNDS] if SECONDS else ["--requests", 1000]  # a round: some 3 s in all
WARM = 8 if SECONDS else 4  # rounds: arenas, caches, the allocator's pools and, a million requests long, kept responses fill
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


TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
SAY = [{"role": "user", "content": "one two three"}]
# What the load generator does not ask: every other way to an answer, kept ones, refusals.
OTHERS = [("/v1/responses", {"input": "one two", "max_output_tokens": 8, "tools": [TOOL]}),
          ("/v1/responses", {"input": "three", "max_output_tokens": 8, "stream": True, "previous_response_id": None}),
          ("/v1/messages", {"messages": SAY, "max_tokens": 8, "tools": [{"name": "look", "input_schema": TOOL["parameters"]}]}),
          ("/v1/messages", {"messages": SAY, "max_tokens": 8, "stream": True}),
          ("/v1/messages/count_tokens", {"messages": SAY}),
          ("/v1/completions", {"prompt": ["one two", "three"], "n": 2, "logprobs": 5, "max_tokens": 8}),
          ("/v1/chat/completions", {"messages": SAY, "n": 3, "logprobs": True, "top_logprobs": 20, "max_tokens": 8}),
          ("/api/chat", {"messages": SAY, "options": {"num_predict": 8}}),
          ("/tokenize", {"content": "one two three " * 200}),
          ("/v1/chat/completions", {"messages": 5}),
          ("/v1/responses", b"{" * 5000)]


class Others(threading.Thread):
    """Asks them in turn, on a kept connection, until it is told to stop."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.at, self.stop, self.seen, self.kept, self.whole = url.rsplit("/", 1)[1], threading.Event(), [], None, False
        self.start()

    def run(self):
        c, k = http.client.HTTPConnection(self.at, timeout=PATIENCE), 0
        c.request("GET", "/v1/models")
        model = json.load(c.getresponse())["data"][0]["id"]
        while not self.stop.is_set() or k < len(OTHERS):
            path, body = OTHERS[k % len(OTHERS)]
            if isinstance(body, dict):
                body = dict(body, model=model)
                if "previous_response_id" in body:
                    body["previous_response_id"] = self.kept
                body = json.dumps(body)
            c.request("POST", path, body, {"Content-Type": "application/json"})
            r = c.getresponse()
            told = r.read()
            if path == "/v1/responses" and told.startswith(b'{"id"'):
                self.kept = json.loads(told)["id"]
            self.seen.append((path, r.status))
            k += 1
        c.close()
        self.whole = True

    def ended(self):
        self.stop.set()
        self.join(2 * PATIENCE)
        assert self.whole and len(self.seen) >= len(OTHERS), self.seen[-3:]
        assert {s for _, s in self.seen} <= {200, 400, 429}, set(self.seen)
        assert {p for p, s in self.seen if s == 200} == {p for p, _ in OTHERS}, set(self.seen)
        return len(self.seen)


def test_soak(model):  # noqa: F811
    p, url = start(MODEL or model, "--parallel", 8, "--prompt-cache", 4 << 20)
    try:
        begin, seen, n = held(p.pid), [], 0
        for k in range(ROUNDS):
            others = Others(url)
            got = load(url, "--clients", 16, *EACH, "--warm", 0, "--seed", k, "--repeat", 40,
                       *KINDS[k % len(KINDS)])
            n += got["requests"] + got["left"] + others.ended()
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
