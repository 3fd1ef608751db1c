"""`serve` as a process: what it refuses to start with, and the signals that end it."""
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, PATIENCE, ask_operator, line_of, make, put, refused, run  # noqa: E402

SOCKETS, nth = tempfile.TemporaryDirectory(), itertools.count()
socket_of = {}  # url → the local socket, of servers that write to a disk


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    m = make(tmp_path_factory.mktemp("m") / "served")
    put(m, "tokenizer_config.json", {"chat_template": "{{ messages[0].content }}{% if tools %}{% endif %}"})
    return m


def start(*words, threads=1, **more):
    path = os.path.join(SOCKETS.name, str(next(nth)))
    if "--ssd-cache" in words:
        words += ("--admin-socket", path)
    p = subprocess.Popen([CAIRN, "serve", *map(str, words), "--port", "0", "-t", str(threads)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, **more)
    line = line_of(p)
    assert line.startswith("listening on "), p.communicate()
    socket_of[line.split()[-1]] = path
    return p, line.split()[-1]


def flush(url):
    """All that is known is on disk, of the one model; what it says of it."""
    status, answer = ask_operator(socket_of[url], "/admin/cache/flush")
    assert status == 200, answer
    return answer["models"][0]


def stop(p, sig=signal.SIGTERM):
    p.send_signal(sig)
    try:
        p.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        raise
    return p.returncode


def test_too_few_files(model):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))

    p = subprocess.run([CAIRN, "serve", model, "--port", "0", "-t", "1"], capture_output=True, text=True, timeout=PATIENCE,
                       check=False, preexec_fn=few)
    assert p.returncode == 1 and not p.stdout, p
    assert p.stderr.startswith("cairn: open files: found a limit of 8 (ulimit -n); expected at least ") and \
        p.stderr.count("\n") == 1, p.stderr


def test_each_model_has_a_name(model, tmp_path):
    refused(run("serve", model, model), "two models are called served; expected a name for each", code=2)
    make(tmp_path / "served")
    refused(run("serve", model, tmp_path / "served"), "two models are called served; expected", code=2)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_that_drain(model, sig):
    p, _ = start(model)
    assert stop(p, sig) == 0


def test_nohup(model):
    p, url = start(model, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    p.send_signal(signal.SIGHUP)
    assert json.load(urllib.request.urlopen(url + "/health", timeout=PATIENCE)) == {"status": "ok"}
    assert stop(p) == 0


def test_keys(model, tmp_path):
    keys = put(tmp_path, "keys", "# of the front door\nsesame\r\n\n#shut\nother\n")
    p, url = start(model, "--api-key-file", keys)
    try:
        for key, status in ("sesame", 200), ("other", 200), ("#shut", 401), ("shut", 401):
            rq = urllib.request.Request(url + "/v1/models", headers={"x-api-key": key})
            try:
                found = urllib.request.urlopen(rq, timeout=PATIENCE).status
            except urllib.error.HTTPError as e:
                found = e.code
            assert found == status, key
    finally:
        assert stop(p) == 0


def apply_template(url, messages):
    """The status, and the reply's object."""
    rq = urllib.request.Request(url + "/apply-template", json.dumps({"messages": messages}).encode())
    try:
        with urllib.request.urlopen(rq, timeout=PATIENCE) as r:
            return r.status, json.load(r)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_texts_longer_than_any_prompt(tmp_path):
    """Named with both sizes, whether one message has them or all together; the template is not at fault."""
    m = make(tmp_path / "m")
    put(m, "tokenizer_config.json", {"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})
    p, url = start(m)
    long, most = "w1 " * (17 << 20), 16 << 20
    parts = [{"type": "text", "text": long[:most]}, {"type": "text", "text": "x"}]
    for messages, param, says in [
            ([{"role": "user", "content": "hi"}, {"role": "user", "content": long[:most + 1]}], "messages[1].content",
             "`messages[1].content` has 16777217 bytes of text, and a whole prompt at most 16777216"),
            ([{"role": "user", "content": parts}], "messages[0].content", "has 16777217 bytes of text"),
            ([{"role": "user", "content": long[:9 << 20]}] * 2, "messages",
             "the messages and tools are 18874427 bytes of JSON, and a prompt has at most 16777216: tokenizer_config.json")]:
        code, reply = apply_template(url, messages)
        e = reply["error"]
        assert (code, e["code"], e["param"]) == (400, "context_length_exceeded", param), e
        assert says in e["message"], e
    code, reply = apply_template(url, [{"role": "user", "content": long[:most]}])
    assert code == 200 and len(reply["prompt"]) == most
    assert stop(p) == 0


# What Python's json makes of arguments, and jinja2 of that: numbers beyond a double are infinite, an integer
# is as long as it is.
@pytest.mark.parametrize("arguments", ['{"x": 1e400}', '{"x": [-1e400, 1.5]}', '{"x": %s}' % ("7" * 400),
                                       '{"x": -1e9999999999}'])
def test_numbers_of_arguments(tmp_path, arguments):
    m = make(tmp_path / "m")
    put(m, "tokenizer_config.json", {"chat_template": "{{ messages[0].tool_calls[0].function.arguments | tojson }}"})
    p, url = start(m)
    sent = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    assert apply_template(url, [sent]) == (200, {"prompt": json.dumps(json.loads(arguments))})
    assert stop(p) == 0


CALLS = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}
# A template, what follows the user's message, and what that renders: "" only where none does not do.
NO_CONTENT = [
    ("{% for m in messages %}[{{ m.content + '' }}]{% endfor %}", [CALLS], "[hi][]"),
    ("{% for m in messages %}[{{ m.content + '' }}]{% endfor %}", [dict(CALLS, content=None)], "[hi][]"),
    ("{% for m in messages %}[{{ m.content + '' }}]{% endfor %}",
     [{"role": "assistant", "content": None, "refusal": "no"}], "[hi][no]"),
    ("{% for m in messages %}[{{ m.content is none }}]{% endfor %}", [dict(CALLS, content=None)], "[False][True]"),
    ("{{ messages[1].tool_calls[0].function.arguments | tojson }}", [CALLS], "{}"),
]


@pytest.mark.parametrize("template,after,want", NO_CONTENT)
def test_messages_without_content(tmp_path, template, after, want):
    m = make(tmp_path / "m")
    put(m, "tokenizer_config.json", {"chat_template": template})
    p, url = start(m)
    body = {"messages": [{"role": "user", "content": "hi"}] + after}
    ask = urllib.request.Request(url + "/apply-template", json.dumps(body).encode())
    with urllib.request.urlopen(ask, timeout=PATIENCE) as r:
        assert json.load(r)["prompt"] == want
    body["messages"][0]["content"] = [{"type": "image"}]
    ask = urllib.request.Request(url + "/apply-template", json.dumps(body).encode())
    if "+ ''" in template:
        with pytest.raises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(ask, timeout=PATIENCE)
        assert e.value.code == 400
    assert stop(p) == 0
