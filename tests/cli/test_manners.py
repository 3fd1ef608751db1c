"""How a server behaves on a machine that others use: idle it sleeps, where its cores are taken it gives way and goes
on, stopped and continued too, late requests end."""
import glob
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from test_serve import model, start, stop  # noqa: F401
from tiny import CONFIG, PATIENCE, put

IDLE_S = 4
WAKES = IDLE_S  # of all threads together; a poll of 10 ms would be 400
LATE_S = 4  # a short answer is there sooner, however busy the machine
TAKEN_TOKENS = 4000  # half a second of work on a fast core, shared
TAKEN_SLEEPS = 8  # of each thread that waits for others, in all of that, some sixty as a rule; to begin and to end takes three
KEPT = 5  # connections, as clients with a pool keep them


def ask(url, text, **fields):
    body = dict({"messages": [{"role": "user", "content": text}], "temperature": 0, "ignore_eos": True}, **fields)
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode()),
                                timeout=2 * PATIENCE) as r:
        return r.read()


def keep(url):
    c = http.client.HTTPConnection(url.split("//")[1])
    c.request("GET", "/health")
    assert c.getresponse().read()
    return c


def active(url):
    with urllib.request.urlopen(url + "/stats", timeout=PATIENCE) as r:
        return json.load(r)["models"][0]["active_rows"]


def sleeps(pid):
    """(name of a thread, how often it fell asleep by itself) for each."""
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path, encoding="ascii") as f:
            field = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        yield field["Name"], int(field["voluntary_ctxt_switches"])


def wakes(pid):
    return sum(n for _, n in sleeps(pid))


@pytest.mark.parametrize("disk", [False, True])
def test_idle_server_sleeps(model, tmp_path, disk):  # noqa: F811
    p, url = start(model, *(["--ssd-cache", tmp_path] if disk else []))
    try:
        ask(url, "hello " * 20, max_tokens=5)
        kept = [keep(url) for _ in range(KEPT)]
        seen = []
        for _ in range(5):  # a write behind, or a slow machine, may still be at work at first
            before = wakes(p.pid)
            time.sleep(IDLE_S)
            seen.append(wakes(p.pid) - before)
            if seen[-1] < WAKES:
                break
        else:
            pytest.fail(f"woke {seen} times in {IDLE_S} s each")
        for c in kept:
            c.request("GET", "/health")
            assert c.getresponse().read()
    finally:
        stop(p)


def test_taken_cores(model):  # noqa: F811
    """Four threads have one core, which another process never leaves: those that wait for each other sleep, instead of
    keeping it from the one that has work, and the answer is the one of a thread alone."""
    put(model, "config.json", dict(CONFIG, max_position_embeddings=1 << 12))
    core = {min(os.sched_getaffinity(0))}
    said = []
    try:
        for threads in (1, 4):
            p, url = start(model, "--ctx", 1 << 12, threads=threads, preexec_fn=lambda: os.sched_setaffinity(0, core))
            taker = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                     preexec_fn=lambda: os.sched_setaffinity(0, core))
            try:
                said.append(json.loads(ask(url, "hello", max_tokens=TAKEN_TOKENS))["choices"])
                waiting = {name: n for name, n in sleeps(p.pid) if name.startswith("worker-")}
                assert len(waiting) == threads - 1 and all(n >= TAKEN_SLEEPS for n in waiting.values()), waiting
            finally:
                taker.kill()
                taker.wait()
                stop(p)
    finally:
        put(model, "config.json", CONFIG)
    assert said[0] == said[1]


def test_stopped_and_continued(model):  # noqa: F811
    p, url = start(model)
    try:
        want = json.loads(ask(url, "hello", max_tokens=60))["choices"]
        body = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0, "ignore_eos": True,
                "max_tokens": 60, "stream": True}
        rq = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode())
        got = ""
        with urllib.request.urlopen(rq, timeout=2 * PATIENCE) as r:
            for n, line in enumerate(r):
                if n == 6:
                    p.send_signal(signal.SIGSTOP)
                    time.sleep(1)
                    p.send_signal(signal.SIGCONT)
                if line.startswith(b"data: {"):
                    for c in json.loads(line[6:])["choices"]:
                        got += c["delta"].get("content") or ""
        assert got == want[0]["message"]["content"]
    finally:
        p.send_signal(signal.SIGCONT)
        stop(p)


def test_timeout(model):  # noqa: F811
    """The server is stopped for longer than an answer may take: a long one, which is not whole before."""
    put(model, "config.json", dict(CONFIG, max_position_embeddings=1 << 16))
    p, url = start(model, "--timeout", LATE_S, "--parallel", 1)
    put(model, "config.json", CONFIG)
    try:
        told = []

        def late():
            with pytest.raises(urllib.error.HTTPError) as e:
                ask(url, "hello")
            told.append(json.load(e.value)["error"]["code"])
        t = threading.Thread(target=late)
        t.start()
        end = time.monotonic() + PATIENCE
        while not active(url):
            assert time.monotonic() < end and t.is_alive()
        p.send_signal(signal.SIGSTOP)
        time.sleep(LATE_S + 0.5)
        p.send_signal(signal.SIGCONT)
        t.join(2 * PATIENCE)
        assert told == ["deadline_exceeded"]
        assert ask(url, "hello", max_tokens=1)
    finally:
        p.send_signal(signal.SIGCONT)
        stop(p)
