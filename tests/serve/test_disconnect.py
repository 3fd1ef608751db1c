"""A client that leaves: the engine stops at once, in every state."""
import socket
import struct
import time

import pytest
import util


def leave(s, how):
    if how == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    elif how == "half":
        s.shutdown(socket.SHUT_WR)
    else:
        s.close()


STATES = [  # what is asked, rows then active and pending
    ("queued", "hi", 1, 1),
    ("prefilling", "@prefill=%d" % util.HOUR, 1, 0),
    ("streaming", "@n=60000 @pace=20", 1, 0),
    ("pausing", "@n=60000 @pace=%d" % util.HOUR, 1, 0),  # nothing to write
]


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name,text,active,pending", STATES, ids=[s[0] for s in STATES])
def test_leaving(name, text, active, pending, stream, how):
    with util.serving("--seqs", 1) as s:
        first = s.connect()
        if name == "queued":
            first.sendall(util.chat_bytes("@prefill=%d" % util.HOUR, stream=True))
            s.wait_rows(1, 0)
        c = s.connect()
        c.sendall(util.chat_bytes(text, stream=stream))
        s.wait_rows(active, pending)
        if stream and name != "queued":
            util.read_until(c, b"\r\n\r\n")
        before = s.stats()["models"][0]["cancelled_rows"]
        start = time.monotonic()
        leave(c, how)
        util.until(lambda: s.stats()["models"][0]["cancelled_rows"] > before, "it goes on", pause=0)
        took = time.monotonic() - start
        print("%s %s %s: %.1f ms" % (name, how, "stream" if stream else "whole", took * 1e3))
        first.close()
        s.wait_rows()


def test_choices_all_stop(server):
    c = server.connect()
    c.sendall(util.chat_bytes("@n=60000 @pace=20", stream=True, n=4))
    server.wait_rows(4, 0)
    c.close()
    server.wait_rows()


def test_leave_with_request_in_flight(server):
    """FIN comes with the request: chat is given up, a simple answer still arrives."""
    with server.connect() as c:
        c.sendall(util.build("GET", "/health"))
        c.shutdown(socket.SHUT_WR)
        assert util.parse(util.read_all(c))[0] == 200
    with server.connect() as c:
        c.sendall(util.chat_bytes("@n=60000 @pace=20"))
        c.shutdown(socket.SHUT_WR)
        assert util.read_all(c) == b""
    server.wait_rows()


def test_vanish_everywhere(server):
    """Cuts a conversation after every prefix of its bytes, and at random moments of the answer."""
    data = util.chat_bytes("@n=200 @pace=1", stream=True)
    for n in range(0, len(data) + 1, 7):
        with server.connect() as c:
            c.sendall(data[:n])
            if n % 2:
                leave(c, "reset")
    for i in range(20):
        with server.connect() as c:
            c.sendall(data)
            time.sleep(i * 0.003)
            leave(c, "reset" if i % 2 else "close")
    server.wait_rows()
    assert server.chat()[0] == 200


def test_slow_reader():
    """Who does not read is cut when the backlog is full; others do not notice."""
    with util.serving("--seqs", 8) as s:
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.settimeout(util.PATIENCE)
        c.connect(("127.0.0.1", s.port))
        c.sendall(util.chat_bytes("@n=60000", stream=True))
        assert s.chat()[0] == 200
        s.wait_rows()  # the engine never waited
        got = util.read_all(c)
        assert b"[DONE]" not in got
        c.close()


def test_never_reading():
    """A client that reads nothing at all: its stream is cut once its own receive buffer, ours in the
    kernel (256 KiB) and the backlog (1 MiB) are full.  What got out is what the kernels held."""
    with util.serving("--seqs", 8) as s:
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.settimeout(util.PATIENCE)
        c.connect(("127.0.0.1", s.port))
        c.sendall(util.chat_bytes("@n=60000 @pace=1", stream=True, logprobs=True,
                                  top_logprobs=20))
        s.wait_rows(1, 0)
        s.wait_rows()
        got = util.read_all(c)
        print("%d bytes in the kernels' buffers" % len(got))
        assert 1000 < len(got) < (256 << 10) + (64 << 10) and b"[DONE]" not in got
        c.close()
        assert s.chat()[0] == 200


@pytest.mark.skipif(util.SLOW > 1, reason="takes half a minute")
def test_stalled_reader():
    """Little is sent, all of it stays with us: cut after 30 s without an acknowledgement.  Until the
    client's buffer is full its system acknowledges; then the stream waits in our kernel."""
    with util.serving("--seqs", 1) as s:
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.settimeout(util.PATIENCE)
        c.connect(("127.0.0.1", s.port))
        start = time.monotonic()
        c.sendall(util.chat_bytes("@n=60000 @pace=20", stream=True))  # some 10 KB a second
        s.wait_rows(1, 0)
        s.wait_rows()
        print("cut after %.1f s" % (time.monotonic() - start))
        assert time.monotonic() - start > 29
        c.close()
