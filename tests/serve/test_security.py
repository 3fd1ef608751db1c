"""Who is answered: names and origins, keys and their rate, TLS; and what the log tells of requests."""
import http.client
import json
import signal
import socket
import ssl
import subprocess
import time

import pytest
import util

GET = {"Connection": "close"}


def status(server, **headers):
    """Of GET /v1/models with these headers; Host may be one of them."""
    lines = ["GET /v1/models HTTP/1.1", "Connection: close"]
    lines += ["%s: %s" % (k.replace("_", "-"), v) for k, v in dict({"Host": "localhost"}, **headers).items()]
    with server.connect() as s:
        s.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        return util.parse(util.read_all(s))


@pytest.mark.parametrize("host,want", [
    ("localhost", 200), ("127.0.0.1:1", 200), ("[::1]:8080", 200), ("a.localhost", 200),
    ("rebound.example", 403), ("rebound.example:8080", 403), ("127.0.0.1.rebound.example", 403),
])
def test_host(server, host, want):
    got, _, body = status(server, Host=host)
    assert got == want
    if want == 403:
        e = json.loads(body)["error"]
        assert (e["code"], e["type"]) == ("forbidden_site", "invalid_request_error")
        assert "--allow-host" in e["message"]


def test_host_on_every_route(server):
    for path in "/health", "/nope", "/v1/chat/completions":
        raw = util.build("GET", path, headers=GET).replace(b"localhost", b"rebound.example")
        with server.connect() as s:
            s.sendall(raw)
            assert util.parse(util.read_all(s))[0] == 403


def test_allowed_host():
    with util.serving("--allow-host", "box.lan") as s:
        assert status(s, Host="box.lan:8080")[0] == 200
        assert status(s, Host="other.lan")[0] == 403


def test_origin_of_strangers(server):
    """A form on a stranger's page needs no leave to send text: it is refused, unread and uncounted."""
    for origin in "https://evil.example", "null", "http://localhost:1", "http://", "file://":
        with server.connect() as s:
            s.sendall(util.build("POST", "/v1/chat/completions", util.ask("hi"), dict(GET, Origin=origin)))
            got, headers, body = util.parse(util.read_all(s))
        assert got == 403 and json.loads(body)["error"]["code"] == "forbidden_site"
        assert "access-control-allow-origin" not in headers
    assert status(server, Origin="http://localhost")[0] == 200  # the server's own page
    assert "access-control-allow-origin" not in status(server, Origin="http://localhost")[1]


def test_origin_in_anthropics_shape(server):
    got, _, body = server.request("POST", "/v1/messages", {}, {"Origin": "https://evil.example"})
    assert got == 403 and json.loads(body)["error"]["type"] == "permission_error"


