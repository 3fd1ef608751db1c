"""Ollama's routes, by its own Python client and by hand."""
import json

import ollama
import pytest
import util

TOOL = {"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


@pytest.fixture(scope="module")
def knows_tools():
    """A template that names what it takes."""
    with util.serving("--template", "{{ tools }}{{ enable_thinking }}<think>") as s:
        yield s


def client(s):
    return ollama.Client(host=s.url)


def post(s, path, **body):
    status, headers, reply = s.request("POST", path, body)
    return status, headers, reply


def say(text, **more):
    return dict({"model": "fake-model", "messages": [{"role": "user", "content": text}]}, **more)


def test_lookups(server):
    c = client(server)
    assert [m.model for m in c.list().models] == ["fake-model"]
    m = c.list().models[0]
    assert len(m.digest) == 64 and m.size >= 0 and m.details.format == "fake" and m.modified_at
    assert [m.model for m in c.ps().models] == ["fake-model"]
    assert c.ps().models[0].context_length == 100000
    for name in "fake-model", "fake-model:latest":
        shown = c.show(name)
        assert shown.details.family == "fake" and shown.modelinfo["fake.context_length"] == 100000
        assert "completion" in shown.capabilities and "thinking" in shown.capabilities
        assert "tools" in shown.capabilities
    version = json.loads(server.request("GET", "/api/version")[2])
    assert tuple(map(int, version["version"].split("."))) >= (0, 6, 4) and version["cairn"]


@pytest.mark.parametrize("stream", [False, True])
def test_chat(server, stream):
    r = client(server).chat("fake-model", [{"role": "user", "content": "@reply=Hello there."}], stream=stream,
                            options={"temperature": 0})
    parts = list(r) if stream else [r]
    assert "".join(p.message.content for p in parts) == "Hello there."
    last = parts[-1]
    assert last.done and last.done_reason == "stop" and last.model == "fake-model" and last.created_at
    assert last.eval_count == 12 and last.prompt_eval_count > 0 and last.total_duration >= last.eval_duration >= 0
    assert not any(p.done for p in parts[:-1])
    assert all(p.message.role == "assistant" for p in parts)


@pytest.mark.parametrize("stream", [False, True])
def test_generate(server, stream):
    c = client(server)
    r = c.generate("fake-model", "@reply=One two.", system="Be brief.", stream=stream)
    parts = list(r) if stream else [r]
    assert "".join(p.response for p in parts) == "One two." and parts[-1].done
    r = c.generate("fake-model", "say @prompt", system="Be brief.")
    assert r.response.startswith("system: Be brief.\nuser: say @prompt")
    assert c.generate("fake-model", "say @prompt", raw=True).response == "say @prompt"


def test_stream_is_lines(server):
    status, headers, body = post(server, "/api/chat", **say("@reply=abc"))
    assert status == 200 and headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(x) for x in body.decode().splitlines()]
    assert body.endswith(b"}\n") and [x["done"] for x in lines] == [False] * (len(lines) - 1) + [True]
    status, headers, body = post(server, "/api/chat", **say("@reply=abc", stream=False))
    assert headers["content-type"] == "application/json" and json.loads(body)["message"]["content"] == "abc"


def test_options(server):
    c = client(server)

    def echo(**options):
        return c.chat("fake-model", [{"role": "user", "content": "@echo"}], options=options).message.content

    said = echo(temperature=0.5, top_k=7, top_p=0.25, seed=42, repeat_penalty=1.5, num_predict=300)
    other = echo(temperature=0.25, top_k=7, top_p=0.25, seed=42, repeat_penalty=1.5, num_predict=300)
    assert said != other and echo(seed=1) != echo(seed=2) and echo(seed=1) == echo(seed=1)
    r = c.chat("fake-model", [{"role": "user", "content": "@reply=abcdefgh"}], options={"num_predict": 3})
    assert (r.message.content, r.done_reason, r.eval_count) == ("abc", "length", 3)
    r = c.chat("fake-model", [{"role": "user", "content": "@reply=abcdefgh"}], options={"num_predict": -1})
    assert (r.message.content, r.done_reason) == ("abcdefgh", "stop")
    for stop in ["ef"], "ef":
        r = json.loads(post(server, "/api/chat", **say("@reply=abcdefgh", stream=False, options={"stop": stop}))[2])
        assert r["message"]["content"] == "abcd" and r["done_reason"] == "stop"
    c.chat("fake-model", [{"role": "user", "content": "x"}], keep_alive="5m",
           options={"num_ctx": 2048, "num_gpu": 1, "num_thread": 2, "num_batch": 8, "num_keep": 4, "use_mmap": True})


