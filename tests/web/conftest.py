"""The browser, and the server with the double of the engine."""
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "serve"))
import util  # noqa: E402
from user import User  # noqa: E402


@pytest.fixture(scope="module")
def server():
    with util.serving() as s:
        yield s
        s.wait_rows()


@pytest.fixture(scope="session")
def chromium():
    sync = pytest.importorskip("playwright.sync_api", reason="no playwright: make test-web installs it")
    found = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")) if p), None)
    with sync.sync_playwright() as p:
        own = p.chromium.executable_path
        if not found and not os.path.exists(own):
            pytest.skip("no browser: apt-get install chromium")
        b = p.chromium.launch(executable_path=found or own, args=["--no-sandbox"])
        yield b
        b.close()


@pytest.fixture
def user(chromium, server):
    u = User(chromium, server.url)
    yield u
    u.context.close()
    assert not u.wrong
    assert all(a.startswith((server.url, "data:", "blob:")) for a in u.asked)  # nothing of the network is needed
