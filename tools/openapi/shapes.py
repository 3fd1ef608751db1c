"""Words in which the routes of docs/openapi.json are written: JSON Schema, shorter."""


def obj(need=None, may=None, more=False, **rest):
    """An object: members that are always there, members that may be, and whether others are."""
    need, may = need or {}, may or {}
    out = {"type": "object", "properties": {**need, **may}, "additionalProperties": more, **rest}
    if need:
        out["required"] = sorted(need)
    return out


def ref(name):
    return {"$ref": "#/components/schemas/" + name}


def arr(items, **rest):
    return {"type": "array", "items": items, **rest}


def const(value):
    return {"const": value}


def either(*options):
    return {"anyOf": list(options)}


def null_or(schema):
    return either({"type": "null"}, schema)


def enum(*values):
    return {"enum": list(values)}


STR, INT, NUM, BOOL, NULL, ANY = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {}
COUNT = {"type": "integer", "minimum": 0}


def between(lo, hi):
    return {"type": "number", "minimum": lo, "maximum": hi}


def whole(lo, hi=2**31 - 1):
    return {"type": "integer", "minimum": lo, "maximum": hi}


def says(text, schema):
    return {**schema, "description": text}


def asked(need=None, may=None):
    """A request's body.  A null member is as one left out, and what nobody knows is ignored."""
    return obj(need, {name: null_or(schema) for name, schema in (may or {}).items()}, more=True)


def json_reply(schema, text="The answer", headers=None):
    out = {"description": text, "content": {"application/json": {"schema": schema}}}
    if headers:
        out["headers"] = {name: {"required": True, "schema": s} for name, s in headers.items()}
    return out


def events(reply, event, error, done):
    """The reply may be server-sent events too: the data of each is `event`, or `error` and then the end.
    done: what a whole stream ends with."""
    reply["content"]["text/event-stream; charset=utf-8"] = {
        "schema": {"description": "Server-sent events: x-event is the data of each"}, "x-event": either(event, error), "x-done": done}
    return reply


# What each status means, wherever it comes.  What is only said of a connection or of HTTP itself is "default".
MEANS = {
    400: "The request is wrong: the message says where and what was expected",
    401: "A key is missing or wrong",
    403: "The Host, or the page that asks, is not one that is answered",
    404: "There is no such model or route",
    405: "Another method is wanted; Allow says which",
    408: "The request took too long to come",
    413: "The body is over the server's limit",
    429: "Too many requests run or wait",
    500: "The model failed",
    503: "No memory or no time for it, or the server ends",
}


def route(method, path, summary, replies, body=None, tag="", fails=(400, 401, 405, 408, 413, 429, 500, 503), error="Error",
          params=(), open_to_all=False, need_body=True, local=False):
    """One operation.  replies: {status: reply}; fails: statuses with the API's error.
    local: it is answered on the local socket alone, without a key."""
    responses = {str(k): v for k, v in replies.items()}
    for status in (403, *fails):
        responses.setdefault(str(status), json_reply(ref(error), MEANS[status]))
    responses["default"] = json_reply(ref(error), "What is wrong with the HTTP")
    if "401" in responses:
        responses["401"]["headers"] = {"WWW-Authenticate": {"required": True, "schema": STR}}
    if "429" in responses:
        responses["429"]["headers"] = {"Retry-After": {"required": True, "schema": STR}}
    op = {"summary": summary, "operationId": (method + "_" + "_".join(w for w in path.replace("-", "_").replace("{", "").replace("}", "").split("/") if w)).rstrip("_"),
          "tags": [tag], "responses": responses}
    if body is not None:
        op["requestBody"] = {"required": need_body, "content": {"application/json": {"schema": body}}}
    if params:
        op["parameters"] = [{"name": n, "in": "path", "required": True, "schema": STR, "description": d} for n, d in params]
    if open_to_all or local:
        op["security"] = []
    if local:
        op["x-local-socket"] = True
    return path, method, op
