"""Raw HTTP: malformed, huge, slow, pipelined, chunked, flooded.  Whatever comes, the server answers
the next one."""
import json
import random
import re
import time

import conform
import pytest
import util

HEALTH = util.build("GET", "/health")


def alive(server):
    assert server.request("GET", "/health")[2] == b'{"status": "ok"}'


def talk(server, data):
    """All that the server says to `data` until it closes."""
    out = b""
    with server.connect() as s:
        try:
            s.sendall(data)
            while True:
                b = s.recv(65536)
                if not b:
                    break
                out += b
        except ConnectionError:
            pass
    return out


def begins(server, data):
    """The head of what it says, which need not close."""
    with server.connect() as s:
        s.sendall(data)
        return util.read_until(s, b"\r\n\r\n")


def until_alive(server):
    """Connections that were left make room when the server has met their ends."""
    def answers():
        try:
            return server.request("GET", "/health")[0] == 200
        except (ConnectionError, ValueError):  # cut, or nothing said
            return False
    util.until(answers, "still full")


def test_health(server):
    status, headers, body = server.request("GET", "/health")
    assert (status, body) == (200, b'{"status": "ok"}')
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("method,path,status", [
    ("GET", "/", 200), ("GET", "/ui/app.js", 200), ("GET", "/ui/", 404), ("GET", "/ui/nope", 404), ("GET", "/v1", 200), ("GET", "/v1/", 404), ("GET", "/chat", 302), ("POST", "/chat", 405), ("POST", "/health", 405), ("GET", "/healthx", 404),
    ("DELETE", "/v1/models", 405), ("GET", "/v1/chat/completions", 405), ("PUT", "/nope", 404),
    ("GET", "/v1/models/", 404), ("OPTIONS", "/health", 204), ("OPTIONS", "/nope", 404),
    ("BREW", "/health", 405), ("GET", "/health?x=1", 200), ("GET", "/../health", 404),
])
def test_routes(server, method, path, status):
    got, headers, body = server.request(method, path, b"x" if method == "POST" else None)
    assert got == status
    if status in (404, 405):
        assert json.loads(body)["error"]["message"]
    if status in (405, 204):
        assert "OPTIONS" in headers["allow"]


@pytest.mark.parametrize("path", [p.replace("{model}", "fake-model").replace("{file}", "app.js") for p, ops in conform.API["paths"].items()
                                  if "get" in ops and "{response}" not in p])
def test_head(server, path):
    """Whatever GET has, without its body; a kept connection goes on after it."""
    status, headers, _ = server.request("GET", path)
    with server.connect() as s:
        s.sendall(util.build("HEAD", path))
        head = util.read_until(s, b"\r\n\r\n")
        assert head.endswith(b"\r\n\r\n")
        got, again, _ = util.parse(head)
        assert got == status in (200, 302) and set(again) | {"connection"} == set(headers) | {"connection"}
        s.sendall(util.build("GET", "/health"))
        assert util.read_one(s)[2] == b'{"status": "ok"}'


def test_service(server):
    status, _, body = server.request("GET", "/v1")
    found = json.loads(body)
    assert status == 200 and found["model"] == "fake-model"
    for line in found["endpoints"]:
        method, path = line.split(" ")
        want = path.replace("*", "x")
        assert method in server.request("OPTIONS", want)[1]["allow"].split(", "), line
    assert "POST /v1/messages" in found["endpoints"] and not any("/admin/" in e for e in found["endpoints"])


@pytest.mark.parametrize("data", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET /health\r\n\r\n", b"GET /health HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 100, b"GET /health HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"ffffffffffffffffff\r\nabc",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nA: b\r\n  folded\r\nnocolon\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\n\r\n", b"GET /%00%ff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
])
def test_malformed(server, data):
    with server.connect(timeout=0.3) as s:
        s.sendall(data)
        try:
            out = s.recv(65536)
            assert out == b"" or out.startswith(b"HTTP/1.") and not out.startswith(b"HTTP/1.1 500")
        except (TimeoutError, ConnectionError):
            pass
    alive(server)


