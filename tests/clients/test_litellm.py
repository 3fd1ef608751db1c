"""litellm over three of the APIs: as an OpenAI server, as Anthropic, as Ollama."""
import asyncio
import json

import pytest
import util
from script import ARGS, CALLING, DONE, HELLO, says

litellm = pytest.importorskip("litellm", reason="no litellm: make test-clients installs it")

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}]
ROUTES = {"openai": ("openai/fake-model", "/v1"), "anthropic": ("anthropic/fake-model", ""), "ollama": ("ollama_chat/fake-model", "")}


@pytest.fixture(params=sorted(ROUTES))
def api(request, server):
    model, path = ROUTES[request.param]
    return {"model": model, "api_base": server.url + path, "api_key": "none", "num_retries": 0, "timeout": util.PATIENCE}


@pytest.fixture
def openai(server):
    model, path = ROUTES["openai"]
    return {"model": model, "api_base": server.url + path, "api_key": "none", "num_retries": 0, "timeout": util.PATIENCE}


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


def test_async(api):
    async def ask():
        s = await litellm.acompletion(messages=say("hi"), stream=True, max_tokens=1000, **api)
        return "".join([c.choices[0].delta.content or "" async for c in s])
    assert asyncio.run(ask()) == HELLO


@pytest.mark.parametrize("stream", [False, True])
def test_tools(api, stream):
    """A call, its result, an answer; what was given goes back as it came."""
    messages = say(CALLING)
    r = litellm.completion(messages=messages, tools=TOOLS, stream=stream, max_tokens=1000, **api)
    if stream:
        r = litellm.stream_chunk_builder(list(r), messages=messages)
    m = r.choices[0].message
    assert m.content == "I look." and r.choices[0].finish_reason == "tool_calls"
    assert [(c.function.name, json.loads(c.function.arguments)) for c in m.tool_calls] == [("get_weather", ARGS)]
    messages += [m.model_dump(exclude_none=True),
                 {"role": "tool", "tool_call_id": m.tool_calls[0].id, "name": "get_weather", "content": DONE}]
    r = litellm.completion(messages=messages, tools=TOOLS, max_tokens=1000, **api)
    assert r.choices[0].message.content == "It rains." and r.choices[0].finish_reason == "stop"


def test_thoughts(api):
    r = litellm.completion(messages=say(says("<think>hm</think>ab")), max_tokens=1000, **api)
    assert (r.choices[0].message.reasoning_content, r.choices[0].message.content) == ("hm", "ab")


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
