"""A model small enough for a test to write, and a way to run the program and measure it."""
import http.client
import json
import os
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile

CAIRN = os.path.abspath(os.environ.get(
    "CAIRN_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/cairn")))
# Sanitizers cost time and memory of their own, and shared machines may stand still: no test asks how long something took
# by the clock.  A wait ends with an event, and at the latest after PATIENCE, which only what hangs needs.
SANITIZED = re.search(r"-[at]san$", os.path.dirname(CAIRN)) is not None
SLOW = float(os.environ.get("TEST_SLOW", 5 if SANITIZED else 1))
PATIENCE = 60 * SLOW  # seconds
MOST_SECONDS = 20 * SLOW  # of processors: ten times what a refusal takes
MOST_MB = 10000 if SANITIZED else 100

CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
          "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "vocab_size": 64,
          "tie_word_embeddings": True, "eos_token_id": 1}
WORDS = ["<unk>", "</s>"] + ["w%d" % i for i in range(62)]
TOKENIZER = {"added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
             "model": {"type": "WordLevel", "unk_token": "<unk>",
                       "vocab": {w: i for i, w in enumerate(WORDS)}}}


class LocalConnection(http.client.HTTPConnection):
    """By a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask_operator(path, what, timeout=100):
    """What `serve --admin-socket PATH` answers to a POST: status and JSON."""
    c = LocalConnection(path, timeout)
    try:
        c.request("POST", what, b"")
        r = c.getresponse()
        return r.status, json.loads(r.read())
    finally:
        c.close()


def shapes(c=CONFIG):
    h, f, kv = c["hidden_size"], c["intermediate_size"], c["hidden_size"] // 2
    yield "model.embed_tokens.weight", [c["vocab_size"], h]
    yield "model.norm.weight", [h]
    for i in range(c["num_hidden_layers"]):
        p = "model.layers.%d." % i
        for name, shape in [("input_layernorm", [h]), ("post_attention_layernorm", [h]),
                            ("self_attn.q_proj", [h, h]), ("self_attn.k_proj", [kv, h]),
                            ("self_attn.v_proj", [kv, h]), ("self_attn.o_proj", [h, h]),
                            ("mlp.gate_proj", [f, h]), ("mlp.up_proj", [f, h]),
                            ("mlp.down_proj", [h, f])]:
            yield p + name + ".weight", shape


def safetensors(shapes=shapes):
    rng, header, data = random.Random(1), {}, []
    at = 0
    for name, shape in shapes():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        data.append(struct.pack("<%df" % n, *(rng.uniform(-0.5, 0.5) for _ in range(n))))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * n]}
        at += 4 * n
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def put(folder, name, what):
    path = os.path.join(folder, name)
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "wb") as f:
        f.write(what if isinstance(what, bytes) else
                (what if isinstance(what, str) else json.dumps(what)).encode())
    return path


def make(folder):
    """The whole model; answers its path."""
    os.makedirs(folder, exist_ok=True)
    put(folder, "config.json", CONFIG)
    put(folder, "tokenizer.json", TOKENIZER)
    put(folder, "model.safetensors", safetensors())
    return str(folder)


def line_of(p):
    """The next line of a process' standard output, "" at its end.  It is killed if none comes; nothing may be left in
    the buffer of what was read before."""
    if not select.select([p.stdout], [], [], PATIENCE)[0]:
        p.kill()
        raise AssertionError("it says nothing: %r" % (p.args,))
    return p.stdout.readline()


class Result:
    def __init__(self, code, out, err, seconds, mb):
        self.code, self.out, self.err, self.seconds, self.mb = code, out, err, seconds, mb


# Its own child's memory is what a small process can tell: a child begins with its parent's.
MEASURE = """import os, signal, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, setsigdef=[signal.SIGPIPE])
_, status, used = os.wait4(pid, 0)
os.write(int(sys.argv[1]), b"%d %d" % (status, used.ru_maxrss))"""


def used():
    """Seconds of processors, by children that are gone."""
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def run(*words, stdin=None, stdout=None, timeout=2 * PATIENCE, measured=False, **env):
    """Runs the program; what it wrote, the seconds of processors that it took, the most memory it held if measured."""
    argv, mb = [CAIRN, *map(str, words)], 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
            tempfile.TemporaryFile() as told:
        if measured:
            argv = [sys.executable, "-S", "-E", "-c", MEASURE, str(told.fileno()), *argv]
        before = used()
        p = subprocess.Popen(argv, stdin=stdin or subprocess.DEVNULL, stdout=stdout or out,
                             stderr=err, env=dict(os.environ, **env), pass_fds=[told.fileno()],
                             start_new_session=True)
        try:
            code = p.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            raise AssertionError("%s hangs" % (words,)) from None
        seconds = used() - before
        for f in out, err, told:
            f.seek(0)
        if measured:
            status, kb = map(int, told.read().split())
            code, mb = os.waitstatus_to_exitcode(status), kb / 1024
        return Result(code, out.read(), err.read().decode("utf-8", "replace"), seconds, mb)


def measure(*words, **more):
    return run(*words, measured=True, **more)


def refused(r, *says, code=1):
    """One line that holds every word of `says`, soon and in little memory."""
    assert r.code == code, (r.code, r.err)
    lines = r.err.strip().split("\n")
    assert len(lines) == 1 and lines[0].startswith("cairn: "), r.err
    for s in says:
        assert s in lines[0], (s, lines[0])
    assert r.seconds < MOST_SECONDS, r.seconds
    assert r.mb < MOST_MB, r.mb
    return lines[0]
