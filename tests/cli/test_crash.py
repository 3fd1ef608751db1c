"""`serve --ssd-cache` killed at any moment, with requests running: what a flush acknowledged is there at the next start,
and every answer is that of a server without a cache.  A killed process loses nothing that it handed to the system, so the
folder may lie in memory: a disk would make each life as slow as its fsync.
    CAIRN_CRASH_ROUNDS (5; `make test-crash`: 500; a fifth of them for each layout that is no plain attention), CAIRN_CRASH_SEED (1)"""
import http.client
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

import pytest
from test_serve import socket_of, start, stop
from tiny import CONFIG, PATIENCE, SANITIZED, TOKENIZER, ask_operator, make, put

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/golden"))
from weights import materialize  # noqa: E402

ROUNDS = int(os.environ.get("CAIRN_CRASH_ROUNDS", "5"))
SEED = int(os.environ.get("CAIRN_CRASH_SEED", "1"))
BLOCK = 64
LIFE = 1.5 if SANITIZED else 0.25  # seconds at most, once it listens
FIRST = PATIENCE  # until something is durable in a new folder
WORKERS = 3
NEW_FOLDER = 16  # rounds
TEMPLATE = "{% for m in messages %}{{ m.content }} {% endfor %}"
CONTEXT = 1024
# Layers that see everything; and windows, of less and of more than a block: together in one server.
PLAIN = {"full": {}, "windows": {"model_type": "mistral", "sliding_window": 40}, "wide": {"model_type": "mistral", "sliding_window": 150}}
# Goldens, each in a server of its own: states alone, delta rule and keys by layer, convolutions and keys, keys and
# states in one layer, windows between full layers.
GOLDENS = ["mamba2", "qwen3_next", "lfm2", "falcon_h1", "gemma3"]
STATES = {"mamba2", "qwen3_next", "lfm2", "falcon_h1"}  # a prompt goes on where one was kept: before its last message


def make_plain(at):
    for name, more in PLAIN.items():
        make(at / name)
        put(at / name, "config.json", dict(CONFIG, max_position_embeddings=CONTEXT, **more))
    return list(PLAIN)


def make_golden(at, name):
    golden, to = ROOT / "tests/golden/hf" / name, at / name
    to.mkdir()
    config = json.loads((golden / "config.json").read_text())
    put(to, "config.json", dict(config, max_position_embeddings=CONTEXT))
    put(to, "tokenizer.json", TOKENIZER)
    materialize(golden, to / "model.safetensors")
    return [name]


