"""The order of a stream's events, by the API that sends them.  conform.py has held each to its schema by then; here is
what a client's state machine counts on.  A stream that ends in an error may leave anything unfinished."""
import importlib.util
import json


def check(path, events, whole):
    """events: the data of each, as objects.  whole: the stream came to its end, and not to an error."""
    if events and ("error" in events[-1] or events[-1].get("type") == "error"):
        events, whole = events[:-1], False
    if not events:
        return
    machine = {"/v1/chat/completions": chat, "/v1/completions": completion, "/v1/messages": messages,
               "/v1/responses": responses, "/api/chat": ollama, "/api/generate": ollama}.get(path)
    if machine:
        machine(events, whole)


def one_answer(events):
    """All chunks are of one answer."""
    for key in ("id", "object", "created", "model"):
        assert len({e[key] for e in events}) <= 1, "chunks of several %s" % key
    told = [i for i, e in enumerate(events) if e.get("usage")]
    assert told in ([], [len(events) - 1]), "usage before the last chunk"


def chat(events, whole):
    one_answer(events)
    seen = {}  # index → Choice
    for k, e in enumerate(events):
        if not e["choices"]:
            assert e.get("usage") and k == len(events) - 1, "a chunk without a choice"
        for c in e["choices"]:
            first = c["index"] not in seen
            choice = seen.setdefault(c["index"], Choice())
            assert (c["delta"].get("role") == "assistant") == first, "the role comes once, first"
            choice.feed(c)
    assert not whole or all(c.finish for c in seen.values()), "a choice without a finish_reason"


class Choice:
    """What one choice of a chat has said."""

    def __init__(self):
        self.finish, self.calls = None, []

    def feed(self, c):
        assert self.finish is None, "choice %d goes on after its finish_reason" % c["index"]
        for call in c["delta"].get("tool_calls") or ():
            if call["index"] == len(self.calls):
                assert call.get("id") and call[call["type"]]["name"], "a call begins with its id and name"
                self.calls.append("" if call["type"] == "function" else None)
            assert call["index"] == len(self.calls) - 1, "calls come one after the other"
            assert ("custom" in call) == (self.calls[-1] is None), "a call of one type goes on as one of another"
            if "function" in call:
                self.calls[-1] += call["function"].get("arguments") or ""
        self.finish = c["finish_reason"]
        if self.finish == "tool_calls":
            assert self.calls, "no call in spite of the finish_reason"
            for arguments in self.calls:
                json.loads("{}" if arguments is None else arguments)  # a custom tool's text is any


def completion(events, whole):
    one_answer(events)
    finished = {}
    for k, e in enumerate(events):
        if not e["choices"]:
            assert e.get("usage") and k == len(events) - 1, "a chunk without a choice"
        for c in e["choices"]:
            assert not finished.get(c["index"]), "choice %d goes on after its finish_reason" % c["index"]
            finished[c["index"]] = c["finish_reason"]
    assert not whole or all(finished.values()), "a choice without a finish_reason"


DELTAS = {"text": {"text_delta"}, "thinking": {"thinking_delta", "signature_delta"}, "tool_use": {"input_json_delta"}}


def messages(events, whole):
    events = [e for e in events if e["type"] != "ping"]
    if not events:
        return
    names = [e["type"] for e in events]
    assert names[0] == "message_start", "begins with %s" % names[0]
    start = events[0]["message"]
    assert start["content"] == [] and start["stop_reason"] is None and start["usage"]["output_tokens"] == 0
    n, kind, last, calls = 0, None, None, []
    for k, e in enumerate(events[1:], 1):
        if e["type"] in ("message_delta", "message_stop"):
            assert kind is None and names[k:] in (["message_delta", "message_stop"], ["message_delta"], ["message_stop"]), names
            if e.get("delta", {}).get("stop_reason") == "tool_use":  # else the last one may have broken off
                for arguments in calls:
                    json.loads(arguments or "{}")
            continue
        assert e["index"] == n, "block %d where %d is due" % (e["index"], n)
        if e["type"] == "content_block_start":
            assert kind is None, "a block within another"
            kind, last = e["content_block"]["type"], None
            calls += [""] if kind == "tool_use" else []
        elif e["type"] == "content_block_stop":
            assert kind and (kind != "thinking" or last == "signature_delta"), "thoughts without a signature"
            n, kind = n + 1, None
        else:
            last = e["delta"]["type"]
            assert e["type"] == "content_block_delta" and last in DELTAS[kind], "%s in %s" % (last, kind)
            if kind == "tool_use":
                calls[-1] += e["delta"]["partial_json"]
    assert not whole or names[-2:] == ["message_delta", "message_stop"], names[-2:]


def responses(events, whole):
    if importlib.util.find_spec("openai") is None:
        return  # its types are the machine's
    import responses_conform
    m = responses_conform.Machine()
    for e in events:
        m.feed(e["type"], e)
    assert not whole or m.ended, "no end"


def ollama(lines, whole):
    done = [i for i, e in enumerate(lines) if e["done"]]
    assert done in ([], [len(lines) - 1]), "more after done"
    assert not whole or done, "no done"
    assert len({e["model"] for e in lines}) == 1, "lines of several models"
