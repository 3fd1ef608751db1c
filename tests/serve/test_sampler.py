"""/signal and /generate: what the page's sampler shows."""
import json
import math

import pytest
import util


def post(server, path, body):
    status, _, out = server.request("POST", path, body)
    return status, json.loads(out)


def test_signal(server):
    """The double's logits are -i/4 from the last id on: the histogram by hand."""
    status, r = post(server, "/signal", {"prompt": "hi", "model": "fake-model"})
    assert status == 200 and r["vocab"] == sum(r["bins"]) == 256
    lse = math.log(sum(math.exp(-i / 4) for i in range(256)))
    want = [0] * 80
    for i in range(256):
        t = 1 - (-i / 4 - lse) / math.log(1e-6)
        want[min(79, int(max(0, t) * 80))] += 1
    assert r["bins"] == want and want[0] > 100 and want[79] == 0


@pytest.mark.parametrize("path,param,body", [
    ("/signal", "prompt", {}), ("/signal", "prompt", {"prompt": ""}), ("/signal", "prompt", {"prompt": [1]}), ("/signal", "model", {"prompt": "a", "model": 1}),
    ("/generate", "prompt", {"default": True}), ("/generate", "curve", {"prompt": "a"}), ("/generate", "curve", {"prompt": "a", "curve": {}}),
    ("/generate", "curve", {"prompt": "a", "curve": [{"x_pct": 1, "y_pct": 1}]}), ("/generate", "curve", {"prompt": "a", "curve": [{"x_pct": i, "y_pct": i} for i in range(33)]}),
    ("/generate", "curve[1]", {"prompt": "a", "curve": [{"x_pct": 5, "y_pct": 5}, {"x_pct": 4, "y_pct": 6}]}),
    ("/generate", "curve[1]", {"prompt": "a", "curve": [{"x_pct": 5, "y_pct": 5}, {"x_pct": 6, "y_pct": 4}]}),
    ("/generate", "curve[1]", {"prompt": "a", "curve": [{"x_pct": 0, "y_pct": 0}, {"x_pct": 1e-8, "y_pct": 4}]}),
    ("/generate", "curve[0].x_pct", {"prompt": "a", "curve": [{"x_pct": -1, "y_pct": 5}, {"x_pct": 6, "y_pct": 7}]}),
    ("/generate", "curve[1].y_pct", {"prompt": "a", "curve": [{"x_pct": 1, "y_pct": 5}, {"x_pct": 6, "y_pct": "7"}]}),
    ("/generate", "curve[1]", {"prompt": "a", "curve": [{"x_pct": 1, "y_pct": 5}, 7]}),
    ("/generate", "n", {"prompt": "a", "default": True, "n": 9}), ("/generate", "n", {"prompt": "a", "default": True, "n": 0}),
    ("/generate", "max_tokens", {"prompt": "a", "default": True, "max_tokens": 257}), ("/generate", "seed", {"prompt": "a", "default": True, "seed": "x"}),
    ("/generate", "default", {"prompt": "a", "default": 1}), ("/generate", "curve", {"prompt": "a", "default": True, "curve": {}}),
    ("/generate", "curve[0]", {"prompt": "a", "default": True, "curve": [3, {}]}),
])
def test_refused(server, path, param, body):
    status, r = post(server, path, body)
    assert status == 400 and r["error"]["param"] == param, r


def test_too_long(server):
    status, r = post(server, "/signal", {"prompt": "x" * 2049})
    assert status == 400 and r["error"]["code"] == "context_length_exceeded"
    assert post(server, "/signal", {"prompt": "x" * 2048})[0] == 200
    assert post(server, "/signal", {"prompt": "x" * 100_000})[1]["error"]["code"] == "context_length_exceeded"
    assert post(server, "/generate", {"prompt": "x" * 100_000, "default": True})[1]["error"]["code"] == "context_length_exceeded"


def test_no_such_model(server):
    assert post(server, "/signal", {"prompt": "a", "model": "nobody"})[0] == 404
    assert post(server, "/generate", {"prompt": "a", "model": "nobody", "default": True})[0] == 404


def test_generate(server):
    curve = [{"x_pct": 0.01, "y_pct": 0.001}, {"x_pct": 100, "y_pct": 90}]
    status, r = post(server, "/generate", {"prompt": "@echo", "curve": curve, "n": 2, "max_tokens": 256, "seed": 7})
    assert status == 200 and len(r["samples"]) == 2
    for i, s in enumerate(r["samples"]):
        assert "seed=7 choice=%d max_tokens=256" % i in s["text"] and not s["junk"]
        assert "keep_special=1" in s["text"]
    status, r = post(server, "/generate", {"prompt": "@says=\"%s\" @n=400" % ("x" * 10), "default": True})
    assert status == 200 and [len(s["text"]) for s in r["samples"]] == [80] * 3


@pytest.mark.parametrize("text,junk", [
    ("plain, “quoted” – é ß ¼ → ☃ 😀", False), ("x" * 99 + "я", False), ("x" * 40 + "я", True), ("中文", True),
    ("a <unused12> b", True), ("a <unused> b <unusedx>", False), ("a \ufffd", True), ("ﬁne　… ａ", False),
])
def test_junk(server, text, junk):
    body = {"prompt": "@says=" + json.dumps(text), "default": True, "n": 1, "max_tokens": 256}
    assert post(server, "/generate", body)[1]["samples"] == [{"text": text, "junk": junk}]


def test_knots_reach_engine(server):
    curve = [{"x_pct": 0.5, "y_pct": 0.25}, {"x_pct": 50, "y_pct": 75}]
    # the double tells more than /generate may write: what it tells last is a completion's to ask
    r = post(server, "/generate", {"prompt": "@echo @step=2", "curve": curve, "n": 1, "max_tokens": 256})[1]["samples"][0]["text"]
    assert "knot:0.5=0.25" in r and "knot:50=75" in r
    r = post(server, "/generate", {"prompt": "@echo @step=2", "curve": curve, "default": True, "n": 1, "max_tokens": 256})[1]["samples"][0]["text"]
    assert "temperature=" in r and "knot" not in r


def test_fails_and_leaves(server):
    status, r = post(server, "/generate", {"prompt": "@fail=2", "default": True})
    assert status == 500 and r["error"]["message"]
    with server.connect() as s:
        s.sendall(util.build("POST", "/generate", {"prompt": "@n=256 @pace=50", "default": True, "max_tokens": 256}))
        server.wait_rows(active=3)
    server.wait_rows()
