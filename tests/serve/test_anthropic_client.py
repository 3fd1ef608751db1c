"""The official Anthropic client against the server: what users' programs see."""
import json
import time

import pytest
import util

anthropic = pytest.importorskip("anthropic")

HELLO = "Hello from the test double."
TOOLS = [{"name": "f", "description": "d", "input_schema": {
    "type": "object", "properties": {"x": {"type": "integer"}}}}]
CALL = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
SAID = "<think>hm</think>ab" + CALL


@pytest.fixture(scope="module")
def server():
    with util.serving("--template", "<tool_call>{{enable_thinking}}{{reasoning_effort}}") as s:
        yield s
        s.wait_rows()


@pytest.fixture(scope="module")
def client(server):
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        yield c


def ask(text="hi", **fields):
    return dict({"model": "fake-model", "max_tokens": 1000,
                 "messages": [{"role": "user", "content": text}]}, **fields)


def says(text, words=""):
    return "%s\n@says=%s\n" % (words, json.dumps(text))


def stream(server, body):
    """The events but for pings; util.py has checked their order."""
    status, headers, out = server.request("POST", "/v1/messages", dict(body, stream=True))
    assert status == 200 and headers["content-type"].startswith("text/event-stream"), out
    assert headers["request-id"].startswith("req_")
    events = []
    for frame in out.decode().split("\n\n")[:-1]:
        name, data = frame.split("\n")
        event = json.loads(data[len("data: "):])
        assert name == "event: " + event["type"]
        if event["type"] != "ping":
            events.append(event)
    return events


def test_whole(client):
    r = client.messages.create(**ask("hi @cached=7"))
    assert (r.type, r.role, r.model, r.stop_reason, r.stop_sequence) == \
        ("message", "assistant", "fake-model", "end_turn", None)
    assert r.id.startswith("msg_") and len(r.id) == 28 and r._request_id.startswith("req_")
    assert [b.type for b in r.content] == ["text"] and r.content[0].text == HELLO
    assert r.usage.output_tokens == len(HELLO) and r.usage.cache_read_input_tokens == 7
    total = client.messages.count_tokens(**{k: v for k, v in ask("hi @cached=7").items()
                                            if k != "max_tokens"}).input_tokens
    assert r.usage.input_tokens + 7 == total


def test_stream(client):
    with client.messages.stream(**ask("hi @cached=7")) as s:
        text = "".join(s.text_stream)
        final = s.get_final_message()
    whole = client.messages.create(**ask("hi @cached=7"))
    assert text == HELLO == final.content[0].text
    assert final.stop_reason == "end_turn" and final.usage.cache_read_input_tokens == 7
    assert final.usage.input_tokens == whole.usage.input_tokens
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_usage_is_exact_at_once(server):
    """Who reads message_start alone counts no cached token twice."""
    events = stream(server, ask("hi @cached=7"))
    start, end = events[0]["message"]["usage"], events[-2]["usage"]
    assert start["cache_read_input_tokens"] == end["cache_read_input_tokens"] == 7
    assert start["input_tokens"] == end["input_tokens"]


@pytest.mark.parametrize("text,blocks,reason", [
    (SAID, [("thinking", "hm"), ("text", "ab"), ("tool_use", {"x": 1})], "tool_use"),
    (CALL + "\n" + CALL, [("tool_use", {"x": 1}), ("tool_use", {"x": 1})], "tool_use"),
    ("<think>hm</think>", [("thinking", "hm")], "end_turn"),
    ("", [("text", "")], "end_turn"),
    ("a<tool_call>none</tool_call>", [("text", "a<tool_call>none</tool_call>")], "end_turn"),
    ('<tool_call>{"name": "g", "arguments": {}}</tool_call>',
     [("text", '<tool_call>{"name": "g", "arguments": {}}</tool_call>')], "end_turn"),
])
def test_blocks(client, server, text, blocks, reason):
    """What was said as blocks, whole, streamed, and by the client's own accumulator."""
    def seen(content):
        return [(b["type"], b.get("thinking", b.get("text", b.get("input")))) for b in content]
    body = ask(says(text), tools=TOOLS)
    whole = client.messages.create(**body)
    with client.messages.stream(**body) as s:
        streamed = s.get_final_message()
    for m in whole, streamed:
        assert seen([b.model_dump(exclude_none=True) for b in m.content]) == blocks
        assert m.stop_reason == reason
    ids = [b.id for b in whole.content if b.type == "tool_use"]
    assert len(set(ids)) == len(ids)
    stream(server, body)


