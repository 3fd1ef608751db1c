"""A budget of thought: so many tokens, then those that close it, then the answer, as if the model had written all."""
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, CONFIG, PATIENCE, TOKENIZER, WORDS, line_of, make, put, run  # noqa: E402

TEMPLATE = "{% for m in messages %}{{ m.content }} {% endfor %}{% if think != 'no' %}<think>\n{% endif %}"
N = 24


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = make(tmp_path_factory.mktemp("think") / "model")
    words = WORDS[:-2] + ["<think>", "</think>"]
    added = [{"id": i, "content": w, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
             for i, w in enumerate(words) if w.endswith("think>")]
    put(path, "tokenizer.json", {**TOKENIZER, "added_tokens": added, "model": {
        **TOKENIZER["model"], "vocab": {w: i for i, w in enumerate(words)}}})
    put(path, "chat_template.jinja", TEMPLATE)
    put(path, "config.json", {k: v for k, v in CONFIG.items() if k != "eos_token_id"})
    return path


def words_of(r):
    assert r.code == 0, r.err
    return r.out.decode().split()


@pytest.fixture(scope="module")
def free(model):
    """What the model writes where nobody stops it."""
    words = words_of(run("run", model, "-p", "w1 w2", "-n", N, "--temp", 0))
    assert len(words) == N and "</think>" not in words
    return words


@pytest.mark.parametrize("budget", [0, 1, 7])
def test_run(model, free, budget):
    words = words_of(run("run", model, "-p", "w1 w2", "-n", N, "--temp", 0, "--think-budget", budget))
    assert words[:budget + 1] == free[:budget] + ["</think>"]
    # The rest is what follows that text.
    prompt = " ".join(["w1 w2 <think>"] + words[:budget + 1])
    assert words[budget + 1:] == words_of(run("run", model, "--raw", "-p", prompt, "-n", N - budget - 1, "--temp", 0))


def test_wide_budget_changes_nothing(model, free):
    for budget in (N, -1):
        assert words_of(run("run", model, "-p", "w1 w2", "-n", N, "--temp", 0, "--think-budget", budget)) == free


@pytest.fixture(scope="module")
def mute(tmp_path_factory):
    """A model whose tokenizer has no closing tag: <unk> would be all that it writes of it."""
    path = make(tmp_path_factory.mktemp("mute") / "mute")
    put(path, "chat_template.jinja", TEMPLATE)
    return path


def test_what_cannot_close_has_no_budget(mute):
    r = run("run", mute, "-p", "w1 w2", "-n", N, "--think-budget", 2)
    assert r.code == 1 and 'no tokens that read "</think>"' in r.err, r.err
    assert run("run", mute, "-p", "w1 w2", "-n", N).code == 0
    with served(mute) as port:
        status, body = ask(port, model="mute", thinking_budget_tokens=2)
        assert status == 400 and "</think>" in body["error"]["message"], body
        assert ask(port, model="mute")[0] == 200


@contextlib.contextmanager
def served(model):
    p = subprocess.Popen([CAIRN, "serve", model, "--port", "0", "-t", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = line_of(p).decode()
    yield int(re.search(r":(\d+)", line.split("//", 1)[-1])[1])
    p.terminate()
    assert p.wait(PATIENCE) == 0, p.stderr.read()


@pytest.fixture(scope="module")
def port(model):
    with served(model) as number:
        yield number


def ask(port, **fields):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    c.request("POST", "/v1/chat/completions", json.dumps({
        "model": "model", "messages": [{"role": "user", "content": "w1 w2"}], "max_tokens": N, "temperature": 0, **fields}))
    r = c.getresponse()
    body = json.loads(r.read())
    c.close()
    return r.status, body


@pytest.mark.parametrize("name", ["thinking_budget_tokens", "reasoning_budget_tokens"])
def test_serve(model, port, free, name):
    words = words_of(run("run", model, "-p", "w1 w2", "-n", N, "--temp", 0, "--think-budget", 5))
    status, body = ask(port, **{name: 5, "n": 2, "logprobs": True})
    assert status == 200, body
    for choice in body["choices"]:
        said = choice["message"]
        assert said["reasoning_content"].split() == free[:5]
        assert said["content"].split() == words[6:]
        told = choice["logprobs"]["content"]
        assert [t["token"].strip() for t in told[:6]] == free[:5] + ["</think>"] and all(t["logprob"] <= 0 for t in told)
    status, body = ask(port, chat_template_kwargs={"think": "no"}, **{name: 0})
    assert status == 200 and len(body["choices"][0]["message"]["content"].split()) == N


def test_bad_budgets(port):
    for bad in (-2, "5", 1.5):
        status, body = ask(port, thinking_budget_tokens=bad)
        assert status == 400 and body["error"]["param"] == "thinking_budget_tokens", body
