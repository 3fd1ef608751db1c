"""A server under clients that mean harm keeps to its budget, loses no request and answers each as if it were alone.
CAIRN_MEMORY_SECONDS makes it long (make test-memory)."""
import contextlib
import http.client
import json
import os
import random
import re
import resource
import socket
import struct
import sys
import threading
import time
import urllib.parse

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_serve import start, stop  # noqa: E402
from tiny import CONFIG, PATIENCE, SANITIZED, TOKENIZER, put, refused, run, safetensors, shapes  # noqa: E402

CTX = 2048
BUDGET = 96 << 20
SECONDS = float(os.environ.get("CAIRN_MEMORY_SECONDS", "4"))
ADDRESSES = 3 << 30  # arenas and stacks of threads reserve more than they touch
CLIENTS = 10
ANSWER = 24
STAYS = 6 << 20  # responses that are kept, and pages of which the allocator uses a part
BODY_MOST = 1200000  # of harm: a server of BUDGET reads up to 629,145 bytes, so about half are refused


def make(m, layers=2, tokenizer=TOKENIZER):
    os.makedirs(m)
    config = dict(CONFIG, max_position_embeddings=CTX, num_hidden_layers=layers)
    put(m, "config.json", config)
    put(m, "tokenizer.json", tokenizer)
    put(m, "model.safetensors", safetensors(lambda: shapes(config)))
    put(m, "tokenizer_config.json", {"chat_template": "{{ messages[0].content }}{% if tools %}{% endif %}"})
    return str(m)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make(tmp_path_factory.mktemp("m") / "loaded")


@contextlib.contextmanager
def serving(model, *words, **more):
    p, url = start(model, *words, **more)
    try:
        yield p, urllib.parse.urlsplit(url).port
        assert stop(p) == 0
    finally:
        if p.poll() is None:
            p.kill()
            p.communicate()


def ask(port, path, body, timeout=2 * PATIENCE):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
        c.request("GET" if body is None else "POST", path, data)
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


def raw(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return s


def prompt(rng):
    n = rng.choice([1, 30, 500, CTX - ANSWER - 1, CTX - ANSWER - 1])
    return [rng.randrange(2, 64) for _ in range(n)]


def completion(ids, **fields):
    return dict({"prompt": ids, "max_tokens": ANSWER, "temperature": 0, "ignore_eos": True}, **fields)


def send(port, body, path="/v1/completions"):
    s = raw(port)
    data = json.dumps(body).encode()
    s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data)) + data)
    return s


def all_at_once(calls, seconds=0):
    """Each a function and its arguments, in a thread of its own; they end within these seconds and what a slow machine takes."""
    threads = [threading.Thread(target=f, args=args, daemon=True) for f, *args in calls]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=seconds + 4 * PATIENCE)
        assert not t.is_alive(), "a client hangs"


