"""Fixtures of the protocol tests."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import util  # noqa: E402


@pytest.fixture(scope="module")
def server():
    if not os.path.exists(util.PROGRAM):
        pytest.skip("no %s: make test-build makes it" % util.PROGRAM)
    with util.serving() as s:
        yield s
        s.wait_rows()  # nothing may be left running at the engine
