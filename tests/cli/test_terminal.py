"""`run` on a terminal: thoughts are dim, markup is not shown; elsewhere the text is what was written."""
import os
import pty
import sys
import termios

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, TOKENIZER, make, put, run  # noqa: E402

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


def conversation(lines, *words, env=None):
    """What a user of a terminal sees who types these lines, and the exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(CAIRN, [CAIRN, *map(str, words)], env or {})
    os.write(fd, lines.encode())
    out = b""
    while True:
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if not got:
            break
        out += got
    os.close(fd)
    return out.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("lang", [None, "C", "C.UTF-8"])
def test_what_is_typed_is_utf8(model, tmp_path, lang):
    args, _, _ = model
    env = {"HOME": str(tmp_path), "TERM": "dumb"} | ({"LANG": lang} if lang else {})
    shown, code = conversation("\u00dcber caf\u00e9 \u65e5\u672c\n/exit\n", "run", args[1], "-n", 1, "-t", 1, env=env)
    assert code == 0 and "\u00dcber caf\u00e9 \u65e5\u672c" in shown, shown
    assert "[cut at the tokens of -n]" in shown and "context is full" not in shown


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_a_paste_is_one_message(model, tmp_path, term):
    args, _, _ = model
    env = {"HOME": str(tmp_path), "TERM": term}
    words = ("run", args[1], "-n", 1, "-t", 1, "-v")
    shown, code = conversation("\x1b[200~/w1\tw2\r\nw3\u00fc\nw4\x1b[201~\n/exit\n", *words, env=env)
    assert code == 0 and shown.count("[prompt ") == 1, shown
    assert "commands:" not in shown and "\u00fc" in shown, shown
    assert ("\x1b[?2004h" in shown, "\x1b[?2004l" in shown) == ((term != "dumb",) * 2)
    typed, _ = conversation("/w1\nw3\nw4\n/exit\n", *words, env=env)
    assert typed.count("[prompt ") == 2 and "commands:" in typed, typed


def test_raw_is_no_conversation(model, tmp_path):
    args, _, _ = model
    shown, code = conversation("", "run", args[1], "--raw", env={"HOME": str(tmp_path)})
    assert code == 2 and "--raw" in shown
