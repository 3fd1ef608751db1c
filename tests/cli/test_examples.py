"""The programs under examples/ do what they say, built as a user builds them."""
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, PATIENCE, SANITIZED, WORDS, make, put  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(CAIRN), "examples")
pytestmark = pytest.mark.skipif(SANITIZED, reason="built with the plain program")
TEMPLATE = "{% for m in messages %}{{ raise_exception('found ' + m.content) if 'stop' in m.content }}w3 {% endfor %}"


def run(name, *words, given=""):
    return subprocess.run([os.path.join(EXAMPLES, name), *map(str, words)], input=given, text=True,
                          capture_output=True, timeout=PATIENCE, check=False)


def test_generate(tmp_path):
    r = run("generate", make(tmp_path), "w1 w2")
    assert r.returncode == 0 and set(r.stdout.split()) <= set(WORDS) and r.stdout, r
    assert run("generate").returncode == 2
    assert run("generate", tmp_path / "none", "w1").returncode == 1


def test_chat(tmp_path):
    m = make(tmp_path)
    r = run("chat", m, given="w1\n")
    assert r.returncode == 1 and "no chat template" in r.stderr
    put(m, "tokenizer_config.json", {"chat_template": TEMPLATE})
    r = run("chat", m, given="w1\nw2")
    assert r.returncode == 0 and r.stdout.count("\n") == 2 and not r.stderr, r
    r = run("chat", m, given='w1\n"stop"\\\x01\nw2\n')
    assert r.returncode == 1 and 'found "stop"\\' in r.stderr and r.stdout.count("\n") == 1, r
    assert run("chat").returncode == 2
