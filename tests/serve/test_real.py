"""The other APIs over the real engine and a tiny checkpoint: what the test double cannot show."""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
import util

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from tiny import CAIRN, make, put  # noqa: E402

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

TEMPLATE = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}w9"
PROMPT = " ".join("w%d" % (i % 50) for i in range(40))


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    model = make(tmp_path_factory.mktemp("real") / "tiny")
    put(model, "tokenizer_config.json", {"chat_template": TEMPLATE})
    p = subprocess.Popen([CAIRN, "serve", model, "--port", "0", "-t", "1"], stdout=subprocess.PIPE, text=True)
    yield re.search(r"http://\S+", util.line_of(p)).group(0)
    p.send_signal(signal.SIGTERM)
    assert p.wait(util.PATIENCE) == 0


@pytest.fixture(scope="module")
def claude(url):
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        yield c


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        yield c


def ask(text=PROMPT, **fields):
    return dict({"model": "tiny", "max_tokens": 12, "messages": [{"role": "user", "content": text}],
                 "extra_body": {"temperature": 0}}, **fields)


def test_message(claude):
    """Whole and streamed are one; the second time a cache has the prompt, and the sums stay."""
    whole = claude.messages.create(**ask())
    with claude.messages.stream(**ask()) as s:
        events = list(s)
        streamed = s.get_final_message()
    assert whole.content[0].text == streamed.content[0].text != ""
    assert whole.usage.output_tokens == streamed.usage.output_tokens
    count = claude.messages.count_tokens(model="tiny", messages=ask()["messages"]).input_tokens
    for u in whole.usage, streamed.usage:
        assert u.input_tokens + u.cache_read_input_tokens == count
    start = next(e for e in events if e.type == "message_start").message.usage
    assert start.cache_read_input_tokens == streamed.usage.cache_read_input_tokens > 0
    assert start.input_tokens == streamed.usage.input_tokens


def test_stop_reasons(claude):
    text = claude.messages.create(**ask()).content[0].text
    word = text.split()[2]
    r = claude.messages.create(**ask(stop_sequences=["nothing", word]))
    assert (r.stop_reason, r.stop_sequence) == ("stop_sequence", word)
    assert r.content[0].text == text[:text.index(word)]
    assert claude.messages.create(**ask(max_tokens=3)).stop_reason == "max_tokens"
    r = claude.messages.create(**ask(max_tokens=5000))
    assert r.stop_reason in ("model_context_window_exceeded", "end_turn")
    total = r.usage.input_tokens + r.usage.cache_read_input_tokens + r.usage.output_tokens
    assert (r.stop_reason == "end_turn") == (total < 128)


def test_choices_with_logprobs_streamed(client):
    """Several choices by a seed, with log-probabilities: the stream's pieces are the whole answer, to the digit."""
    fields = ask(n=2, seed=3, extra_body={"temperature": 1.5}, max_tokens=8, logprobs=True, top_logprobs=2)
    whole = client.chat.completions.create(**fields)
    text, tokens, ends = ["", ""], [[], []], [None, None]
    for chunk in client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}):
        for c in chunk.choices:
            text[c.index] += c.delta.content or ""
            tokens[c.index] += c.logprobs.content if c.logprobs else []
            ends[c.index] = c.finish_reason or ends[c.index]
        usage = chunk.usage
    assert text == [c.message.content for c in whole.choices] and text[0] != text[1]
    assert tokens == [c.logprobs.content for c in whole.choices] and all(len(t) == 8 for t in tokens)
    assert ends == [c.finish_reason for c in whole.choices]
    assert (usage.prompt_tokens, usage.completion_tokens) == (whole.usage.prompt_tokens, whole.usage.completion_tokens)


def test_response_goes_on(client):
    """By the id of the one before, a turn is what the whole conversation makes it; a cache has its beginning."""
    fields = {"model": "tiny", "max_output_tokens": 8, "temperature": 0}
    first = client.responses.create(input=PROMPT, **fields)
    by_id = client.responses.create(input="w1 w2", previous_response_id=first.id, **fields)
    whole = client.responses.create(input=[
        {"role": "user", "content": PROMPT}, *[x.model_dump(exclude_none=True) for x in first.output],
        {"role": "user", "content": "w1 w2"}], **fields)
    assert first.output_text and by_id.output_text == whole.output_text != ""
    assert by_id.usage.input_tokens == whole.usage.input_tokens > first.usage.input_tokens
    assert by_id.usage.input_tokens_details.cached_tokens > 0


