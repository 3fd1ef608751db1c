"""Every field that docs/openapi.json has of a request, with values of each type that it may not have, beyond each of its
bounds, and left out where it is needed: all of them are a 400 in the API's own shape that names the field."""
import copy
import json

import conform
import pytest
import util

SAID = [{"role": "system", "content": "x", "name": "n"}, {"role": "user", "content": [{"type": "text", "text": "x"}]}]
CALLED = [{"role": "assistant", "content": "x", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                                                                 {"id": "d", "type": "custom", "custom": {"name": "c", "input": "x"}}]},
          {"role": "tool", "tool_call_id": "c", "content": "x"}]
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
CUSTOM = {"type": "custom", "custom": {"name": "c", "description": "d", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}}}
BLOCKS = [{"role": "user", "content": "x"}]
TEXT = [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
THEIRS = {"model": "fake-model", "messages": BLOCKS, "system": TEXT, "tools": [{"name": "f", "input_schema": {}, "cache_control": {"type": "ephemeral"}}],
          "thinking": {"type": "adaptive"}, "tool_choice": {"type": "auto"}, "cache_control": {"type": "ephemeral"}}
# Good bodies, with all that fields are needed to be in or beside.
GOOD = {
    "ChatRequest": {"messages": SAID + CALLED + BLOCKS, "stream": True, "logprobs": True, "tools": [{"type": "function", "function": FUNCTION}, CUSTOM],
                    "prediction": {"type": "content", "content": "x"}},
    "CompletionRequest": {"prompt": "x", "stream": True},
    "ResponseRequest": {"input": "x", "stream": True, "text": {"format": {"type": "text"}}, "tools": [dict(FUNCTION, type="function")]},
    "MessageRequest": {**THEIRS, "max_tokens": 10}, "CountRequest": THEIRS,
    "OllamaChatRequest": {"model": "fake-model", "messages": BLOCKS}, "OllamaGenerateRequest": {"model": "fake-model", "prompt": "x"},
    "TokenizeRequest": {"content": "x"}, "DetokenizeRequest": {"tokens": [1]}, "SignalRequest": {"prompt": "x"},
    "GenerateRequest": {"prompt": "x", "curve": [{"x_pct": 0, "y_pct": 0}, {"x_pct": 100, "y_pct": 100}]},
}
ROUTES = [(path, body["$ref"].rsplit("/", 1)[1]) for path, ops in conform.API["paths"].items() if "post" in ops
          for body in [ops["post"].get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})] if "$ref" in body]
# Of models that the double is none of: test_embeddings.py asks a real one.
EMBEDS = {"EmbeddingRequest": {"input": "x"}, "OllamaEmbedRequest": {"input": "x"}, "OllamaEmbeddingRequest": {"prompt": "x"}}
GOOD.update(EMBEDS)
WRONG = [True, False, 7, 1.5, -1, "zzq", "", [], [1], ["zzq"], {}, {"zzq": []}]
GONE = object()


def resolved(schema):
    return conform.SCHEMAS[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def options(schema):
    schema = resolved(schema)
    return [o for s in schema["anyOf"] for o in options(s)] if "anyOf" in schema else [schema]


def fields(value, schema, at=()):
    """Paths of all fields in it, there or not, with what they may be; in lists those of the elements that are there."""
    for o in options(schema):
        if value is not None and conform.faults(value, o):
            continue
        for name, of in o.get("properties", {}).items():
            yield (*at, name), of, name in o.get("required", ())
            inner = value.get(name) if value else None
            if inner is None and any(s.get("properties") for s in options(of)):
                inner = {}
            yield from fields(inner, of, (*at, name)) if inner is not None else ()
        for i, item in enumerate(value if "items" in o else ()):
            yield from fields(item, o["items"], (*at, i))


def beyond(schema):
    for o in options(schema):
        for bound, by in (("minimum", -1), ("maximum", 1)):
            if bound in o:
                yield o[bound] + (by if o["type"] == "integer" else by * 0.001)
        if "maxLength" in o:
            yield "x" * (o["maxLength"] + 1)
        if "maxItems" in o:
            yield ["x"] * (o["maxItems"] + 1)
        if "maxProperties" in o:
            yield {str(i): 1 for i in range(o["maxProperties"] + 1)}
        if "pattern" in o:
            yield from ("a b", "x" * 300)


def placed(good, at, value):
    body = copy.deepcopy(good)
    to = body
    for step in at[:-1]:
        to = to[step] if isinstance(step, int) else to.setdefault(step, {})
    if value is GONE:
        to.pop(at[-1], None)
    else:
        to[at[-1]] = value
    return body


def bodies(schema, model="fake-model"):
    """Where something is wrong, and the body."""
    good = dict(GOOD[schema], model=model)
    whole = conform.SCHEMAS[schema]
    assert not conform.faults(good, whole), conform.faults(good, whole)
    for at, of, needed in fields(good, whole):
        for value in [*WRONG, *beyond(of), *([None, GONE] if needed else [])]:
            body = placed(good, at, value)
            if conform.faults(body, whole):
                yield at, body


def named(path, at, e):
    """Whether the error names the field, or what is in it."""
    dotted = path.startswith("/v1/messages")
    name = ""
    for step in at:
        name += "[%d]" % step if isinstance(step, int) and not dotted else "." * bool(name) + str(step)
    told = [e["error"]["param"]] if "param" in e["error"] and path[:4] != "/api" else [str(e["error"]).split(":")[0], *str(e["error"]).split("`")[1::2]]
    return any(t == name or t.startswith((name + ".", name + "[")) or at[-1] == "type" and name == t + ".type" for t in told)


def check_refused(c, path, schema, all_bodies):
    """On one connection; the first that is taken is told, or all that are not named."""
    n, wrong, left = 0, {}, b""
    for at, body in all_bodies:
        c.sendall(util.build("POST", path, body))
        left = util.read_until(c, b"\r\n\r\n", left)
        assert left.startswith(b"HTTP/1.1 400 "), (at, json.dumps(body)[:2000], left[:300])
        _, _, out, left = util.read_one(c, left)
        n += 1
        if not named(path, at, json.loads(out)):
            wrong[at] = out[:300]
    assert not wrong, "\n".join(map(str, wrong.items()))
    assert n > 5 * len(conform.SCHEMAS[schema]["properties"])


@pytest.mark.parametrize("path,schema", [r for r in ROUTES if r[1] not in EMBEDS], ids=lambda v: v if v[0] == "/" else "")
def test_refused(path, schema):
    with util.serving("--template", "<tool_call>{{enable_thinking}}{{reasoning_effort}}{{tools}}") as s, s.connect() as c:
        check_refused(c, path, schema, bodies(schema))


@pytest.mark.parametrize("path,schema", [r for r in ROUTES if r[1] not in EMBEDS], ids=lambda v: v if v[0] == "/" else "")
def test_null_is_absent(path, schema):
    """Clients' types write every field that nobody set."""
    with util.serving() as s:
        needed = conform.SCHEMAS[schema].get("required", ())
        nulls = {name: None for name in conform.SCHEMAS[schema]["properties"] if name not in needed}
        status, _, out = s.request("POST", path, dict(nulls, **GOOD[schema]))
        assert status == 200 and nulls, out


def test_all_schemas():
    assert {schema for _, schema in ROUTES} == {*GOOD}
