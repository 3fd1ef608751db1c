"""Custom tools of chats: declared, called, streamed, and given back."""
import json

import pytest
import util

CHAT = "/v1/chat/completions"
TEXT = "*** Begin \"Patch\"\n\\n Köln {x}\n"
PATCH = {"type": "custom", "custom": {"name": "apply_patch", "description": "Edits files.", "format": {
    "type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x+/"}}}}
PLAIN = {"type": "custom", "custom": {"name": "run"}}
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}


def call(name, arguments):
    return '\n<tool_call>\n%s\n</tool_call>' % json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def ask(said, step=1, **fields):
    return dict({"model": "fake-model", "seed": 1, "tools": [PATCH, LOOK, PLAIN], "messages": [
        {"role": "user", "content": "@says=%s\n@ends=\"assistant: \"\n@step=%d\n" % (json.dumps(said), step)}]}, **fields)


@pytest.fixture(scope="module")
def server():
    with util.serving("--template", "<tool_call>") as s:
        yield s


def whole(server, body):
    status, _, out = server.request("POST", CHAT, body)
    assert status == 200, out
    return json.loads(out)["choices"][0]


def joined(server, body):
    """The calls and the text of a stream, as its deltas make them."""
    status, _, out = server.request("POST", CHAT, dict(body, stream=True))
    assert status == 200, out
    calls, text, finish = [], "", None
    for e in util.events(out):
        if e == "[DONE]":
            continue
        for c in json.loads(e)["choices"]:
            text += c["delta"].get("content") or ""
            finish = c["finish_reason"] or finish
            for d in c["delta"].get("tool_calls", ()):
                if "id" in d:
                    calls.append({"id": d["id"], "type": d["type"], d["type"]: {"name": d[d["type"]]["name"]}})
                kind = calls[-1]["type"]
                for key in ("arguments", "input"):
                    if key in d[kind]:
                        calls[-1][kind][key] = calls[-1][kind].get(key, "") + d[kind][key]
    return calls, text, finish


def prompt_of(server, **fields):
    status, _, out = server.request("POST", "/apply-template", dict({"model": "fake-model"}, **fields))
    assert status == 200, out
    return json.loads(out)["prompt"]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_called(server, step):
    """Beside a function's, whole and streamed alike."""
    body = ask("I look." + call("apply_patch", {"input": TEXT}) + call("look", {"at": "x"}) + call("run", {"input": ""}), step)
    c = whole(server, body)
    m = c["message"]
    assert c["finish_reason"] == "tool_calls" and m["content"] == "I look."
    assert [x["type"] for x in m["tool_calls"]] == ["custom", "function", "custom"]
    assert m["tool_calls"][0]["custom"] == {"name": "apply_patch", "input": TEXT}
    assert json.loads(m["tool_calls"][1]["function"]["arguments"]) == {"at": "x"}
    assert m["tool_calls"][2]["custom"] == {"name": "run", "input": ""}
    assert joined(server, body) == (m["tool_calls"], "I look.", "tool_calls")


def test_without_input(server):
    body = ask(call("run", {"patch": "x"}))
    calls = whole(server, body)["message"]["tool_calls"]
    assert json.loads(calls[0]["custom"]["input"]) == {"patch": "x"}
    assert joined(server, body)[0] == calls


def test_no_call(server):
    """What turns out to be none is text, and a name that no tool has is a function's."""
    said = '<tool_call>{"name": "run", "arguments": {"input": !!}}</tool_call> Hm.'
    assert whole(server, ask(said))["message"]["content"] == said
    assert joined(server, ask(said))[1:] == (said, "stop")


def test_given_back(server):
    calls = whole(server, ask(call("apply_patch", {"input": TEXT})))["message"]["tool_calls"]
    text = prompt_of(server, tools=[PATCH], messages=[
        {"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "ok"}])
    told = json.JSONDecoder().raw_decode(text[text.index("assistant: ") + len("assistant: "):])[0]
    assert [(x["id"], x["type"], x["function"]) for x in told] == [
        (calls[0]["id"], "function", {"name": "apply_patch", "arguments": {"input": TEXT}})]
    assert "custom" not in told[0] and "\ntool %s" % calls[0]["id"] in text


def test_declared(server):
    """To the template it is a function of one text; what a grammar asks is told in its description."""
    text = prompt_of(server, tools=[PATCH, PLAIN], messages=[{"role": "user", "content": "go"}])
    tools = next(v for i in range(len(text)) if text[i] == "[" for v in decoded(text[i:]) if v and isinstance(v[0], dict))
    assert [(t["type"], t["function"]["name"]) for t in tools] == [("function", "apply_patch"), ("function", "run")]
    assert tools[0]["function"]["description"] == "Edits files.\n\n`input` must match this Lark grammar:\nstart: /x+/"
    assert "description" not in tools[1]["function"]
    for t in tools:
        assert t["function"]["parameters"] == {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def decoded(text):
    try:
        yield json.JSONDecoder().raw_decode(text)[0]
    except ValueError:
        pass


def test_allowed(server):
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "run"}}]}}
    text = prompt_of(server, tools=[PATCH, LOOK, PLAIN], tool_choice=choice, messages=[{"role": "user", "content": "go"}])
    assert '"run"' in text and "apply_patch" not in text and "look" not in text


def test_client(server):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        m = c.chat.completions.create(**ask(call("apply_patch", {"input": TEXT}))).choices[0].message
        assert m.tool_calls[0].type == "custom" and m.tool_calls[0].custom.input == TEXT
        body = ask("")
        body["messages"] = [{"role": "user", "content": "go"}, m.model_dump(exclude_none=True), {
            "role": "tool", "tool_call_id": m.tool_calls[0].id, "content": "ok\n@says=\"Done.\"\n@ends=\"assistant: \"\n"}]
        assert c.chat.completions.create(**body).choices[0].message.content == "Done."
