"""Requests that two readers could frame differently: refused at once, in JSON, and closed."""
import json

import pytest
import util

CHAT = json.dumps(util.ask("@reply=x")).encode()
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(CHAT)
CHUNKED = b"Transfer-Encoding: chunked\r\n"

BAD = {
    "two lengths": (400, POST + LENGTH + b"Content-Length: 5\r\n\r\n" + CHAT),
    "length twice": (400, POST + LENGTH + LENGTH + b"\r\n" + CHAT),
    "length list": (400, POST + b"Content-Length: 5, 5\r\n\r\nhello"),
    "length sign": (400, POST + b"Content-Length: +5\r\n\r\nhello"),
    "length hex": (400, POST + b"Content-Length: 0x5\r\n\r\nhello"),
    "length empty": (400, POST + b"Content-Length:\r\n\r\nhello"),
    "length huge": (413, POST + b"Content-Length: 99999999999999999999999\r\n\r\n"),
    "length and coding": (400, POST + LENGTH + CHUNKED + b"\r\n0\r\n\r\n"),
    "coding and length": (400, POST + CHUNKED + LENGTH + b"\r\n0\r\n\r\n"),
    "coding twice": (400, POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n"),
    "coding identity": (501, POST + b"Transfer-Encoding: identity\r\n\r\n"),
    "coding gzip": (501, POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "coding x": (501, POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    "coding quoted": (501, POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n'),
    "coding in 1.0": (400, b"POST /health HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n"),
    "chunk huge": (413, POST + CHUNKED + b"\r\nffffffffffffffff\r\nhello"),
    "chunk far too long": (413, POST + CHUNKED + b"\r\n10000000\r\nhello"),
    "chunk no digit": (400, POST + CHUNKED + b"\r\n\r\n"),
    "chunk letter": (400, POST + CHUNKED + b"\r\n5g\r\nhello"),
    "chunk 0x": (400, POST + CHUNKED + b"\r\n0x5\r\nhello"),
    "chunk sign": (400, POST + CHUNKED + b"\r\n-5\r\nhello"),
    "chunk space": (400, POST + CHUNKED + b"\r\n5 \r\nhello"),
    "chunk 17 digits": (400, POST + CHUNKED + b"\r\n10000000000000005\r\nhello"),
    "chunk LF": (400, POST + CHUNKED + b"\r\n5\nhello"),
    "chunk data long": (400, POST + CHUNKED + b"\r\n5\r\nhelloo\r\n"),
    "chunk ext control": (400, POST + CHUNKED + b"\r\n5;a\x00\r\nhello"),
    "chunk ext long": (400, POST + CHUNKED + b"\r\n5;" + b"a" * 300 + b"\r\nhello"),
    "trailers long": (400, POST + CHUNKED + b"\r\n0\r\n" + b"A: b\r\n" * 3000 + b"\r\n"),
    "space before colon": (400, GET + b"X-A : b\r\n\r\n"),
    "space in name": (400, GET + b"X A: b\r\n\r\n"),
    "no colon": (400, GET + b"nothing\r\n\r\n"),
    "empty name": (400, GET + b": b\r\n\r\n"),
    "NUL in value": (400, GET + b"X-A: b\x00c\r\n\r\n"),
    "control in value": (400, GET + b"X-A: b\x07\r\n\r\n"),
    "bare CR": (400, GET + b"X-A: b\rc\r\n\r\n"),
    "bare LF": (400, GET + b"X-A: b\nX-B: c\r\n\r\n"),
    "LF only": (400, b"GET /health HTTP/1.1\nHost: x\n\n"),
    "NUL in name": (400, GET + b"X\x00A: b\r\n\r\n"),
    "folded": (400, GET + b"X-A: b\r\n c\r\n\r\n"),
    "folded by tab": (400, GET + b"X-A: b\r\n\tc\r\n\r\n"),
    "no host": (400, b"GET /health HTTP/1.1\r\n\r\n"),
    "two hosts": (400, GET + b"Host: localhost\r\n\r\n"),
    "odd host": (400, b"GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    "header too long": (431, GET + b"X-A: " + b"a" * 40000 + b"\r\n\r\n"),
    "too many headers": (431, GET + b"".join(b"X-%d: y\r\n" % i for i in range(101)) + b"\r\n"),
    "target too long": (414, b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "two spaces": (400, b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "space after version": (400, b"GET /health HTTP/1.1 \r\nHost: localhost\r\n\r\n"),
    "no version": (400, b"GET /health\r\n\r\n"),
    "version 2": (505, b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n"),
    "lower-case version": (400, b"GET /health http/1.1\r\nHost: localhost\r\n\r\n"),
    "NUL escaped": (400, b"GET /health%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "bad escape": (400, b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "raw UTF-8": (400, "GET /é HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()),
    "TLS hello": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "expectation": (417, GET + b"Expect: 200-maybe\r\n\r\n"),
    "empty lines": (400, b"\r\n\r\n" + GET + b"\r\n"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("after", [b"", util.build("GET", "/health")], ids=["first", "pipelined"])
def test_refused(server, name, after):
    """Also as the second request of a pipeline, in one write with the first."""
    status, data = BAD[name]
    with server.connect() as s:
        s.sendall(after + data)
        if after:
            got, _, body, left = util.read_one(s)
            assert (got, body) == (200, b'{"status": "ok"}')
            raw = left + util.read_all(s)
        else:
            raw = util.read_all(s)
        got, headers, body = util.parse(raw)
    assert got == status, raw
    assert headers["content-type"] == "application/json" and headers["connection"] == "close"
    error = json.loads(body)["error"]  # nothing after it: what followed was not served
    assert error["message"] and set(error) == {"message", "type", "param", "code"}
    if data.startswith(POST):  # and in the shape of the API that was asked, as soon as its path is known
        with server.connect() as s:
            s.sendall(data.replace(b"/v1/chat/completions", b"/v1/messages"))
            got, headers, body = util.parse(util.read_all(s))
        found = json.loads(body)
        assert got == status and found["type"] == "error" and found["error"] == {"type": found["error"]["type"], "message": error["message"]}
        assert found["request_id"] == headers["request-id"]


@pytest.mark.parametrize("data", [
    GET + b"Connection: close\r\n\r\n", b"\r\n" + GET + b"Connection: close\r\n\r\n",
    b"GET http://h:1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /%68ealth?a=%zz HTTP/1.1\r\nHost: [::1]:80\r\nconnection: keep-alive , CLOSE\r\n\r\n",
    b"GET /health HTTP/1.0\r\n\r\n", GET + b"X-A:\t b c \t\r\nX-B:\r\nX-C: \xe9\r\nConnection: close\r\n\r\n",
    GET + b"".join(b"X-%d: y\r\n" % i for i in range(98)) + b"Connection: close\r\n\r\n",
    GET + b"Content-Length: 000\r\nConnection: close\r\n\r\n",
])
def test_taken(server, data):
    with server.connect() as s:
        s.sendall(data)
        status, _, body = util.parse(util.read_all(s))
    assert (status, body) == (200, b'{"status": "ok"}')


def test_chunks_taken(server):
    size = b"%X" % len(CHAT)
    for chunks in (size + b"\r\n" + CHAT + b"\r\n0\r\n\r\n",
                   b"000" + size + b";a=\"b c\"\r\n" + CHAT + b"\r\n00\r\nT: x\r\nU: y\r\n\r\n"):
        for n in (1, 7, 10000):
            with server.connect() as s:
                data = POST + b"transfer-encoding: CHUNKED\r\n\r\n" + chunks
                for i in range(0, len(data), n):
                    s.sendall(data[i:i + n])
                assert util.read_one(s)[0] == 200


def test_second_request_is_not_in_the_first(server):
    """The classic: what a lenient reader takes for a body must not become a request."""
    inner = util.build("GET", "/v1/models")
    with server.connect() as s:
        s.sendall(POST + b"Content-Length: %d\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"
                  % (len(inner) + 5) + inner)
        raw = util.read_all(s)
    assert raw.count(b"HTTP/1.1 ") == 1 and raw.startswith(b"HTTP/1.1 400")


def test_timeouts_are_json():
    with util.serving("--header-ms", 300, "--body-ms", 300) as s:
        for data in (b"", b"GET /he", POST, POST + LENGTH + b"\r\n{"):
            with s.connect() as c:
                c.sendall(data)
                status, _, body = util.parse(util.read_all(c))
            assert status == 408 and json.loads(body)["error"]["code"] == "request_timeout"
        for data in (b"POST /v1/messages HTTP/1.1\r\nHo", b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"):
            with s.connect() as c:
                c.sendall(data)
                status, _, body = util.parse(util.read_all(c))
            assert status == 408 and json.loads(body)["type"] == "error"


def test_far_over_the_connection_limit_is_json():
    with util.serving("--conns", 2) as s:
        held = [s.connect() for _ in range(2 + 64)]
        with s.connect() as c:
            status, _, body = util.parse(util.read_all(c))
        assert status == 503 and json.loads(body)["error"]["type"] == "server_error"
        for c in held:
            c.close()