def test_random_mutations(server):
    """A good request with bytes changed, dropped and doubled: 300 of them, by seed."""
    rng = random.Random(7)
    good = util.chat_bytes("@reply=x", stream=True)
    for _ in range(300):
        b = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            i = rng.randrange(len(b))
            what = rng.randrange(3)
            if what == 0:
                b[i] = rng.randrange(256)
            elif what == 1:
                del b[i]
            else:
                b[i:i] = bytes([rng.randrange(256)]) * rng.randint(1, 50)
        with server.connect(timeout=0.02) as s:
            s.sendall(bytes(b))
            try:
                s.recv(65536)
            except (TimeoutError, ConnectionError):
                pass
    alive(server)
    server.wait_rows()


def test_huge_headers(server):
    raw = talk(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"a" * 200000 + b"\r\n\r\n")
    assert raw == b"" or raw.split()[1] in (b"431", b"413"), raw[:100]
    raw = talk(server, b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert raw == b"" or raw.split()[1] in (b"414", b"431"), raw[:100]
    many = b"".join(b"X-%d: y\r\n" % i for i in range(20000))
    raw = talk(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n")
    assert raw == b"" or raw.split()[1] in (b"431", b"413"), raw[:100]
    alive(server)


def test_keep_alive_and_pipelining(server):
    with server.connect() as s:
        left = b""
        for _ in range(50):
            s.sendall(HEALTH)
            status, _, body, left = util.read_one(s, left)
            assert (status, body) == (200, b'{"status": "ok"}')
        s.sendall(HEALTH * 100 + util.chat_bytes("@reply=piped @pace=1") + HEALTH * 3)
        for _ in range(100):
            status, _, body, left = util.read_one(s, left)
            assert status == 200
        status, _, body, left = util.read_one(s, left)
        assert json.loads(body)["choices"][0]["message"]["content"].startswith("piped")
        for _ in range(3):
            status, _, body, left = util.read_one(s, left)
            assert body == b'{"status": "ok"}'
        assert left == b""


def test_stream_then_next(server):
    """A connection is good for more after a stream."""
    with server.connect() as s:
        for _ in range(3):
            s.sendall(util.chat_bytes("@reply=abc", stream=True))
            raw = util.read_until(s, b"0\r\n\r\n")
            assert util.events(util.parse(raw)[2])[-1] == "[DONE]"


def test_http_1_0(server):
    body = json.dumps(util.ask("@reply=old", stream=True)).encode()
    raw = talk(server, b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body)
               + body)
    head, body = raw.split(b"\r\n\r\n", 1)
    assert b"chunked" not in head.lower()
    assert util.events(body)[-1] == "[DONE]"


def test_chunked_body(server):
    body = json.dumps(util.ask("@reply=chunky")).encode()
    chunks = b"".join(b"%x;ext=1\r\n%c\r\n" % (1, c) for c in body) + b"0\r\nTrailer: x\r\n\r\n"
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" \
           b"Connection: close\r\n\r\n"
    status, _, out = util.parse(talk(server, head + chunks))
    assert status == 200 and b"chunky" in out


def test_byte_by_byte(server):
    with server.connect() as s:
        for b in util.chat_bytes("@reply=slow"):
            s.send(bytes([b]))
        assert b"slow" in util.read_one(s)[2]


def test_headers_at_once(server, tmp_path):
    """The stream's headers do not wait for the prefill."""
    gate = util.Gate(tmp_path)
    with server.connect() as s:
        s.sendall(util.chat_bytes("@until=%s @reply=x" % gate, stream=True))
        head = util.read_until(s, b"\r\n\r\n")
        assert b"text/event-stream" in head and head.endswith(b"\r\n\r\n")
        gate.open()
        util.read_until(s, b"[DONE]")


def test_heartbeat(server):
    """A stalled engine: a comment after ten seconds."""
    with server.connect() as s:
        start = time.monotonic()
        s.sendall(util.chat_bytes("@prefill=%d" % util.HOUR, stream=True))
        util.read_until(s, b"\n\n", util.read_until(s, b"\r\n\r\n").split(b"\r\n\r\n")[1])
        assert time.monotonic() - start > 9
    server.wait_rows()


def test_body_limit():
    with util.serving("--body-bytes", 10000) as s:
        for n in (10001, 30000, 1000000, 10**15):
            with s.connect() as c:
                c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                          b"Content-Length: %d\r\n\r\n" % n + b"x" * min(n, 30000))
                status, _, body = util.parse(util.read_all(c))
                e = json.loads(body)["error"]
                assert status == 413 and e["code"] == "request_too_large" and "10000 bytes" in e["message"]
        chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        raw = talk(s, b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                   b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 5 + b"0\r\n\r\n")
        assert util.parse(raw)[0] == 413
        raw = talk(s, b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                   b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 50)
        assert raw.startswith(b"HTTP/1.1 413")  # of an endless body too
        raw = begins(s, b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                     b"Content-Length: 20000\r\n\r\n")
        assert raw.startswith(b"HTTP/1.1 413")
        raw = begins(s, b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                     b"Content-Length: 200\r\n\r\n")
        assert raw.startswith(b"HTTP/1.1 100")
        assert s.chat("y" * 9000)[0] == 200
        alive(s)


