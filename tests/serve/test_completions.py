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
    ("prompt", ""), ("prompt[1]", ["a", ""]),
    ("suffix", "x"), ("suffix", 3), ("best_of", 2), ("best_of", "2"), ("n", 0), ("n", 129), ("echo", 1),
    ("logprobs", True), ("logprobs", 21), ("logprobs", -1), ("max_tokens", 0), ("max_tokens", "9"), ("stop", [""]),
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
    e = json.loads(post(server, echo=True, logprobs=1)[1])["error"]
    assert e["param"] == "logprobs" and "beside `echo`" in e["message"]
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