def test_broken_call(client, server):
    """Told in a stream already, and text after all: the message does not say that a tool is used."""
    text = 'a<tool_call>{"name": "f", "arguments": {"x": ]}</tool_call>'
    body = ask(says(text), tools=TOOLS)
    whole = client.messages.create(**body)
    assert {b.type for b in whole.content} == {"text"} and whole.stop_reason == "end_turn"
    assert "".join(b.text for b in whole.content) == text
    events = stream(server, body)
    assert events[-2]["delta"]["stop_reason"] == "end_turn"
    said = "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")
    assert said == text


def test_cut_call(client):
    """max_tokens inside a call: what is complete of it."""
    call = '<tool_call>{"name": "f", "arguments": {"x": 1, "y": [2, {"z": "abc'
    body = ask(says(call), tools=TOOLS, max_tokens=len(call) - 1)
    r = client.messages.create(**body)
    assert r.stop_reason == "max_tokens"
    assert r.content[0].input == {"x": 1, "y": [2, {}]}
    with client.messages.stream(**body) as s:
        assert s.get_final_message().content[0].input["x"] == 1


def test_parallel_off(client):
    r = client.messages.create(**ask(says(CALL + CALL), tools=TOOLS,
                                     tool_choice={"type": "auto", "disable_parallel_tool_use": True}))
    assert [b.type for b in r.content] == ["tool_use"] and r.stop_reason == "tool_use"


def test_thinking_display(client, server):
    body = ask(says("<think>hm</think>ab"), thinking={"type": "adaptive", "display": "omitted"})
    r = client.messages.create(**body)
    assert [(b.type, getattr(b, "thinking", None)) for b in r.content] == [("thinking", ""), ("text", None)]
    assert not any(e.get("delta", {}).get("thinking") for e in stream(server, body))


def test_stop_reasons(client):
    r = client.messages.create(**ask(max_tokens=5))
    assert (r.content[0].text, r.stop_reason, r.stop_sequence) == ("Hello", "max_tokens", None)
    for stop in (["zzz", "from"], ["from"]):
        r = client.messages.create(**ask(stop_sequences=stop))
        assert (r.content[0].text, r.stop_reason, r.stop_sequence) == ("Hello ", "stop_sequence", "from")
    with client.messages.stream(**ask(stop_sequences=["a", "from"])) as s:
        m = s.get_final_message()
    assert (m.stop_reason, m.stop_sequence) == ("stop_sequence", "from")
    with util.serving("--ctx", 100) as s:
        status, _, out = s.request("POST", "/v1/messages", ask("@n=500"))
        assert status == 200 and json.loads(out)["stop_reason"] == "model_context_window_exceeded"


def test_sampling_reaches_engine(client):
    r = client.messages.create(**ask("@echo", max_tokens=999, extra_body={
        "temperature": 0.25, "top_p": 0.5, "top_k": 40, "seed": 77, "min_p": 0.125}))
    for want in ("temperature=0.25 ", "top_k=40 ", "top_p=0.5 ", "seed=77 ", "min_p=0.125 ", "max_tokens=999"):
        assert want in r.content[0].text


def test_errors(client, server):
    with pytest.raises(anthropic.NotFoundError) as e:
        client.messages.create(**ask(model="claude-9"))
    assert e.value.body["error"]["type"] == "not_found_error" and "claude-9" in e.value.body["error"]["message"]
    assert e.value.request_id == e.value.body["request_id"]
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        client.messages.create(**ask(extra_body={"temperature": 9}))
    with pytest.raises(anthropic.InternalServerError, match="told to fail"):
        client.messages.create(**ask("@fail=3"))
    seen = ""
    with pytest.raises(anthropic.APIError, match="told to fail"):
        with client.messages.stream(**ask("@fail=3")) as s:
            for t in s.text_stream:
                seen += t
    assert seen == "Hel"
    for method, path, status, kind in [("GET", "/v1/messages", 405, "invalid_request_error"),
                                       ("POST", "/v1/messages/nothing", 404, "not_found_error")]:
        got, headers, out = server.request(method, path, {} if method == "POST" else None)
        e = json.loads(out)
        assert got == status and headers["request-id"] == e["request_id"]
        assert e["type"] == "error" and e["error"]["type"] == kind and e["error"]["message"]