class Load:
    """Threads that ask and threads that harm, until the time is over."""

    def __init__(self, port, seconds, known, models=("",)):
        self.port, self.end, self.known, self.models = port, time.monotonic() + seconds, known, models
        self.wrong, self.answered, self.refused = [], 0, 0
        self.mu = threading.Lock()

    def honest(self, seed):
        """Every request is answered in the end, by the text that it has alone, or by a refusal with figures."""
        rng = random.Random(seed)
        while time.monotonic() < self.end:
            name, ids, want = rng.choice(self.known)
            while True:
                status, body = ask(self.port, "/v1/completions", completion(ids, model=name))
                told = json.loads(body)
                if status in (429, 503):
                    with self.mu:
                        self.refused += 1
                    if not any(c.isdigit() for c in told["error"]["message"]) and status == 429:
                        self.wrong.append(told)
                    time.sleep(0.02)
                    continue
                break
            with self.mu:
                self.answered += 1
                if status != 200 or told["choices"][0]["text"] != want:
                    self.wrong.append((status, body[:200]))

    def harm(self, seed):
        rng = random.Random(seed)
        kept = []
        while time.monotonic() < self.end:
            what = rng.randrange(10)
            ids = prompt(rng)
            name = rng.choice(self.models)
            try:
                if what == 0:  # leaves in the middle
                    s = send(self.port, completion(ids, model=name, stream=True, max_tokens=CTX))
                    s.recv(64)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.close()
                elif what == 1:  # never reads
                    kept.append(send(self.port, completion(ids, model=name, stream=True, n=2, max_tokens=CTX, logprobs=5)))
                elif what == 2:  # sends nothing
                    kept.append(raw(self.port))
                elif what == 3:  # a big body that is no good, or over the limit
                    ask(self.port, "/v1/chat/completions",
                        b'{"model": "' + name.encode() + b'", "messages": [{"role": "user", "content": "' + b"w1 " * rng.randrange(BODY_MOST // 3) + b'"}]}')
                elif what == 4:  # sends a part of one
                    declared = rng.randrange(BODY_MOST)
                    kept.append(raw(self.port))
                    kept[-1].sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % declared +
                                     b" " * rng.randrange(declared + 1))
                elif what == 5:  # many choices with much to tell of each token
                    ask(self.port, "/v1/completions", completion(ids, model=name, n=8, logprobs=5, stop=["w63 w63"] * 16))
                elif what == 6:  # all that can be told of whole answers, and never read
                    kept.append(send(self.port, completion(ids, model=name, n=8, logprobs=20, max_tokens=200)))
                elif what == 7:
                    ask(self.port, "/v1/chat/completions", {"model": name, "messages": [{"role": "user", "content": "w1 w2"}],
                                                            "n": 4, "max_tokens": 300, "logprobs": True, "top_logprobs": 20})
                elif what == 8:  # kept by the server besides, and tools that wait
                    ask(self.port, "/v1/responses", {"model": name, "input": "w1 w2", "max_output_tokens": 40, "top_logprobs": 20, "tools": [
                        {"type": "function", "name": "f%d" % i, "parameters": {"type": "object"}} for i in range(500)]})
                else:
                    ask(self.port, "/signal", {"model": name, "prompt": "w1 " * rng.choice([10, CTX - 100])})
                    kept.append(send(self.port, {"model": name, "content": "w1 " * rng.randrange(100000),
                                                 "with_pieces": True}, "/tokenize"))  # and is never read
            except (OSError, http.client.HTTPException):
                pass  # cut, or refused: what is asked of harm is nothing
            while len(kept) > 40:
                kept.pop(rng.randrange(len(kept))).close()
        for s in kept:
            s.close()

    def run(self):
        honest = [(self.honest, i) for i in range(CLIENTS // 2)]
        all_at_once(honest + [(self.harm, 100 + i) for i in range(CLIENTS // 2)], SECONDS)
        assert not self.wrong, self.wrong[:3]
        assert self.answered > 0


def peak(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmHWM")).split()[1]) << 10


def solo(port, models=("",)):
    rng = random.Random(7)
    known = []
    for name in models:
        for _ in range(6 // len(models)):
            ids = prompt(rng)
            status, body = ask(port, "/v1/completions", completion(ids, model=name))
            assert status == 200, body
            known.append((name, ids, json.loads(body)["choices"][0]["text"]))
    return known


def withstand(p, port, budget, models=("",)):
    load = Load(port, SECONDS, solo(port, models), models)
    load.run()
    ask(port, "/v1/completions", completion([5], model=models[0]))  # of several one is loaded by then
    memory = json.loads(ask(port, "/stats", None)[1])["models"][0]["memory"]
    held = peak(p.pid)
    print("answered %d, refused %d, peak %.1f MB of %.1f, reserved %.1f" %
          (load.answered, load.refused, held / 1e6, budget / 1e6, memory["reserved_bytes"] / 1e6))
    assert memory["reserved_bytes"] <= memory["budget_bytes"]
    if not SANITIZED:
        assert held <= budget * 1.05, (held, memory)
    end = time.monotonic() + PATIENCE  # all slots and bytes come back
    while time.monotonic() < end:
        m = json.loads(ask(port, "/stats", None)[1])["models"][0]
        if m["active_rows"] == m["pending_rows"] == 0 == m["memory"]["request_used_bytes"]:
            return memory
        time.sleep(0.05)
    pytest.fail("rows are left: %r" % m)


def test_within_an_address_space(model):
    def few():
        if not SANITIZED:  # whose shadow is terabytes
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

    with serving(model, "--memory", BUDGET, "--queue", 16, preexec_fn=few) as (p, port):
        memory = withstand(p, port, BUDGET)
        assert memory["budget_bytes"] == BUDGET


def held_now(pid):
    """Bytes of memory that are no file's."""
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("RssAnon")).split()[1]) << 10


def test_models_that_swap(tmp_path):
    """Loads and evictions beside all that: one budget for all models, of which one is open at a time.  Nothing of a
    model stays when all are gone again."""
    names = ["m1", "m2", "m3"]
    for layers, name in enumerate(names, 1):
        make(tmp_path / name, layers)
    with serving("--models-dir", tmp_path, "--model-pool", 1, "--memory", BUDGET, "--queue", 16) as (p, port):
        def stats():
            return json.loads(ask(port, "/stats", None)[1])

        def unload():
            end = time.monotonic() + PATIENCE
            while any(m["state"] != "unloaded" for m in stats()["known_models"]):
                for name in names:
                    ask(port, "/api/generate", {"model": name, "keep_alive": 0, "stream": False})
                assert time.monotonic() < end, stats()
                time.sleep(0.02)
            return held_now(p.pid)

        solo(port, names)
        before = unload()
        withstand(p, port, BUDGET, names)
        loads = sum(m["loads"] for m in stats()["known_models"])
        after = unload()
        print("%d loads, %.1f MB held before, %.1f after" % (loads, before / 1e6, after / 1e6))
        assert loads > 2 * len(names)
        if not SANITIZED:
            assert after - before < STAYS


def test_text_of_whole_answers(model, tmp_path):
    """Usual tokens have their room from the start.  Who makes a model write long ones takes what is left, and is told
    with figures where that is not enough; others lose nothing by it."""
    words = dict(TOKENIZER["model"]["vocab"])
    last = max(words, key=words.get)
    del words[last]
    words["x" * 2000] = len(words)
    long = dict(TOKENIZER, model=dict(TOKENIZER["model"], vocab=words))
    m = make(tmp_path / "long", tokenizer=long)
    body = dict(completion([5, 6, 7], max_tokens=120), logit_bias={str(len(words) - 1): 100})
    with serving(m, "--memory", BUDGET, "--queue", 60) as (p, port):
        known = solo(port)
        status, got = ask(port, "/v1/completions", body)
        assert status == 200, got
        want = json.loads(got)["choices"][0]["text"]
        assert len(want) >= 120 * 2000
        status, code, says = refusal(port, "/v1/completions", dict(body, max_tokens=2000))
        assert (status, code) == (400, "answer_too_long") and re.search(r"takes \d+ until it is sent; of the \d+", says), says
        wrong, refused = [], []

        def greedy():
            while True:
                status, got = ask(port, "/v1/completions", body)
                if status != 429:
                    break
                refused.append(json.loads(got)["error"])
                time.sleep(0.05)
            if status != 200 or json.loads(got)["choices"][0]["text"] != want:
                wrong.append((status, got[:300]))

        def modest():
            for name, ids, text in known:
                status, got = ask(port, "/v1/completions", completion(ids))
                if status != 200 or json.loads(got)["choices"][0]["text"] != text:
                    wrong.append((status, got[:300]))

        for _ in range(20):  # once more where so few met that all had room
            all_at_once([(greedy,)] * 12 + [(modest,)] * 2)
            if refused:
                break
        assert not wrong, wrong[:2]
        assert refused
        for e in refused:
            assert e["code"] in ("answers_full", "queue_full") and len(re.findall(r"\d+", e["message"])) >= 3, e
        if not SANITIZED:
            assert peak(p.pid) <= BUDGET * 1.05


def test_replies_that_nobody_reads(model):
    """They fill their part; then who has taken nothing for a second is cut, and until then others are told 429."""
    text = {"content": "w1 " * 60000, "with_pieces": True}
    with serving(model, "--memory", BUDGET) as (p, port):
        status, code, says = refusal(port, "/tokenize", dict(text, content="w1 " * 120000))
        assert (status, code) == (400, "reply_too_large") and re.search(r"more than \d+ bytes", says), says
        status, want = ask(port, "/tokenize", text)
        assert status == 200 and len(want) > 1 << 20
        idle = [send(port, text, "/tokenize") for _ in range(6)]
        end = time.monotonic() + PATIENCE
        while True:
            status, got = ask(port, "/tokenize", text)
            if status == 200:
                break
            e = json.loads(got)["error"]
            assert (status, e["code"]) == (429, "replies_full"), (status, e)
            assert re.search(r"has \d+ bytes; of the \d+ that .* hold \d+", e["message"]), e
            assert time.monotonic() < end
            time.sleep(0.05)
        assert got == want
        if not SANITIZED:
            assert peak(p.pid) <= BUDGET * 1.05
        for s in idle:
            s.close()


def told_of(choice):
    return choice["text"], choice["logprobs"]


def streamed(port, body):
    """Each choice's text and log-probabilities, as their chunks make them."""
    status, raw = ask(port, "/v1/completions", dict(body, stream=True))
    assert status == 200, raw
    got = {}
    for line in raw.decode().split("\n"):
        if line.startswith("data: {"):
            for c in json.loads(line[6:])["choices"]:
                text, lists = got.setdefault(c["index"], ("", {}))
                for key, more in c["logprobs"].items():
                    lists.setdefault(key, []).extend(more)
                got[c["index"]] = (text + c["text"], lists)
    return [got[i] for i in range(body["n"])]


def test_whole_answers_with_logprobs(model):
    """They are sent in parts, to the byte what streams tell; what they keep until then is set aside before they
    start: who comes too much is told 429 with figures and comes again, who never fits 400."""
    most = CTX - 3
    body = completion([5, 6, 7], n=4, logprobs=20, max_tokens=300, seed=3, temperature=1)
    with serving(model, "--memory", BUDGET, "--queue", 60) as (p, port):
        want = streamed(port, body)
        lost, refused, sizes = [], [], []

        def client():
            while True:
                status, got = ask(port, "/v1/completions", body)
                if status != 429:
                    break
                refused.append(json.loads(got)["error"])
                time.sleep(0.05)
            sizes.append(len(got))
            if status != 200 or [told_of(c) for c in json.loads(got)["choices"]] != want:
                lost.append((status, got[:300]))

        for _ in range(20):  # once more where so few met that all had room
            all_at_once([(client,)] * 8)
            if refused:
                break
        assert not lost, lost[:2]
        assert min(sizes) > 500000
        print("%d refusals, answers of %d bytes" % (len(refused), sizes[0]))
        assert refused
        for e in refused:
            assert e["code"] == "queue_full" and re.search(r"takes? \d+ bytes.* of the \d+ .* hold \d+", e["message"]), e
        if not SANITIZED:
            assert peak(p.pid) <= BUDGET * 1.05
        chat = {"messages": [{"role": "user", "content": "w1"}], "logprobs": True, "top_logprobs": 20, "max_tokens": 400,
                "temperature": 0, "ignore_eos": True}
        status, got = ask(port, "/v1/chat/completions", chat)
        assert status == 200 and len(got) > 100000
        content = json.loads(got)["choices"][0]["logprobs"]["content"]
        assert len(content) == 400 and all(len(t["top_logprobs"]) == 20 for t in content)
        status, code, says = refusal(port, "/v1/completions", completion([5, 6, 7], n=60, logprobs=20, max_tokens=most))
        assert (status, code) == (400, "invalid_value"), says
        assert re.search(r"may take \d+ bytes until it is sent, and all answers have \d+:", says), says


def own_groups():
    """Our groups whose children may have a limit of memory, and the files of limit and kills: of version 2, of version 1."""
    with open("/proc/self/cgroup", encoding="ascii") as f:
        lines = [line.rstrip("\n").split(":", 2) for line in f]
    for _, controllers, path in lines:
        if controllers == "":
            mounts, files = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"), ("memory.max", "memory.events")
        elif "memory" in controllers.split(","):
            mounts, files = ("/sys/fs/cgroup/memory",), ("memory.limit_in_bytes", "memory.oom_control")
        else:
            continue
        for mount in mounts:
            if os.path.exists(mount + "/cgroup.procs"):  # in a container the mount may be our group already
                yield (mount + path if os.path.isdir(mount + path) else mount, *files)


def remove(group):
    for _ in range(300):
        with contextlib.suppress(OSError):
            os.rmdir(group)
            return
        time.sleep(0.1)


@contextlib.contextmanager
def limited(limit):
    """A group below our own with the limit, whichever version lets us make one."""
    why = ["no control group of ours is mounted"]
    for own, limit_file, kills_file in own_groups():
        group = os.path.join(own, "cairn-test-%d" % os.getpid())
        try:
            os.mkdir(group)
        except OSError as e:
            why.append(str(e))
            continue
        try:
            if not os.path.exists(os.path.join(group, limit_file)):
                why.append("%s has no %s" % (own, limit_file))
                continue
            with open(os.path.join(group, limit_file), "w", encoding="ascii") as f:
                f.write(str(limit))
            yield group, os.path.join(group, kills_file)
            return
        finally:
            remove(group)
    pytest.skip("no control group with a limit can be made: " + "; ".join(why))


@pytest.mark.skipif(SANITIZED, reason="sanitizers take memory of their own")
def test_within_a_control_group(model):
    """No flag: the group's limit is the budget, and the group kills nothing."""
    limit = 160 << 20
    with limited(limit) as (group, kills):
        def enter():
            with open(group + "/cgroup.procs", "w", encoding="ascii") as f:
                f.write("0")

        with serving(model, preexec_fn=enter) as (p, port):
            with open(group + "/cgroup.procs", encoding="ascii") as f:
                assert f.read().split() == [str(p.pid)]
            memory = withstand(p, port, limit)
            assert memory["budget_bytes"] <= limit
            with open(kills, encoding="ascii") as f:
                told = f.read().split("\n")
            assert "oom_kill 0" in told or not any(line.startswith("oom_kill ") for line in told), told


def refusal(port, path, body):
    status, told = ask(port, path, body)
    e = json.loads(told)["error"]
    return status, e["code"], e["message"]


def test_bad_input(model):
    with serving(model, "--queue", 16) as (_, port):
        many = [5] * CTX
        status, _, says = refusal(port, "/v1/completions", {"prompt": ""})
        assert status == 400, says
        status, _, says = refusal(port, "/v1/completions", {"prompt": []})
        assert status == 400, says
        assert ask(port, "/v1/completions", {"prompt": many[1:], "temperature": 0})[0] == 200
        for ids in many, many + many:
            status, code, says = refusal(port, "/v1/completions", {"prompt": ids})
            assert (status, code) == (400, "context_length_exceeded")
            assert str(len(ids)) in says and str(CTX) in says, says
        for n in 21, 128:  # places there are 20
            status, _, says = refusal(port, "/v1/completions", {"prompt": [5], "n": n})
            assert status == 400 and str(n) in says and "20" in says, says
        for n in 129, 10 ** 9, -1, 0:
            status, _, says = refusal(port, "/v1/completions", {"prompt": [5], "n": n})
            assert status == 400 and "n" in says, says
        for path, body in (("/v1/completions", {"prompt": [5]}),
                           ("/v1/chat/completions", {"messages": [{"role": "user", "content": "w1"}]})):
            for stop in (["w9"] * 17, ["w9"] * 1000000):
                status, _, says = refusal(port, path, dict(body, stop=stop))
                assert status == 400, says
        assert ask(port, "/v1/completions", {"prompt": [5], "max_tokens": 1, "stop": ["w9"] * 16})[0] == 200


def test_thousands_that_send_nothing(model):
    """At most 2,048 are kept; more are told 503 or wait; whoever leaves makes room at once."""
    most = 2300
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < most + 200:
        pytest.skip("a hard limit of %d open files" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most + 200), hard))
    idle = []
    try:
        with serving(model) as (p, port):
            ask(port, "/health", None)
            before = peak(p.pid)
            for _ in range(most):
                idle.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
            for s in idle[:600]:
                s.close()
            end = time.monotonic() + PATIENCE
            while True:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if ask(port, "/health", None)[0] == 200:
                        break
                assert time.monotonic() < end
                time.sleep(0.1)
            if not SANITIZED:
                assert peak(p.pid) - before < 16 << 20
            for s in idle:
                s.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_fit(model):
    """The table before a model is loaded: what it says fits opens, in no more than it says."""
    r = run("fit", model, "-t", 1, "--memory", BUDGET, "--json")  # as many threads as served with
    assert r.code == 0, r.err
    told = json.loads(r.out)
    assert told["budget_bytes"] == BUDGET and told["read_bandwidth_gbs"] > 0
    assert told["max_context_tokens"] == told["model_context_tokens"] == CTX
    assert [(x["context_tokens"], x["parallel_requests"]) for x in told["rows"]] == [(CTX, 1), (CTX, 4), (CTX, 16)]
    for a, b in zip(told["rows"], told["rows"][1:]):
        assert a["needed_bytes"] < b["needed_bytes"] and a["cache_bytes"] < b["cache_bytes"]
        assert 0 < a["decode_tokens_per_second"] < b["decode_tokens_per_second"]
    row = told["rows"][1]
    assert row["fits"]
    with serving(model, "--memory", BUDGET, "--parallel", 4, "--ctx", CTX, "--prompt-cache", 0) as (_, port):
        memory = json.loads(ask(port, "/stats", None)[1])["models"][0]["memory"]
        assert memory["cache_bytes"] == row["cache_bytes"]
        assert abs(memory["reserved_bytes"] - row["needed_bytes"]) < 1 << 20
        served, = json.loads(ask(port, "/fit", None)[1])["models"]  # while an engine is open, as if it were not
        assert served["budget_bytes"] == BUDGET and served["max_context_tokens"] == CTX
        same = ("context_tokens", "parallel_requests", "cache_bytes", "table_bytes", "request_bytes", "fits")
        assert [[x[k] for k in same] for x in served["rows"]] == [[x[k] for k in same] for x in told["rows"]]
        assert abs(memory["reserved_bytes"] - served["rows"][1]["needed_bytes"]) < 1 << 20
    told = json.loads(run("fit", model, "--json", "--no-speed").out)  # nothing was measured
    assert "read_bandwidth_gbs" not in told and "decode_tokens_per_second" not in told["rows"][0]
    r = run("fit", model, "--memory", 1 << 20, "--no-speed")
    assert r.code == 0 and b"does not fit" in r.out and b"too much" in r.out
    refused(run("fit", model, "--ctx", CTX + 1, "--no-speed"), "a context of 2049; expected 1 to 2048")
    refused(run("fit", model, "--memory", 0), "--memory", code=2)


def test_models_share_one_budget(model, tmp_path):
    other = tmp_path / "other"
    os.symlink(model, other)
    with serving(model, other, "--memory", BUDGET) as (p, port):
        told = [m["memory"] for m in json.loads(ask(port, "/stats", None)[1])["models"]]
        assert len(told) == 2 and sum(m["budget_bytes"] for m in told) <= BUDGET * 7 // 8  # the server has its part
        for m in told:
            assert m["reserved_bytes"] <= m["budget_bytes"] and m["cache_bytes"] > 1 << 20
        plan = json.loads(ask(port, "/stats", None)[1])["models"][0]["plan"]
        assert plan["method"] == "autoregressive" and plan["cache_layout"] == "paged" and plan["kv_codec"] == "f16"
        assert "speculative" in plan["why_not_faster"] and len(plan["program"]) == 16
    refused(run("serve", model, other, "--memory", 100000, "--port", 0), "bytes at least", "a larger --memory")
