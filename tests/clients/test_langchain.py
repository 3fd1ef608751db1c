"""langchain-openai: its chat model over chat completions and over responses, its embeddings, and tools bound to it."""
import asyncio

import pytest
import util
from script import ARGS, CALLING, DONE, HELLO, says

chain = pytest.importorskip("langchain_openai", reason="no langchain-openai: make test-clients installs it")
openai = pytest.importorskip("openai")
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_core.tools import tool  # noqa: E402


@tool
def get_weather(city: str, days: int) -> str:
    """The weather."""
    return DONE


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


def test_async_and_batch(chat, loop):
    async def ask():
        return "".join([c.text async for c in chat.astream("hi")])
    assert loop.run(ask()) == HELLO
    assert [r.text for r in chat.batch(["hi"] * 4)] == [HELLO] * 4


@pytest.mark.parametrize("stream", [False, True])
def test_tools(chat, stream):
    """A call, the tool run by the client, an answer."""
    model = chat.bind_tools([get_weather])
    messages = [HumanMessage(CALLING)]
    if stream:
        r = None
        for c in model.stream(messages):
            r = c if r is None else r + c
    else:
        r = model.invoke(messages)
    assert r.text == "I look."
    assert [(c["name"], c["args"]) for c in r.tool_calls] == [("get_weather", ARGS)]
    result = get_weather.invoke(dict(r.tool_calls[0], type="tool_call"))
    assert isinstance(result, ToolMessage)
    assert model.invoke(messages + [r, result]).text == "It rains."


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


def test_thoughts_are_left_out(server):
    """The client drops them in chats; the answer is the answer."""
    r = make(server).invoke(says("<think>hm</think>ab"))
    assert r.text == "ab" and "reasoning_content" not in r.additional_kwargs


def test_embeddings(embedder):
    url, name = embedder
    # Without this the client sends ids of OpenAI's own vocabulary, which it fetches from a network.
    e = chain.OpenAIEmbeddings(model=name, base_url=url + "/v1", api_key="none", check_embedding_ctx_length=False)
    many = e.embed_documents(["w3 w4", "w5"])
    assert [len(v) for v in many] == [24, 24] and max(abs(a - b) for a, b in zip(e.embed_query("w5"), many[1])) < 1e-6
