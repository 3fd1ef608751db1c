"""What an operator asks: a flush answers when all is on disk, and says so when it is not."""
import json

import util


def flush(server, **more):
    status, headers, body = server.request("POST", "/admin/cache/flush", b"", **more)
    return status, headers, json.loads(body)


def test_flush(server):
    server.chat("one")
    server.wait_rows()
    status, headers, body = flush(server)
    assert status == 200 and headers["content-type"] == "application/json"
    (m,) = body["models"]
    assert m["durable"] > 0 and m["pending"] == m["dropped"] == m["failed"] == 0 and m["longest_tokens"] == 0


def test_not_all_of_it(server):
    with server.connect() as s:
        s.sendall(util.chat_bytes("@n=60000 @pace=100", stream=True))
        util.read_until(s, b"data:")
        status, _, body = flush(server)
        assert status == 503 and body["models"][0]["pending"] == 1
    server.wait_rows()


def test_only_by_post(server):
    assert server.request("GET", "/admin/cache/flush")[0] == 405
