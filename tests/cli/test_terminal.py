"""`run` on a terminal: thoughts are dim, markup is not shown; elsewhere the text is what was written."""
import os
import pty
import sys
import termios

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import TOKENIZER, make, put, run  # noqa: E402

DIM, PLAIN = "\x1b[2m", "\x1b[22m"


def on_terminal(*words):
    """What a terminal shows; nothing is added to line feeds."""
    mine, its = pty.openpty()
    attributes = termios.tcgetattr(its)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(its, termios.TCSANOW, attributes)
    try:
        r = run(*words, stdout=its)
        assert r.code == 0, r.err
        os.write(its, b"\0")  # an end, as a master does not see one
        out = b""
        while not out.endswith(b"\0"):
            out += os.read(mine, 65536)
        return out[:-1].decode()
    finally:
        os.close(mine)
        os.close(its)


@pytest.fixture
def model(tmp_path):
    """Starts in a thought, and what it says second ends it; the words before it and after it."""
    m = make(tmp_path)
    put(m, "tokenizer_config.json",
        {"chat_template": "{{ messages[0].content }}{% if true %}<think>{% endif %}"})
    args = ("run", m, "-p", "w1 w2", "-n", 6, "--temp", 0, "-t", 1)
    said = run(*args).out.decode().split()
    assert len(said) == 6 and said[1] != said[0]
    vocab = {"</think>" if w == said[1] else w: i
             for w, i in TOKENIZER["model"]["vocab"].items()}
    put(m, "tokenizer.json", dict(TOKENIZER, model=dict(TOKENIZER["model"], vocab=vocab)))
    yield args, said[:1], ["</think>" if w == said[1] else w for w in said[2:]]


def test_dim(model):
    args, thought, answer = model
    assert on_terminal(*args) == \
        DIM + " ".join(thought) + "\n\n" + PLAIN + " ".join(answer) + "\n"


def test_cut_in_a_thought(model):
    args, thought, _ = model
    args = args[:5] + (1,) + args[6:]
    assert on_terminal(*args) == DIM + thought[0] + PLAIN + "\n"


def test_elsewhere(model):
    args, thought, answer = model
    assert run(*args).out.decode().split() == thought + ["</think>"] + answer


def test_raw(model):
    args, _, _ = model
    assert on_terminal(*args, "--raw") == run(*args, "--raw").out.decode()
