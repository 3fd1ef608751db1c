"""docs/openapi.json: made by its script, of every route, in words that tests/serve/conform.py reads, and false answers
are found false."""
import json
import os
import re
import subprocess
import sys

import conform
import pytest
import util


def test_made_by_its_script():
    r = subprocess.run([sys.executable, os.path.join(util.ROOT, "tools/openapi/make.py"), "--check"], capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stderr


def test_every_route():
    with open(os.path.join(util.ROOT, "src/serve/router.c"), encoding="utf-8") as f:
        table = set(re.findall(r'^    \{"([A-Z]+)", "([^"]+)"', f.read(), re.M))
    told = {(m.upper(), p) for p, ops in conform.API["paths"].items() for m in ops}

    def same(route, op):
        return route[0] == op[0] and re.fullmatch(re.escape(route[1]).replace(r"\*", ".+"), op[1])

    assert table
    assert [r for r in table if not any(same(r, t) for t in told)] == []
    assert [t for t in told if not any(same(r, t) for r in table)] == []


def words(schema):
    for key, k in schema.items():
        assert key in conform.RULES or key in ("$ref", "anyOf", "properties", "additionalProperties", "propertyNames", "items"), key
        if key == "$ref":
            assert k.rsplit("/", 1)[1] in conform.SCHEMAS
        for s in k if key == "anyOf" else k.values() if key == "properties" else [k] if key in ("items", "propertyNames") else []:
            words(s)


def test_words():
    for schema in conform.SCHEMAS.values():
        words(schema)
    for ops in conform.API["paths"].values():
        for op in ops.values():
            assert "default" in op["responses"] and op["summary"]
            for reply in op["responses"].values():
                for kind in reply.get("content", {}).values():
                    words(kind["schema"])
                    words(kind.get("x-event", {}))
                    words(kind.get("x-line", {}))


GOOD = {"error": {"message": "m", "type": "t", "param": None, "code": None}}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("ask", [
    ("GET", "/health", 200, JSON, b'{"status": "bad"}'),
    ("GET", "/health", 200, JSON, b'{"status": "ok", "more": 1}'),
    ("GET", "/health", 200, {"content-type": "text/plain"}, b'{"status": "ok"}'),
    ("GET", "/health", 299, JSON, b'{"status": "ok"}'),
    ("GET", "/nowhere", 200, JSON, b"{}"),
    ("POST", "/health", 405, JSON, json.dumps(GOOD).encode()),
    ("POST", "/v1/chat/completions", 429, JSON, json.dumps(GOOD).encode()),
    ("POST", "/v1/messages", 400, JSON, json.dumps(GOOD).encode()),
    ("POST", "/v1/chat/completions", 200, {"content-type": "text/event-stream; charset=utf-8"}, b'data: {"id": 1}\n\ndata: [DONE]\n\n'),
    ("POST", "/v1/completions", 200, {"content-type": "text/event-stream; charset=utf-8"}, b""),
    ("GET", "/v1/models", 200, JSON, b'{"object": "list", "data": [{"id": "x"}]}'),
    ("GET", "/v1/responses/x/input_items", 200, JSON, b'{"object": "list", "data": [{"id": "x", "type": "thing"}], "first_id": "x", "last_id": "x", "has_more": false}'),
    ("POST", "/v1/responses", 200, {"content-type": "text/event-stream; charset=utf-8"},
     b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "sequence_number": 0, "item_id": "x", "output_index": 0, "content_index": 0, "delta": "x"}\n\n'
     b'event: error\ndata: {"error": {"message": "m", "type": "t", "param": null, "code": null}}\n\n'),
    ("GET", "/api/tags", 200, JSON, b'{"models": [{"name": "x", "model": "x", "size": 1, "digest": "x"}]}'),
    ("POST", "/api/chat", 200, JSON, b'{"model": "x", "created_at": "now", "message": {"role": "assistant", "content": ""}, "done": true}'),
])
def test_finds_what_is_false(ask):
    with pytest.raises(conform.Wrong):
        conform.answer(*ask)


def test_holds_answers(server):
    """The hooks are in: what this test asks is counted."""
    before = dict(conform.checked)
    server.request("GET", "/stats")
    server.chat("hi", stream=True)
    server.chat("hi", model="nobody")
    key = ("/v1/chat/completions", "post")
    for k in [("/stats", "get", 200), (*key, 200), (*key, 404)]:
        assert conform.checked.get(k, 0) > before.get(k, 0)


def test_every_field_is_one_or_another(server):
    """What the file says of a chat's request: numbers beyond its ranges are refused, by the schema and by the server."""
    ask = conform.SCHEMAS["ChatRequest"]
    base = util.ask()
    assert not conform.faults(base, ask)
    tried = 0
    for name, schema in ask["properties"].items():
        kind = schema.get("anyOf", [{}])[-1]
        for bound, by in (("minimum", -1), ("maximum", 1)):
            if bound not in kind or abs(kind[bound]) >= 2**31 - 1:
                continue
            step = by if kind["type"] == "integer" else by * 0.001
            body = dict(base, **{name: kind[bound] + step})
            if name == "top_logprobs":
                body["logprobs"] = True
            assert conform.faults(body, ask), name
            assert server.request("POST", "/v1/chat/completions", body)[0] == 400, (name, bound)
            tried += 1
    assert tried > 20
