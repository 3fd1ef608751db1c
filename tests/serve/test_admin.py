"""What an operator asks, by the local socket alone: a flush answers when all is on disk, and says so when it is not; a
drain ends the server.  And the socket itself: who may connect, what was there before, what is left behind."""
import json
import os
import re
import socket
import stat
import subprocess
import tempfile

import conform
import pytest
import util


@pytest.fixture(scope="module")
def folder():
    """Short: a socket's path has 100 bytes."""
    with tempfile.TemporaryDirectory() as d:
        yield d


@pytest.fixture(scope="module")
def server(folder):
    path = os.path.join(folder, "admin")
    with util.serving("--admin-socket", path, "--key", "secret", "--rate", 1000000) as s:
        s.path = path
        yield s
    assert not os.path.exists(path)


def connect(path):
    s = util.Watched(socket.AF_UNIX)
    s.settimeout(util.PATIENCE)
    s.connect(path)
    return s


def local(path, method, target, body=None, **headers):
    """As Server.request, by the socket."""
    with connect(path) as s:
        s.sendall(util.build(method, target, body, dict(headers, Connection="close")))
        return util.parse(util.read_all(s))


def flush(server):
    status, headers, body = local(server.path, "POST", "/admin/cache/flush", b"")
    return status, headers, json.loads(body)


def rows(server):
    m = json.loads(local(server.path, "GET", "/stats")[2])["models"][0]
    return m["active_rows"] + m["pending_rows"]


def settle(server):
    for _ in range(10000):
        if rows(server) == 0:
            return
    raise AssertionError("requests stay")


def test_flush(server):
    local(server.path, "POST", "/v1/chat/completions", util.ask("one"))
    settle(server)
    status, headers, body = flush(server)
    assert status == 200 and headers["content-type"] == "application/json"
    (m,) = body["models"]
    assert m["durable"] > 0 and m["pending"] == m["dropped"] == m["failed"] == 0 and m["longest_tokens"] == 0


def test_not_all_of_it(server):
    with connect(server.path) as s:
        s.sendall(util.chat_bytes("@n=60000 @pace=100", stream=True))
        util.read_until(s, b"data:")
        status, _, body = flush(server)
        assert status == 503 and body["models"][0]["pending"] == 1
    settle(server)


@pytest.mark.parametrize("route", sorted(p for p, ops in conform.API["paths"].items() for op in ops.values() if op.get("x-local-socket")))
def test_not_by_tcp(server, route):
    for method in "POST", "GET", "OPTIONS":
        status, _, body = server.request(method, route, b"" if method == "POST" else None, {"x-api-key": "secret"})
        assert status == 404 and "local socket" in json.loads(body)["error"]["message"]


def test_only_by_post(server):
    status, headers, _ = local(server.path, "GET", "/admin/cache/flush")
    assert status == 405 and headers["allow"] == "POST, OPTIONS"
    assert local(server.path, "POST", "/admin/nothing", b"")[0] == 404


def test_no_key_and_no_site(server):
    """Who may open the socket may read the key file; no browser can."""
    assert server.request("GET", "/v1/models")[0] == 401
    assert local(server.path, "GET", "/v1/models")[0] == 200
    assert local(server.path, "GET", "/health", Origin="http://evil.example")[0] == 200


def test_several_on_a_connection(server):
    with connect(server.path) as s:
        left = b""
        for _ in range(3):
            s.sendall(util.build("GET", "/health"))
            status, _, body, left = util.read_one(s, left)
            assert status == 200 and body == b'{"status": "ok"}'


def lets_in(path):
    try:
        return local(path, "GET", "/health")[0] == 200
    except (OSError, ValueError):  # told so and hung up on, while it asked
        return False


