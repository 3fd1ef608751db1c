"""SIGTERM: running answers may finish, then they are ended, then the program ends."""
import signal
import time

import pytest
import util


@pytest.fixture
def gate(tmp_path):
    return util.Gate(tmp_path)


def ends(s, code=0):
    assert s.proc.wait(util.PATIENCE) == code


def test_idle_ends_at_once():
    """Whatever time there is for a drain."""
    s = util.Server("--drain-ms", util.HOUR)
    held = [s.connect() for _ in range(5)]
    s.wait_connections(5)
    s.term()
    ends(s)
    for c in held:
        assert util.read_all(c) == b""
        c.close()
    s.proc.communicate()


def test_running_finish(gate):
    with util.serving("--drain-ms", util.HOUR) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@n=50 @until=%s " % gate, stream=True))
        b.sendall(util.chat_bytes("@n=50 @until=%s " % gate))
        s.wait_rows(2)
        s.term()
        s.wait_refuses()
        assert s.proc.poll() is None
        gate.open()
        raw = util.read_until(a, b"0\r\n\r\n")
        assert util.events(util.parse(raw)[2])[-1] == "[DONE]"
        assert util.read_one(b)[0] == 200
        ends(s)


def test_new_ones_refused(gate):
    with util.serving("--drain-ms", util.HOUR) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@n=50 @until=%s " % gate, stream=True))
        b.sendall(util.chat_bytes()[:-5])
        s.wait_rows(1)
        s.wait_connections(2)
        assert s.request("GET", "/health")[0] == 200  # whose connection came later: the head of b's was read
        s.term()
        s.wait_refuses()
        b.sendall(util.chat_bytes()[-5:])  # it was on its way: served
        assert util.read_one(b)[0] == 200
        gate.open()
        util.read_until(a, b"[DONE]")


def test_deadline():
    with util.serving("--drain-ms", 500) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@n=60000 @pace=100", stream=True))
        b.sendall(util.chat_bytes("@prefill=%d" % util.HOUR))
        s.wait_rows(2)
        start = time.monotonic()
        s.term()
        got = util.read_all(a)
        assert b"shutting down" in got and b"[DONE]" not in got
        assert time.monotonic() - start > 0.4  # not before
        assert util.read_one(b)[0] == 503
        ends(s)


def test_second_signal_ends_at_once():
    for first, second in ((signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)):
        s = util.Server("--drain-ms", util.HOUR)
        with s.connect() as a:
            a.sendall(util.chat_bytes("@n=60000 @pace=100", stream=True))
            s.wait_rows(1)
            s.proc.send_signal(first)
            s.wait_refuses()
            assert s.proc.poll() is None
            s.proc.send_signal(second)
            ends(s, 128 + second)
        s.proc.communicate()


def test_prompts_are_drained(gate):
    """One that is being made when the end is asked for is answered."""
    with util.serving("--drain-ms", util.HOUR) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@render=%s @reply=in time" % gate, stream=True, **util.SHORT))
        b.sendall(util.chat_bytes("@reply=too", **util.SHORT))
        s.wait_prompts(2)
        s.term()
        s.wait_refuses()
        gate.open()
        assert util.events(util.parse(util.read_until(a, b"0\r\n\r\n"))[2])[-1] == "[DONE]"
        assert b"too" in util.read_one(b)[2]


def test_prompts_at_the_deadline(gate):
    """Both are told, the waiting one and the one being made; the program ends when that is made."""
    with util.serving("--drain-ms", 300) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@render=%s" % gate, stream=True, **util.SHORT))
        b.sendall(util.chat_bytes("hi", **util.SHORT))
        s.wait_prompts(2)
        s.term()
        for c in (a, b):
            status, _, body, _ = util.read_one(c)
            assert status == 503 and b"server_shutdown" in body
        assert s.proc.poll() is None
        gate.open()
        ends(s)


def test_body_after_the_deadline():
    """Its head came before the end was asked for: what it asks is ended too, and the server ends."""
    with util.serving("--drain-ms", 100) as s, s.connect() as a, s.connect() as b:
        late = util.chat_bytes("@prefill=%d" % util.HOUR)
        a.sendall(util.chat_bytes("@n=60000 @pace=100", stream=True))
        b.sendall(late[:-5])
        s.wait_rows(1)
        s.wait_connections(2)
        assert s.request("GET", "/health")[0] == 200  # whose connection came later: the head of b's was read
        s.term()
        util.read_until(a, b"shutting down")  # all that ran was cancelled, once
        try:
            b.sendall(late[-5:])
            got = util.read_all(b)
        except (BrokenPipeError, ConnectionResetError):
            got = b""  # a machine so slow that the server has ended
        assert got == b"" or got.startswith(b"HTTP/1.1 503")
        ends(s)
