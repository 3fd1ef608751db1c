"""Whether a response, or the events of one, are what the Responses API publishes.

Shapes are those of the openai package's types, read strictly, without fields that they do not know; the order of
events is a state machine.  Both are for every test that gets one."""
import json
import typing

import pydantic
from openai.types import responses as types

# Sent though the types lack them, as OpenAI's own server does.
UNKNOWN = {"Response": {"store"}, "ResponseCustomToolCall": {"status"},
           "Logprob": {"bytes"}, "LogprobTopLogprob": {"bytes"}}
STATUS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}


def classes():
    union = types.ResponseStreamEvent
    while not typing.get_origin(union) is typing.Union:
        union = typing.get_args(union)[0]
    return {typing.get_args(c.model_fields["type"].annotation)[0]: c for c in typing.get_args(union)}


EVENTS = classes()


def known_only(v, where):
    """No field in it that its type does not have."""
    if isinstance(v, pydantic.BaseModel):
        extra = set(v.model_extra or {}) - UNKNOWN.get(type(v).__name__, set())
        assert not extra, "%s: %s has no %s" % (where, type(v).__name__, sorted(extra))
        for name in set(type(v).model_fields) - {"tools"}:  # a client's own, as it sent them
            known_only(getattr(v, name), where + "." + name)
    elif isinstance(v, list):
        for i, x in enumerate(v):
            known_only(x, "%s[%d]" % (where, i))


def strictly(cls, data):
    v = cls.model_validate_json(json.dumps(data), strict=True)
    known_only(v, cls.__name__)
    return v


def response(data):
    """A whole response; what it says must agree with itself."""
    r = strictly(types.Response, data)
    assert r.object == "response" and r.id.startswith("resp_")
    assert r.status in ("completed", "incomplete", "failed", "in_progress")
    assert (r.incomplete_details is not None) == (r.status == "incomplete")
    assert (r.error is not None) == (r.status == "failed")
    assert (r.completed_at is not None) == (r.status == "completed")
    assert len({x.id for x in r.output}) == len(r.output)
    if r.status in ("completed", "incomplete"):
        u = r.usage
        assert r.output and u.total_tokens == u.input_tokens + u.output_tokens
        assert 0 <= u.input_tokens_details.cached_tokens <= u.input_tokens
        assert 0 <= u.output_tokens_details.reasoning_tokens <= u.output_tokens
    if r.status == "completed":  # but for calls that broke, which a stream has told of
        assert all(x.status == "completed" or x.type.endswith("_call") for x in r.output)
    return r


def item_list(data):
    return strictly(types.ResponseItemList, data) if data["data"] else None


class Machine:
    """The events of one stream, one after the other; `ended` after the last."""
    PARTS = {"response.content_part": "content_index", "response.reasoning_summary_part": "summary_index"}
    TEXTS = {"response.output_text": ("message", "text", True),
             "response.reasoning_text": ("reasoning", "text", True),
             "response.reasoning_summary_text": ("reasoning", "text", True),
             "response.function_call_arguments": ("function_call", "arguments", False),
             "response.custom_tool_call_input": ("custom_tool_call", "input", False)}

    def __init__(self):
        self.state = "begin"
        self.sequence = 0
        self.id = None
        self.done = []  # items
        self.item = None  # under way
        self.part = None
        self.text = ""
        self.said = False  # the text's end
        self.ended = False
        self.logprobs = []

    def feed(self, name, data):
        assert not self.ended, "after the end: %s" % name
        assert name == data["type"], (name, data["type"])
        e = strictly(EVENTS[name], data)
        assert e.sequence_number == self.sequence, (e.sequence_number, self.sequence)
        self.sequence += 1
        base, _, last = name.rpartition(".")
        if hasattr(e, "response"):
            self.whole(name, data["response"], e.response)
        elif base == "response.output_item":
            self.items(last, data["item"], e)
        elif base in self.PARTS:
            self.parts(last, e, self.PARTS[base])
        else:
            self.texts(last, e, *self.TEXTS[base])
        return e

    def whole(self, name, data, r):
        response(data)
        if self.state == "begin":
            assert name == "response.created" and r.status == "in_progress" and not r.output
            self.id, self.state = r.id, "created"
        elif self.state == "created":
            assert name == "response.in_progress" and r.status == "in_progress" and not r.output
            self.state = "running"
        elif name == "response.in_progress":  # again, while nothing is said
            assert self.state == "running" and r.status == "in_progress" and not r.output and not self.done and not self.item
        else:
            assert STATUS[name] == r.status and self.state == "running"
            assert data["output"] == self.done  # to the byte what their ends said
            assert r.status == "failed" or self.item is None
            self.ended = True
        assert r.id == self.id

    def items(self, what, data, e):
        assert self.state == "running" and e.output_index == len(self.done)
        if what == "added":
            assert self.item is None and data["status"] == "in_progress"
            assert not any(data.get(k) for k in ("content", "summary", "arguments", "input"))
            self.item, self.part, self.text, self.said, self.logprobs = data, None, "", False, []
            return
        assert what == "done" and self.part is None and self.said
        assert data["status"] in ("completed", "incomplete")
        for k in ("id", "type", "name", "call_id", "namespace", "role"):
            assert data.get(k) == self.item.get(k), k
        for k in ("content", "summary", "arguments", "input"):
            if data.get(k):
                v = data[k]
                assert (v if isinstance(v, str) else v[0]["text"]) == self.text
                assert isinstance(v, str) or len(v) == 1
        self.done.append(data)
        self.item = None

    def here(self, e):
        assert self.item and e.item_id == self.item["id"] and e.output_index == len(self.done)

    def parts(self, what, e, index):
        self.here(e)
        assert getattr(e, index) == 0
        if what == "added":
            assert self.part is None and not self.said and e.part.text == ""
            self.part = e.part.type
        else:
            assert what == "done" and self.part == e.part.type and self.said
            assert e.part.text == self.text
            self.part = None

    def texts(self, what, e, kind, key, in_part):
        self.here(e)
        assert self.item["type"] == kind and (self.part is not None) == in_part and not self.said
        if what == "delta":
            assert e.delta  # an empty one says nothing
            self.text += e.delta
            self.logprobs += getattr(e, "logprobs", None) or []
        else:
            assert what == "done" and getattr(e, key) == self.text
            assert len(getattr(e, "logprobs", None) or []) == len(self.logprobs)
            self.said = True


def stream(body):
    """The last response of a stream's bytes, and its events, all of them checked."""
    m, events = Machine(), []
    for block in body.decode().split("\n\n"):
        lines = [x for x in block.split("\n") if x and not x.startswith(":")]
        if not lines:
            continue
        assert len(lines) == 2 and lines[0].startswith("event: ") and lines[1].startswith("data: "), lines
        data = json.loads(lines[1][len("data: "):])
        m.feed(lines[0][len("event: "):], data)
        events.append(data)
    assert m.ended
    return events[-1]["response"], events