def test_keys():
    with util.serving("--key", "sesame") as s:
        for key in {"api_key": "sesame"}, {"auth_token": "sesame"}:
            with anthropic.Anthropic(base_url=s.url, max_retries=0, **key) as c:
                assert c.messages.create(**ask()).content
        with anthropic.Anthropic(base_url=s.url, max_retries=0, api_key="Sesame") as c:
            with pytest.raises(anthropic.AuthenticationError) as e:
                c.messages.create(**ask())
            assert e.value.body["error"]["type"] == "authentication_error"
            with pytest.raises(anthropic.AuthenticationError):
                c.messages.count_tokens(model="fake-model", messages=ask()["messages"])


def test_body_over_the_limit():
    with util.serving("--body-bytes", 1000) as s:
        status, _, out = s.request("POST", "/v1/messages", ask("x" * 2000))
        assert status == 413 and json.loads(out)["error"]["type"] == "request_too_large"


def test_queue_full():
    with util.serving("--seqs", 1, "--queue", 0) as s, s.connect() as c:
        c.sendall(util.build("POST", "/v1/messages", ask("@prefill=%d" % util.HOUR, stream=True)))
        s.wait_rows(1, 0)
        status, headers, out = s.request("POST", "/v1/messages", ask())
        assert status == 429 and int(headers["retry-after"]) >= 1
        assert json.loads(out)["error"]["type"] == "rate_limit_error"


def test_loop(client):
    """Calls and results over turns, each given back as it came."""
    messages = ask(says(SAID))["messages"]
    for turn in range(3):
        r = client.messages.create(**ask(messages=messages, tools=TOOLS, system="be good"))
        if r.stop_reason != "tool_use":
            break
        messages.append({"role": "assistant", "content": r.content})
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": b.id, "content": [{"type": "text", "text": "rain"}]}
            for b in r.content if b.type == "tool_use"] +
            ([{"type": "text", "text": says("It rains.")}] if turn else [])})
    assert turn == 2 and r.content[-1].text == "It rains."


def test_stalled():
    """Headers at once, then something at least every ten seconds: a comment while nothing is known of the
    prompt, a ping once the message has begun."""
    with util.serving() as s, s.connect() as c, s.connect() as d:
        start = time.monotonic()
        c.sendall(util.build("POST", "/v1/messages", ask("@prefill=%d" % util.HOUR, stream=True)))
        d.sendall(util.build("POST", "/v1/messages", ask("@pace=%d" % util.HOUR, stream=True)))
        util.read_until(c, b"\r\n\r\n")
        assert util.read_until(d, b"text_delta").count(b"event: ping") == 1
        util.read_until(c, b": waiting\n\n")
        util.read_until(d, b"event: ping")
        assert time.monotonic() - start > 5
        c.close()
        d.close()
        s.wait_rows()


@pytest.mark.parametrize("streamed", [True, False])
def test_leaving(server, streamed):
    c = server.connect()
    c.sendall(util.build("POST", "/v1/messages", ask("@n=60000 @pace=100", stream=streamed, max_tokens=60000)))
    server.wait_rows(1, 0)
    c.close()
    server.wait_rows()


def test_models():
    """The list and each of it, a page at a time; OpenAI's clients get theirs."""
    with util.serving("--models", 3) as s:
        ids = [m["id"] for m in json.loads(s.request("GET", "/v1/models")[2])["data"]]
        with anthropic.Anthropic(base_url=s.url, api_key="x", max_retries=0) as c:
            assert [m.id for m in c.models.list()] == ids and len(ids) > 1
            assert [m.id for m in c.models.list(limit=1)] == ids
            first = c.models.list(limit=1)
            assert first.has_more and first.first_id == first.last_id == ids[0]
            back = c.models.list(before_id=ids[-1], limit=1)
            assert [m.id for m in back.data] == [ids[-2]] and back.has_more == (len(ids) > 2)
            assert not c.models.list(after_id=ids[-1]).data and c.models.list(after_id=ids[-1]).first_id is None
            one = c.models.retrieve(ids[-1])
            assert one.id == one.display_name == ids[-1] and one.type == "model" and one.created_at.year > 2000 and one.max_tokens > 0
            with pytest.raises(anthropic.NotFoundError):
                c.models.retrieve("nobody")
            for wrong in {"limit": 0}, {"limit": 1001}, {"after_id": "nobody"}, {"before_id": ids[0] + "x"}:
                with pytest.raises(anthropic.BadRequestError, match=next(iter(wrong))):
                    c.models.list(**wrong)