def complete(client, prompt, **fields):
    r = client.completions.create(model="tiny", prompt=prompt, temperature=0, max_tokens=8, **fields)
    return r.choices if len(r.choices) > 1 else r.choices[0]


def test_completion(client):
    """A text, its tokens, and both among others give the same."""
    ids = [2 + i % 50 for i in range(40)]
    alone = complete(client, PROMPT)
    assert alone.text and complete(client, ids).text == alone.text
    assert [c.text for c in complete(client, [PROMPT, "w1 w2", PROMPT])][::2] == [alone.text] * 2
    assert [c.text for c in complete(client, [[5, 6], ids])][1] == alone.text
    assert complete(client, PROMPT, echo=True).text == PROMPT + alone.text
    drawn = client.completions.create(model="tiny", prompt=["w1", PROMPT], n=2, seed=3, max_tokens=8).choices
    again = client.completions.create(model="tiny", prompt=PROMPT, n=2, seed=3, max_tokens=8).choices
    assert [c.text for c in drawn][2:] == [c.text for c in again]


def test_completion_logprobs(client):
    c = complete(client, PROMPT, logprobs=3)
    lp = c.logprobs
    assert len(lp.tokens) == len(lp.token_logprobs) == len(lp.top_logprobs) == len(lp.text_offset)
    assert lp.text_offset[0] == 0 and lp.text_offset == sorted(lp.text_offset)
    for token, logprob, top, at, end in zip(lp.tokens, lp.token_logprobs, lp.top_logprobs, lp.text_offset,
                                            lp.text_offset[1:] + [len(c.text)]):
        assert c.text[at:end].strip() == token and top[token] == logprob == max(top.values()) and len(top) == 3
    chunks = client.completions.create(model="tiny", prompt=PROMPT, temperature=0, max_tokens=8, logprobs=3, stream=True)
    assert [o for k in chunks for o in k.choices[0].logprobs.text_offset] == lp.text_offset


def told_alone(client, prompt, **fields):
    """What is told of a prompt and of the one token after it."""
    r = client.completions.create(model="tiny", prompt=prompt, echo=True, logprobs=3, max_tokens=1, temperature=0, seed=1, **fields)
    return [(c.logprobs.tokens, c.logprobs.token_logprobs, c.logprobs.top_logprobs) for c in r.choices], r.usage


def test_prompt_logprobs(client):
    """What a token's logprob was when it was drawn it is when it is asked for; in company and after others alike."""
    drawn = complete(client, PROMPT, logprobs=3)
    ids = [2 + i % 50 for i in range(40)] + [2 + int(name[1:]) for name in drawn.logprobs.tokens]
    (told,), usage = told_alone(client, [ids])
    n = len(drawn.logprobs.tokens)
    assert n > 3 and told[0][-n - 1:-1] == drawn.logprobs.tokens and usage.prompt_tokens_details.cached_tokens == 0
    assert told[1][-n - 1:-1] == drawn.logprobs.token_logprobs
    assert told[2][-n - 1:-1] == drawn.logprobs.top_logprobs
    assert told[1][0] is None and told[2][0] is None and all(x < 0 for x in told[1][1:])
    for other in (told_alone(client, [ids, ids[:40], ids + [5]])[0][0], told_alone(client, [ids])[0][0],
                  told_alone(client, [ids] * 6)[0][-1]):
        assert other == told
    again = client.completions.create(model="tiny", prompt=[ids], echo=True, logprobs=3, max_tokens=0).choices[0]
    assert again.logprobs.token_logprobs == told[1][:-1] and again.finish_reason == "length"
    ends = again.logprobs.text_offset[1:] + [len(again.text)]
    assert [again.text[a:b].strip() for a, b in zip(again.logprobs.text_offset, ends)] == again.logprobs.tokens
    by_text = client.completions.create(model="tiny", prompt=PROMPT, echo=True, logprobs=3, max_tokens=0).choices[0]
    assert by_text.text == PROMPT and by_text.logprobs.token_logprobs == told[1][:40]
    assert by_text.logprobs.text_offset == again.logprobs.text_offset[:40]


def post(url, path, body):
    with urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode()), timeout=util.PATIENCE) as r:
        return json.loads(r.read())


def test_tokens(url):
    ids = post(url, "/tokenize", {"content": "w3 w4"})["tokens"]
    assert ids == [5, 6]
    assert post(url, "/detokenize", {"tokens": ids})["content"].split() == ["w3", "w4"]


