"""The SDKs of OpenAI, Anthropic and Ollama, in what takes long or is sent as a picture; the rest of what they do is tested in
tests/serve."""
import asyncio
import base64

import anthropic
import leaving
import ollama
import openai
import pytest
import silence
import util
from picture import png
from script import HELLO, LONG

PNG = base64.b64encode(png()).decode()


def say(text):
    return [{"role": "user", "content": text}]


def make(of, server, timeout=util.PATIENCE, **more):
    if of.__name__.endswith("OpenAI"):
        return of(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=timeout)
    if of.__name__.endswith("Anthropic"):
        return of(base_url=server.url, api_key="none", max_retries=0, timeout=timeout)
    return of(host=server.url, timeout=timeout)


# How each streams, whole or asynchronous: its client, the call, the text of a part.
WAYS = {
    "chat": ("OpenAI", lambda c, t: c.chat.completions.create(model="fake-model", messages=say(t), stream=True),
             lambda p: p.choices[0].delta.content if p.choices else ""),
    "completions": ("OpenAI", lambda c, t: c.completions.create(model="fake-model", prompt=t, stream=True, max_tokens=60000),
                    lambda p: p.choices[0].text if p.choices else ""),
    "responses": ("OpenAI", lambda c, t: c.responses.create(model="fake-model", input=t, stream=True),
                  lambda p: p.delta if p.type == "response.output_text.delta" else ""),
    "messages": ("Anthropic", lambda c, t: c.messages.create(model="fake-model", max_tokens=60000, messages=say(t), stream=True),
                 lambda p: p.delta.text if p.type == "content_block_delta" else ""),
    "ollama chat": ("Client", lambda c, t: c.chat("fake-model", say(t), stream=True), lambda p: p.message.content),
    "ollama generate": ("Client", lambda c, t: c.generate("fake-model", t, stream=True), lambda p: p.response),
}
HOMES = {"OpenAI": openai, "Anthropic": anthropic, "Client": ollama}
OF = {"openai": ["chat", "completions", "responses"], "anthropic": ["messages"], "ollama": ["ollama chat", "ollama generate"]}


def long_prefill(server, folder, names):
    def by(name):
        home, ask, text = WAYS[name]
        client = make(getattr(HOMES[home], home), server, silence.IDLE_S)
        return lambda t: "".join(text(p) or "" for p in ask(client, t))
    assert silence.bear(server, folder, [by(n) for n in names]) == [silence.AT_LAST] * len(names)


def leave(server, name):
    """By closing the stream, and by ending the task that reads it."""
    home, ask, text = WAYS[name]
    client = make(getattr(HOMES[home], home), server)
    s = ask(client, LONG)
    assert any(text(p) for p in s)
    server.wait_rows(1, 0)
    s.close()
    server.wait_rows()

    async def read(begun):
        async for p in await ask(make(getattr(HOMES[home], "Async" + home), server), LONG):
            if text(p):
                begun.set()
    asyncio.run(leaving.cancel(server, read))


def test_openai_long_prefill(server, tmp_path):
    long_prefill(server, tmp_path, OF["openai"])


def test_anthropic_long_prefill(server, tmp_path):
    long_prefill(server, tmp_path, OF["anthropic"])


def test_ollama_long_prefill(server, tmp_path):
    long_prefill(server, tmp_path, OF["ollama"])


@pytest.mark.parametrize("name", OF["openai"])
def test_openai_leaving(server, name):
    leave(server, name)


@pytest.mark.parametrize("name", OF["anthropic"])
def test_anthropic_leaving(server, name):
    leave(server, name)


@pytest.mark.parametrize("name", OF["ollama"])
def test_ollama_leaving(server, name):
    leave(server, name)


def test_anthropic_async(server):
    async def ask():
        async with make(anthropic.AsyncAnthropic, server) as c:
            return [m.content[0].text for m in await asyncio.gather(*(
                c.messages.create(model="fake-model", max_tokens=1000, messages=say("hi")) for _ in range(8)))]
    assert asyncio.run(ask()) == [HELLO] * 8


def test_ollama_async(server):
    async def ask():
        c = make(ollama.AsyncClient, server)
        return [r.message.content for r in await asyncio.gather(*(c.chat("fake-model", say("hi")) for _ in range(8)))]
    assert asyncio.run(ask()) == [HELLO] * 8


def test_openai_image(server):
    url = "data:image/png;base64," + PNG
    with make(openai.OpenAI, server) as c:
        with pytest.raises(openai.BadRequestError, match="the model reads text alone") as e:
            c.chat.completions.create(model="fake-model", messages=say([{"type": "image_url", "image_url": {"url": url}}]))
        assert e.value.param == "messages[0].content[0]"
        with pytest.raises(openai.BadRequestError, match="the model reads text alone") as e:
            c.responses.create(model="fake-model", input=say([{"type": "input_image", "image_url": url}]))
        assert e.value.param == "input[0].content[0]"


def test_anthropic_image(server):
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    with make(anthropic.Anthropic, server) as c:
        with pytest.raises(anthropic.BadRequestError, match="messages.0.content.0.*the model reads text alone"):
            c.messages.create(model="fake-model", max_tokens=9, messages=say([{"type": "image", "source": source}]))


def test_ollama_image(server):
    c = make(ollama.Client, server)
    with pytest.raises(ollama.ResponseError, match=r"messages\[0\].images.*the model reads text alone") as e:
        c.chat("fake-model", [{"role": "user", "content": "x", "images": [png()]}])
    assert e.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match="images.*the model reads text alone"):
        c.generate("fake-model", "x", images=[png()])


def test_ollama_embeddings(embedder):
    url, name = embedder
    c = ollama.Client(host=url)
    assert [len(v) for v in c.embed(name, ["w3 w4", "w5"]).embeddings] == [24, 24] and len(c.embeddings(name, "w5").embedding) == 24
