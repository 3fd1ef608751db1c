"""The official OpenAI client calling tools: streams that it accumulates, and a loop over turns."""
import json

import pytest
import util

openai = pytest.importorskip("openai")

TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather", "strict": True,
    "parameters": {"type": "object", "required": ["city", "days"], "additionalProperties": False,
                   "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}]
THOUGHT = "The user wants\nweather."
CALLS = [{"city": "Köln", "days": 3}, {"city": "a \"b\" \\ {x}", "days": -1}]

SYNTAX = {
    "hermes": ("<tool_call>", "<think>\n%s\n</think>\n\nI look.",
               '\n<tool_call>\n{"name": "get_weather", "arguments": %s}\n</tool_call>'),
    "harmony": ("<|channel|><|message|>",
                "<|channel|>analysis<|message|>%s<|end|>"
                "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>",
                "<|start|>assistant<|channel|>commentary to=functions.get_weather "
                "<|constrain|>json<|message|>%s<|call|>"),
    "deepseek": ("<｜Assistant｜>", "<think>%s</think>I look.",
                 "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>%s"
                 "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
}


@pytest.fixture(scope="module", params=sorted(SYNTAX))
def family(request):
    template, said, call = SYNTAX[request.param]
    with util.serving("--template", template) as s:
        with openai.OpenAI(base_url=s.url + "/v1", api_key="none", max_retries=0,
                           timeout=util.PATIENCE) as c:
            end = "<|start|>assistant" if request.param == "harmony" else "assistant: "
            text = said % THOUGHT
            for arguments in CALLS[:1] if request.param == "harmony" else CALLS:
                text += call % json.dumps(arguments, ensure_ascii=False)
            yield s, c, ask(text, end), 1 if request.param == "harmony" else 2


def ask(text, end="assistant: "):
    return [{"role": "user", "content": "@says=%s\n@ends=%s\n" % (json.dumps(text), json.dumps(end))}]


def check(m, n):
    assert m.content == "I look." and m.reasoning_content == THOUGHT == m.reasoning
    assert [c.type for c in m.tool_calls] == ["function"] * n
    assert [c.function.name for c in m.tool_calls] == ["get_weather"] * n
    assert [json.loads(c.function.arguments) for c in m.tool_calls] == CALLS[:n]
    assert len({c.id for c in m.tool_calls}) == n


def test_whole(family):
    _, client, messages, n = family
    r = client.chat.completions.create(model="fake-model", messages=messages, tools=TOOLS, seed=1)
    assert r.choices[0].finish_reason == "tool_calls"
    check(r.choices[0].message, n)


def test_stream_helper(family):
    """The client's own accumulator: what it makes of the deltas is the whole answer."""
    _, client, messages, n = family
    with client.chat.completions.stream(model="fake-model", messages=messages, tools=TOOLS,
                                        seed=1) as s:
        done = [e for e in s if e.type == "tool_calls.function.arguments.done"]
        final = s.get_final_completion()
    assert final.choices[0].finish_reason == "tool_calls"
    m = final.choices[0].message
    assert [c.function.parsed_arguments for c in m.tool_calls] == CALLS[:n]
    assert [json.loads(e.arguments) for e in done] == CALLS[:n]
    whole = client.chat.completions.create(model="fake-model", messages=messages, tools=TOOLS,
                                           seed=1)
    check(whole.choices[0].message, n)
    assert m.content == whole.choices[0].message.content
    assert [(c.id, c.function.name, c.function.arguments) for c in m.tool_calls] == \
        [(c.id, c.function.name, c.function.arguments) for c in whole.choices[0].message.tool_calls]


def test_loop(family):
    """A call, its result, an answer: each turn gives back what the one before it gave."""
    server, client, messages, n = family
    messages = list(messages)
    seen = set()
    for turn in range(3):
        r = client.chat.completions.create(model="fake-model", messages=messages, tools=TOOLS,
                                           seed=5)
        m = r.choices[0].message
        if not m.tool_calls:
            break
        check(m, n)
        ids = {c.id for c in m.tool_calls}
        assert not ids & seen  # the seed is the same in each turn
        seen |= ids
        messages.append(m.model_dump(exclude_none=True))
        last = turn == 1
        for c in m.tool_calls:
            end = '\n@says="It rains."\n@ends="assistant: "\n' if last else ""
            messages.append({"role": "tool", "tool_call_id": c.id, "content": "rain" + end})
    assert turn == 2 and r.choices[0].finish_reason == "stop"
    assert m.content == "It rains." and len(seen) == 2 * n
    prompt = json.loads(server.request("POST", "/apply-template", {
        "messages": messages, "tools": TOOLS})[2])["prompt"]
    lines = [x for x in prompt.split("\n") if x.startswith("assistant: I look.")]
    assert len(lines) == 2
    for line in lines:  # arguments are objects again, as templates want them
        calls = json.JSONDecoder().raw_decode(line[len("assistant: I look."):])[0]  # thoughts follow
        assert [c["function"]["arguments"] for c in calls] == CALLS[:n]
        assert {c["id"] for c in calls} < seen


FUNCTION = TOOLS[0]["function"]
THEIRS = {"name": FUNCTION["name"], "input_schema": {"type": "object"}}
SAID = {"model": "fake-model", "messages": [{"role": "user", "content": "x"}]}
WITH = [("/v1/chat/completions", dict(SAID, tools=TOOLS)), ("/v1/chat/completions", dict(SAID, tools=TOOLS, stream=True)),
        ("/apply-template", dict(SAID, tools=TOOLS)), ("/v1/messages", dict(SAID, tools=[THEIRS], max_tokens=9)),
        ("/v1/messages/count_tokens", dict(SAID, tools=[THEIRS])), ("/api/chat", dict(SAID, tools=TOOLS)),
        ("/v1/responses", {"model": "fake-model", "input": "x", "tools": [dict(FUNCTION, type="function")]}),
        ("/v1/responses/input_tokens", {"model": "fake-model", "input": "x", "tools": [dict(FUNCTION, type="function")]})]


def test_model_without_tools():
    """A template that knows of none would drop them in silence: each API says so.  Those that may not be called are
    rendered nowhere, so they do no harm."""
    with util.serving("--no-tools") as s:
        for path, body in WITH:
            status, _, said = s.request("POST", path, body)
            e = json.loads(said)["error"]
            assert status == 400 and "`tools` are given, and the model `fake-model` does not support tools" in str(e), (path, said)
            if "param" in e:
                assert (e["param"], e["code"]) == ("tools", "unsupported_parameter")
        for path, body in WITH:
            none = {"type": "none"} if "messages" in path else "none"
            if path != "/api/chat":
                assert s.request("POST", path, dict(body, tool_choice=none))[0] == 200, path
        shown = json.loads(s.request("POST", "/api/show", {"model": "fake-model"})[2])
        assert "tools" not in shown["capabilities"]
    with util.serving() as s:
        for path, body in WITH:
            assert s.request("POST", path, body)[0] == 200, path