def test_load(server):
    c = client(server)
    r = c.chat("fake-model", [])
    assert r.done and r.done_reason == "load" and r.message.content == ""
    r = c.generate("fake-model", "", keep_alive=-1)
    assert r.done and r.done_reason == "load" and r.response == ""
    status, _, body = post(server, "/api/generate", model="nope")
    assert status == 404 and "`nope`" in json.loads(body)["error"]


def test_thinking(server):
    for think in True, "low":
        r = client(server).chat("fake-model", [{"role": "user", "content": "@prompt"}], think=think)
        assert r.done
    says = json.dumps("<think>well</think>done")
    for stream in False, True:
        r = client(server).chat("fake-model", [{"role": "user", "content": "@says=" + says}], stream=stream)
        parts = list(r) if stream else [r]
        thought = "".join(p.message.thinking or "" for p in parts)
        content = "".join(p.message.content or "" for p in parts)
        assert (thought.strip(), content.strip()) == ("well", "done")


def call_text():
    return json.dumps('<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo", "n": [1, 2]}}\n</tool_call>')


@pytest.mark.parametrize("stream", [False, True])
def test_tools(knows_tools, stream):
    c = client(knows_tools)
    ask = [{"role": "user", "content": "Weather?\n@says=" + call_text()}]
    r = c.chat("fake-model", ask, tools=[TOOL], stream=stream)
    parts = list(r) if stream else [r]
    calls = [x for p in parts for x in p.message.tool_calls or []]
    assert [(x.function.name, x.function.arguments) for x in calls] == [("weather", {"city": "Oslo", "n": [1, 2]})]
    assert parts[-1].done_reason == "stop"
    # and the next turn, as the client writes it
    ask += [{"role": "assistant", "content": "", "tool_calls": [calls[0].model_dump()]},
            {"role": "tool", "tool_name": "weather", "content": "rain"},
            {"role": "user", "content": "@reply=Take a coat."}]
    assert c.chat("fake-model", ask, tools=[TOOL]).message.content == "Take a coat."


