"""Holds answers to docs/openapi.json: status, headers and body of whatever came back.  util.py asks for each
answer that a test gets, relay.py for those of other people's clients.

The schemas' language is small on purpose: a keyword that nobody here reads is an error, not a pass."""
import json
import os
import re

import order

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
with open(os.path.join(ROOT, "docs/openapi.json"), encoding="utf-8") as f:
    API = json.load(f)
SCHEMAS = API["components"]["schemas"]
METHODS = {"get", "post", "put", "delete", "patch"}
ERRORS = (("/v1/messages", "AnthropicError"), ("/api", "OllamaError"))
checked = {}  # (method, path, status) → how often


class Wrong(AssertionError):
    """An answer is not what docs/openapi.json says."""


TYPES = {
    "object": lambda v: isinstance(v, dict), "array": lambda v: isinstance(v, list), "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool) or isinstance(v, float) and v.is_integer(),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool), "boolean": lambda v: isinstance(v, bool), "null": lambda v: v is None,
}
RULES = {
    "type": lambda v, s, k: TYPES[k](v),
    "const": lambda v, s, k: v == k and isinstance(v, type(k)),
    "enum": lambda v, s, k: v in k,
    "required": lambda v, s, k: not isinstance(v, dict) or all(name in v for name in k),
    "minimum": lambda v, s, k: not TYPES["number"](v) or v >= k,
    "maximum": lambda v, s, k: not TYPES["number"](v) or v <= k,
    "minLength": lambda v, s, k: not isinstance(v, str) or len(v) >= k,
    "maxLength": lambda v, s, k: not isinstance(v, str) or len(v) <= k,
    "pattern": lambda v, s, k: not isinstance(v, str) or re.search(k, v),
    "minItems": lambda v, s, k: not isinstance(v, list) or len(v) >= k,
    "maxItems": lambda v, s, k: not isinstance(v, list) or len(v) <= k,
    "maxProperties": lambda v, s, k: not isinstance(v, dict) or len(v) <= k,
    "description": lambda v, s, k: True,
}


def faults(v, schema, at=""):
    """What is wrong with v, as a list of texts."""
    out = []
    for key, k in schema.items():
        if key == "$ref":
            out += faults(v, SCHEMAS[k.rsplit("/", 1)[1]], at)
        elif key == "anyOf":
            tries = [faults(v, s, at) for s in k]
            if all(tries):
                out.append("%s: %.200r is none of %d: %s" % (at or "/", v, len(k), min(tries, key=len)[0]))
        elif key == "properties":
            if isinstance(v, dict):
                for name, s in k.items():
                    if name in v:
                        out += faults(v[name], s, at + "/" + name)
        elif key == "additionalProperties":
            more = set(v) - set(schema.get("properties", {})) if isinstance(v, dict) else ()
            if k is False and more:
                out.append("%s: has %s" % (at or "/", sorted(more)))
            elif isinstance(k, dict):
                for name in more:
                    out += faults(v[name], k, at + "/" + name)
        elif key == "propertyNames":
            for name in v if isinstance(v, dict) else ():
                out += faults(name, k, at + "/" + name)
        elif key == "items":
            for i, item in enumerate(v if isinstance(v, list) else ()):
                out += faults(item, k, "%s/%d" % (at, i))
        elif not RULES[key](v, schema, k):
            out.append("%s: %.200r is not %s %.200r" % (at or "/", v, key, k))
    return out


def find(path):
    """The path of the file that `path` is, and its operations; (None, {}) if there is none."""
    path = path.split("?", 1)[0]
    for template, ops in sorted(API["paths"].items(), key=lambda p: (p[0].count("{"), -len(p[0]))):
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", ".+", re.escape(template)), path):
            return template, ops
    return None, {}


def expect(ok, *why):
    if not ok:
        raise Wrong(" ".join(map(str, why)))


def hold(value, schema, what):
    wrong = faults(value, schema)
    expect(not wrong, what, "; ".join(wrong[:3]))


def check_order(path, events, whole, what):
    try:
        order.check(path, events, whole)
    except AssertionError as e:
        raise Wrong(what + " " + str(e)) from e


def check_events(body, kind, path, what, whole):
    """A stream: each event is one of its kind, they come in order, and the last says that it is the end, unless it is an error."""
    last, events = None, []
    for block in body.decode(errors="strict" if whole else "replace").split("\n\n")[:-1]:
        lines = block.split("\n")
        if block.startswith(":"):
            continue
        data = "\n".join(line[len("data: "):] for line in lines if line.startswith("data: "))
        names = [line[len("event: "):] for line in lines if line.startswith("event: ")]
        expect(last != "[DONE]", what, "goes on after [DONE]")
        last = data
        if data == "[DONE]":
            continue
        value = json.loads(data)
        hold(value, kind["x-event"], what)
        events.append(value)
        expect(not names or names == [value["type"]], what, "event", names, "has data of type", value.get("type"))
        last = "error" if "error" in value else value.get("type", data)
    check_order(path, events, whole and last != "error", what)
    expect(not whole or last in (*kind["x-done"].split(", "), "error"), what, "ends with", last)


def check_lines(body, kind, path, what, whole):
    *lines, rest = body.split(b"\n")
    expect(not whole or not rest, what, "ends within a line")
    values = [json.loads(line) for line in lines]
    for value in values:
        hold(value, kind["x-line"], what)
    check_order(path, values, whole, what)


def check_body(body, kind, content, path, what, whole):
    if content.startswith("text/event-stream"):
        check_events(body, kind, path, what, whole)
    elif content == "application/x-ndjson":
        check_lines(body, kind, path, what, whole)
    elif content.startswith("application/json") and whole:
        if body == b"{}" and "503" in what:
            return  # no memory, not even for the message
        hold(json.loads(body), kind["schema"], what)


def answer(method, target, status, headers, body, whole=True):
    """headers: lower case.  body: None where it is not known.  whole: to its end."""
    template, ops = find(target)
    what = "%s %s %d:" % (method, target[:80], status)
    op = ops.get("get" if method == "HEAD" else method.lower())
    if status == 204:
        expect(method == "OPTIONS" and template and headers.get("allow"), what, "of no OPTIONS")
        return
    error = next((name for start, name in ERRORS if re.match(start + r"($|[/?])", target)), "Error")
    if op is None:
        expect(status >= 400, what, "is not described")
        expect(template or status != 405, what, "of a path that is not described")
        expect(status != 405 or headers.get("allow"), what, "without Allow")
        kinds = {"application/json": {"schema": {"$ref": "#/components/schemas/" + error}}}
        reply = {"content": kinds}
    else:
        reply = op["responses"].get(str(status)) or op["responses"]["default"]
        expect(str(status) in op["responses"] or status >= 400, what, "this status is not described")
        checked[template, method.lower(), status] = checked.get((template, method.lower(), status), 0) + 1
    for name, h in reply.get("headers", {}).items():
        expect(name.lower() in headers or not h["required"], what, "lacks", name)
    kinds = reply.get("content", {})
    if not kinds:
        expect(not body, what, "has a body")
        return
    expect(headers.get("content-type") in kinds, what, "has content type", headers.get("content-type"))
    kind = kinds[headers["content-type"]]
    if body is not None and method != "HEAD":
        check_body(body, kind, headers["content-type"], template, what, whole)
