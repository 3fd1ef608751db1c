"""Answers that outlive the server: after SIGKILL the same request goes on where it was, to the same bits."""
import json
import os
import signal
import time
import urllib.request

import pytest
from test_prefix import TEMPLATE
from test_serve import flush, start, stop
from tiny import CONFIG, PATIENCE, TOKENIZER, put, refused, run, safetensors

EVERY, ANSWER = 16, 2000
SAMPLED = {"temperature": 1.1, "top_p": 0.95, "repetition_penalty": 1.1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    m = str(tmp_path_factory.mktemp("m"))
    put(m, "config.json", dict(CONFIG, max_position_embeddings=4096))
    put(m, "tokenizer.json", TOKENIZER)
    put(m, "model.safetensors", safetensors())
    put(m, "chat_template.jinja", TEMPLATE)
    return m


def ask(url, **more):
    talk = [{"role": "user", "content": " ".join("w%d" % (i % 61) for i in range(150))}]
    body = {"messages": talk, "max_tokens": ANSWER, "stream": True, "stream_options": {"include_usage": True},
            "ignore_eos": True, **more}
    return urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode()),
                                  timeout=PATIENCE)


def read(reply, most=None):
    """The text of all choices, and the usage; or so many of its first chunks."""
    text, usage, n = {}, None, 0
    for line in reply:
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        usage = chunk.get("usage") or usage
        for c in chunk["choices"]:
            text[c["index"]] = text.get(c["index"], "") + (c["delta"].get("content") or "")
        n += 1
        if n == most:
            break
    return text, usage


def stats(url):
    with urllib.request.urlopen(url + "/stats", timeout=PATIENCE) as r:
        return json.load(r)["models"][0]


def idle_stats(url):
    """An answer's last event comes before the turn that made it has been counted."""
    end = time.monotonic() + PATIENCE
    while True:
        s = stats(url)
        if not s["active_rows"] and not s["pending_rows"]:
            return s
        assert time.monotonic() < end, s
        time.sleep(0.02)


def kill(p):
    p.kill()
    p.communicate()


def saved(folder):
    return [name for _, _, names in os.walk(folder) for name in names if name.endswith(".cairnck")]


def uninterrupted(model, **more):
    p, url = start(model)
    with ask(url, **more) as r:
        text, usage = read(r)
    assert stop(p) == 0
    return text, usage


def broken_off(model, flags, folder, more):
    """What was read of an answer whose server died in its middle.  A busy machine may be slow to read, and the answer
    was whole before the kill: then again."""
    for _ in range(20):
        p, url = start(model, *flags)
        with ask(url, **more) as r:
            told, _ = read(r, most=60)
            flush(url)
            kill(p)
        if saved(folder):
            return told
    raise AssertionError("the answer was whole each time")


@pytest.mark.parametrize("more", [{"temperature": 0}, {"seed": 7, **SAMPLED}, {"seed": 8, "n": 2, **SAMPLED}],
                         ids=["greedy", "sampled", "choices"])
def test_goes_on(model, tmp_path, more):
    want, usage = uninterrupted(model, **more)
    flags = ("--ssd-cache", tmp_path, "--generation-checkpoint", EVERY)
    told = {}
    for _ in range(2):  # it dies twice
        told = broken_off(model, flags, tmp_path, more)
        assert all(want[i].startswith(told[i]) for i in told) and told != want
    p, url = start(model, *flags)
    with ask(url, **more) as r:
        text, again = read(r)
    assert text == want and told
    assert again["completion_tokens"] == usage["completion_tokens"] == ANSWER * more.get("n", 1)
    assert again["prompt_tokens"] == usage["prompt_tokens"]
    # Rows of the prompt came from files: this process has computed none of it before.
    assert again["prompt_tokens_details"]["cached_tokens"] >= 128
    s = idle_stats(url)
    assert s["resumed_requests"] == more.get("n", 1) and s["replayed_tokens"] >= EVERY, s
    assert s["generated_tokens"] + s["replayed_tokens"] == usage["completion_tokens"]
    done = flush(url)
    assert done["checkpoints_pending"] == done["checkpoints_failed"] == done["cleanups_failed"] == 0, done
    assert not saved(tmp_path)  # it is complete
    assert stop(p) == 0