def test_clients_shut_nobody_out(folder):
    """Who fills all places of the port does not keep an operator out."""
    path = os.path.join(folder, "crowd")
    with util.serving("--admin-socket", path, "--conns", 2) as s:
        held = [s.connect() for _ in range(2)]
        for c in held:  # they keep their places: who asks nothing makes room
            c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{")
        held += [s.connect() for _ in range(64)]
        with s.connect() as c:
            assert c.recv(100)  # before it asked: all places are taken
        assert local(path, "GET", "/health")[0] == 200
        for c in held:
            c.close()


def test_operators_shut_nobody_out(folder):
    """Sixteen at once by the socket, beside those of the port."""
    path = os.path.join(folder, "operators")
    with util.serving("--admin-socket", path, "--conns", 2) as s:
        held = [connect(path) for _ in range(16)]
        for c in held:
            c.sendall(util.build("GET", "/health"))
            assert util.read_one(c)[0] == 200
        with connect(path) as c:  # asks nothing: it might be closed before
            status, _, body = util.parse(util.read_all(c))
        assert status == 503 and json.loads(body)["error"]["type"] == "server_error"
        assert s.request("GET", "/health")[0] == 200
        held.pop().close()
        util.until(lambda: lets_in(path), "no place again")
        for c in held:
            c.close()


def test_nothing_is_left(folder):
    """Neither by a start that failed nor beside the socket."""
    path = os.path.join(folder, "clean", "admin")
    os.mkdir(os.path.dirname(path))
    with util.serving("--admin-socket", path):
        assert "another server" in refused(path)
        assert os.listdir(os.path.dirname(path)) == ["admin"]
    assert os.listdir(os.path.dirname(path)) == []


def test_mode(server):
    st = os.lstat(server.path)
    assert stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600 and st.st_uid == os.geteuid()


def refused(path):
    r = subprocess.run([util.PROGRAM, "--admin-socket", path], capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 1 and r.stderr.count("\n") == 1, r
    return r.stderr


def test_a_live_one_stays(server):
    assert refused(server.path) == "fake_server: %s: another server listens there\n" % server.path
    assert local(server.path, "GET", "/health")[0] == 200


def test_a_dead_one_is_replaced(folder):
    path = os.path.join(folder, "dead")
    first = util.Server("--admin-socket", path)
    first.proc.kill()
    first.proc.communicate()
    assert os.path.exists(path)
    with util.serving("--admin-socket", path):
        assert local(path, "GET", "/health")[0] == 200
    assert not os.path.exists(path)


def test_a_file_stays(folder):
    path = os.path.join(folder, "file")
    with open(path, "w", encoding="ascii") as f:
        f.write("precious")
    assert "no socket; expected none" in refused(path)
    with open(path, encoding="ascii") as f:
        assert f.read() == "precious"


@pytest.mark.parametrize("path, why", [("", "expected 1 to 100"), ("/tmp/" + "x" * 200, "205 bytes; expected 1 to 100"), ("/nowhere/admin", "No such file")])
def test_no_place(path, why):
    assert why in refused(path)


def test_another_ones_file_stays(folder):
    """Who took the name meanwhile keeps it."""
    path = os.path.join(folder, "taken")
    with util.serving("--admin-socket", path):
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
    assert os.path.exists(path)


def test_drain(folder, tmp_path):
    """What runs is finished; then the server ends by itself."""
    path = os.path.join(folder, "drained")
    gate = util.Gate(tmp_path)
    with util.serving("--admin-socket", path, "--drain-ms", util.HOUR) as s:
        with s.connect() as c:
            c.sendall(util.chat_bytes("@n=20 @until=%s " % gate, stream=True))
            s.wait_rows(1)
            status, _, body = local(path, "POST", "/admin/drain", b"")
            assert status == 200 and json.loads(body) == {"draining": True, "requests": 1, "prompts": 0}
            gate.open()
            assert re.search(rb'"finish_reason":"(stop|length)"', util.read_until(c, b"data: [DONE]"))
        s.proc.wait(timeout=util.PATIENCE)
        assert s.proc.returncode == 0 and not os.path.exists(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user(folder):
    """Even where the file's mode would let him in: he is hung up on."""
    path = os.path.join(folder, "theirs")
    with util.serving("--admin-socket", path):
        os.chmod(folder, 0o755)
        os.chmod(path, 0o666)
        child = os.fork()
        if child == 0:  # nobody else's code from here on
            try:
                os.setuid(65534)
                with socket.socket(socket.AF_UNIX) as c:
                    c.settimeout(util.PATIENCE)
                    c.connect(path)
                    os._exit(1 if c.recv(100) else 0)
            except ConnectionError:
                os._exit(0)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert local(path, "GET", "/health")[0] == 200
