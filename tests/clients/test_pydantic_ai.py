"""pydantic-ai: agents over chat completions, responses and messages; the loop over tools is the client's own."""
import asyncio

import leaving
import pytest
import silence
import util
from picture import png
from script import AGAIN, ARGS, CALLING, DONE, HELLO, LONG, says

ai = pytest.importorskip("pydantic_ai", reason="no pydantic-ai: make test-clients installs it")
from pydantic_ai import Agent, BinaryContent, Embedder, ModelHTTPError  # noqa: E402
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel  # noqa: E402
from pydantic_ai.messages import ThinkingPart, ToolCallPart, ToolReturnPart  # noqa: E402
from pydantic_ai.models.anthropic import AnthropicModel  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: E402
from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402


def make(api, url, name="fake-model", key="none"):
    if api == "messages":
        return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key=key))
    of = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
    return of(name, provider=OpenAIProvider(base_url=url + "/v1", api_key=key))


APIS = ["chat", "responses", "messages"]


@pytest.fixture(params=APIS)
def api(request):
    return request.param


@pytest.fixture
def agent(api, server):
    return Agent(make(api, server.url), instructions="be good")


def parts(result, kind):
    return [p for m in result.all_messages() for p in m.parts if isinstance(p, kind)]


def test_chat(agent):
    r = agent.run_sync("hi")
    assert r.output == HELLO and r.usage.output_tokens == len(HELLO)
    again = agent.run_sync("and now?", message_history=r.all_messages())
    assert again.output == HELLO and again.usage.input_tokens > r.usage.input_tokens


def test_stream(agent):
    async def ask():
        async with agent.run_stream("hi") as r:
            return [t async for t in r.stream_text(delta=True, debounce_by=None)], r.usage
    seen, usage = asyncio.run(ask())
    assert "".join(seen) == HELLO and len(seen) > 1 and usage.output_tokens == len(HELLO)


@pytest.mark.parametrize("stream", [False, True])
def test_tools(agent, stream):
    """The agent's loop: a call, the tool run, its result given back, another call, an answer."""
    ran = []

    @agent.tool_plain
    def get_weather(city: str, days: int) -> str:
        """The weather."""
        ran.append({"city": city, "days": days})
        return DONE if len(ran) > 1 else AGAIN

    async def ask():
        async with agent.run_stream(CALLING) as r:
            text = await r.get_output()
            return r, text
    if stream:
        r, output = asyncio.run(ask())
    else:
        r = agent.run_sync(CALLING)
        output = r.output
    # To run_stream the text before a call is the answer already, and the turn its last.
    want = [ARGS] if stream else [ARGS, dict(ARGS, days=4)]
    assert ran == want
    calls, results = parts(r, ToolCallPart), parts(r, ToolReturnPart)
    assert [c.args_as_dict() for c in calls] == want and [c.tool_call_id for c in calls] == [p.tool_call_id for p in results]
    assert output == ("I look." if stream else "It rains.")


def test_usage(agent):
    """What was cached counts once."""
    u = agent.run_sync("hi @cached=2").usage
    assert u.cache_read_tokens == 2 and u.output_tokens == len(HELLO)
    assert u.input_tokens == agent.run_sync("hi @cached=0").usage.input_tokens


def test_thoughts(agent):
    """By responses, where thoughts are asked for as a summary."""
    r = agent.run_sync(says("<think>hm</think>ab"), model_settings={"openai_reasoning_summary": "detailed"})
    assert r.output == "ab" and [p.content for p in parts(r, ThinkingPart)] == ["hm"]


def test_settings(agent):
    r = agent.run_sync("@echo", model_settings={"temperature": 0.25, "top_p": 0.5, "max_tokens": 999})
    assert "temperature=0.25 " in r.output and "top_p=0.5 " in r.output and "max_tokens=999 " in r.output


def test_image(agent):
    with pytest.raises(ModelHTTPError, match="content.1.*the model reads text alone") as e:
        agent.run_sync(["x", BinaryContent(png(), media_type="image/png")])
    assert e.value.status_code == 400


def test_keys(api, locked):
    def ask(key):
        return Agent(make(api, "http://127.0.0.1:%d" % locked.port, key=key)).run_sync("hi").output
    assert ask("sesame") == HELLO
    with pytest.raises(ModelHTTPError) as e:
        ask("Sesame")
    assert e.value.status_code == 401


def test_long_prefill(server, tmp_path):
    def by(api):
        async def ask(text):
            async with Agent(make(api, server.url)).run_stream(text, model_settings={"timeout": silence.IDLE_S}) as r:
                return await r.get_output()
        return lambda text: asyncio.run(ask(text))
    assert silence.bear(server, tmp_path, [by(a) for a in APIS]) == [silence.AT_LAST] * len(APIS)


def test_leaving(agent, server):
    """By leaving the stream's block, and by ending the task in it."""
    async def read(begun):
        async with agent.run_stream(LONG, model_settings={"max_tokens": 60000}) as r:
            async for _ in r.stream_text(delta=True, debounce_by=None):
                if not begun:
                    break
                begun.set()

    async def leave():
        await read(None)
        await asyncio.to_thread(server.wait_rows)
        await leaving.cancel(server, read)
    asyncio.run(leave())


def test_errors(api, agent, server):
    with pytest.raises(ModelHTTPError, match="nope") as e:
        Agent(make(api, server.url, "nope")).run_sync("hi")
    assert e.value.status_code == 404
    with pytest.raises(ModelHTTPError, match="temperature") as e:
        agent.run_sync("hi", model_settings={"temperature": 9})
    assert e.value.status_code == 400


def test_failure_in_a_stream(agent):
    async def ask(seen):
        async with agent.run_stream("@fail=3") as r:
            async for t in r.stream_text(delta=True, debounce_by=None):
                seen.append(t)
    seen = []
    with pytest.raises(Exception, match="told to fail"):
        asyncio.run(ask(seen))
    assert HELLO.startswith("".join(seen))


def test_logprobs(server):
    r = Agent(make("chat", server.url)).run_sync("hi", model_settings={"openai_logprobs": True, "openai_top_logprobs": 2})
    tokens = r.all_messages()[-1].provider_details["logprobs"]
    assert "".join(t["token"] for t in tokens) == HELLO and all(len(t["top_logprobs"]) == 2 for t in tokens)


def test_structured_output_is_refused(server):
    """It is asked for by a call that must be made, which needs grammars: a 400 that names it."""
    with pytest.raises(ModelHTTPError, match="tool_choice") as e:
        Agent(make("chat", server.url), output_type=list[int]).run_sync("hi")
    assert e.value.status_code == 400


def test_embeddings(embedder):
    url, name = embedder
    e = Embedder(OpenAIEmbeddingModel(name, provider=OpenAIProvider(base_url=url + "/v1", api_key="none")))
    r = e.embed_documents_sync(["w3 w4", "w5"])
    assert [len(v) for v in r.embeddings] == [24, 24]
