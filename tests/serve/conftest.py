"""Fixtures of the protocol tests."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import conform  # noqa: E402
import util  # noqa: E402


def _hold_clients():
    """Whole answers to the official clients, too, are what docs/openapi.json says."""
    for name in ("httpx2", "httpx"):
        try:
            http = __import__(name)
        except ImportError:
            continue
        send = http.Client.send

        def held(self, request, *, stream=False, send=send, **more):
            r = send(self, request, stream=stream, **more)
            whole = not r.headers.get("content-type", "").startswith("text/event-stream")
            if request.url.host == "127.0.0.1" and whole:
                body = r.read()
                conform.answer(request.method, request.url.raw_path.decode(), r.status_code,
                               {k.lower(): v for k, v in r.headers.items()}, body)
            return r

        http.Client.send = held


_hold_clients()


@pytest.fixture(scope="module")
def server():
    if not os.path.exists(util.PROGRAM):
        pytest.skip("no %s: make test-build makes it" % util.PROGRAM)
    with util.serving() as s:
        yield s
        s.wait_rows()  # nothing may be left running at the engine