@pytest.mark.parametrize("path,body,status,says", [
    ("/api/chat", say("x", model="nope"), 404, "the model `nope` does not exist"),
    ("/api/generate", {"model": "nope", "prompt": "x"}, 404, "the model `nope` does not exist"),
    ("/api/show", {"model": "nope"}, 404, "the model `nope` does not exist"),
    ("/api/show", {}, 400, "`model` is needed"),
    ("/api/show", {"model": 3}, 400, "`model` is needed"), ("/api/show", {"model": "fake-model", "name": 3}, 400, "`name` must be a string"),
    ("/api/show", {"model": "fake-model", "verbose": "yes"}, 400, "`verbose` must be true or false"),
    ("/api/embed", {"model": "nope", "input": "x"}, 404, "the model `nope` does not exist"),
    ("/api/embed", {"model": "fake-model", "input": "x"}, 400, "is no embedding model"),
    ("/api/chat", say("x", options={"temperature": "hot"}), 400, "options.temperature"),
    ("/api/chat", say("x", options={"num_predict": -3}), 400, "options.num_predict"),
    ("/api/chat", say("x", options={"num_ctx": 200000}), 400, "`options.num_ctx` is 200000; expected at most 100000"),
    ("/api/chat", say("x", options={"stop": [1]}), 400, "options.stop"),
    ("/api/chat", say("x", options=[1]), 400, "`options` must be an object"),
    ("/api/chat", say("x", options={"tfs_z": 0.5}), 400, "options.tfs_z"),
    ("/api/chat", say("x", format="json"), 400, "`format` is not supported"),
    ("/api/chat", say("x", format={"type": "object"}), 400, "`format` is not supported"),
    ("/api/chat", say("x", logprobs=True), 400, "`logprobs` is not supported"),
    ("/api/chat", say("x", stream="yes"), 400, "stream"),
    ("/api/chat", say("x", think="hard"), 400, "think"),
    ("/api/chat", say("x", tools=[{"type": "function"}]), 400, "tools[0].function"),
    ("/api/chat", {"model": "fake-model", "messages": {}}, 400, "messages"),
    ("/api/chat", {"model": "fake-model", "messages": [3]}, 400, "messages[0]"),
    ("/api/chat", {"model": "fake-model", "messages": [{"content": "x"}]}, 400, "messages[0].role"),
    ("/api/chat", {"model": "fake-model", "messages": [{"role": "wizard", "content": "x"}]}, 400, "messages[0].role"),
    ("/api/chat", {"model": "fake-model", "messages": [{"role": "user", "content": [1]}]}, 400, "messages[0].content"),
    ("/api/chat", {"model": "fake-model", "messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, 400,
     "`messages[0].images` is not supported"),
    ("/api/chat", {"model": "fake-model", "messages": [{"role": "assistant", "tool_calls": {}}]}, 400,
     "messages[0].tool_calls"),
    ("/api/generate", {"model": "fake-model", "prompt": "x", "images": ["aGk="]}, 400, "`images` is not supported"),
    ("/api/generate", {"model": "fake-model", "prompt": "x", "suffix": "y"}, 400, "`suffix` is not supported"),
    ("/api/generate", {"model": "fake-model", "prompt": "x", "width": 64}, 400, "`width` is not supported"),
    ("/api/chat", say("x", options={"logits_all": 1}), 400, "options.logits_all"),
    ("/api/generate", {"model": "fake-model", "prompt": "x", "template": "y"}, 400, "`template` is not supported"),
    ("/api/generate", {"model": "fake-model", "prompt": "x", "context": [1]}, 400, "`context` is not supported"),
    ("/api/generate", {"model": "fake-model", "prompt": "x", "raw": True, "system": "y"}, 400, "`system` is given"),
    ("/api/generate", {"model": "fake-model", "prompt": 3}, 400, "prompt"),
    ("/api/generate", {"model": "fake-model", "prompt": "", "raw": {}}, 400, "`raw` must be a boolean"),
    ("/api/generate", {"model": "fake-model", "system": 3}, 400, "system"),
    ("/api/generate", {"model": "fake-model", "prompt": "a" * 100001, "raw": True}, 400, "context holds 100000"),
    ("/api/chat", say("@template-error"), 400, "prompt build failed"),
])
def test_errors(server, path, body, status, says):
    got, headers, reply = server.request("POST", path, body)
    e = json.loads(reply)
    assert got == status and list(e) == ["error"] and says in e["error"], e
    assert headers["content-type"] == "application/json"


def test_errors_of_the_server(server):
    for raw, status in ((b"{", 400), (b"[1]", 400), (b"", 400)):
        for path in "/api/chat", "/api/generate", "/api/embed", "/api/show":
            got, _, reply = server.request("POST", path, raw)
            assert got == status and list(json.loads(reply)) == ["error"], (path, reply)
    got, _, reply = server.request("POST", "/api/pull", {"model": "x"})
    assert got == 404 and json.loads(reply) == {"error": "not found"}
    got, h, reply = server.request("GET", "/api/chat")
    assert got == 405 and "POST" in h["allow"] and list(json.loads(reply)) == ["error"]
    with pytest.raises(ollama.ResponseError) as e:
        client(server).chat("nope", [{"role": "user", "content": "x"}])
    assert e.value.status_code == 404 and e.value.error == "the model `nope` does not exist; expected `fake-model`"


def test_failure_in_a_stream(server):
    lines = [json.loads(x) for x in post(server, "/api/chat", **say("@n=9 @fail=3"))[2].decode().splitlines()]
    assert list(lines[-1]) == ["error"] and not any("error" in x for x in lines[:-1])
    got, _, reply = post(server, "/api/chat", **say("@n=9 @fail=3", stream=False))
    assert got == 500 and list(json.loads(reply)) == ["error"]
    with pytest.raises(ollama.ResponseError):
        list(client(server).chat("fake-model", [{"role": "user", "content": "@n=9 @fail=3"}], stream=True))


def test_leaving_ends_the_work(server):
    with server.connect() as s:
        s.sendall(util.build("POST", "/api/chat", say("@n=100000 @pace=5")))
        util.read_until(s, b'"done":false')
    server.wait_rows()


def test_keys():
    with util.serving("--key", "k") as s:
        got, h, reply = s.request("GET", "/api/tags")
        assert got == 401 and list(json.loads(reply)) == ["error"]
        assert ollama.Client(host=s.url, headers={"Authorization": "Bearer k"}).list().models


def test_the_same_as_other_apis(server):
    """One prompt, one seed: one answer."""
    ask = {"model": "fake-model", "messages": [{"role": "user", "content": "@echo"}]}
    mine = json.loads(post(server, "/api/chat", **dict(ask, stream=False, options={
        "temperature": 0.5, "top_k": 3, "top_p": 0.5, "seed": 7}))[2])["message"]["content"]
    openai = json.loads(server.request("POST", "/v1/chat/completions", dict(
        ask, temperature=0.5, top_k=3, top_p=0.5, seed=7, repetition_context_size=64))[2])
    assert mine == openai["choices"][0]["message"]["content"]
