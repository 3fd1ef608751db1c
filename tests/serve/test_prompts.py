"""Prompts are made beside the I/O thread: nobody waits for another's, and places are bounded."""
import json
import threading
import time

import pytest
import util

from test_disconnect import leave

SHORT = util.SHORT
LONG = {"unheard_of": "x" * 300000}  # ignored, but such a body goes the way of the long ones


@pytest.fixture
def gate(tmp_path):
    return util.Gate(tmp_path)


def test_streams_go_on(gate, tmp_path):
    """To their end, while prompts are made that have none yet."""
    go = util.Gate(tmp_path, "go")
    with util.serving() as s, s.connect() as a, s.connect() as b, s.connect() as c:
        a.sendall(util.chat_bytes("@n=150 @until=%s " % go, stream=True))
        util.read_until(a, b"\r\n\r\n")
        b.sendall(util.chat_bytes("@render=%s" % gate, **LONG))
        c.sendall(util.chat_bytes("@render=%s" % gate, **SHORT))
        s.wait_prompts(2)
        go.open()
        util.read_until(a, b"[DONE]")
        assert s.stats()["server"]["pending_prompts"] == 2
        gate.open()
        assert util.read_one(b)[0] == 200 and util.read_one(c)[0] == 200


@pytest.mark.parametrize("stream", [False, True])
def test_tiny_ones_do_not_hold_the_loop(stream, gate):
    """A body of which the template makes long work is a worker's, however short; its answer is as ever."""
    with util.serving() as s, s.connect() as a:
        a.sendall(util.chat_bytes("@steps @render=%s @reply=at last" % gate, stream=stream))
        s.wait_prompts(1)  # asks the loop, which is free
        gate.open()
        if stream:
            assert b'"finish_reason":"stop"' in util.read_until(a, b"[DONE]")
        else:
            status, _, body, _ = util.read_one(a)
            assert status == 200
            assert json.loads(body)["choices"][0]["message"]["content"] == "at last"
        s.wait_prompts(0)


def test_tiny_ones_leave(gate):
    with util.serving() as s:
        c = s.connect()
        c.sendall(util.chat_bytes("@steps @render=%s" % gate))
        s.wait_prompts(1)
        c.close()
        gate.open()
        s.wait_prompts(0)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/apply-template"])
def test_short_ones_pass_long_ones(path, gate):
    with util.serving() as s, s.connect() as a, s.connect() as b:
        for c in (a, b):
            c.sendall(util.build("POST", path, util.ask("@render=%s" % gate, **LONG)))
        s.wait_prompts(2)
        assert s.request("POST", path, util.ask("short", **SHORT))[0] == 200
        assert s.stats()["server"]["pending_prompts"] == 2
        gate.open()
        assert util.read_one(a)[0] == 200 and util.read_one(b)[0] == 200


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("place", ["waiting", "being made"])
def test_leaving(place, how, gate):
    with util.serving() as s, s.connect() as first:
        if place == "waiting":
            first.sendall(util.chat_bytes("@render=%s @reply=first" % gate, **SHORT))
            s.wait_prompts(1)
        c = s.connect()
        c.sendall(util.chat_bytes("@render=%s" % gate, stream=True, **SHORT))
        before = 1 if place == "waiting" else 0
        s.wait_prompts(before + 1)
        start = time.monotonic()
        leave(c, how)
        s.wait_prompts(before)
        took = time.monotonic() - start
        print("%s %s: %.1f ms" % (place, how, took * 1e3))
        gate.open()
        if place == "waiting":
            assert b"first" in util.read_one(first)[2]
        c.close()
        assert s.chat(**SHORT)[0] == 200  # the worker is free again
        assert s.stats()["models"][0]["submitted_rows"] == before + 1  # and made nothing of the other


def test_vectors_that_come_too_late(gate):
    """Their time passes while they wait for the lane of long work."""
    with util.serving("--timeout-ms", 300) as s, s.connect() as busy, s.connect() as a, s.connect() as b:
        busy.sendall(util.chat_bytes("@render=%s" % gate, **LONG))
        s.wait_prompts(1)
        a.sendall(util.build("POST", "/v1/embeddings", {"model": "fake-model", "input": "x"}))
        b.sendall(util.build("POST", "/api/embed", {"model": "fake-model", "input": "x"}))
        s.wait_prompts(3)
        time.sleep(0.4)
        gate.open()
        status, _, body, _ = util.read_one(a)
        assert status == 503 and json.loads(body)["error"]["code"] == "deadline_exceeded"
        status, _, body, _ = util.read_one(b)
        assert status == 503 and "the time of the request passed" in json.loads(body)["error"]


@pytest.mark.skipif(util.SLOW > 1, reason="150 MB take too long; test_jobs.c tries the limits too")
def test_too_many_bytes(gate):
    """Over 128 MiB waiting: 503, and the place is there again when one leaves."""
    body = json.dumps(util.ask("hi", unheard_of="x" * (30 << 20))).encode()
    data = util.build("POST", "/v1/chat/completions", body)
    with util.serving() as s:
        busy = s.connect()
        busy.sendall(util.chat_bytes("@render=%s" % gate, **LONG))
        s.wait_prompts(1)
        held = [s.connect() for _ in range(4)]
        for c in held:
            c.sendall(data)
        s.wait_prompts(5)
        status, headers, out = s.request("POST", "/v1/chat/completions", body)
        error = json.loads(out)["error"]
        assert (status, error["code"]) == (503, "prompts_full")
        assert int(headers["retry-after"]) >= 1 and error["type"] == "server_error"
        assert s.chat(**SHORT)[0] == 200  # short ones have room
        held.pop().close()
        s.wait_prompts(4)
        with s.connect() as c:
            c.sendall(data)
            s.wait_prompts(5)
        busy.close()
        for c in held:
            c.close()
        s.wait_prompts(0)
        gate.open()


def test_tiny_ones_wait_for_nobody(gate):
    """Theirs are made where they are read, be both workers taken."""
    with util.serving() as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@render=%s" % gate, **LONG))
        b.sendall(util.chat_bytes("@render=%s" % gate, **SHORT))
        s.wait_prompts(2)
        assert s.chat("tiny")[0] == 200
        assert s.request("POST", "/v1/messages", {"model": "fake-model", "max_tokens": 4, "messages": util.ask("hi")["messages"]})[0] == 200
        assert s.request("POST", "/v1/completions", {"prompt": "tiny"})[0] == 200
        assert s.chat(temperature="high")[0] == 400
        assert s.stats()["server"]["pending_prompts"] == 2
        gate.open()
        assert util.read_one(a)[0] == 200 and util.read_one(b)[0] == 200


def test_many_at_once():
    """Each gets its own answer."""
    with util.serving("--seqs", 8, "--queue", 200) as s:
        right, wrong = [], []

        def one(i):
            extra = (LONG, SHORT, {}, {}, {})[i % 5]
            body = s.chat("@reply=answer-%d" % i, **extra)[2]
            said = json.loads(body)["choices"][0]["message"]["content"]
            (right if said == "answer-%d" % i else wrong).append(body)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong and len(right) == len(threads)
