"""SIGTERM: running answers may finish, then they are ended, then the program ends."""
import signal
import time

import util


def term(s):
    s.term()
    return time.monotonic()


def test_idle_ends_at_once():
    s = util.Server()
    held = [s.connect() for _ in range(5)]
    start = term(s)
    assert s.proc.wait(5) == 0
    assert time.monotonic() - start < 0.6 * util.SLOW
    for c in held:
        assert util.read_all(c) == b""
        c.close()


def test_running_finish():
    with util.serving("--drain-ms", 10000) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@n=50 @pace=20", stream=True))
        b.sendall(util.chat_bytes("@n=50 @pace=20"))
        s.wait_rows(2)
        start = term(s)
        raw = util.read_until(a, b"0\r\n\r\n")
        assert util.events(util.parse(raw)[2])[-1] == "[DONE]"
        assert util.read_one(b)[0] == 200
        assert s.proc.wait(5) == 0
        assert 0.5 < time.monotonic() - start < 3 * util.SLOW


def test_new_ones_refused():
    with util.serving("--drain-ms", 10000) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@n=50 @pace=20", stream=True))
        s.wait_rows(1)
        b.sendall(util.chat_bytes()[:-5])
        time.sleep(0.1)
        term(s)
        time.sleep(0.3)
        try:
            s.connect(timeout=0.5)
            raise AssertionError("still accepting")
        except ConnectionRefusedError:
            pass
        b.sendall(util.chat_bytes()[-5:])  # it was on its way: served
        assert util.read_one(b)[0] == 200
        util.read_until(a, b"[DONE]")


def test_deadline():
    with util.serving("--drain-ms", 500) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@n=60000 @pace=20", stream=True))
        b.sendall(util.chat_bytes("@prefill=60000"))
        s.wait_rows(2)
        start = term(s)
        got = util.read_all(a)
        assert b"shutting down" in got and b"[DONE]" not in got
        assert util.read_one(b)[0] == 503
        assert s.proc.wait(5) == 0
        assert 0.4 < time.monotonic() - start < 1.5 * util.SLOW


def test_second_signal_ends_at_once():
    for first, second in ((signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)):
        s = util.Server("--drain-ms", 60000)
        with s.connect() as a:
            a.sendall(util.chat_bytes("@n=60000 @pace=20", stream=True))
            s.wait_rows(1)
            s.proc.send_signal(first)
            time.sleep(0.3)
            assert s.proc.poll() is None
            start = time.monotonic()
            s.proc.send_signal(second)
            assert s.proc.wait(5) == 128 + second
            assert time.monotonic() - start < 0.3 * util.SLOW
        s.proc.communicate()


def test_prompts_are_drained():
    """One that is being made when the end is asked for is answered."""
    with util.serving("--drain-ms", 10000) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@render=700 @reply=in time", stream=True))
        b.sendall(util.chat_bytes("@reply=too"))
        s.wait_prompts(2)
        term(s)
        assert util.events(util.parse(util.read_until(a, b"0\r\n\r\n"))[2])[-1] == "[DONE]"
        assert b"too" in util.read_one(b)[2]


def test_prompts_at_the_deadline():
    """Both are told, the waiting one and the one being made; the program ends when that is made."""
    with util.serving("--drain-ms", 300) as s, s.connect() as a, s.connect() as b:
        a.sendall(util.chat_bytes("@render=2000", stream=True))
        b.sendall(util.chat_bytes("hi"))
        s.wait_prompts(2)
        start = term(s)
        for c in (a, b):
            status, _, body, _ = util.read_one(c)
            assert status == 503 and b"server_shutdown" in body
        assert time.monotonic() - start < 1 * util.SLOW
        assert s.proc.wait(10) == 0
        assert time.monotonic() - start < 3 * util.SLOW