def test_cors():
    with util.serving("--cors-origin", "https://chat.example", "--key", "k") as s:
        ask = {"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"}
        got, h, _ = s.request("OPTIONS", "/v1/chat/completions", headers=ask)
        assert got == 204 and h["access-control-allow-origin"] == "https://chat.example"
        assert h["vary"] == "Origin" and "POST" in h["access-control-allow-methods"]
        assert "Authorization" in h["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in h
        got, h, _ = s.request("POST", "/v1/chat/completions", util.ask("hi"),
                              {"Origin": "https://chat.example", "x-api-key": "k"})
        assert got == 200 and h["access-control-allow-origin"] == "https://chat.example"
        got, h, _ = s.request("POST", "/v1/chat/completions", util.ask("hi", stream=True),
                              {"Origin": "https://chat.example", "x-api-key": "k"})
        assert got == 200 and h["access-control-allow-origin"] == "https://chat.example"
        got, h, _ = s.request("GET", "/v1/models", headers={"Origin": "https://chat.example"})
        assert got == 401 and h["access-control-allow-origin"] == "https://chat.example"  # the page may read why
        got, h, _ = s.request("OPTIONS", "/v1/chat/completions", headers=dict(ask, Origin="https://evil.example"))
        assert got == 403 and "access-control-allow-origin" not in h


def test_rate():
    with util.serving("--rate", 3, "--key", "k") as s:
        ask = ("POST", "/v1/chat/completions", util.ask("hi"))
        key = {"Authorization": "Bearer k"}
        assert [s.request(*ask, headers=key)[0] for _ in range(3)] == [200] * 3
        got, h, body = s.request(*ask, headers=key)
        e = json.loads(body)["error"]
        assert (got, e["type"], e["code"]) == (429, "rate_limit_error", "rate_limit_exceeded")
        assert 1 <= int(h["retry-after"]) <= 20
        got, h, body = s.request("POST", "/v1/messages", {}, key)
        assert got == 429 and json.loads(body)["error"]["type"] == "rate_limit_error"
        assert 1 <= int(h["retry-after"]) <= 20
        assert s.request("GET", "/v1/models", headers=key)[0] == 200  # reading is free
        assert s.request(*ask, headers={"x-api-key": "no"})[0] == 401  # and strangers take nothing from it


def test_beyond_loopback():
    def start(*flags):
        return subprocess.run([util.PROGRAM, "--host", "0.0.0.0", *flags], capture_output=True, text=True, timeout=util.PATIENCE,
                              check=False)
    p = start()
    assert p.returncode == 1 and "no API key" in p.stderr and "--open" in p.stderr
    for flags in ("--open",), ("--key", "k"):
        with util.serving("--host", "0.0.0.0", *flags) as s:
            assert s.request("GET", "/health")[0] == 200


@pytest.mark.parametrize("asked", [False, True])
def test_no_prompt_in_the_log(monkeypatch, asked):
    """At the most talkative level, whatever becomes of the request."""
    monkeypatch.setenv("FAKE_LOG", "1")
    s = util.Server(*["--log-requests"] * asked)
    secret = "xylophone-37"
    s.chat(secret)
    s.chat(secret, stream=True)
    s.chat(secret, temperature="hot")
    s.chat(secret + " @fail=1")
    s.chat(secret + " @template-error")
    s.request("POST", "/v1/chat/completions", b'{"messages": "' + secret.encode())
    s.request("POST", "/v1/completions", {"model": "fake-model", "prompt": secret})
    s.request("POST", "/v1/messages", {"model": secret, "max_tokens": 9, "messages": []})
    s.request("POST", "/tokenize", {"content": secret})
    rc, err = s.stop()
    assert rc == 0 and err.count("http_request ") == 9
    assert (secret in err) == asked


def test_a_path_looks_like_no_field(monkeypatch):
    monkeypatch.setenv("FAKE_LOG", "1")
    s = util.Server()
    s.request("GET", "/a%20status=200%20x=%22")
    assert 'path="/a status=200 x=\\"" status=404' in s.stop()[1]


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pem")
    for name in "one", "two":
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", folder / (name + ".key"), "-out", folder / (name + ".crt"), "-days", "2",
                        "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True, timeout=util.PATIENCE)
    return folder


def tls_flags(pem, name="one"):
    return "--tls-cert", pem / (name + ".crt"), "--tls-key", pem / (name + ".key")


def trusting(pem, name="one"):
    return ssl.create_default_context(cafile=pem / (name + ".crt"))


def shake(s, context):
    return context.wrap_socket(s.connect(), server_hostname="localhost")


def ask_tls(s, context, *request):
    with shake(s, context) as c:
        c.sendall(util.build(*request, dict(GET)))
        return util.parse(util.read_all(c))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls(pem, version):
    with util.serving(*tls_flags(pem), "--ctx", 1000000) as s:
        context = trusting(pem)
        context.minimum_version = context.maximum_version = version
        assert ask_tls(s, context, "GET", "/health", None)[2] == b'{"status": "ok"}'
        long = "x" * 300000  # many records each way
        got, _, body = ask_tls(s, context, "POST", "/v1/chat/completions",
                               util.ask(long + "\n@reply=" + "y" * 60000))
        assert got == 200 and json.loads(body)["choices"][0]["message"]["content"] == "y" * 60000
        got, _, body = ask_tls(s, context, "POST", "/v1/chat/completions", util.ask("@n=200", stream=True))
        assert got == 200 and util.events(body)[-1] == "[DONE]"


def test_tls_kept_connection_and_leaving(pem):
    with util.serving(*tls_flags(pem)) as s:
        c = http.client.HTTPSConnection("localhost", s.port, timeout=util.PATIENCE, context=trusting(pem))
        for _ in range(3):
            c.request("GET", "/health")
            assert c.getresponse().read() == b'{"status": "ok"}'
        c.request("POST", "/v1/chat/completions", json.dumps(util.ask("@n=60000 @pace=20", stream=True)))
        r = c.getresponse()
        assert r.read(10)
        r.close()
        c.close()
        util.until(lambda: json.loads(ask_tls(s, trusting(pem), "GET", "/stats", None)[2])["models"][0]["active_rows"] == 0,
                   "the engine is not told")


def test_tls_against_others(pem):
    """Plain HTTP, noise, silence and a client that stops half-way: each is cut, the next is served."""
    with util.serving(*tls_flags(pem), "--header-ms", 6000) as s:
        strangers = [s.connect() for _ in range(5)]
        for c, data in zip(strangers, (util.build("GET", "/health"), b"\x16\x03\x01\xff\xff" + b"\x00" * 300,
                                       b"\x00" * 64, b"", b"\x16\x03\x01\x00\x05\x01")):
            c.sendall(data)
        for c in strangers:
            with c:
                assert b"HTTP/1" not in util.read_all(c)  # until it is cut
        old = trusting(pem)
        with pytest.warns(DeprecationWarning):
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            shake(s, old)
        assert ask_tls(s, trusting(pem), "GET", "/health", None)[0] == 200


def test_tls_slow_reader(pem):
    """One that reads nothing holds up nobody, and is cut or drained; what it gets is whole until then."""
    with util.serving(*tls_flags(pem)) as s:
        with socket.socket() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.settimeout(util.PATIENCE)
            raw.connect(("127.0.0.1", s.port))
            with trusting(pem).wrap_socket(raw, server_hostname="localhost") as c:
                c.sendall(util.build("POST", "/v1/chat/completions", util.ask("@n=3000", stream=True), GET))
                time.sleep(0.3)  # the server's buffers fill, and wait for room
                assert ask_tls(s, trusting(pem), "GET", "/health", None)[0] == 200
                body = util.parse(util.read_all(c))[2]
        told = util.events(body)
        said = "".join(json.loads(e)["choices"][0]["delta"].get("content", "") for e in told[:-1])
        assert told[-1] == "[DONE]" and len(said) == 3000


def subject(s):
    with socket.create_connection(("127.0.0.1", s.port), timeout=util.PATIENCE) as raw:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with context.wrap_socket(raw) as c:
            return c.getpeercert(True)


def test_tls_files_again(pem, tmp_path):
    """SIGHUP takes a new certificate for connections to come; a broken one leaves the old."""
    crt, key = tmp_path / "c", tmp_path / "k"

    def put(name):
        crt.write_bytes((pem / (name + ".crt")).read_bytes())
        key.write_bytes((pem / (name + ".key")).read_bytes())

    put("one")
    with util.serving("--tls-cert", crt, "--tls-key", key) as s:
        first = subject(s)
        with shake(s, trusting(pem)) as kept:
            put("two")
            s.proc.send_signal(signal.SIGHUP)
            util.until(lambda: subject(s) != first, "still the first")
            second = subject(s)
            crt.write_text("nonsense")
            s.proc.send_signal(signal.SIGHUP)
            for _ in range(10):
                assert subject(s) == second
                time.sleep(0.02)
            kept.sendall(util.build("GET", "/health", None, GET))  # of the first certificate's time
            assert util.parse(util.read_all(kept))[0] == 200


def test_tls_keeps_no_sessions(pem):
    """What a client without tickets asks to be remembered is not: it would be memory of the server's."""
    context = trusting(pem)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with util.serving(*tls_flags(pem)) as s:
        for tickets in True, False:
            if not tickets:
                context.options |= ssl.OP_NO_TICKET
            session, reused = None, []
            for _ in range(2):
                with context.wrap_socket(s.connect(), server_hostname="localhost", session=session) as c:
                    c.sendall(util.build("GET", "/health", None, GET))
                    assert util.parse(util.read_all(c))[0] == 200
                    session = c.session
                    reused.append(c.session_reused)
            assert reused == [False, tickets]


def test_tls_wrong_files(pem, tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("nonsense")
    for cert, key, says in [(bad, pem / "one.key", "bad: found"), (pem / "one.crt", bad, "bad: found"),
                            (tmp_path / "none", bad, "none: found"),
                            (pem / "one.crt", pem / "two.key", "two.key: found key values mismatch")]:
        p = subprocess.run([util.PROGRAM, "--tls-cert", cert, "--tls-key", key], capture_output=True, text=True,
                           timeout=util.PATIENCE, check=False)
        assert p.returncode == 1 and says in p.stderr, p.stderr
    p = subprocess.run([util.PROGRAM, "--tls-cert", bad], capture_output=True, text=True, timeout=util.PATIENCE, check=False)
    assert p.returncode == 1 and "expected both" in p.stderr


def test_deep_json(server):
    body = b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    got, _, reply = server.request("POST", "/v1/chat/completions", body)
    assert got == 400 and json.loads(reply)["error"]["message"]