def get(url, path):
    with urllib.request.urlopen(url + path, timeout=util.PATIENCE) as r:
        return json.loads(r.read())


def settled(url, n=0):
    """What is shown once n requests came and the last has ended: an engine shows its counters after telling the answer."""
    def now():
        s = get(url, "/stats")
        m = s["models"][0]
        return s if m["submitted_rows"] >= n and m["active_rows"] == m["pending_rows"] == 0 else None
    end = time.monotonic() + util.PATIENCE
    while not (s := now()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return s


def test_stats_shapes(url, client):
    """What the one model's state is, by the names that its first server had: what moves it, and what does not."""
    ids = [7, 9, 11] * 30
    seen, before = [], settled(url)
    for fields in {}, {}, {"echo": True, "logprobs": 0}, {"max_tokens": 0}:
        seen.append(before["prompt_cache"])
        client.completions.create(**{"model": "tiny", "prompt": ids, "max_tokens": 1, **fields})
        before = settled(url, before["models"][0]["submitted_rows"] + 1)
    s = before
    seen.append(s["prompt_cache"])
    moved = [tuple(b[k] - a[k] for k in ("hits", "misses")) for a, b in zip(seen, seen[1:])]
    assert moved == [(0, 1), (1, 0), (0, 0), (1, 0)], "who tells of its prompt looks nothing up"
    assert seen[1]["entries"] > seen[0]["entries"] and 0 < s["prompt_cache"]["bytes"] <= s["prompt_cache"]["max_bytes"]
    assert s["server"]["owner"] == "serve" and s["server"]["model"] == "tiny"
    (m,) = s["models"]
    assert all(s[k] == m[k] for k in ("batch", "prompt_cache", "kv_quant", "admission", "ssd_cache"))
    assert s["batch"].pop("batched") is (s["batch"]["configured"] > 1) and s["batch"].pop("mode") in ("batch", "serial")
    assert all(m[k] == v for k, v in s["batch"].items())
    quant, room = s["kv_quant"], s["admission"]
    assert quant["mode"] == m["kv_codec"] and quant["layers"] == sum(quant["attention"].values()) > 0
    assert room["max_safe_context"] == m["context_window"] and room["memory_budget_bytes"] == m["memory"]["budget_bytes"]
    taken = sum(m["memory"][k] for k in ("weights_bytes", "scratch_bytes", "other_bytes", "server_bytes"))
    assert room["usable_bytes"] == m["memory"]["budget_bytes"] - taken and s["ssd_cache"] is None
    fit = get(url, "/fit")
    (f,) = fit["models"]
    assert fit["machine"]["cores"] > 0 and fit["machine"]["available_bytes"] <= fit["machine"]["total_bytes"] and f["isa"]
    row = next(r for r in f["rows"] if r["parallel_requests"] == 1 and r["context_tokens"] == f["prediction"]["context_tokens"])
    assert f["prediction"] == {"context_tokens": 128, "needed_bytes": row["needed_bytes"], "fits": row["fits"],
                               "decode_read_bytes": f["decode_read_bytes"] + row["cache_bytes"]}


def test_signal_beside_answers(url):
    """The histogram is the same whatever the engine does meanwhile; both have the model's threads by turns."""
    def post(path, body):
        rq = urllib.request.Request(url + path, json.dumps(body).encode())
        with urllib.request.urlopen(rq, timeout=util.PATIENCE) as r:
            return json.load(r)

    alone = post("/signal", {"prompt": PROMPT})
    assert sum(alone["bins"]) == alone["vocab"]
    over = threading.Event()
    answers = []

    def talk():
        while not over.is_set() and len(answers) < 500:
            answers.append(post("/v1/completions", {"prompt": PROMPT, "max_tokens": 40, "temperature": 0, "ignore_eos": True})["choices"][0]["text"])

    t = threading.Thread(target=talk)
    t.start()
    try:
        while len(answers) < 2 and t.is_alive():
            time.sleep(0.01)
        for _ in range(20):
            assert post("/signal", {"prompt": PROMPT}) == alone
    finally:
        over.set()
        t.join(2 * util.PATIENCE)
    assert len(answers) > 1 and len(set(answers)) == 1
    curve = [{"x_pct": 0.0001, "y_pct": 0.0001}, {"x_pct": 100, "y_pct": 100}]
    ask_for = {"prompt": PROMPT, "n": 2, "max_tokens": 12, "seed": 3}
    assert post("/generate", dict(ask_for, curve=curve)) == post("/generate", dict(ask_for, default=True))  # y = x: temperature 1
