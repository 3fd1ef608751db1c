"""Memory: each allocation of a request failing in turn, and no growth over many requests."""
import json
import signal
import socket

import pytest
import util


N_FAILS = 3000  # more than a request makes
ENOUGH = 50     # whole answers in a row: a request makes fewer allocations
CALL = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
SAID = ("hm", "ab", '{"x": 1}')  # thought, content, arguments


def no_more_fail(s):
    """A failure that is still to come would hit the next request, whosever it is."""
    s.proc.send_signal(signal.SIGUSR2)
    assert util.line_of(s.proc) == "none fails\n"


def parts_of(m):
    calls = m.get("tool_calls", [])
    return (m.get("reasoning", ""), m.get("content") or "",
            "".join(c["function"]["arguments"] for c in calls))


def said(body, stream):
    if not stream:
        return [parts_of(c["message"]) for c in json.loads(body)["choices"]]
    got = [("", "", "")] * 2
    for e in util.events(body)[:-1]:
        c = json.loads(e)["choices"][0]
        got[c["index"]] = tuple(map("".join, zip(got[c["index"]], parts_of(c["delta"]))))
    return got


@pytest.mark.parametrize("stream", [False, True])
def test_each_allocation_fails(stream):
    """Whatever becomes of that request, the server neither falls nor forgets: an error reply, an
    end without [DONE], a cut, or, where nothing failed, the answer."""
    whole = streak = 0
    with util.serving("--template", "<tool_call>{{enable_thinking}}") as s:
        for n in range(N_FAILS):
            if streak == ENOUGH:
                break
            with s.connect() as c:
                s.proc.send_signal(signal.SIGUSR1)  # before the server reads what comes after it
                try:
                    c.sendall(util.build("POST", "/v1/chat/completions", util.ask(
                        "@reply=<think>hm</think>ab" + CALL, stream=stream, n=2, logprobs=True,
                        stop=["zz"], reasoning_effort="low", parallel_tool_calls=False,
                        tools=[{"type": "function", "function": {"name": "f"}}]),
                        {"Connection": "close"}))
                except ConnectionError:  # no memory for the connection
                    continue
                got = util.read_all(c)
                long_whole = not stream and b"\r\nTransfer-Encoding: chunked\r\n" in got
                cut = long_whole and not got.endswith(b"\r\n0\r\n\r\n")
                if cut or (stream and b"[DONE]" not in got):
                    c.came = None  # it need not have an end
            assert got == b"" or got.startswith(b"HTTP/1.1 "), got
            fine = got.startswith(b"HTTP/1.1 200") and (b"[DONE]" in got) == stream and not cut
            streak = streak + 1 if fine else 0
            if fine:
                whole += 1
                assert said(util.parse(got)[2], stream) == [SAID] * 2
            elif got.startswith(b"HTTP/1.1 4"):
                raise AssertionError("blamed on the client: %r" % got)
        no_more_fail(s)
        s.wait_rows()
        print("%d allocations failed in turn" % n)
        assert 0 < whole < n < N_FAILS - 1
        assert s.chat()[0] == 200


@pytest.mark.skipif(util.SLOW > 1, reason="sanitizers keep freed memory")
def test_no_growth():
    """Less than a KiB a request is kept, over requests of every fate: of what is lost, each round would lose as much, and
    what a pool takes once, for requests that happened to meet, it has."""
    n, rounds = 1500, 3
    with util.serving() as s:
        def some():
            for i in range(n):
                if i % 50 == 0:
                    s.wait_connections(0)  # a slow server holds no crowd
                c = s.connect()
                c.sendall(util.chat_bytes("@reply=%s" % ("y" * 200), stream=bool(i % 2)))
                if i % 3 == 0:
                    c.shutdown(socket.SHUT_WR)
                elif i % 3 == 1:
                    util.read_until(c, b"y")
                c.close()
            s.wait_rows()
        held = []
        for _ in range(1 + rounds):
            some()
            held.append(util.resident_kib(s.proc.pid))
        assert min(b - a for a, b in zip(held, held[1:])) < n, held


def said_in_blocks(body, stream):
    if not stream:
        thought, text, call = json.loads(body)["content"]
        return thought["thinking"], text["text"], '{"x": %d}' % call["input"]["x"]
    frames = [json.loads(f.split("\ndata: ")[1]) for f in body.decode().split("\n\n") if "\ndata: " in f]
    deltas = [f["delta"] for f in frames if f["type"] == "content_block_delta"]
    return tuple("".join(d.get(k, "") for d in deltas) for k in ("thinking", "text", "partial_json"))


def each_allocation_fails(path, body, is_whole, check):
    """An error of the server, a stream without its end, or the whole answer: never anything else."""
    whole = streak = 0
    with util.serving("--template", "<tool_call>{{enable_thinking}}") as s:
        for n in range(N_FAILS):
            if streak == ENOUGH:
                break
            with s.connect() as c:
                s.proc.send_signal(signal.SIGUSR1)  # before the server reads what comes after it
                try:
                    c.sendall(util.build("POST", path, body, {"Connection": "close"}))
                except ConnectionError:
                    continue
                got = util.read_all(c)
                if b"text/event-stream" in got and not is_whole(got):
                    c.came = None  # it need not have an end
            assert got == b"" or got.startswith(b"HTTP/1.1 "), got
            fine = got.startswith(b"HTTP/1.1 200") and is_whole(got)
            streak = streak + 1 if fine else 0
            whole += fine
            assert not got.startswith(b"HTTP/1.1 4"), got
            if fine:
                check(util.parse(got)[2])
        no_more_fail(s)
        s.wait_rows()
        assert 0 < whole < n < N_FAILS - 1


@pytest.mark.parametrize("stream", [False, True])
def test_each_allocation_of_a_message_fails(stream):
    body = {"max_tokens": 999, "stream": stream, "stop_sequences": ["zz"], "system": "s",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "@reply=<think>hm</think>ab" + CALL}]}],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}]}

    def check(reply):
        assert said_in_blocks(reply, stream) == SAID
    each_allocation_fails("/v1/messages", body, lambda got: b"message_stop" in got or
                          b'"stop_reason":"tool_use"' in got, check)


@pytest.mark.parametrize("stream", [False, True])
def test_each_allocation_of_a_response_fails(stream):
    conform = pytest.importorskip("responses_conform")
    body = {"stream": stream, "instructions": "s", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "@reply=<think>hm</think>ab" + CALL}]}],
        "tools": [{"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "custom", "name": "g"}]},
                  {"type": "function", "name": "f"}]}

    def check(reply):
        r = conform.stream(reply)[0] if stream else json.loads(reply)
        thought, text, call = r["output"]
        assert (thought["content"][0]["text"], text["content"][0]["text"], call["arguments"]) == SAID
    each_allocation_fails("/v1/responses", body, lambda got: b'"status":"completed","completed_at"' in got, check)
