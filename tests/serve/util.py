"""Starts the fake server and speaks raw HTTP to it."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import conform
import relay

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from tiny import PATIENCE, SLOW, line_of  # noqa: E402, F401: as util.SLOW, too

ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.dirname(os.environ.get("CAIRN_BIN", os.path.join(ROOT, "build/cairn")))
PROGRAM = os.environ.get("FAKE_SERVER", os.path.join(BUILD, "tests/serve/fake_server"))
HOUR = 3600000  # ms: what takes so long does not end while a test waits


class Watched(socket.socket):
    """Remembers what was asked and what came, and holds it to docs/openapi.json once the test is through with it."""

    said = came = b""

    def sendall(self, data, *more):
        if len(self.said) < 1 << 20:  # a flood is no request
            self.said += bytes(data)
        super().sendall(data, *more)

    def send(self, data, *more):
        self.said = None  # a part of it, perhaps
        return super().send(data, *more)

    def recv(self, *args):
        b = super().recv(*args)
        if self.came is not None and len(self.came) < 16 << 20:
            self.came += b
        return b

    def __exit__(self, *error):
        super().__exit__(*error)
        if not error[0] and self.said and self.came:
            for ask, reply in zip(requests_in(self.said), replies_in(self.came)):
                conform.answer(*ask, *reply)


def requests_in(said):
    """Method and target of each request; no more after one that is not plain."""
    while True:
        head, found, said = said.partition(b"\r\n\r\n")
        m = re.match(rb"(GET|HEAD|POST|OPTIONS|PUT|DELETE) (/[!-~]*) HTTP/1\.1\r\n", head)
        if not found or not m or re.search(rb"(?i)\r\n(transfer-encoding|expect)|%", head):
            return
        yield m.group(1).decode(), m.group(2).decode()
        n = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        said = said[int(n.group(1)) if n else 0:]


def replies_in(came):
    """Status, headers and body of each reply; the body None where it did not come to its end."""
    while came.startswith(b"HTTP/1.1 "):
        head, found, came = came.partition(b"\r\n\r\n")
        if not found:
            return
        status, headers, _ = parse(head + b"\r\n\r\n", whole=False)
        body = None
        if "content-length" in headers:
            n = int(headers["content-length"])
            body, came = (came[:n] if len(came) >= n else None), came[n:]
        elif status in (204, 304):
            body = b""
        elif came.endswith(b"\r\n0\r\n\r\n"):
            body, came = dechunk(came), b""
        yield status, headers, body
        if body is None:
            return


class Gate:
    """A file that the double of the engine waits for: @until=, @render= (fake_words.h)."""

    def __init__(self, folder, name="gate"):
        self.path = os.path.join(str(folder), name)

    def __str__(self):
        return self.path

    def open(self):
        with open(self.path, "wb"):
            pass


def until(true, what, pause=0.005):
    """Asks again until it is true, and answers that; `what` is for people."""
    end = time.monotonic() + PATIENCE
    while True:
        found = true()
        if found:
            return found
        assert time.monotonic() < end, what
        time.sleep(pause)


class Server:
    def __init__(self, *flags):
        self.proc = subprocess.Popen([PROGRAM, *map(str, flags)], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
        self.asked = False
        line = line_of(self.proc)
        found = re.search(r"http://127.0.0.1:(\d+)", line)
        if not found:
            raise RuntimeError(line + self.proc.communicate()[1])
        self.port = int(found.group(1))
        self.relay = None

    @property
    def url(self):
        """For clients: by way of a relay, which holds all that they get to docs/openapi.json."""
        self.relay = self.relay or relay.Relay(self.port)
        return "http://127.0.0.1:%d" % self.relay.port

    def term(self):
        """SIGTERM, once: a second one would end a drain."""
        if self.proc.poll() is None and not self.asked:
            self.proc.send_signal(signal.SIGTERM)
        self.asked = True

    def stop(self):
        """SIGTERM, wait; the exit status and stderr, which sanitizers write to."""
        self.term()
        try:
            err = self.proc.communicate(timeout=PATIENCE)[1]
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.communicate()
            raise
        if self.relay:
            self.relay.close()
        return self.proc.returncode, err

    def connect(self, **kw):
        s = Watched()
        s.settimeout(PATIENCE)
        s.connect(("127.0.0.1", self.port))
        s.settimeout(kw.get("timeout", PATIENCE))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def request(self, method, path, body=None, headers=None):
        """One request on its own connection: status, headers, body."""
        with self.connect() as s:
            s.sendall(build(method, path, body, dict(headers or {}, Connection="close")))
            return parse(read_all(s))

    def chat(self, text="hi", **fields):
        return self.request("POST", "/v1/chat/completions", ask(text, **fields))

    def stats(self):
        status, _, body = self.request("GET", "/stats")
        assert status == 200, body
        return json.loads(body)

    def wait_rows(self, active=0, pending=0):
        """Until the engine has as many requests."""
        def rows():
            m = self.stats()["models"][0]
            return (m["active_rows"], m["pending_rows"])
        self.wait_for(rows, (active, pending))

    def wait_prompts(self, n=0):
        """Until so many prompts wait or are being made."""
        self.wait_for(lambda: self.stats()["server"]["pending_prompts"], n)

    def wait_connections(self, n):
        """Until the server holds so many, besides the one that asks."""
        self.wait_for(lambda: self.stats()["server"]["connections"] - 1, n)

    def wait_refuses(self):
        """Until it no longer listens: a drain has begun."""
        def refuses():
            try:
                self.connect().close()
            except (ConnectionRefusedError, ConnectionResetError):
                return True
            return False
        until(refuses, "it still listens")

    @staticmethod
    def wait_for(found, want):
        end = time.monotonic() + PATIENCE
        while True:
            seen = found()
            if seen == want:
                return
            assert time.monotonic() < end, (seen, want)
            time.sleep(0.002)


def ask(text="hi", **fields):
    return dict({"model": "fake-model", "messages": [{"role": "user", "content": text}]}, **fields)


def build(method, path, body=None, headers=None):
    data = b""
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: localhost"]
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines += ["Content-Length: %d" % len(data), "Content-Type: application/json"]
    lines += ["%s: %s" % kv for kv in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


SHORT = {"unheard_of": "x" * 3000}  # ignored, but such a prompt is no tiny one: a worker makes it


def chat_bytes(text="hi", **fields):
    return build("POST", "/v1/chat/completions", ask(text, **fields))


def read_all(s):
    out = b""
    while True:
        try:
            b = s.recv(65536)
        except ConnectionResetError:
            return out
        if not b:
            return out
        out += b


def read_until(s, mark, out=b""):
    while mark not in out:
        b = s.recv(65536)
        if not b:
            raise AssertionError("closed before %r: %r" % (mark, out[-200:]))
        out += b
    return out


def read_one(s, left=b""):
    """One reply with a Content-Length: status, headers, body, and what came after it."""
    left = read_until(s, b"\r\n\r\n", left)
    head, left = left.split(b"\r\n\r\n", 1)
    n = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
    while len(left) < n:
        b = s.recv(65536)
        if not b:
            raise AssertionError("closed inside a body")
        left += b
    return int(head.split()[1]), head, left[:n], left[n:]


def dechunk(b):
    out = b""
    while b:
        size, b = b.split(b"\r\n", 1)
        n = int(size, 16)
        if n == 0:
            return out
        out, b = out + b[:n], b[n + 2:]
    return out


def parse(raw, whole=True):
    head, body = raw.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    headers = {k.lower(): v for k, v in (x.split(": ", 1) for x in lines[1:])}
    if whole and headers.get("transfer-encoding") == "chunked":
        body = dechunk(body)
    return int(lines[0].split()[1]), headers, body


def events(body):
    """The data of each event; comments are skipped."""
    text = body.decode()
    return [e[len("data: "):] for e in text.split("\n\n") if e.startswith("data: ")]


@contextlib.contextmanager
def serving(*flags):
    s = Server(*flags)
    try:
        yield s
    except BaseException:
        s.proc.kill()
        print(s.proc.communicate()[1][-4000:])
        raise
    rc, err = s.stop()
    assert rc == 0, (rc, err[-4000:])
    assert "Sanitizer" not in err, err[-4000:]


def resident_kib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("RssAnon")).split()[1])
