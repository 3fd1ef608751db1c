"""Fields of Anthropic's messages: what a template is given, what is refused and how."""
import json

import pytest
import util

ONE = [{"role": "user", "content": "x"}]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


@pytest.fixture(scope="module")
def server():
    with util.serving("--template", "<tool_call>{{enable_thinking}}{{reasoning_effort}}") as s:
        yield s
        s.wait_rows()


def post(server, path="/v1/messages", **fields):
    body = dict({"model": "fake-model", "max_tokens": 1000, "messages": ONE}, **fields)
    status, _, out = server.request("POST", path, {k: v for k, v in body.items() if v is not ...})
    return status, json.loads(out)


def blocks(*list_, role="user"):
    return [{"role": "user", "content": "x"}] * (role != "user") + [{"role": role, "content": list(list_)}]


def result(**fields):
    return dict({"type": "tool_result", "tool_use_id": "a"}, **fields)


def use(**fields):
    return dict({"type": "tool_use", "id": "a", "name": "f", "input": {}}, **fields)


def tool(**fields):
    return [dict({"name": "f", "input_schema": {"type": "object"}}, **fields)]


FIRST, SECOND = "messages.0.content.0", "messages.1.content.0"
BAD = [
    ("max_tokens", ...), ("max_tokens", None), ("max_tokens", 0), ("max_tokens", "9"), ("max_tokens", 1.5),
    ("messages", ...), ("messages", None), ("messages", []), ("messages", "hi"), ("messages.0", ["hi"]),
    ("messages.0.role", [{"role": "boss", "content": "x"}]), ("messages.0.role", [{"content": "x"}]),
    ("messages.0.content", [{"role": "user"}]), ("messages.0.content", [{"role": "user", "content": 3}]),
    ("messages.0.content", [{"role": "user", "content": []}]), (FIRST, blocks("x")), (FIRST + ".type", blocks({})),
    (FIRST + ".type", blocks({"type": 3})), (FIRST + ".text", blocks({"type": "text"})),
    (FIRST + ".text", blocks({"type": "text", "text": None})),
    (FIRST, blocks(IMAGE)), (FIRST + ".source", blocks({"type": "document"})),
    (FIRST + ".source", blocks({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": ""}})),
    (FIRST + ".source.data", blocks({"type": "document", "source": {"type": "text", "data": 3}})), (FIRST + ".content", blocks({"type": "search_result"})),
    (FIRST + ".source.content.0", blocks({"type": "document", "source": {"type": "content", "content": [IMAGE]}})),
    (FIRST, blocks({"type": "audio"})), (FIRST, blocks(use())), (FIRST, blocks({"type": "thinking", "thinking": "x"})),
    ("messages.0.content.1", blocks({"type": "text", "text": "x"}, IMAGE)),
    (FIRST + ".tool_use_id", blocks({"type": "tool_result"})), (FIRST + ".tool_use_id", blocks(result(tool_use_id=""))),
    (FIRST + ".is_error", blocks(result(is_error="yes"))), (FIRST + ".content", blocks(result(content=3))),
    (FIRST + ".content.0", blocks(result(content=["x"]))), (FIRST + ".content.0", blocks(result(content=[IMAGE]))),
    (FIRST + ".content.0.text", blocks(result(content=[{"type": "text", "text": 3}]))),
    (SECOND + ".id", blocks(use(id=3), role="assistant")), (SECOND + ".name", blocks(use(name=""), role="assistant")),
    (SECOND + ".input", blocks(use(input="{}"), role="assistant")),
    (SECOND + ".thinking", blocks({"type": "thinking"}, role="assistant")),
    (SECOND + ".data", blocks({"type": "redacted_thinking"}, role="assistant")),
    (SECOND, blocks(result(), role="assistant")), (SECOND + ".id", blocks({"type": "server_tool_use"}, role="assistant")),
    (SECOND + ".tool_use_id", blocks({"type": "web_search_tool_result"}, role="assistant")), (SECOND + ".content", blocks({"type": "web_search_tool_result", "tool_use_id": "a", "content": 3}, role="assistant")),
    ("messages.1", ONE + [{"role": "assistant", "content": "Sure, "}]),
    ("system", 3), ("system.0", ["x"]), ("system.0", [IMAGE]), ("system.0.text", [{"type": "text"}]),
    ("model", 7), ("temperature", -1), ("temperature", "hot"), ("temperature", 3), ("top_p", 1.5), ("top_k", 1.5),
    ("stop_sequences", "x"), ("stop_sequences", [""]), ("stop_sequences", [3]), ("stop_sequences", ["a"] * 17),
    ("stream", "yes"), ("metadata", 3), ("metadata.user_id", {"user_id": 3}),
    ("thinking", True), ("thinking.type", {}), ("thinking.type", {"type": "on"}),
    ("thinking.type", {"type": "between_tools"}), ("thinking.budget_tokens", {"type": "enabled"}),
    ("thinking.budget_tokens", {"type": "enabled", "budget_tokens": 0}),
    ("thinking.budget_tokens", {"type": "enabled", "budget_tokens": "1024"}),
    ("thinking.budget_tokens", {"type": "enabled", "budget_tokens": 1000}),
    ("thinking.display", {"type": "adaptive", "display": "all"}),
    ("output_config", 3), ("output_config.effort", {"effort": "some"}),
    ("output_config.format", {"format": {"type": "json_schema", "schema": {}}}), ("output_format", {"type": "json_schema"}),
    ("tool_choice", "auto"), ("tool_choice.type", {}), ("tool_choice.type", {"type": "any"}),
    ("tool_choice.type", {"type": "tool", "name": "f"}), ("tool_choice.type", {"type": "maybe"}),
    ("tool_choice.disable_parallel_tool_use", {"type": "auto", "disable_parallel_tool_use": 1}),
    ("tools", {}), ("tools.0", [1]), ("tools.0.name", [{"input_schema": {}}]), ("tools.0.input_schema", [{"name": "f"}]),
    ("tools.0.input_schema", tool(input_schema=[])), ("tools.0.description", tool(description=3)),
    ("tools.0.type", tool(type="hammer_20250305")), ("tools.0.type", tool(type=3)), ("tools.0.name", [{"type": "bash_20250124", "name": "shell"}]),
    ("tools.1.name", tool() + tool(name=3)), ("tools.1.name", tool() + tool()),
    ("tools.0.name", tool(name="a.b")), ("tools.0.name", tool(name="x" * 129)), ("tools.0.strict", tool(strict=5)), ("tools.0.defer_loading", tool(defer_loading="x")),
    ("tools.0.cache_control.type", tool(cache_control={})), ("service_tier", "priority"), ("service_tier", 5), ("priority", "x"), ("priority", 9),
    ("ignore_eos", "x"), ("skip_special_tokens", 1), ("cache_control", 5), ("cache_control.type", {"type": "forever"}),
    ("cache_control.ttl", {"type": "ephemeral", "ttl": "2h"}), (FIRST + ".cache_control", blocks({"type": "text", "text": "x", "cache_control": "x"})),
    ("system.0.cache_control.type", [{"type": "text", "text": "x", "cache_control": {"type": 3}}]), ("context_management", []),
    ("context_management.edits", {"edits": 3}), ("inference_geo", 5),
    ("container", {"id": "c"}), ("mcp_servers", [{"name": "m"}]), ("speed", "fast"), ("thread", {"type": "create"}), ("compaction", {"type": "summary"}),
]


@pytest.mark.parametrize("path,value", BAD, ids=["%s=%s" % (p, str(v)[:30]) for p, v in BAD])
def test_refused_by_path(server, path, value):
    status, out = post(server, **{path.split(".")[0]: value})
    e = out["error"]
    assert status == 400 and out["type"] == "error" and out["request_id"], out
    assert e["type"] == "invalid_request_error" and "`%s`" % path in e["message"], e
    if not path.startswith(("max_tokens", "temp", "top", "stop", "stream", "meta", "thinking.budget", "prio", "ignore", "skip")):
        assert post(server, "/v1/messages/count_tokens", max_tokens=..., **{path.split(".")[0]: value})[0] == 400


def test_says_what_and_why(server):
    for field, value, says in [
            ("messages", blocks(IMAGE), "block of type `image`, which is not supported here: the model reads text alone"),
            ("messages", blocks(use()), "block of type `tool_use`, which a message of role user cannot hold"),
            ("tool_choice", {"type": "any"}, "enforcing a call needs grammars"),
            ("tools", tool(type="hammer"), "`tools.0.type` must be custom or a type of Anthropic's own, found `hammer`"),
            ("max_tokens", ..., "`max_tokens` must be an integer of at least 1, found nothing"),
            ("messages", ONE + [{"role": "assistant", "content": "S"}], "cannot be continued (prefill)")]:
        message = post(server, **{field: value})[1]["error"]["message"]
        assert says in message, message


FINE = [
    {"unheard_of": [1], "service_tier": "auto", "metadata": {"user_id": "u"}, "cache_control": {"type": "ephemeral"},
     "context_management": {"edits": []}, "inference_geo": "eu", "speed": "standard", "mcp_servers": [], "diagnostics": {"previous_message_id": None},
     "billing_policy": {"type": "billing_policy", "bill_to": "self"}, "fallback_credit_token": None, "thread": None, "compaction": None},
    {"temperature": None, "stop_sequences": None, "tools": None, "tool_choice": None, "thinking": None, "system": None,
     "metadata": None, "stream": None, "output_config": None}, {"system": []}, {"stop_sequences": []}, {"tools": []},
    {"thinking": {"type": "enabled", "budget_tokens": 16}}, {"thinking": {"type": "disabled"}}, {"top_k": 0},
    {"tools": tool(type="custom", strict=True, cache_control={"type": "ephemeral"}), "tool_choice": {"type": "auto"}},
    {"messages": blocks(result())}, {"messages": blocks({"type": "text", "text": "", "citations": None})},
    {"model": None}, {"model": ...},
]


@pytest.mark.parametrize("fields", FINE)
def test_accepted(server, fields):
    status, out = post(server, **fields)
    assert status == 200, out
    assert post(server, "/v1/messages/count_tokens", max_tokens=..., **fields)[0] == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff{}", b'{"a": 1} x'])
def test_invalid_json(server, body):
    for path in "/v1/messages", "/v1/messages/count_tokens":
        status, _, out = server.request("POST", path, body)
        assert status == 400 and json.loads(out)["error"]["type"] == "invalid_request_error"


def prompt_of(server, **fields):
    """What the double's template writes, which tells it to say so."""
    messages = fields.pop("messages", ONE)
    return post(server, messages=messages + [{"role": "user", "content": "@prompt"}], **fields)[1]["content"][0]["text"]


def test_prompt(server):
    got = prompt_of(server, system=[{"type": "text", "text": "be good", "cache_control": {"type": "ephemeral"}},
                                    {"type": "text", "text": "be brief"}], messages=[
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "redacted_thinking", "data": "…"},
            {"type": "text", "text": "I look."}, use(input={"x": [1, 1.0]}), use(id="b", name="g")]},
        {"role": "user", "content": [
            result(content="3"), result(tool_use_id="b", is_error=True, content=[
                {"type": "text", "text": "no"}, {"type": "text", "text": "way"}]),
            {"type": "text", "text": "and"}, {"type": "text", "text": "now?"}]},
        {"role": "assistant", "content": [use(id="c")]}, {"role": "assistant", "content": "so"},
        {"role": "user", "content": [result(tool_use_id="c", is_error=True, content="Error 7")]},
    ])
    call = '{"id":"%s","type":"function","function":{"name":"%s","arguments":%s}}'
    assert got.split("\n") == [
        "system: be good", "be brief", "user: q",
        "assistant: I look.[%s,%s] thought: hm" % (call % ("a", "f", '{"x":[1,1.0]}'), call % ("b", "g", "{}")),
        "tool a f: 3", "tool b g: Error: no", "way", "user: and", "now?",
        "assistant: so[%s]" % call % ("c", "f", "{}"), "tool c f: Error 7", "user: @prompt", "assistant: "]


