"""/v1/completions by the official OpenAI client, and the fields that no client would send."""
import json

import pytest
import util

openai = pytest.importorskip("openai")

HELLO = "Hello from the test double."


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        yield c


def post(server, **fields):
    body = dict({"model": "fake-model", "prompt": "hi"}, **fields)
    status, _, out = server.request("POST", "/v1/completions", {k: v for k, v in body.items() if v is not ...})
    return status, out


def ids(text):
    return list(text.encode())


def test_whole(client):
    r = client.completions.create(model="fake-model", prompt="hi @cached=7")
    assert r.object == "text_completion" and r.id.startswith("cmpl-") and r.model == "fake-model"
    c = r.choices[0]
    assert (c.index, c.text, c.finish_reason, c.logprobs) == (0, HELLO, "stop", None)
    assert (r.usage.prompt_tokens, r.usage.completion_tokens) == (len("hi @cached=7"), len(HELLO))
    assert r.usage.prompt_tokens_details.cached_tokens == 7


@pytest.mark.parametrize("prompt", ["@prompt", ["@prompt"], ids("@prompt"), [ids("@prompt")]])
def test_prompts(client, prompt):
    """The model is given the text as it is: no template, no role."""
    r = client.completions.create(model="fake-model", prompt=prompt)
    assert [c.text for c in r.choices] == ["@prompt"]
    assert r.usage.prompt_tokens == len("@prompt")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lists", [False, True])
def test_many(client, stream, lists):
    """Each prompt's choices in order; a prompt counts once, and its choices are what they are alone."""
    texts = ["a @echo", "bb @echo", "c @reply=é漢😀!"]
    r = client.completions.create(model="fake-model", prompt=[ids(t) for t in texts] if lists else texts, n=2,
                                  seed=5, stream=stream, **({"stream_options": {"include_usage": True}} if stream else {}))
    said, usage = [""] * 6, None
    if stream:
        for chunk in r:
            usage = chunk.usage or usage
            for c in chunk.choices:
                said[c.index] += c.text
    else:
        usage = r.usage
        assert [c.index for c in r.choices] == list(range(6))
        said = [c.text for c in r.choices]
    assert said[4:] == ["é漢😀!"] * 2
    for i in range(4):
        assert "seed=5 choice=%d " % (i % 2) in said[i] and "marks=0" in said[i]
    assert usage.prompt_tokens == sum(len(ids(t)) for t in texts)
    assert usage.completion_tokens == sum(len(ids(t)) for t in said)


