"""Fixtures of the tests with other people's clients: make test-clients.  None of them is to ask any network but ours."""
import os
import re
import signal
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SERVE = os.path.join(os.path.dirname(HERE), "serve")
sys.path[:0] = [HERE, SERVE, os.path.join(os.path.dirname(HERE), "cli")]
import relay  # noqa: E402
import util  # noqa: E402
import test_embed as bert  # noqa: E402
from tiny import CAIRN  # noqa: E402

# Read when they are imported, or at the first request.
os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false",
                  DO_NOT_TRACK="1", OPENAI_API_KEY="none")
model = bert.model


@pytest.fixture(scope="module")
def server():
    """The double of the engine, with a family of replies that has thoughts and calls."""
    if not os.path.exists(util.PROGRAM):
        pytest.skip("no %s: make test-build makes it" % util.PROGRAM)
    with util.serving("--template", "<tool_call>{{ tools }}{{enable_thinking}}{{reasoning_effort}}", "--ctx", 1000000,
                      "--seqs", 8) as s:
        yield s
        s.wait_rows()  # nothing may be left running at the engine


@pytest.fixture(scope="module")
def locked():
    """One that wants a key: "sesame"."""
    with util.serving("--key", "sesame") as s:
        yield s


@pytest.fixture(scope="module")
def embedder(model):
    """The real program with a tiny model that embeds: its address, the model's name, and the vectors of its files."""
    p = subprocess.Popen([CAIRN, "serve", model, "--port", "0", "-t", "1", "--drain", "1"], stdout=subprocess.PIPE, text=True)
    found = re.search(r"http://127.0.0.1:(\d+)", util.line_of(p))
    assert found
    r = relay.Relay(int(found.group(1)))
    yield "http://127.0.0.1:%d" % r.port, os.path.basename(model)
    p.send_signal(signal.SIGTERM)
    assert p.wait(util.PATIENCE) == 0
    r.close()
