"""langchain-openai: its chat model over chat completions and over responses, its embeddings, and tools bound to it."""
import asyncio
import base64

import pytest
import silence
import util
from picture import png
from script import AGAIN, ARGS, CALLING, DONE, HELLO, LONG, says

chain = pytest.importorskip("langchain_openai", reason="no langchain-openai: make test-clients installs it")
openai = pytest.importorskip("openai")
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_core.tools import tool  # noqa: E402


@tool
def get_weather(city: str, days: int) -> str:
    """The weather."""
    return DONE if days > ARGS["days"] else AGAIN


def make(server, **more):
    return chain.ChatOpenAI(**dict(dict(model="fake-model", base_url=server.url + "/v1", api_key="none", max_retries=0,
                                        timeout=util.PATIENCE), **more))


@pytest.fixture(scope="module")
def loop():
    """One for all: the client keeps its connections over the life of a process."""
    with asyncio.Runner() as r:
        yield r


@pytest.fixture(params=["chat", "responses"])
def chat(request, server):
    return make(server, use_responses_api=request.param == "responses")


def test_chat(chat):
    r = chat.invoke([SystemMessage("be good"), HumanMessage("hi")])
    assert r.text == HELLO and r.usage_metadata["output_tokens"] == len(HELLO) and not r.tool_calls
    assert r.usage_metadata["total_tokens"] == r.usage_metadata["input_tokens"] + len(HELLO)


def test_stream(chat):
    """The usage comes whether it is asked for or not."""
    for asked in ({},) if chat.use_responses_api else ({"stream_usage": True}, {"stream_usage": False}, {}):
        whole = None
        for c in chat.stream("hi", **asked):
            whole = c if whole is None else whole + c
        assert whole.text == HELLO and whole.usage_metadata["output_tokens"] == len(HELLO)


def test_usage(chat):
    """What was cached counts once."""
    u = chat.invoke("hi @cached=2").usage_metadata
    assert u["input_token_details"]["cache_read"] == 2 and u["output_tokens"] == len(HELLO)
    assert u["input_tokens"] == chat.invoke("hi @cached=0").usage_metadata["input_tokens"]


def test_async_and_batch(chat, loop):
    async def ask():
        return "".join([c.text async for c in chat.astream("hi")])
    assert loop.run(ask()) == HELLO
    assert [r.text for r in chat.batch(["hi"] * 4)] == [HELLO] * 4


@pytest.mark.parametrize("stream", [False, True])
def test_tools(chat, stream):
    """A call, the tool run by the client, another one, an answer."""
    model = chat.bind_tools([get_weather])
    messages = [HumanMessage(CALLING)]
    for said, days in ("I look.", 3), ("Once more.", 4):
        if stream:
            r = None
            for c in model.stream(messages):
                r = c if r is None else r + c
        else:
            r = model.invoke(messages)
        assert r.text == said
        assert [(c["name"], c["args"]) for c in r.tool_calls] == [("get_weather", dict(ARGS, days=days))]
        result = get_weather.invoke(dict(r.tool_calls[0], type="tool_call"))
        assert isinstance(result, ToolMessage)
        messages += [r, result]
    assert model.invoke(messages).text == "It rains."


def test_enforced_calls_are_refused(server):
    """What needs grammars is a 400 that names it."""
    for choice in "any", "get_weather":
        with pytest.raises(openai.BadRequestError, match="tool_choice"):
            make(server).bind_tools([get_weather], tool_choice=choice).invoke("hi")
    with pytest.raises(openai.BadRequestError, match="response_format"):
        make(server).with_structured_output({"title": "x", "type": "object", "properties": {}},
                                            method="json_schema").invoke("hi")


def test_logprobs(server):
    r = make(server, logprobs=True, top_logprobs=2).invoke("hi")
    tokens = r.response_metadata["logprobs"]["content"]
    assert "".join(t["token"] for t in tokens) == HELLO and all(len(t["top_logprobs"]) == 2 for t in tokens)


def test_errors(chat, server):
    with pytest.raises(openai.NotFoundError, match="nope"):
        make(server, model="nope", use_responses_api=chat.use_responses_api).invoke("hi")
    with pytest.raises(openai.BadRequestError, match="temperature"):
        make(server, temperature=9, use_responses_api=chat.use_responses_api).invoke("hi")
    with pytest.raises(openai.InternalServerError, match="told to fail"):
        make(server).invoke("@fail=3")
    seen = ""
    with pytest.raises(openai.APIError, match="told to fail"):
        for c in make(server).stream("@fail=3"):
            seen += c.text
    assert seen == "Hel"


def test_completions(server):
    m = chain.OpenAI(model="fake-model", base_url=server.url + "/v1", api_key="none", max_retries=0, max_tokens=5)
    assert m.invoke("hi") == "Hello" == "".join(m.stream("hi"))


def test_thoughts(server):
    """Over responses; in chats the client drops them, and the answer is the answer."""
    asked = says("<think>hm</think>ab")
    r = make(server).invoke(asked)
    assert r.text == "ab" and "reasoning_content" not in r.additional_kwargs
    r = make(server, use_responses_api=True, reasoning={"summary": "auto"}).invoke(asked)
    assert r.text == "ab" and [b["reasoning"] for b in r.content_blocks if b["type"] == "reasoning"] == ["hm"]


def test_sampling(server, chat):
    said = make(server, use_responses_api=chat.use_responses_api, temperature=0.25, top_p=0.5, max_tokens=999).invoke("@echo").text
    for want in "temperature=0.25 ", "top_p=0.5 ", "max_tokens=999 ":
        assert want in said


def test_image(chat):
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    with pytest.raises(openai.BadRequestError, match=r"content\[1\]` is .*the model reads text alone"):
        chat.invoke([HumanMessage([{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": url}}])])


def test_keys(chat, locked):
    def ask(key):
        return make(locked, api_key=key, use_responses_api=chat.use_responses_api).invoke("hi").text
    assert ask("sesame") == HELLO
    with pytest.raises(openai.AuthenticationError):
        ask("Sesame")


def test_long_prefill(server, tmp_path):
    def by(responses):
        model = make(server, timeout=silence.IDLE_S, use_responses_api=responses)
        return lambda text: "".join(c.text for c in model.stream(text))
    assert silence.bear(server, tmp_path, [by(False), by(True)]) == [silence.AT_LAST] * 2


def test_leaving(chat, server, loop):
    """By closing the stream.  (Ending a task that reads one does not: the client goes on to its end.)"""
    s = chat.stream(LONG)
    next(s)
    server.wait_rows(1, 0)
    s.close()
    server.wait_rows()

    async def leave():
        s = chat.astream(LONG)
        await anext(s)
        await s.aclose()
        await asyncio.to_thread(server.wait_rows)
    loop.run(leave())


def test_embeddings(embedder):
    url, name = embedder
    # Without this the client sends ids of OpenAI's own vocabulary, which it fetches from a network.
    e = chain.OpenAIEmbeddings(model=name, base_url=url + "/v1", api_key="none", check_embedding_ctx_length=False)
    many = e.embed_documents(["w3 w4", "w5"])
    assert [len(v) for v in many] == [24, 24] and max(abs(a - b) for a, b in zip(e.embed_query("w5"), many[1])) < 1e-6