def test_stream(client):
    chunks = list(client.completions.create(model="fake-model", prompt="hi", stream=True))
    assert {c.object for c in chunks} == {"text_completion"} and len({c.id for c in chunks}) == 1
    assert "".join(c.choices[0].text for c in chunks) == HELLO
    assert [c.choices[0].finish_reason for c in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert all(c.usage is None for c in chunks[:-1]) and chunks[-1].usage.completion_tokens == len(HELLO)
    chunks = list(client.completions.create(model="fake-model", prompt="hi", stream=True,
                                            stream_options={"include_usage": True}))
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == len(HELLO)
    assert all(c.usage is None for c in chunks[:-1])
    chunks = list(client.completions.create(model="fake-model", prompt=["hi", "ho"], n=2, stream=True))
    assert [c.usage.completion_tokens for c in chunks if c.usage] == [4 * len(HELLO)] and chunks[-1].usage
    assert not any(c.usage for c in client.completions.create(model="fake-model", prompt="hi", stream=True,
                                                              stream_options={"include_usage": False}))


@pytest.mark.parametrize("prompt", ["é hi", ["é hi", "you"], ids("é hi")])
@pytest.mark.parametrize("stream", [False, True])
def test_echo(client, prompt, stream):
    r = client.completions.create(model="fake-model", prompt=prompt, echo=True, max_tokens=5, stream=stream)
    said = {}
    for part in r if stream else [r]:
        for c in part.choices:
            said[c.index] = said.get(c.index, "") + c.text
    prompts = prompt if isinstance(prompt[0], str) and isinstance(prompt, list) else ["é hi"]
    assert [said[i] for i in range(len(prompts))] == [p + "Hello" for p in prompts]


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs(client, stream):
    """The old form: lists, and where each token begins, in characters."""
    r = client.completions.create(model="fake-model", prompt="@reply=Zü!", logprobs=2, stream=stream)
    tokens, logprobs, tops, offsets = [], [], [], []
    for part in r if stream else [r]:
        for c in part.choices:
            tokens += c.logprobs.tokens
            logprobs += c.logprobs.token_logprobs
            tops += c.logprobs.top_logprobs
            offsets += c.logprobs.text_offset
    assert tokens == ["Z", "bytes:\\xc3", "bytes:\\xbc", "!"]
    assert logprobs == [-0.5] * 4 and offsets == [0, 1, 1, 2]
    assert tops[0] == {"Z": -0.5, "[": -1.5} and tops[3] == {"!": -0.5, '"': -1.5}
    if not stream:
        r = client.completions.create(model="fake-model", prompt="@reply=Z", logprobs=0)
        assert r.choices[0].logprobs.top_logprobs == [{"Z": -0.5}]


def lists_of(r, stream):
    """Each choice's text, four lists of one length, and how it ended."""
    out = {}
    for part in r if stream else [r]:
        for c in part.choices:
            o = out.setdefault(c.index, dict(text="", tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[]))
            o["text"] += c.text
            assert len({len(getattr(c.logprobs, k)) for k in o if k not in ("text", "end")}) == 1
            for k in o:
                if k not in ("text", "end"):
                    o[k] += getattr(c.logprobs, k)
            o["end"] = c.finish_reason
    return [out[i] for i in range(len(out))]


def told(text, n_top=1):
    """What the double tells of a prompt: of each pair of bytes the even one is the likelier."""
    b = text.encode()
    return ([None] + [-0.25 - c % 2 for c in b[1:]],
            [None] + [dict([(chr((c & ~1) + k), -0.25 - k) for k in range(n_top)] + [(chr(c), -0.25 - c % 2)]) for c in b[1:]])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lists", [False, True])
def test_echo_with_logprobs(client, stream, lists):
    """The prompt's tokens come before those that were drawn; of the first nobody can say anything."""
    texts = ["hi @reply=XY", "dog", "q @reply=Z"]
    r = client.completions.create(model="fake-model", prompt=[ids(t) for t in texts] if lists else texts, echo=True,
                                  logprobs=2, n=2, max_tokens=1, stream=stream)
    for i, o in enumerate(lists_of(r, stream)):
        text, new = texts[i // 2], "XHZ"[i // 2]
        logprobs, tops = told(text, 2)
        assert o["text"] == text + new and o["tokens"] == list(text + new)
        assert o["token_logprobs"] == logprobs + [-0.5]
        assert o["top_logprobs"] == tops + [{new: -0.5, chr(ord(new) + 1): -1.5}]
        assert o["text_offset"] == list(range(len(text) + 1))
        assert o["end"] == ("stop" if new == "Z" else "length")


@pytest.mark.parametrize("stream", [False, True])
def test_prompt_alone(client, server, stream):
    """max_tokens 0: what was asked comes back, and nothing else."""
    for text, n_top in [("a", 1), ("é hi", 0), ("dog" * 400, 3)]:
        r = client.completions.create(model="fake-model", prompt=text, echo=True, logprobs=n_top, max_tokens=0, stream=stream)
        parts = list(r) if stream else r
        (o,) = lists_of(parts, stream)
        logprobs, tops = told(text, n_top) if text != "é hi" else told(text, 1)
        assert o["text"] == text and o["token_logprobs"] == logprobs and o["end"] == "length"
        if text != "é hi":
            assert o["top_logprobs"] == tops
        else:
            assert o["tokens"] == ["bytes:\\xc3", "bytes:\\xa9"] + list(" hi") and o["text_offset"] == [0, 0, 1, 2, 3]
        if stream:
            assert len(parts) < 40, "a chunk for each token"
    status, body = post(server, max_tokens=0)
    assert json.loads(body)["choices"] == [{"text": "", "index": 0, "logprobs": None, "finish_reason": "length"}]
    assert json.loads(body)["usage"]["completion_tokens"] == 0


def harness_parse(choice, n_context):
    """What lm-evaluation-harness makes of a choice of its own requests: echo, logprobs 1, max_tokens 1."""
    logprobs = choice["logprobs"]["token_logprobs"][n_context:-1]
    tops = choice["logprobs"]["top_logprobs"][n_context:-1]
    return sum(logprobs), all(a == max(top.values()) for a, top in zip(logprobs, tops))


@pytest.mark.parametrize("context,rest,want", [("Q: ", "bdf", (-0.75, True)), ("Q: ", "bcd", (-1.75, False)),
                                               ("Q @eos ", "bb", (-0.5, True)), ("x", "c", (-1.25, False))])
def test_harness(server, context, rest, want):
    """It leaves out the last token, so there has to be one that was drawn, be it the end of the text."""
    status, body = post(server, prompt=[ids(context + rest)], echo=True, logprobs=1, max_tokens=1, temperature=0, seed=1234)
    (choice,) = json.loads(body)["choices"]
    assert status == 200 and harness_parse(choice, len(context)) == want
    assert json.loads(body)["usage"]["completion_tokens"] == ("@eos" not in context)


def test_echo_and_logprobs_have_a_limit():
    """What they keep until they are sent is set aside, with figures where it never fits."""
    with util.serving("--ctx", 20000, "--host-bytes", 16 << 20) as s:
        ask = dict(prompt=["a" * 19000] * 4, echo=True, logprobs=20, max_tokens=0)
        e = json.loads(post(s, **ask)[1])["error"]
        assert e["code"] != "" and "bytes until it is sent" in e["message"], e
        assert post(s, **dict(ask, stream=True))[0] == 200
        assert post(s, **dict(ask, logprobs=...))[0] == 200


def peak_kib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmHWM")).split()[1])


@pytest.mark.parametrize("stream", [False, True])
def test_echoes_beyond_the_budget_are_not_made(stream):
    """Sixty of them take 54 MB; the refusal comes before they are there."""
    with util.serving("--ctx", 2000000, "--host-bytes", 512 << 20) as s:
        ask = dict(prompt="a" * 900000, echo=True, max_tokens=0, stream=stream)
        post(s, n=1, **ask)
        before = peak_kib(s.proc.pid)
        e = json.loads(post(s, n=60, **ask)[1])["error"]
        assert "bytes until it is sent" in e["message"], e
        assert peak_kib(s.proc.pid) - before < 27 << 10


def test_fields_reach_engine(client):
    r = client.completions.create(
        model="fake-model", prompt="@echo", temperature=0.25, top_p=0.5, seed=77, presence_penalty=-1.5,
        frequency_penalty=0.5, logit_bias={"65": -100}, max_tokens=999, best_of=1, user="u",
        extra_body={"top_k": 40, "min_p": 0.125, "ignore_eos": True, "skip_special_tokens": False})
    for want in ("temperature=0.25 ", "top_k=40 ", "top_p=0.5 ", "min_p=0.125 ", "presence=-1.5 ", "frequency=0.5 ",
                 "seed=77 ", "bias:65=-100", "max_tokens=999 ", "ignore_eos=1", "keep_special=1"):
        assert want in r.choices[0].text + " "


@pytest.mark.parametrize("stop", ["from", ["zzz", "from"]])
def test_ends(client, stop):
    c = client.completions.create(model="fake-model", prompt="hi", stop=stop).choices[0]
    assert (c.text, c.finish_reason) == ("Hello ", "stop")
    c = client.completions.create(model="fake-model", prompt="hi", max_tokens=5).choices[0]
    assert (c.text, c.finish_reason) == ("Hello", "length")


BAD = [
    ("prompt", ...), ("prompt", None), ("prompt", 3), ("prompt", {"a": 1}), ("prompt", []), ("prompt", ["a"] * 4353),
    ("prompt[0]", [None]), ("prompt[0]", [1.5]), ("prompt[1]", ["a", 3]), ("prompt[1]", [[1], "a"]), ("prompt[0]", [[]]),
    ("prompt[1]", [1, 256]), ("prompt[0]", [-1]), ("prompt[0]", [2**40]), ("prompt[1]", [1, "a"]), ("prompt[1][0]", [[1], [300]]),
    ("prompt", ""), ("prompt[1]", ["a", ""]), ("prompt", True), ("prompt", 1e300), ("prompt[0]", [True]), ("prompt[0]", [{"a": 1}]),
    ("prompt[0][1]", [[1, [2]]]), ("prompt[1][0]", [[1], [[2]]]), ("prompt[0][0]", [[[]]]), ("prompt[0][0]", [[-1]]), ("prompt[0][0]", [["a"]]),
    ("prompt[1]", [1, None]), ("prompt[1]", [1, -2**63]), ("prompt[0]", [2**64]), ("prompt[1]", ["a", []]), ("prompt[1]", [[1], {}]),
    ("suffix", "x"), ("suffix", 3), ("best_of", 2), ("best_of", "2"), ("n", 0), ("n", 129), ("echo", 1),
    ("logprobs", True), ("logprobs", 21), ("logprobs", -1), ("max_tokens", -1), ("max_tokens", "9"), ("max_tokens", 1.5), ("stop", [""]),
    ("stream", "yes"), ("return_progress", "yes"), ("stream_options", {"include_usage": True}), ("temperature", 9), ("seed", "x"), ("model", 7),
    ("logit_bias", {"300": 1}), ("response_format", {"type": "json_object"}), ("guided_json", {}), ("store", True),
]


@pytest.mark.parametrize("param,value", BAD, ids=["%s=%s" % (p, str(v)[:30]) for p, v in BAD])
def test_refused_by_name(server, param, value):
    field = param.split("[")[0]
    status, body = post(server, **{field: value})
    e = json.loads(body)["error"]
    assert status == 400 and e["param"] == param and field in e["message"], e
    assert e["type"] == "invalid_request_error" and e["code"]


def test_refused_together(server):
    e = json.loads(post(server, n=2, best_of=3)[1])["error"]
    assert e["param"] == "best_of" and "is 3" in e["message"]
    e = json.loads(post(server, prompt=["a"] * 40, n=2)[1])["error"]
    assert e["param"] == "prompt" and "make 80 choices; expected at most 68" in e["message"]
    status, body = post(server, model="other")
    assert status == 404 and json.loads(body)["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("fields", [
    {"suffix": None}, {"suffix": ""}, {"best_of": None}, {"n": 2, "best_of": 2}, {"logprobs": None}, {"echo": None},
    {"unheard_of": 1, "user": "u"}, {"stop": None}, {"model": ...}])
def test_accepted(server, fields):
    status, body = post(server, **fields)
    assert status == 200, body


def test_too_long():
    with util.serving("--ctx", 100) as s:
        for prompt, param in [("x" * 200, "prompt"), (["a", "x" * 2000], "prompt[1]"), ([[1] * 100], "prompt[0]")]:
            e = json.loads(post(s, prompt=prompt)[1])["error"]
            assert (e["param"], e["code"]) == (param, "context_length_exceeded") and "100 positions" in e["message"]
        assert post(s, prompt=[[97] * 100], max_tokens=0, echo=True)[0] == 200, "no room is needed behind it"
        e = json.loads(post(s, prompt=[[97] * 101], max_tokens=0)[1])["error"]
        assert e["code"] == "context_length_exceeded" and e["message"].endswith("holds 100 positions"), e


def test_errors(client, server):
    with pytest.raises(openai.InternalServerError, match="told to fail"):
        client.completions.create(model="fake-model", prompt="@fail=3")
    seen = ""
    with pytest.raises(openai.APIError, match="told to fail"):
        for c in client.completions.create(model="fake-model", prompt="@fail=3", stream=True):
            seen += c.choices[0].text
    assert seen == "Hel"
    c = server.connect()
    c.sendall(util.build("POST", "/v1/completions", {"prompt": ["@n=60000 @pace=100"] * 3, "stream": True, "max_tokens": 60000}))
    server.wait_rows(3, 0)
    c.close()
    server.wait_rows()
