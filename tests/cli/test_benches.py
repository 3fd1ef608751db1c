"""Each bench of the server and the engine still says what it is for, in seconds: make bench-load takes the minutes that its
figures need.  Nothing here looks at how high one is."""
import os
import re
import subprocess

import pytest
from tiny import CAIRN, PATIENCE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
pytestmark = pytest.mark.skipif(os.path.realpath(CAIRN) != os.path.realpath(os.path.join(ROOT, "build/cairn")),
                                reason="benches run what lies in build/")


def said(*words):
    r = subprocess.run([str(w) for w in words], cwd=ROOT, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    assert r.returncode == 0, r
    return r.stdout


def figures(line):
    return [float(x) for x in re.findall(r"(?<![\w.])\d+\.?\d*(?![\w.])", line)]


@pytest.fixture(scope="module")
def smollm2():
    return said("tools/get-models", "smollm2").strip()


def test_serve(smollm2):
    out = said("bench/serve", "-s", 3, "--clients", 2, "--only", "cairn", smollm2)
    lines = [x for x in out.splitlines() if re.match(r"mixed, \d clients +cairn ", x)]
    assert len(lines) == 1 and len(figures(lines[0].split(" cairn ")[1])) == 8, out
    assert figures(lines[0].split(" cairn ")[1])[0] > 0, out


def test_serve_overhead():
    out = said("bench/serve-overhead", 0.2)
    assert len(re.findall(r"\d us a request +\d+ ", out)) == 6 and len(re.findall(r"\d us a token +\d+ ", out)) == 2, out


def test_stream_gap(smollm2):
    out = said("bench/stream-gap", "--tokens", 300, "--rounds", 1, "--alone", 2, CAIRN, "serve", smollm2, "--port", 0)
    assert len(figures(out)) >= 6, out


def test_engine():
    out = said("build/bench/bench_engine", 8)
    assert any(x.split()[:1] == ["8"] and len(figures(x)) >= 2 for x in out.splitlines()), out


def test_pool():
    out = said("build/bench/bench_pool", 2)
    assert len(figures(out.splitlines()[-1])) == 5, out