def test_seed_of_nobody(model, tmp_path):
    """Without a seed the first attempt's is used, so what was read stays true; and a new answer is another one."""
    flags = ("--ssd-cache", tmp_path, "--generation-checkpoint", EVERY)
    told = broken_off(model, flags, tmp_path, SAMPLED)
    p, url = start(model, *flags)
    with ask(url, **SAMPLED) as r:
        text, _ = read(r)
    n = stats(url)["replayed_tokens"]
    assert n >= EVERY
    words = text[0].split()[:n]
    assert words[:40] == told[0].split()[:len(words)][:40]
    with ask(url, **SAMPLED) as r:
        assert read(r)[0] != text
    assert stop(p) == 0


def test_client_that_comes_back(model, tmp_path):
    """Who leaves may ask again and finds the rest; log-probabilities cannot be told again, so such requests begin anew."""
    p, url = start(model, "--ssd-cache", tmp_path, "--generation-checkpoint", EVERY)
    for more, resumed in ({"seed": 3, **SAMPLED}, 1), ({"seed": 3, "logprobs": True, **SAMPLED}, 0):
        before = stats(url)
        for _ in range(20):  # as broken_off: a busy machine's answer may be whole before it is left
            with ask(url, **more) as r:
                told, _ = read(r, most=40)
                if resumed:
                    flush(url)
            idle_stats(url)
            flush(url)
            if not resumed or saved(tmp_path):
                break
        with ask(url, **more) as r:
            text, _ = read(r)
        assert text[0].startswith(told[0])
        after = stats(url)
        assert after["resumed_requests"] - before["resumed_requests"] == resumed
        assert after["checkpoints_refused"] - before["checkpoints_refused"] == 2 * (1 - resumed)
    assert stop(p) == 0


def test_two_servers(model, tmp_path):
    """One folder: an answer that another server makes, or would if it were awake, is neither taken up nor taken away; once
    that one is killed the other goes on, though it was there before."""
    more = {"seed": 7, **SAMPLED}
    want, _ = uninterrupted(model, **more)
    flags = ("--ssd-cache", tmp_path, "--generation-checkpoint", EVERY)
    (first, url), (second, beside) = start(model, *flags), start(model, *flags)
    for _ in range(20):
        r = ask(url, **more)
        read(r, most=60)
        if flush(url)["checkpoints"] == 1:
            break
        r.close()  # whole before it could be looked at
    with r:
        first.send_signal(signal.SIGSTOP)
        assert len(saved(tmp_path)) == 1
        with ask(beside, **more) as again:
            assert read(again)[0] == want
        done = flush(beside)
        assert done["checkpoints_pending"] == done["checkpoints_failed"] == done["cleanups_failed"] == 0, done
        assert idle_stats(beside)["resumed_requests"] == 0 and len(saved(tmp_path)) == 1
    kill(first)
    with ask(beside, **more) as r:
        assert read(r)[0] == want
    s = idle_stats(beside)
    assert s["resumed_requests"] == 1 and s["replayed_tokens"] >= EVERY, s
    flush(beside)
    assert not saved(tmp_path)
    assert stop(second) == 0


def test_flags(model, tmp_path):
    refused(run("serve", model, "--generation-checkpoint", 16),
            "--generation-checkpoint without --ssd-cache; expected both", code=2)
    refused(run("serve", model, "--ssd-cache", ""), "--ssd-cache has an empty name; expected a folder")
    refused(run("serve", model, "--ssd-cache-max", "1G"), "--ssd-cache-max without --ssd-cache; expected both", code=2)
    refused(run("serve", model, "--ssd-cache", tmp_path, "--generation-checkpoint", 16, "--prompt-cache", 0),
            "prefixes on disk but none in memory")