def test_too_long_is_told_at_the_head():
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 34000000\r\n\r\n"
    with util.serving() as s:
        with s.connect() as c:
            c.sendall(head)
            status, reply, _, left = util.read_one(c)
            assert status == 413 and b"\r\nConnection: close\r\n" in reply and not left
            assert c.recv(1) == b""
            time.sleep(1.5)
            for _ in range(8):  # no reset while the body comes late
                c.sendall(b"x" * 100000)
                time.sleep(0.01)
        with s.connect() as c:  # as do clients that read no reply before all is sent
            c.sendall(head + b"x" * 34000000)
            assert util.parse(util.read_all(c))[0] == 413
        with s.connect() as c:
            c.sendall(head)
            util.read_one(c)
            s.term()  # a drain does not wait for the rest
            s.proc.wait(util.PATIENCE)


def test_refused_after_its_body(server):
    """401, 404 and 405 read the body first: closing on unread bytes would lose the reply."""
    status, _, _ = server.request("POST", "/nope", b"x" * (8 << 20))
    assert status == 404


def drip(server, data, every):
    """Sends a byte at a time; seconds until cut, and what was said."""
    out = b""
    start = time.monotonic()
    with server.connect() as s:
        s.settimeout(every)
        for b in data:
            try:
                s.send(bytes([b]))
                got = s.recv(65536)
                out += got
                if not got:
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    return time.monotonic() - start, out