def test_turns_of_one_role_are_one(server):
    got = prompt_of(server, messages=[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    assert got.split("\n") == ["user: a", "", "b", "", "@prompt", "assistant: "]


def test_system_messages(server):
    got = prompt_of(server, system="a", messages=[{"role": "system", "content": "b"}] + ONE)
    assert got.split("\n")[:3] == ["system: a", "", "b"]


def test_billing_header_is_left_out(server):
    """What Claude Code writes first, another one each time: with it no prefix would be found again."""
    got = prompt_of(server, system=[{"type": "text", "text": "x-anthropic-billing-header: a=b; cch=1f2;"},
                                    {"type": "text", "text": "You are"}])
    assert got.split("\n")[0] == "system: You are"


def test_tools_and_thinking(server):
    tools = json.loads(prompt_of(server, tools=tool(description="d", strict=True)).split("\n")[0][7:])
    assert tools == [{"type": "function", "function": {
        "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}}]
    assert "tools: " not in prompt_of(server, tools=tool(), tool_choice={"type": "none"})
    for fields, kwargs in [({"thinking": {"type": "enabled", "budget_tokens": 9}}, {"enable_thinking": True}),
                           ({"thinking": {"type": "adaptive"}}, {"enable_thinking": True}),
                           ({"thinking": {"type": "disabled"}}, {"enable_thinking": False}),
                           ({"output_config": {"effort": "low"}}, {"enable_thinking": True, "reasoning_effort": "low"})]:
        got = json.loads(prompt_of(server, **fields).split("\n")[0][len("kwargs: "):])
        assert got.items() >= kwargs.items(), (fields, got)
    assert "kwargs" not in prompt_of(server)


def test_budget_reaches_engine(server):
    said = post(server, messages=[{"role": "user", "content": "@echo"}],
                thinking={"type": "enabled", "budget_tokens": 48})[1]["content"][0]["text"]
    assert "think_budget=48" in said
    said = post(server, messages=[{"role": "user", "content": "@echo"}])[1]["content"][0]["text"]
    assert "think_budget=-1" in said


def test_count_tokens(server):
    count = lambda **f: post(server, "/v1/messages/count_tokens", max_tokens=..., **f)  # noqa: E731
    assert count() == (200, {"input_tokens": len("user: x\nassistant: ")})
    assert count(system="be good")[1]["input_tokens"] == len("system: be good\nuser: x\nassistant: ")
    assert count(tools=tool())[1]["input_tokens"] > 100
    assert count(model="other")[0] == 404
    with util.serving("--ctx", 100) as s:  # more than fits can be counted, not answered
        long = [{"role": "user", "content": "x" * 5000}]
        assert post(s, "/v1/messages/count_tokens", messages=long)[1] == {"input_tokens": 5018}
        status, out = post(s, messages=long)
        assert status == 400 and "positions" in out["error"]["message"]


THEIRS = [
    ({"type": "document", "title": "T", "context": "C", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}, "T\nC\nwords"),
    ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}, "a\nb"),
    ({"type": "search_result", "source": "http://x", "title": "T", "content": [{"type": "text", "text": "found"}]}, "T\nhttp://x\nfound"),
]


@pytest.mark.parametrize("block,text", THEIRS)
def test_blocks_that_are_texts(server, block, text):
    assert prompt_of(server, messages=blocks(block)) == prompt_of(server, messages=blocks({"type": "text", "text": text}))
    inside = [prompt_of(server, messages=blocks(use(), role="assistant") + blocks(result(content=c))) for c in ([block], text)]
    assert inside[0] == inside[1]


def test_what_a_server_did(server):
    """A call and its result, in the assistant's own turn."""
    found = {"type": "web_search_result", "url": "http://x", "title": "T", "encrypted_content": "zzz"}
    said = prompt_of(server, messages=blocks(
        {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {"query": "q"}}, {"type": "web_search_tool_result", "tool_use_id": "a", "content": [found]},
        {"type": "text", "text": "so"}, role="assistant") + ONE)
    assert "web_search" in said and "T\nhttp://x" in said and "zzz" not in said and "assistant: so" in said
    said = prompt_of(server, messages=blocks({"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}}, {
        "type": "web_search_tool_result", "tool_use_id": "a", "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}, role="assistant") + ONE)
    assert "Error: unavailable" in said


def test_tools_that_anthropic_defines(server):
    """The client's are functions of their published schemas, the server's are left out, and the client is told."""
    for type_, name, needs in [("bash_20250124", "bash", []), ("text_editor_20250124", "str_replace_editor", ["command", "path"]),
                               ("text_editor_20250728", "str_replace_based_edit_tool", ["command", "path"]), ("memory_20250818", "memory", ["command"])]:
        told = json.loads(prompt_of(server, tools=[{"type": type_, "name": name}]).split("\n")[0][len("tools: "):])
        assert len(told) == 1 and told[0]["function"]["name"] == name and told[0]["function"]["parameters"]["required"] == needs
    body = {"model": "fake-model", "max_tokens": 5, "messages": ONE}
    for type_ in ["web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "computer_20250124", "tool_search_tool_bm25_20251119"]:
        tools = [{"type": type_, "name": "x"}]
        status, headers, out = server.request("POST", "/v1/messages", dict(body, tools=tools))
        assert status == 200 and headers["warning"].startswith('299 cairn "not here and left out: tools of type ' + type_[:8]), out
        assert prompt_of(server, tools=tools) == prompt_of(server)
        assert json.loads(prompt_of(server, tools=tools + tool()).split("\n")[0][len("tools: "):])[0]["function"]["name"] == "f"