class Server:
    def __init__(self, models, *flags):
        self.proc, url = start(*models, *flags)
        self.port, self.socket = int(url.rsplit(":", 1)[1]), socket_of[url]

    def post(self, path, body=b""):
        """None: it was killed."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * PATIENCE)
        try:
            c.request("POST", path, body, {"content-type": "application/json"})
            r = c.getresponse()
            return r.status, json.loads(r.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            c.close()

    def chat(self, prompt):
        """The answer with its logits, and how much of the prompt was known."""
        model, system, text = prompt
        got = self.post("/v1/chat/completions", json.dumps({
            "model": model, "messages": [{"role": "system", "content": system}, {"role": "user", "content": text}],
            "max_tokens": 6, "temperature": 0, "logprobs": True}).encode())
        if got is None:
            return None
        status, a = got
        assert status == 200, a
        used = a["usage"]
        return a["choices"][0], used["prompt_tokens_details"]["cached_tokens"], used["prompt_tokens"]

    def flush(self):
        """None: it was killed."""
        try:
            models = ask_operator(self.socket, "/admin/cache/flush")[1]["models"]
        except (OSError, http.client.HTTPException, ValueError):
            return None
        return all(m["pending"] == m["failed"] == m["dropped"] == 0 for m in models)

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.communicate()


class World:
    def __init__(self, models, folder):
        self.models, self.folder = models, folder
        self.kinds = [m.name for m in models]
        self.rng = random.Random(SEED)
        self.servers = []
        self.plain = self.start("--prompt-cache", "0")
        self.want = {}     # prompt: the answer of a server without a cache
        self.durable = {}  # prompt: tokens that a flush acknowledged
        self.lock = threading.Lock()
        self.wrong = []
        self.n_durable = self.n_asked = 0

    def start(self, *flags):
        self.servers.append(Server(self.models, *flags))
        return self.servers[-1]

    def prompt(self, rng):
        """Of a few beginnings, and something of its own."""
        beginning = random.Random(rng.randrange(3))
        common = [beginning.randrange(62) for _ in range(400)][:rng.randrange(20, 400)]
        own = [rng.randrange(62) for _ in range(rng.randrange(1, 120))]
        return (rng.choice(self.kinds), *(" ".join("w%d" % w for w in words) for words in (common, own)))

    def fresh(self, prompt):
        if prompt not in self.want:
            self.want[prompt] = self.plain.chat(prompt)[0]
        return self.want[prompt]

    def check(self, server, prompt, least=0):
        got = server.chat(prompt)
        if got is None:
            return None
        self.n_asked += 1
        if got[0] != self.fresh(prompt):
            self.wrong.append(("another answer", prompt, got))
        if got[1] < least:
            self.wrong.append(("%d tokens were durable" % least, prompt, got))
        return got[2]

    def work(self, server, seed, done):
        """Requests, one after the other, until the server is gone."""
        rng = random.Random(seed)
        while True:
            with self.lock:
                p = rng.choice(list(self.want)) if self.want and rng.random() < 0.4 else self.prompt(rng)
                self.fresh(p)
            n = self.check(server, p)
            if n is None:
                return
            with self.lock:
                done[p] = len(p[1].split()) if p[0] in STATES else (n - 1) // BLOCK * BLOCK

    def flush(self, server, seed, done):
        rng = random.Random(seed)
        while True:
            time.sleep(rng.random() * LIFE / 3)
            with self.lock:
                before = dict(done)
            ok = server.flush()
            if ok is None:
                return
            if ok:
                self.durable.update(before)

    def life(self, i):
        if i % NEW_FOLDER == 0:
            self.n_durable += len(self.durable)
            self.durable, self.want = {}, {}
            shutil.rmtree(self.folder, ignore_errors=True)
        server = self.start("--ssd-cache", self.folder)
        assert server.flush(), "the folder cannot be written"  # it has been scanned, too
        for p in self.rng.sample(sorted(self.durable), min(4, len(self.durable))):
            assert self.check(server, p, self.durable[p]) is not None
        done = {}
        threads = [threading.Thread(target=self.work, args=(server, SEED * 1000003 + i * 10 + k, done)) for k in range(WORKERS)]
        threads.append(threading.Thread(target=self.flush, args=(server, SEED * 1000003 + i * 10 + WORKERS, done)))
        for t in threads:
            t.start()
        end = time.monotonic() + FIRST
        while not self.durable and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(self.rng.random() * LIFE)
        server.kill()
        for t in threads:
            t.join()
        assert not self.wrong, "seed %d, life %d: %r" % (SEED, i, self.wrong[:3])


@pytest.fixture
def folder():
    shm = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="cairn-test-", dir=shm if os.access(shm, os.W_OK) else None) as d:
        yield pathlib.Path(d) / "cache"


@pytest.mark.parametrize("of", ["plain", *GOLDENS])
def test_killed(of, tmp_path, folder):
    rounds = ROUNDS if of == "plain" else (ROUNDS + 4) // 5
    names = make_plain(tmp_path) if of == "plain" else make_golden(tmp_path, of)
    for name in names:
        put(tmp_path / name, "chat_template.jinja", TEMPLATE)
    w = World([tmp_path / name for name in names], folder)
    try:
        for i in range(rounds):
            w.life(i)
        last = w.start("--ssd-cache", w.folder)
        assert last.flush()
        for p, n in w.durable.items():
            assert w.check(last, p, n) is not None
        assert not w.wrong, w.wrong[:3]
        assert stop(last.proc) == 0
        w.n_durable += len(w.durable)
        print("%s: %d answers in %d lives, %d prompts were durable" % (of, w.n_asked, rounds, w.n_durable))
        assert w.n_durable > 0
    finally:
        for s in w.servers:
            s.kill()
