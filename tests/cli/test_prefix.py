"""Prompts that begin alike, over HTTP: what is taken from the cache, by whom, and that answers stay the same."""
import json
import time
import urllib.request

import pytest
from test_serve import flush, start, stop
from tiny import PATIENCE, make, refused, run

TEMPLATE = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}{% if add_generation_prompt %}assistant {% endif %}"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("m") / "served"
    m = make(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return m


def chat(url, messages, key=None):
    body = json.dumps({"messages": messages, "max_tokens": 8, "temperature": 0, "logprobs": True}).encode()
    head = {"content-type": "application/json", **({"authorization": "Bearer " + key} if key else {})}
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", body, head), timeout=PATIENCE) as r:
        a = json.load(r)
    return a["choices"][0], a["usage"]["prompt_tokens_details"]["cached_tokens"], a["usage"]["prompt_tokens"]


def talk(n):
    return [{"role": "user", "content": " ".join("w%d" % (i % 61) for i in range(n))}]


def test_again_and_on(model):
    p, url = start(model)
    first, cached, _ = chat(url, talk(60))
    assert cached == 0
    again, cached, prompt = chat(url, talk(60))
    assert cached == prompt - 1 and again == first
    _, cached, _ = chat(url, talk(70))
    assert cached >= 60
    stop(p)


def test_progress(model):
    """What a stream tells of its prefill is what the answer's usage counts."""
    p, url = start(model)
    ask = {"messages": talk(60), "max_tokens": 4, "stream": True, "return_progress": True, "stream_options": {"include_usage": True}}
    for turn in range(2):
        with urllib.request.urlopen(url + "/v1/chat/completions", json.dumps(ask).encode(), timeout=PATIENCE) as r:
            chunks = [json.loads(line[6:]) for line in r if line.startswith(b"data: {")]
        steps = [c["prompt_progress"] for c in chunks if "prompt_progress" in c]
        usage = chunks[-1]["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        assert cached == (usage["prompt_tokens"] - 1 if turn else 0)
        assert steps[-1]["processed"] == usage["prompt_tokens"]
        assert {(s["total"], s["cache"]) for s in steps} == {(usage["prompt_tokens"], cached)}
        done = [s["processed"] for s in steps]
        assert done == sorted(set(done)) and done[0] >= cached and min(s["time_ms"] for s in steps) >= 0
    stop(p)


def test_off(model):
    p, url = start(model, "--prompt-cache", "0")
    first, *_ = chat(url, talk(60))
    again, cached, _ = chat(url, talk(60))
    assert cached == 0 and again == first
    stop(p)


def test_keys_share_nothing(model, tmp_path):
    (tmp_path / "keys").write_text("one\ntwo\n")
    p, url = start(model, "--api-key-file", tmp_path / "keys")
    first, *_ = chat(url, talk(60), "one")
    other, cached, _ = chat(url, talk(60), "two")
    assert cached == 0 and other == first
    assert chat(url, talk(60), "one")[1] > 60
    assert chat(url, talk(60), "two")[1] > 60
    stop(p)


def test_warm(model, tmp_path):
    """A prefix that is computed before anybody asks, and good for every key."""
    said = {"role": "system", "content": " ".join("w%d" % i for i in range(50))}
    (tmp_path / "keys").write_text("one\n")
    (tmp_path / "warm.json").write_text(json.dumps([said]))
    (tmp_path / "tools.json").write_text(json.dumps({"messages": [said], "tools": []}))
    p, url = start(model, "--warm-prefix", tmp_path / "warm.json", "--warm-prefix", tmp_path / "tools.json",
                   "--api-key-file", tmp_path / "keys")
    _, cached, _ = chat(url, [said] + talk(5), "one")
    assert cached == 51
    stop(p)


@pytest.mark.parametrize("text,says", [
    ("{}", "found nothing; expected an array of messages"), ("[", "warm.json: JSON, byte 1"), ("[1]", "warm.json: "), ("[]", "warm.json: found no message; expected at least one"),
    (json.dumps(talk(500)), "the prompt has 501 tokens"), (None, "warm.json: ")])
def test_bad_warm(model, tmp_path, text, says):
    if text is not None:
        (tmp_path / "warm.json").write_text(text)
    refused(run("serve", model, "--port", 0, "--warm-prefix", tmp_path / "warm.json"), says)


def test_no_room_to_warm(model, tmp_path):
    (tmp_path / "warm.json").write_text(json.dumps(talk(20)))
    refused(run("serve", model, "--port", 0, "--prompt-cache", 0, "--warm-prefix", tmp_path / "warm.json"),
            "its 21 tokens cannot be kept: no prefixes are kept at all")


def shown(url, wanted):
    """/stats once it has what is wanted: an engine shows its counters a moment after it tells an answer."""
    end = time.monotonic() + PATIENCE
    while True:
        with urllib.request.urlopen(url + "/stats", timeout=PATIENCE) as r:
            s = json.load(r)
        if wanted(s):
            return s
        assert time.monotonic() < end, s
        time.sleep(0.01)


def test_restart(model, tmp_path):
    """What one server computed, the next one takes up: after a flush and SIGKILL, and after SIGTERM."""
    where = ("--ssd-cache", tmp_path / "cache")
    p, url = start(model, *where)
    first, _, prompt = chat(url, talk(80))
    done = flush(url)
    assert done["durable"] > 0 and done["pending"] == done["failed"] == 0 and done["longest_tokens"] > 64, done
    disk = shown(url, lambda s: s["ssd_cache"]["spills"] == done["durable"] and not s["ssd_cache"]["pending_spill_bytes"])["ssd_cache"]
    assert disk["entries"] == done["durable"] and 0 < disk["bytes"] <= disk["max_bytes"]
    assert disk["restores"] == disk["failed_spills"] == disk["dropped_spills"] == disk["evictions"] == disk["pending_spill_bytes"] == 0 and not disk["read_only"]
    p.kill()
    p.communicate()
    p, url = start(model, *where)
    again, cached, _ = chat(url, talk(80))
    assert cached == 64 and again == first  # the end of a block; the other file ends behind the answer
    assert shown(url, lambda s: s["ssd_cache"]["restores"] and s["prompt_cache"]["hits"])["prompt_cache"]["misses"] == 0
    longer, cached, _ = chat(url, talk(90))
    assert cached >= 80
    stop(p)
    p, url = start(model, *where)
    again, cached, prompt = chat(url, talk(90))
    assert 64 <= cached < prompt and again == longer
    stop(p)


def test_folder_of_others(model, tmp_path):
    """Files of another codec or model are nobody's hits, and stay."""
    other = make(tmp_path / "served")
    (tmp_path / "served" / "chat_template.jinja").write_text(TEMPLATE)
    weights = (tmp_path / "served" / "model.safetensors").read_bytes()
    (tmp_path / "served" / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    answers = {}
    for turn in range(2):
        for words in (model,), (model, "--kv-cache", "q8"), (other,):
            p, url = start(*words, "--ssd-cache", tmp_path / "cache")
            answer, cached, _ = chat(url, talk(80))
            assert cached == 64 * turn and answers.setdefault(words, answer) == answer, words
            assert flush(url)["failed"] == 0
            stop(p)


def test_no_folder(model, tmp_path):
    """A folder that cannot be is no reason not to serve."""
    (tmp_path / "file").write_text("x")
    p, url = start(model, "--ssd-cache", tmp_path / "file" / "cache")
    first, *_ = chat(url, talk(80))
    assert chat(url, talk(80))[0] == first
    stop(p)


def claude(nonce, joint):
    head = "x-anthropic-billing-header: cc_version=2.1.100.7b4; cc_entrypoint=cli; cch=%s;" % nonce
    return [{"role": "system", "content": [{"type": "text", "text": head + joint},
                                           {"type": "text", "text": " ".join("w%d" % i for i in range(60))}]},
            {"role": "user", "content": "w9"}]


@pytest.mark.parametrize("joint", ["", "\n", "\n\n"])
def test_volatile(model, joint):
    p, url = start(model)
    first, *_ = chat(url, claude("eb6c6", joint))
    again, cached, prompt = chat(url, claude("0aaa9", joint))
    assert cached == prompt - 1 and again == first
    plain, cached, _ = chat(url, [{"role": "system", "content": " ".join("w%d" % i for i in range(60))}] + claude("", "")[1:])
    assert cached == prompt - 1 and plain == first
    stop(p)


def test_volatile_kept(model):
    p, url = start(model, "--keep-volatile")
    _, _, long = chat(url, claude("eb6c6", ""))
    _, _, short = chat(url, [{"role": "system", "content": "w1"}] + claude("", "")[1:])
    assert long > short + 60
    stop(p)