def test_slow_loris():
    with util.serving("--header-ms", 700, "--body-ms", 700) as s:
        for head in (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 200,
                     b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"):
            took, out = drip(s, head, 0.05)
            assert took > 0.6 and out.startswith(b"HTTP/1.1 408"), (took, out)
        start = time.monotonic()
        with s.connect() as c:  # silent from the start
            util.read_all(c)
            assert time.monotonic() - start > 0.6
        with s.connect() as c:  # on a kept connection: the first byte starts the clock
            c.sendall(HEALTH)
            util.read_one(c)
            time.sleep(1)
            c.sendall(HEALTH)
            assert util.read_one(c)[0] == 200
            start = time.monotonic()
            c.sendall(b"GET /he")
            assert util.read_all(c).startswith(b"HTTP/1.1 408")
            assert time.monotonic() - start > 0.6
        start = time.monotonic()
        with s.connect() as c:  # a body that does not come
            c.sendall(util.chat_bytes()[:-3])
            assert util.read_all(c).startswith(b"HTTP/1.1 408")
            assert time.monotonic() - start > 0.6
        with s.connect() as c:  # neither clock stops a long answer
            c.sendall(util.chat_bytes("@prefill=1500 @reply=late"))
            assert b"late" in util.read_one(c)[2]


def test_flood(server):
    """A thousand idle connections keep nobody from an answer, nor does their end."""
    idle = [server.connect() for _ in range(1000)]
    alive(server)
    for s in idle:
        s.close()
    alive(server)
    server.wait_connections(0)


def test_thousand_streams():
    with util.serving("--seqs", 10, "--queue", 1000) as s:
        held = []
        for _ in range(1000):  # each asks at once: a slow machine's first would be silent for too long
            held.append(s.connect())
            held[-1].sendall(util.chat_bytes("@prefill=%d" % util.HOUR, stream=True))
        s.wait_rows(10, 990)
        alive(s)
        for c in held:
            c.close()
        s.wait_rows()


def asking(s):
    """A connection whose request is not whole: it keeps its place."""
    c = s.connect()
    c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{")
    return c


def test_connection_limit():
    with util.serving("--conns", 20, "--body-ms", 100000) as s:
        held = [asking(s) for _ in range(20)]
        util.until(lambda: s.request("GET", "/health")[0] == 503, "the bodies are not there yet")
        status, headers, body = s.request("GET", "/health")
        assert status == 503 and headers["connection"] == "close"
        assert json.loads(body)["error"]["code"] == "server_busy"
        more = [s.connect() for _ in range(200)]  # far over: cut or told, never stuck
        with s.connect() as c:
            assert c.recv(100).startswith(b"HTTP/1.1 503")
        for c in held + more:
            c.close()
        until_alive(s)


def quiet_ones(s):
    return [s.connect() for _ in range(10)]


def kept_ones(s):
    kept = quiet_ones(s)
    for c in kept:
        c.sendall(util.build("GET", "/health"))
        assert util.read_one(c)[0] == 200
    return kept


def begun_ones(s):
    begun = quiet_ones(s)
    for c in begun:
        c.sendall(b"GET /health HT")
    return begun


@pytest.mark.parametrize("some", [quiet_ones, kept_ones, begun_ones])
def test_who_asks_nothing_makes_room(some):
    """All places are taken by connections that ask nothing: the quietest gives way, one for each that comes; one whose
    request is at work never does."""
    with util.serving("--conns", 11, "--header-ms", util.HOUR // 36) as s:
        with s.connect() as busy:
            busy.sendall(util.chat_bytes("@prefill=%d" % util.HOUR, stream=True))
            util.read_until(busy, b"\r\n\r\n")
            held = some(s)
            held += [s.connect() for _ in range(100)]  # over the limit, and over those that are told so
            for _ in range(3):  # but not before it was quiet for a second: 503
                util.until(lambda: s.request("GET", "/health")[0] == 200, "no room is made")
            assert held[0].recv(100) == b""
            assert s.stats()["models"][0]["active_rows"] == 1
            for c in held:
                c.close()


def test_port_in_use(server):
    with pytest.raises(RuntimeError, match="cannot listen"):
        util.Server("--port", server.port)


def test_a_line_for_each_request(monkeypatch):
    """What `serve -v` shows: method, path, status, tokens, milliseconds."""
    monkeypatch.setenv("FAKE_LOG", "1")
    server = util.Server()
    try:
        usage = json.loads(server.chat("@n=7")[2])["usage"]
        server.request("GET", "/no%0Awhere")
        talk(server, b"nonsense\r\n\r\n")
        with server.connect() as s:
            s.sendall(util.chat_bytes("@n=60000 @pace=1", stream=True))
            util.read_until(s, b'"content":"H')
        server.wait_rows()
    finally:
        rc, err = server.stop()
    assert rc == 0, err
    lines = [x for x in err.split("\n") if x.startswith("http_re") and "/stats" not in x]
    assert len(lines) == 4, lines
    chat, unknown, refused, left = lines
    tokens = "prompt_tokens=%d generated_tokens=%d" % (usage["prompt_tokens"], usage["completion_tokens"])
    assert re.fullmatch(r"http_request method=POST path=/v1/chat/completions status=200 %s ms=\d+" % tokens, chat), chat
    assert re.fullmatch(r'http_request method=GET path="/no\\x0awhere" status=404 ms=\d+', unknown), unknown
    assert refused.startswith("http_refused status=400 why="), refused
    assert re.search(r"status=200 prompt_tokens=\d+ generated_tokens=[1-9]\d* ms=\d+ cut=1$", left), left
