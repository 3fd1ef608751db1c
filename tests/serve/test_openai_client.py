"""The official OpenAI client against the server: what users' programs see."""
import pytest
import util

openai = pytest.importorskip("openai")

USER = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0,
                       timeout=util.PATIENCE) as c:
        yield c


def say(text):
    return [{"role": "user", "content": text}]


def test_models(client):
    assert [m.id for m in client.models.list()] == ["fake-model"]
    m = client.models.retrieve("fake-model")
    assert (m.id, m.object, m.owned_by) == ("fake-model", "model", "cairn")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_whole(client):
    r = client.chat.completions.create(model="fake-model", messages=say("hi @cached=7"))
    assert r.object == "chat.completion" and r.id.startswith("chatcmpl-")
    c = r.choices[0]
    assert (c.index, c.finish_reason, c.message.role) == (0, "stop", "assistant")
    assert c.message.content == "Hello from the test double."
    assert r.usage.completion_tokens == len(c.message.content)
    assert r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens
    assert r.usage.prompt_tokens_details.cached_tokens == 7


def test_stream(client):
    chunks = list(client.chat.completions.create(model="fake-model", messages=USER, stream=True))
    assert {c.object for c in chunks} == {"chat.completion.chunk"}
    assert len({c.id for c in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(c.choices[0].delta.role is None for c in chunks[1:])
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Hello from the test double."
    assert [c.choices[0].finish_reason for c in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert all(c.usage is None for c in chunks[:-1])
    assert chunks[-1].usage.completion_tokens == 27  # where the client says nothing, with the end


def test_stream_usage(client):
    chunks = list(client.chat.completions.create(model="fake-model", messages=USER, stream=True,
                                                 stream_options={"include_usage": True}))
    assert all(c.usage is None for c in chunks[:-1])
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 27
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert not [c for c in client.chat.completions.create(model="fake-model", messages=USER, stream=True,
                                                          stream_options={"include_usage": False}) if c.usage]


def test_usage_of_all_choices(client):
    """Once, with the last end; log-probabilities and calls cut short change nothing."""
    chunks = list(client.chat.completions.create(model="fake-model", messages=USER, stream=True, n=3, max_tokens=5, logprobs=True))
    ends = [c for c in chunks if c.choices[0].finish_reason]
    assert len(ends) == 3 and [c for c in chunks if c.usage] == [ends[-1]] == chunks[-1:]
    assert ends[-1].usage.completion_tokens == 15 and ends[-1].usage.total_tokens == ends[-1].usage.prompt_tokens + 15


def test_stream_helper(client):
    """The client's own accumulator rebuilds the answer from the chunks."""
    with client.chat.completions.stream(model="fake-model", messages=USER) as s:
        final = s.get_final_completion()
    assert final.choices[0].message.content == "Hello from the test double."
    assert final.choices[0].finish_reason == "stop"


def test_length(client):
    r = client.chat.completions.create(model="fake-model", messages=USER, max_tokens=5)
    assert (r.choices[0].message.content, r.choices[0].finish_reason) == ("Hello", "length")
    r = client.chat.completions.create(model="fake-model", messages=USER, max_tokens=5,
                                       max_completion_tokens=2)
    assert r.choices[0].message.content == "He"


@pytest.mark.parametrize("stop", ["from", ["zzz", "from"]])
def test_stop(client, stop):
    r = client.chat.completions.create(model="fake-model", messages=USER, stop=stop)
    assert (r.choices[0].message.content, r.choices[0].finish_reason) == ("Hello ", "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_choices(client, stream):
    r = client.chat.completions.create(model="fake-model", messages=say("@echo"), n=3, seed=9,
                                       stream=stream)
    if stream:
        text = ["", "", ""]
        ends = set()
        for c in r:
            text[c.choices[0].index] += c.choices[0].delta.content or ""
            if c.choices[0].finish_reason:
                ends.add(c.choices[0].index)
        assert ends == {0, 1, 2}
    else:
        assert [c.index for c in r.choices] == [0, 1, 2]
        text = [c.message.content for c in r.choices]
        assert r.usage.completion_tokens == sum(map(len, text))
    for i, t in enumerate(text):
        assert "seed=9 choice=%d " % i in t


def test_logprobs(client):
    r = client.chat.completions.create(model="fake-model", messages=say("@reply=Zü"), logprobs=True,
                                       top_logprobs=3)
    content = r.choices[0].logprobs.content
    assert [t.bytes for t in content] == [[0x5A], [0xC3], [0xBC]]
    assert [t.token for t in content] == ["Z", "\ufffd", "\ufffd"]
    assert [x.logprob for x in content[0].top_logprobs] == [-0.5, -1.5, -2.5]
    r = client.chat.completions.create(model="fake-model", messages=USER, logprobs=True)
    assert all(t.top_logprobs == [] for t in r.choices[0].logprobs.content)
    chunks = list(client.chat.completions.create(model="fake-model", messages=say("@reply=Zü"),
                                                 logprobs=True, stream=True))
    got = [b for c in chunks if c.choices[0].logprobs for t in c.choices[0].logprobs.content
           for b in t.bytes]
    assert bytes(got).decode() == "Zü"


def test_sampling_reaches_engine(client):
    r = client.chat.completions.create(
        model="fake-model", messages=say("@echo"), temperature=0.25, top_p=0.5, seed=77,
        presence_penalty=-1.5, frequency_penalty=0.5, logit_bias={"65": -100, "66": 2.5},
        extra_body={"top_k": 40, "min_p": 0.125, "repetition_penalty": 1.5,
                    "repetition_context_size": 64, "ignore_eos": True})
    t = r.choices[0].message.content
    for want in ("temperature=0.25 ", "top_k=40 ", "top_p=0.5 ", "min_p=0.125 ",
                 "repetition=1.5/64 ", "presence=-1.5 ", "frequency=0.5 ", "seed=77 ",
                 "ignore_eos=1", "marks=1", "bias:65=-100", "bias:66=2.5"):
        assert want in t + " "


def test_every_sampler_reaches_engine(client):
    def told(**fields):
        r = client.chat.completions.create(model="fake-model", messages=say("@echo"), extra_body=fields)
        return r.choices[0].message.content + " "

    t = told(typical_p=0.5, xtc_probability=0.25, xtc_threshold=0.125, mirostat=2, mirostat_tau=3, mirostat_eta=0.5,
             dry_multiplier=0.75, dry_base=1.5, dry_allowed_length=3, dry_penalty_last_n=256,
             dry_sequence_breakers=["a", "\u00fc\u00fc"], presence_context_size=7, frequency_context_size=8)
    for want in (" typical=0.5 ", " xtc=0.25/0.125 ", " mirostat=2/3/0.5 ", " dry=0.75/1.5/3/256 ", " breaker:a ",
                 " breaker:\u00fc\u00fc ", " windows=7/8 "):
        assert want in t
    assert " repetition=1.25/9 " in told(repeat_penalty=1.25, repeat_last_n=9)
    assert " windows=9/9 " in told(repeat_last_n=9)
    everything = told(repeat_last_n=-1, dry_penalty_last_n=-1, repeat_penalty=2)
    assert " repetition=2/0 " in everything and " windows=2147483647/2147483647 " in everything
    nothing = told(repeat_last_n=0, repeat_penalty=2, dry_penalty_last_n=0, dry_multiplier=1)
    assert " repetition=1/" in nothing and " dry=0/" in nothing
    assert "breaker:" not in told(dry_sequence_breakers=[])


def test_defaults_and_random_seed(client):
    texts = {client.chat.completions.create(model="fake-model", messages=say("@echo"))
             .choices[0].message.content for _ in range(3)}
    assert len(texts) == 3  # a seed of its own for each
    assert all("temperature=1 top_k=0 top_p=1 min_p=0 repetition=1/" in t for t in texts)


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.chat.completions.create(model="gpt-9", messages=USER)
    assert e.value.code == "model_not_found" and e.value.param == "model"


def test_engine_error(client):
    with pytest.raises(openai.InternalServerError, match="told to fail"):
        client.chat.completions.create(model="fake-model", messages=say("@fail=3"))
    seen = ""
    with pytest.raises(openai.APIError, match="told to fail"):
        for c in client.chat.completions.create(model="fake-model", messages=say("@fail=3"),
                                                stream=True):
            seen += c.choices[0].delta.content or ""
    assert seen == "Hel"
    with pytest.raises(openai.InternalServerError) as e:
        client.chat.completions.create(model="fake-model", messages=say("@late @fail=3"))
    assert e.value.status_code == 503 and e.value.code == "deadline_exceeded"


@pytest.mark.parametrize("given, want", [({}, 0), ({"priority": -8}, -8), ({"service_tier": "flex"}, 2),
                                         ({"service_tier": "priority"}, -2), ({"service_tier": "auto"}, 0),
                                         ({"service_tier": "flex", "priority": 1}, 1)])
def test_priority(client, given, want):
    r = client.chat.completions.create(model="fake-model", messages=say("@echo"), extra_body=given)
    assert f"priority={want}" in r.choices[0].message.content.split()


@pytest.mark.parametrize("seed, want", [(2**63, 2**63), (2**63 + 1, 2**63 + 1), (2**64 - 1, 2**64 - 1), (-1, 2**64 - 1), (2**63 - 1, 2**63 - 1)])
def test_seeds_are_whole(client, seed, want):
    r = client.chat.completions.create(model="fake-model", messages=say("@echo"), seed=seed)
    assert f"seed={want}" in r.choices[0].message.content.split()


def test_keys():
    with util.serving("--key", "sesame") as s:
        with openai.OpenAI(base_url=s.url + "/v1", api_key="sesame", max_retries=0) as c:
            assert c.chat.completions.create(model="fake-model", messages=USER).choices
        with openai.OpenAI(base_url=s.url + "/v1", api_key="Sesame", max_retries=0) as c:
            with pytest.raises(openai.AuthenticationError):
                c.models.list()
        assert s.request("GET", "/health")[0] == 200
        assert s.request("GET", "/v1/models")[0] == 401
        assert s.request("GET", "/v1/models", headers={"x-api-key": "sesame"})[0] == 200
        assert s.request("GET", "/v1/models", headers={"x-api-key": "sesam"})[0] == 401
        assert s.request("GET", "/v1/models", headers={"Authorization": "bearer sesame"})[0] == 200
        assert s.request("GET", "/v1/models", headers={"Authorization": "Basic sesame"})[0] == 401


def test_async_many(server):
    """Sixty requests at once over one client."""
    asyncio = pytest.importorskip("asyncio")

    async def go():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="x", max_retries=0) as c:
            async def one(i):
                r = await c.chat.completions.create(
                    model="fake-model", messages=say("@pace=1 @reply=answer %d" % i))
                return r.choices[0].message.content
            return await asyncio.gather(*[one(i) for i in range(60)])

    assert asyncio.run(go()) == ["answer %d" % i for i in range(60)]
