"""Standard output that cannot take what is written, and one whose reader has enough."""
import os
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, PATIENCE, make, put, refused, run  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    m = make(tmp_path_factory.mktemp("m"))
    put(m, "ids.json", "[1,2,3]")
    put(m, "text", "w1 w2 w3 w4 w5")
    put(m, "messages.json", '[{"role":"user","content":"w1"}]')
    put(m, "t.jinja", "{{ messages[0].content }}")
    return m


VERBS = ["run", "serve", "info", "tokenize", "detokenize", "render", "logits", "bench", "score",
         "check-numerics", "embed", "pull"]


def commands(m):
    yield ["--help"]
    yield ["help"]
    yield ["--version"]
    for verb in VERBS:
        yield [verb, "--help"]
    yield ["run", m, "-p", "w1", "-n", 2, "--raw", "-t", 1]
    yield ["serve", m, "--port", 0, "-t", 1]
    yield ["info", m]
    yield ["info", m, "--json"]
    yield ["tokenize", m, "-p", "w1"]
    yield ["detokenize", m, "-f", m + "/ids.json"]
    yield ["render", "--template", m + "/t.jinja", "--messages", m + "/messages.json"]
    yield ["bench", m, "-p", 4, "-n", 2, "-r", 1, "-t", 1]
    yield ["bench", m, "-p", 4, "-n", 2, "-r", 1, "-t", 1, "--ops"]
    yield ["embed", m, "-f", m + "/text", "-t", 1]
    yield ["score", m, "-f", m + "/text", "-t", 1]
    yield ["check-numerics", m, "--ids", m + "/ids.json", "-t", 1]
    yield ["pull", "ls"]
    yield ["pull", "gc"]


def test_a_full_disk_is_a_failure(model, tmp_path):
    for words in commands(model):
        with open("/dev/full", "wb") as full:
            r = run(*words, stdout=full, HF_HUB_CACHE=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
        assert r.code == 1, (words, r.code, r.err)
        assert "cairn: standard output: No space left on device" in r.err, (words, r.err)


def test_a_reader_that_has_enough(model, tmp_path):
    for words in commands(model):
        reader, writer = os.pipe()
        os.close(reader)
        r = run(*words, stdout=writer, HF_HUB_CACHE=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
        os.close(writer)
        assert r.code == -signal.SIGPIPE, (words, r.code, r.err)
        assert "Broken pipe" not in r.err and "standard output" not in r.err, (words, r.err)


def test_head(model):
    """cairn run | head -1"""
    p = subprocess.run("'%s' run '%s' -p w1 -n 100 --raw -t 1 | head -c 1" % (CAIRN, model),
                       shell=True, capture_output=True, timeout=PATIENCE, check=False)
    assert (p.returncode, p.stderr) == (0, b"") and len(p.stdout) == 1


def test_a_device_stays_one(model):
    """What could not be written whole is removed, but never a device."""
    for more in [], ["--top", 2]:
        refused(run("logits", model, "--ids", model + "/ids.json", "--out", "/dev/full", "-t", 1,
                    *more), "/dev/full: ")
    assert run("logits", model, "--ids", model + "/ids.json", "--out", "/dev/null").code == 0
    assert os.path.exists("/dev/full") and not os.path.isfile("/dev/null")


def test_a_file_that_may_not_grow(model, tmp_path):
    """`ulimit -f`: its signal must not end the program without a word."""
    out = tmp_path / "x.npy"
    p = subprocess.run("ulimit -f 0; exec '%s' logits '%s' --ids '%s/ids.json' --out '%s' -t 1" % (CAIRN, model, model, out),
                       shell=True, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert p.returncode == 1 and "x.npy: writing: File too large" in p.stderr, p
    assert not out.exists()
