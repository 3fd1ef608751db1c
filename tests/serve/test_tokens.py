"""/tokenize, /detokenize and /metrics."""
import json
import re

import pytest
import util


def post(server, path, body):
    status, _, out = server.request("POST", path, body)
    return status, json.loads(out)


def test_tokenize(server):
    ask = lambda **f: post(server, "/tokenize", dict({"content": "a<x>é"}, **f))[1]["tokens"]  # noqa: E731
    assert ask() == [97, 1, 0xC3, 0xA9] == ask(parse_special=True, add_special=False, with_pieces=False, model="fake-model")
    assert ask(parse_special=False) == list("a<x>é".encode())
    assert ask(add_special=True)[0] == ord("^")
    assert ask(with_pieces=True)[::2] == [{"id": 97, "piece": "a"}, {"id": 0xC3, "piece": [0xC3]}]
    assert ask(content="") == []


def test_detokenize(server):
    assert post(server, "/detokenize", {"tokens": list("aé!".encode())}) == (200, {"content": "aé!"})
    assert post(server, "/detokenize", {"tokens": []}) == (200, {"content": ""})
    assert post(server, "/detokenize", {"tokens": [0xC3]}) == (200, {"content": "\ufffd"})


@pytest.mark.parametrize("path,param,body", [
    ("/tokenize", "content", {}), ("/tokenize", "content", {"content": None}), ("/tokenize", "content", {"content": ["a"]}),
    ("/tokenize", "add_special", {"content": "a", "add_special": 1}),
    ("/tokenize", "parse_special", {"content": "a", "parse_special": "x"}),
    ("/tokenize", "with_pieces", {"content": "a", "with_pieces": 1}), ("/tokenize", "model", {"content": "a", "model": 3}),
    ("/detokenize", "tokens", {}), ("/detokenize", "tokens", {"tokens": "a"}),
    ("/detokenize", "tokens[1]", {"tokens": [1, "a"]}), ("/detokenize", "tokens[0]", {"tokens": [256]}),
    ("/detokenize", "tokens[0]", {"tokens": [-1]}), ("/detokenize", "tokens[0]", {"tokens": [[1]]}),
    ("/detokenize", "model", {"tokens": [1], "model": []}), ("/tokenize", None, [1]), ("/tokenize", None, b"{"),
])
def test_refused(server, path, param, body):
    status, out = post(server, path, body)
    e = out["error"]
    assert (status, e["param"]) == (400, param) and e["type"] == "invalid_request_error" and (param or "") in e["message"]
    assert post(server, path, {"content": "a", "tokens": [1], "model": "other"})[0] == 404


SAMPLE = re.compile(r'cairn_([a-z_]+)(?:\{model="((?:[^"\\\n]|\\.)*)"\})? (-?[0-9.]+)$')


def scrape(server):
    """{(name, model): value}; the format is checked as Prometheus' documentation has it."""
    status, headers, body = server.request("GET", "/metrics")
    assert status == 200 and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert body.endswith(b"\n")
    found, kinds = {}, {}
    lines = body.decode().split("\n")[:-1]
    for i, line in enumerate(lines):
        if line.startswith("# HELP cairn_"):
            name = line.split()[2]
            kinds[name] = re.fullmatch(r"# TYPE %s (counter|gauge)" % name, lines[i + 1]).group(1)
        elif not line.startswith("# TYPE "):
            name, model, value = SAMPLE.fullmatch(line).groups()
            assert name.endswith("_total") == (kinds["cairn_" + name] == "counter") and (name, model) not in found
            found[name, model] = float(value)
    return found


def test_metrics():
    with util.serving("--models", 2) as s:
        before = scrape(s)
        assert s.chat("hi")[0] == 200
        s.wait_rows()
        after, stats = scrape(s), s.stats()
        assert after["requests_total", "fake-model"] == before["requests_total", "fake-model"] + 1
        assert after["generated_tokens_total", "fake-model"] == len("Hello from the test double.")
        assert after["requests_total", "org/other"] == 0
        assert after["http_requests_total", None] > before["http_requests_total", None]
        for m in stats["models"]:
            assert after["prompt_tokens_total", m["id"]] == m["prompt_tokens"]
            assert after["context_tokens", m["id"]] == m["context_window"]
    with util.serving("--key", "k") as s:
        assert s.request("GET", "/metrics")[0] == 401
        assert s.request("GET", "/metrics", headers={"x-api-key": "k"})[0] == 200
