"""litellm over three of the APIs: as an OpenAI server, as Anthropic, as Ollama."""
import asyncio
import base64
import functools
import json

import leaving
import pytest
import silence
import util
from picture import png
from script import AGAIN, ARGS, CALLING, DONE, HELLO, LONG, says

litellm = pytest.importorskip("litellm", reason="no litellm: make test-clients installs it")

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}]
ROUTES = {"openai": ("openai/fake-model", "/v1"), "anthropic": ("anthropic/fake-model", ""), "ollama": ("ollama_chat/fake-model", "")}


def route(server, name):
    model, path = ROUTES[name]
    return {"model": model, "api_base": server.url + path, "api_key": "none", "num_retries": 0, "timeout": util.PATIENCE}


@pytest.fixture(params=sorted(ROUTES))
def api(request, server):
    return route(server, request.param)


@pytest.fixture
def openai(server):
    return route(server, "openai")


def say(text):
    return [{"role": "user", "content": text}]


def test_chat(api):
    r = litellm.completion(messages=say("hi"), max_tokens=1000, **api)
    assert r.choices[0].message.content == HELLO and r.choices[0].finish_reason == "stop"
    assert r.usage.completion_tokens == len(HELLO)
    r = litellm.completion(messages=say("hi"), max_tokens=5, **api)
    assert (r.choices[0].message.content, r.choices[0].finish_reason) == ("Hello", "length")


def test_stream(api):
    chunks = list(litellm.completion(messages=say("hi"), stream=True, max_tokens=1000,
                                     stream_options={"include_usage": True}, **api))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == HELLO
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
    whole = litellm.stream_chunk_builder(chunks)
    assert whole.choices[0].message.content == HELLO and whole.usage.completion_tokens == len(HELLO)


def test_usage(api):
    """What was cached counts once."""
    u = litellm.completion(messages=say("hi @cached=2"), max_tokens=1000, **api).usage
    assert u.completion_tokens == len(HELLO) and u.total_tokens == u.prompt_tokens + len(HELLO)
    assert u.prompt_tokens == litellm.completion(messages=say("hi @cached=0"), max_tokens=1000, **api).usage.prompt_tokens
    if not api["model"].startswith("ollama"):  # whose API has no word for it
        assert u.prompt_tokens_details.cached_tokens == 2


def test_async(api):
    async def ask():
        s = await litellm.acompletion(messages=say("hi"), stream=True, max_tokens=1000, **api)
        return "".join([c.choices[0].delta.content or "" async for c in s])
    assert asyncio.run(ask()) == HELLO


@pytest.mark.parametrize("stream", [False, True])
def test_tools(api, stream):
    """A call, its result, another one, an answer; what was given goes back as it came."""
    messages = say(CALLING)
    for said, days, result in ("I look.", 3, AGAIN), ("Once more.", 4, DONE):
        r = litellm.completion(messages=messages, tools=TOOLS, stream=stream, max_tokens=1000, **api)
        if stream:
            r = litellm.stream_chunk_builder(list(r), messages=messages)
        m = r.choices[0].message
        assert m.content == said and r.choices[0].finish_reason == "tool_calls"
        assert [(c.function.name, json.loads(c.function.arguments)) for c in m.tool_calls] == [("get_weather", dict(ARGS, days=days))]
        messages += [m.model_dump(exclude_none=True),
                     {"role": "tool", "tool_call_id": m.tool_calls[0].id, "name": "get_weather", "content": result}]
    r = litellm.completion(messages=messages, tools=TOOLS, max_tokens=1000, **api)
    assert r.choices[0].message.content == "It rains." and r.choices[0].finish_reason == "stop"


def test_thoughts(api):
    r = litellm.completion(messages=say(says("<think>hm</think>ab")), max_tokens=1000, **api)
    assert (r.choices[0].message.reasoning_content, r.choices[0].message.content) == ("hm", "ab")


def test_sampling(api):
    r = litellm.completion(messages=say("@echo"), max_tokens=999, temperature=0.25, top_p=0.5, **api)
    for want in "temperature=0.25 ", "top_p=0.5 ", "max_tokens=999 ":
        assert want in r.choices[0].message.content


def test_logprobs(openai):
    r = litellm.completion(messages=say("hi"), logprobs=True, top_logprobs=2, **openai)
    tokens = r.choices[0].logprobs.content
    assert "".join(t.token for t in tokens) == HELLO and all(len(t.top_logprobs) == 2 for t in tokens)


def test_image(api):
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    parts = [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": url}}]
    with pytest.raises(litellm.BadRequestError, match=r"`messages.*` is .*the model reads text alone"):
        litellm.completion(messages=say(parts), max_tokens=10, **api)


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_keys(locked, name):
    asked = route(locked, name)
    assert litellm.completion(messages=say("hi"), max_tokens=1000, **dict(asked, api_key="sesame")).choices[0].message.content == HELLO
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(messages=say("hi"), max_tokens=1000, **asked)


def test_long_prefill(server, tmp_path):
    def ask(api, text):
        chunks = litellm.completion(messages=say(text), stream=True, max_tokens=1000, **dict(api, timeout=silence.IDLE_S))
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    asks = [functools.partial(ask, route(server, n)) for n in sorted(ROUTES)]
    assert silence.bear(server, tmp_path, asks) == [silence.AT_LAST] * len(asks)


def test_leaving(api, server):
    """By closing the stream, and by ending the task that reads it."""
    s = litellm.completion(messages=say(LONG), stream=True, max_tokens=60000, **api)
    next(s)
    server.wait_rows(1, 0)
    s.close()
    server.wait_rows()

    async def read(begun):
        async for _ in await litellm.acompletion(messages=say(LONG), stream=True, max_tokens=60000, **api):
            begun.set()
    asyncio.run(leaving.cancel(server, read))


def test_errors(api):
    with pytest.raises(litellm.NotFoundError, match="nope"):
        litellm.completion(messages=say("hi"), max_tokens=10, **dict(api, model=api["model"].replace("fake-model", "nope")))
    with pytest.raises(litellm.BadRequestError, match="temperature"):
        litellm.completion(messages=say("hi"), max_tokens=10, temperature=9, **api)
    with pytest.raises(litellm.InternalServerError, match="told to fail"):
        litellm.completion(messages=say("@fail=3"), max_tokens=10, **api)


def test_failure_in_a_stream(api):
    seen = ""
    with pytest.raises(Exception, match="told to fail"):
        for c in litellm.completion(messages=say("@fail=3"), max_tokens=100, stream=True, **api):
            seen += c.choices[0].delta.content or ""
    assert HELLO.startswith(seen)


def test_enforced_calls_are_refused(openai):
    with pytest.raises(litellm.BadRequestError, match="tool_choice"):
        litellm.completion(messages=say("hi"), tools=TOOLS, tool_choice="required", **openai)


def test_text_completion(openai):
    r = litellm.text_completion(prompt="hi", max_tokens=5, **dict(openai, model="text-completion-openai/fake-model"))
    assert r.choices[0].text == "Hello"


def test_responses(openai):
    r = litellm.responses(input="hi", **openai)
    assert r.output[0].content[0].text == HELLO
    kinds = [e.type for e in litellm.responses(input="hi", stream=True, **openai)]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"


def test_embeddings(embedder):
    url, name = embedder
    r = litellm.embedding(model="openai/" + name, input=["w3 w4", "w5"], api_base=url + "/v1", api_key="none")
    assert [len(d["embedding"]) for d in r.data] == [24, 24]
    with pytest.raises(litellm.NotFoundError):
        litellm.embedding(model="openai/nope", input=["w3"], api_base=url + "/v1", api_key="none")
