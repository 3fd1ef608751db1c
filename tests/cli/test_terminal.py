"""`run` on a terminal: thoughts are dim, markup is not shown; elsewhere the text is what was written."""
import os
import pty
import re
import select
import signal
import sys
import termios
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, CONFIG, PATIENCE, TOKENIZER, make, put, run  # noqa: E402

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
    return talk([lines], *words, env=env)


def taken_over(fd):
    """The editor shows its prompt before it has the terminal, which would take control characters for its own."""
    end = time.monotonic() + PATIENCE
    while termios.tcgetattr(fd)[3] & termios.ICANON:
        assert time.monotonic() < end, "nobody reads"
        time.sleep(0.005)


def talk(turns, *words, env=None):
    """The same, who types each turn when there is one prompt more, and the first at once."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(CAIRN, [CAIRN, *map(str, words)], env or {})
    out, typed = b"", 0
    while True:
        if typed < len(turns) and out.count(b"\n> ") >= typed:
            if typed:
                taken_over(fd)
            os.write(fd, turns[typed].encode())
            typed += 1
            continue
        if not select.select([fd], [], [], PATIENCE)[0]:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError("hangs: %r" % out)
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
    shown, code = conversation("\u00dcber caf\u00e9 \u65e5\u672c\n/exit\n", "run", args[1], "-n", 1, "--temp", 0, "-t", 1, env=env)
    assert code == 0 and "\u00dcber caf\u00e9 \u65e5\u672c" in shown, shown
    assert "[cut at the tokens of -n]" in shown and "context is full" not in shown


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_a_paste_is_one_message(model, tmp_path, term):
    args, _, _ = model
    env = {"HOME": str(tmp_path), "TERM": term}
    words = ("run", args[1], "-n", 1, "-t", 1, "-v")
    shown, code = conversation("\x1b[200~/w1\tw2\r\nw3\u00fc\nw4\x1b[201~\n/exit\n", *words, env=env)
    assert code == 0 and shown.count("[prompt ") == 1, shown
    assert "\u00fc" in shown, shown
    assert ("\x1b[?2004h" in shown, "\x1b[?2004l" in shown) == ((term != "dumb",) * 2)
    typed, _ = conversation("/help\nw3\nw4\n/exit\n", *words, env=env)
    assert typed.count("[prompt ") == 2 and typed.count("Ctrl-D leaves") == 2, typed


def test_raw_is_no_conversation(model, tmp_path):
    args, _, _ = model
    shown, code = conversation("", "run", args[1], "--raw", env={"HOME": str(tmp_path)})
    assert code == 2 and "--raw" in shown


def chat(lines, model, tmp_path, *more):
    shown, code = talk(["", *lines], "run", model, "-t", 1, "-v", *more,
                               env={"HOME": str(tmp_path), "TERM": "dumb"})
    assert code == 0, shown
    return shown


def test_commands(model, tmp_path):
    """Known words alone: a path is something to ask about."""
    m = model[0][1]
    shown = chat(["/etc/passwd what is it?\n", "/exits\n", "  /exit  \n"], m, tmp_path, "-n", 1)
    assert shown.count("[prompt ") == 2, shown
    shown = chat(["/clear\n", "/help\n", " /quit\n"], m, tmp_path, "-n", 1)
    assert "[prompt " not in shown and shown.count("/exit, /quit or Ctrl-D") == 2, shown
    assert "[a new conversation]" in shown


def test_end_of_input_and_tab(model, tmp_path):
    m = model[0][1]
    (tmp_path / "only-one").write_text("")
    shown = chat(["%s/on\t\n/exit\n" % tmp_path], m, tmp_path, "-n", 1)
    assert "only-one" not in shown and shown.count("[prompt ") == 1, shown
    shown = chat(["\x04"], m, tmp_path)
    assert re.search(r"> (\^D)?\r\n$", shown), shown


def test_a_suspension_that_cannot_be(model, tmp_path):
    """Ctrl-Z where no shell controls jobs."""
    shown = chat(["w1 \x1aw2\n", "/exit\n"], model[0][1], tmp_path, "-n", 1)
    assert shown.count("[prompt ") == 1, shown


def test_a_full_context(model, tmp_path):
    m = model[0][1]
    says = "cairn: the context is full: the answer is cut"
    words = ("run", m, "-p", "w1", "--temp", 0, "--repetition-penalty", 1, "-t", 1, "--raw")
    put(m, "config.json", dict(CONFIG, eos_token_id=[]))
    assert says in run(*words).err
    assert says not in run(*words, "-n", 5).err
    put(m, "tokenizer_config.json", {"chat_template": "{% for m in messages %}{{ m.content }} {% endfor %}"})
    long = " ".join(["w1"] * 200)
    shown = chat(["w1\n", long + "\n", "/exit\n"], m, tmp_path)
    assert "[the context is full; /clear starts anew]" in shown, shown
    assert "leaves room for 127\r\n[/clear starts anew]" in shown, shown


def test_a_model_without_a_template(tmp_path):
    m = make(tmp_path / "m")
    shown = chat(["w1\n", "/exit\n"], m, tmp_path, "-n", 1)
    assert "no chat template: completing the text" in shown and shown.count("[prompt ") == 1, shown
