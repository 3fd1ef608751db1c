"""POST /v1/responses: what the openai client makes of it, and what no client would send."""
import json

import pytest
import util

openai = pytest.importorskip("openai")
import responses_conform as conform  # noqa: E402

TOOL = {"type": "function", "name": "get_weather", "description": "The weather", "strict": False,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files.",
         "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"*** Begin Patch\""}}
SPACE = {"type": "namespace", "name": "mcp__git__", "description": "Of git.", "tools": [
    {"type": "function", "name": "log", "description": "History", "parameters": {"type": "object", "properties": {}}},
    {"type": "custom", "name": "run"}]}
ARGS = {"city": "Köln \"x\" {y"}
TEXT = "*** Begin Patch\n\t\"é\" \\ 漢🙂 }]\n*** End Patch"


def call(name, args):
    return "\n<tool_call>\n%s\n</tool_call>" % json.dumps({"name": name, "arguments": args})


def says(text, end="assistant: "):
    return "@says=%s\n@ends=%s\n" % (json.dumps(text), json.dumps(end))


@pytest.fixture(scope="module")
def server():
    with util.serving("--template", "<tool_call>") as s:
        yield s
        s.wait_rows()


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        yield c


def post(server, status=200, **body):
    got, headers, reply = server.request("POST", "/v1/responses", dict({"model": "fake-model"}, **body))
    assert got == status, reply
    if status == 200 and body.get("stream"):
        return conform.stream(reply)[0]
    if status == 200:
        conform.response(json.loads(reply))
    return json.loads(reply)


def both(server, **body):
    """The whole answer; a stream's must be the same but for its ids and times."""
    body = dict({"seed": 1}, **body)  # ids of calls follow from it
    whole, last = post(server, **body), post(server, stream=True, **body)
    ids = {whole["id"][5:]: "", last["id"][5:]: ""}
    for r in (whole, last):
        text = json.dumps(r)
        for x in ids:
            text = text.replace(x, "ID")
        r["_"] = json.loads(text)
        for k in ("created_at", "completed_at"):
            r["_"].pop(k)
    assert whole.pop("_") == last.pop("_")
    return whole


def prompt_of(server, **body):
    """What the model is given: the fake's template has a line a message, thoughts and calls behind the text."""
    items = body.pop("input")
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    return post(server, input=items + [{"role": "user", "content": "@prompt"}], **body)["output"][0]["content"][0]["text"]


def texts(r):
    return [p["text"] for x in r["output"] for p in x.get("content", []) + x.get("summary", [])]


def test_plain(client):
    r = client.responses.create(model="fake-model", input="@reply=Hello there", instructions="Be brief.",
                                metadata={"a": "b"}, temperature=0.7)
    conform.response(json.loads(r.model_dump_json(exclude_unset=True, by_alias=True)))
    assert r.output_text == "Hello there" and r.status == "completed"
    assert r.instructions == "Be brief." and r.metadata == {"a": "b"} and r.temperature == 0.7
    assert r.usage.output_tokens == len("Hello there") and r.usage.input_tokens > 10
    assert r.truncation == "disabled" and r.tools == [] and r.tool_choice == "auto"


def test_stream_helper(client):
    """The client's own accumulator."""
    with client.responses.stream(model="fake-model", input="@reply=Hello there") as s:
        deltas = [e.delta for e in s if e.type == "response.output_text.delta"]
        final = s.get_final_response()
    assert "".join(deltas) == "Hello there" == final.output_text


def test_whole_is_stream(server):
    said = "<think>\nTwo\nlines.\n</think>\n\nI look." + call("get_weather", ARGS) + call("get_weather", {})
    r = both(server, input=says(said), tools=[TOOL], temperature=0)
    assert [x["type"] for x in r["output"]] == ["reasoning", "message", "function_call", "function_call"]
    assert r["output"][0]["content"] == [{"type": "reasoning_text", "text": "Two\nlines."}]
    assert r["output"][0]["summary"] == [] and r["output"][1]["content"][0]["text"] == "I look."
    assert [json.loads(x["arguments"]) for x in r["output"][2:]] == [ARGS, {}]
    assert len({x["call_id"] for x in r["output"][2:]}) == 2
    u = r["usage"]["output_tokens_details"]["reasoning_tokens"]
    assert len("Two\nlines.") <= u <= len("<think>\nTwo\nlines.\n</think>\n\n")
    r = both(server, input=says(said), tools=[TOOL], parallel_tool_calls=False)
    assert [x["type"] for x in r["output"]] == ["reasoning", "message", "function_call"]


def test_summary(server):
    r = both(server, input=says("<think>Hm.</think>Yes."), reasoning={"effort": "low", "summary": "auto"})
    assert r["output"][0]["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert not r["output"][0].get("content") and r["reasoning"] == {"effort": "low", "summary": "detailed"}


def test_empty_and_cut(server):
    assert texts(both(server, input=says(""))) == [""]
    r = both(server, input="@reply=abcdef", max_output_tokens=3)
    assert r["status"] == "incomplete" and texts(r) == ["abc"] and r["output"][0]["status"] == "incomplete"
    assert r["incomplete_details"] == {"reason": "max_output_tokens"} and r["max_output_tokens"] == 3
    said = call("get_weather", ARGS)
    r = both(server, input=says(said), tools=[TOOL], max_output_tokens=len(said) - 20)
    assert r["output"][0]["status"] == r["status"] == "incomplete"
    assert json.dumps(ARGS).startswith(r["output"][0]["arguments"][:8])


def test_broken_call(server):
    said = '<tool_call>{"name": "get_weather", "arguments": {"city": !!}}</tool_call> Hm.'
    whole = post(server, input=says(said), tools=[TOOL])
    assert texts(whole) == [said]
    last = post(server, input=says(said), tools=[TOOL], stream=True)
    assert last["output"][0]["status"] == "incomplete" and texts(last) == [said]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_custom_tool(server, step):
    said = call("apply_patch", {"input": TEXT})
    r = both(server, input=says(said) + "@step=%d\n" % step, tools=[PATCH])
    c = r["output"][0]
    assert c["type"] == "custom_tool_call" and c["input"] == TEXT and c["name"] == "apply_patch"
    text = prompt_of(server, tools=[PATCH], input=[
        {"role": "user", "content": "go"}, c,
        {"type": "custom_tool_call_output", "call_id": c["call_id"], "output": [{"type": "input_text", "text": "ok"}]}])
    assert "\ntool %s apply_patch: ok\n" % c["call_id"] in text
    calls = json.JSONDecoder().raw_decode(text[text.index("assistant: ") + len("assistant: "):])[0]
    assert calls[0]["function"] == {"name": "apply_patch", "arguments": {"input": TEXT}}
    assert calls[0]["id"] == c["call_id"]


def test_custom_without_input(server):
    r = both(server, input=says(call("apply_patch", {"patch": "x"})), tools=[PATCH])
    assert json.loads(r["output"][0]["input"]) == {"patch": "x"}


def test_namespace(server):
    r = both(server, input=says(call("mcp__git__log", {"n": 1}) + call("mcp__git__run", {"input": "gc"})), tools=[SPACE])
    assert [(x["type"], x["name"], x["namespace"]) for x in r["output"]] == [
        ("function_call", "log", "mcp__git__"), ("custom_tool_call", "run", "mcp__git__")]
    assert r["output"][1]["input"] == "gc"
    text = prompt_of(server, input=[{"role": "user", "content": "go"}] + r["output"], tools=[SPACE])
    assert '"mcp__git__log"' in text and '"mcp__git__run"' in text
    r = both(server, input=says(call("mcp__git__log", {}) + call("get_weather", {})), tools=[SPACE, TOOL],
             tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]})
    assert [x["type"] for x in r["output"]] == ["message", "function_call"]  # the other one is not called


def test_round_trip(client):
    """A tool is called, its output given back, by hand and by previous_response_id: the same prompt."""
    first = says("<think>Look.</think>" + call("get_weather", ARGS))
    r = client.responses.create(model="fake-model", input=first, tools=[TOOL])
    c = r.output[-1]
    out = {"type": "function_call_output", "call_id": c.call_id, "output": "rain"}
    ask = {"role": "user", "content": "@prompt"}
    by_id = client.responses.create(model="fake-model", input=[out, ask], tools=[TOOL], previous_response_id=r.id)
    by_hand = client.responses.create(model="fake-model", tools=[TOOL], input=[
        {"role": "user", "content": first}] + [x.model_dump(exclude_none=True) for x in r.output] + [out, ask])
    by_reference = client.responses.create(model="fake-model", tools=[TOOL], input=[
        {"role": "user", "content": first}] + [{"type": "item_reference", "id": x.id} for x in r.output] + [out, ask])
    assert "\ntool %s get_weather: rain\n" % c.call_id in by_id.output_text and "Look." in by_id.output_text
    assert by_id.output_text == by_hand.output_text == by_reference.output_text
    assert by_id.previous_response_id == r.id


def test_instructions(server):
    text = prompt_of(server, instructions="One.", input=[
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "message", "role": "developer", "content": "Two."},
        {"role": "system", "content": [{"type": "input_text", "text": "Three."}]}])
    assert text.startswith("system: One.\n\nTwo.\n\nThree.\nuser: a\nb\n\n@prompt")
    r = post(server, input="x", instructions="Old.")
    r = post(server, input="@prompt", instructions="New.", previous_response_id=r["id"])
    assert "New." in texts(r)[0] and "Old." not in texts(r)[0]  # as OpenAI has it


def test_kept(client, server):
    r = client.responses.create(model="fake-model", input="@reply=kept")
    again = client.responses.retrieve(r.id)
    assert again.model_dump() == r.model_dump()
    items = client.responses.input_items.list(r.id)
    assert [x.content[0].text for x in items.data] == ["@reply=kept"] and not items.has_more
    got = json.loads(server.request("GET", "/v1/responses/%s/input_items" % r.id)[2])
    conform.item_list(got)
    store = server.stats()["response_store"]
    assert 0 < store["entries"] and 0 < store["bytes"] < store["max_bytes"]
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(r.id)
    client.responses.delete(r.id)
    for fn in (client.responses.retrieve, client.responses.delete, client.responses.cancel,
               client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError):
            fn(r.id)
    with pytest.raises(openai.NotFoundError) as e:
        client.responses.create(model="fake-model", input="x", previous_response_id=r.id)
    assert e.value.param == "previous_response_id" and e.value.code == "previous_response_not_found"
    r = client.responses.create(model="fake-model", input="x", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(r.id)
    r = post(server, input="x", stream=True)
    assert client.responses.retrieve(r["id"]).id == r["id"]


def test_long_list(server):
    """Read by a worker, also for who has left."""
    texts = [str(i) for i in range(4000)]
    r = post(server, input=[{"role": "user", "content": t} for t in texts])
    target = "/v1/responses/%s/input_items?limit=100" % r["id"]
    for _ in range(5):
        with server.connect() as s:
            s.sendall(util.build("GET", target))
    got = json.loads(server.request("GET", target)[2])
    assert [x["content"][0]["text"] for x in got["data"]] == texts[:-101:-1] and got["has_more"]
    status, headers, body = server.request("HEAD", target)
    assert status == 200 and int(headers["content-length"]) > 100 * 50 and not body
    server.wait_prompts()


def test_pages(server):
    items = [{"role": "user", "content": str(i)} for i in range(7)]
    r = post(server, input=items)
    seen, after = [], ""
    while True:
        got = json.loads(server.request(
            "GET", "/v1/responses/%s/input_items?order=asc&limit=3%s" % (r["id"], after))[2])
        conform.item_list(got)
        seen += [x["content"][0]["text"] for x in got["data"]]
        assert got["first_id"] == got["data"][0]["id"] and got["last_id"] == got["data"][-1]["id"]
        if not got["has_more"]:
            break
        after = "&after=" + got["last_id"]
    assert seen == [str(i) for i in range(7)]
    got = json.loads(server.request("GET", "/v1/responses/%s/input_items?limit=2" % r["id"])[2])
    assert [x["content"][0]["text"] for x in got["data"]] == ["6", "5"] and got["has_more"]
    for query, param in (("limit=0", "limit"), ("limit=x", "limit"), ("limit=101", "limit"), ("order=up", "order")):
        status, _, body = server.request("GET", "/v1/responses/%s/input_items?%s" % (r["id"], query))
        assert status == 400 and json.loads(body)["error"]["param"] == param
    assert server.request("GET", "/v1/responses/%s/nothing" % r["id"])[0] == 404
    status, headers, _ = server.request("PUT", "/v1/responses/" + r["id"])
    assert status == 405 and headers["allow"] == "GET, HEAD, DELETE, POST, OPTIONS"


def test_owners():
    """A key's responses are nobody else's."""
    with util.serving("--key", "one", "--key2", "two") as s:
        def ask(key, method, path, body=None):
            return s.request(method, path, body, {"Authorization": "Bearer " + key})
        r = json.loads(ask("one", "POST", "/v1/responses", {"input": "x"})[2])
        path = "/v1/responses/" + r["id"]
        assert ask("two", "GET", path)[0] == 404 and ask("two", "DELETE", path)[0] == 404
        assert ask("two", "POST", "/v1/responses", {"input": "x", "previous_response_id": r["id"]})[0] == 404
        item = {"type": "item_reference", "id": r["output"][0]["id"]}
        assert ask("two", "POST", "/v1/responses", {"input": [item]})[0] == 404
        assert ask("one", "GET", path)[0] == 200


def test_logprobs(server):
    r = both(server, input="@reply=abc", top_logprobs=2, include=["message.output_text.logprobs"])
    got = r["output"][0]["content"][0]["logprobs"]
    assert [x["token"] for x in got] == list("abc") and all(len(x["top_logprobs"]) == 2 for x in got)
    r = both(server, input=says("<think>x</think>ab"), include=["message.output_text.logprobs"])
    assert "".join(x["token"] for x in r["output"][1]["content"][0]["logprobs"]).endswith("ab")


def test_items(server):
    """Every kind that is taken."""
    text = prompt_of(server, input=[
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "S."}], "encrypted_content": "x"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
         "content": [{"type": "output_text", "text": "A.", "annotations": []}, {"type": "refusal", "refusal": "No."}]},
        {"type": "local_shell_call", "id": "ls", "call_id": "ls", "status": "completed",
         "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "local_shell_call_output", "id": "ls", "output": "file"},
        {"type": "shell_call", "call_id": "s", "action": {"commands": ["false"]}},
        {"type": "shell_call_output", "call_id": "s", "output": [
            {"stdout": "o", "stderr": "e", "outcome": {"type": "exit", "exit_code": 1}},
            {"stdout": "p", "stderr": "", "outcome": {"type": "timeout"}}]},
        {"type": "apply_patch_call", "call_id": "p", "status": "completed",
         "operation": {"type": "delete_file", "path": "x"}},
        {"type": "apply_patch_call_output", "call_id": "p", "status": "failed"},
        {"type": "function_call", "call_id": "f", "name": "f", "arguments": "{\"a\": [1]}"},
        {"type": "function_call_output", "call_id": "f", "output": ""},
        {"type": "function_call_output", "output": "of nothing"}])
    lines = text.split("\n")
    assert lines[0] == "user: hi" and lines[1].startswith("assistant: A.")
    assert "No." in text and "S." in text and '"local_shell"' in text and '"shell"' in text and '"apply_patch"' in text
    for x in ("tool ls local_shell: file\n", "tool s shell: oe\n(exit code 1)\np\n(timed out)\n",
              "tool p apply_patch: failed\n", "tool f f: \n", "tool: of nothing\n", '"arguments":{"a":[1]}'):
        assert x in text, (x, text)


CODEX = {
    "model": "fake-model", "instructions": "You are Codex.", "stream": True, "store": False,
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": says("<think>Hm</think>Now." + call("shell", {"command": ["ls"]}) +
                                                call("apply_patch", {"input": TEXT}))}]}],
    "tools": [
        {"type": "function", "name": "shell", "description": "Runs", "strict": False, "parameters": {
            "type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}}},
        {"type": "local_shell"}, PATCH, SPACE, {"type": "web_search", "external_web_access": False}],
    "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"},
    "include": ["reasoning.encrypted_content"], "service_tier": "auto", "prompt_cache_key": "01-23",
    "text": {"verbosity": "low"}, "client_metadata": {"x-codex-installation-id": "1"}}


def test_codex(server):
    """A turn as the Codex CLI sends it, and the next, with what the first one gave."""
    status, headers, body = server.request("POST", "/v1/responses", CODEX)
    assert status == 200, body
    assert "local_shell, web_search" in headers["warning"]
    last, events = conform.stream(body)
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert [x["type"] for x in done] == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert done[3]["input"] == TEXT and last["prompt_cache_key"] == "01-23"
    outputs = [{"type": "function_call_output", "call_id": done[2]["call_id"], "output": "file"},
               {"type": "custom_tool_call_output", "call_id": done[3]["call_id"], "output": "Done!"},
               {"role": "user", "content": "@prompt"}]
    status, _, body = server.request("POST", "/v1/responses", dict(CODEX, input=CODEX["input"] + done + outputs))
    last, _ = conform.stream(body)
    text = texts(last)[0]
    assert "\nsystem: You are Codex.\n\n<permissions>\nuser: <environment_context>\n\n@says" in text
    assert " shell: file\n" in text and " apply_patch: Done!\n" in text and "thought: Hm" in text


def test_count(client, server):
    n = client.responses.input_tokens.count(model="fake-model", input="hello", instructions="x")
    assert n.object == "response.input_tokens"
    assert n.input_tokens == post(server, input="hello", instructions="x")["usage"]["input_tokens"]


def test_cached(server):
    r = post(server, input="@cached=5\n")
    assert r["usage"]["input_tokens_details"]["cached_tokens"] == 5


def test_fail(server):
    status, _, body = server.request("POST", "/v1/responses", {"input": "@n=50\n@fail=3\n", "stream": True})
    last, events = conform.stream(body)
    assert status == 200 and last["status"] == "failed" and last["error"]["code"] == "server_error"
    status, _, body = server.request("POST", "/v1/responses", {"input": "@n=50\n@fail=3\n"})
    assert status == 500 and json.loads(body)["error"]["code"] == "generation_failed"


ITEM = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
WRONG = [  # fields, param, code
    ({"input": 7}, "input", "invalid_value"),
    ({"input": None}, "input", "invalid_value"),
    ({"input": ""}, "input", "invalid_value"),
    ({"input": []}, "input", "invalid_value"),
    ({"input": [7]}, "input[0]", "invalid_value"),
    ({"input": [{}]}, "input[0].role", "invalid_value"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", "invalid_value"),
    ({"input": [{"role": "user"}]}, "input[0].content", "invalid_value"),
    ({"input": [{"role": "user", "content": [7]}]}, "input[0].content[0]", "invalid_value"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text", "invalid_value"),
    ({"input": [{"role": "user", "content": [{"type": "refusal", "refusal": "x"}]}]}, "input[0].content[0]",
     "unsupported_parameter"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]",
     "unsupported_parameter"),
    ({"input": [ITEM, dict(ITEM, name="")]}, "input[1].name", "invalid_value"),
    ({"input": [dict(ITEM, call_id=None)]}, "input[0].call_id", "invalid_value"),
    ({"input": [dict(ITEM, arguments={})]}, "input[0].arguments", "invalid_value"),
    ({"input": [dict(ITEM, namespace=1)]}, "input[0].namespace", "invalid_value"),
    ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output", "invalid_value"),
    ({"input": [{"type": "custom_tool_call", "call_id": "c", "name": "n"}]}, "input[0].input", "invalid_value"),
    ({"input": [{"type": "reasoning", "id": "r", "summary": 7}]}, "input[0].summary", "invalid_value"),
    ({"input": [{"type": "web_search_call", "id": "w"}]}, "input", "unsupported_parameter"),
    ({"input": [{"type": "computer_call_output", "call_id": "c", "output": {}}]}, "input[0].output", "unsupported_parameter"),
    ({"input": [{"type": "code_interpreter_call", "id": "c", "code": 5}]}, "input[0].code", "invalid_value"),
    ({"input": [{"type": "file_search_call", "id": "c", "results": 5}]}, "input[0].results", "invalid_value"),
    ({"input": [{"type": "mcp_call", "id": "c", "name": "n"}]}, "input[0].arguments", "invalid_value"),
    ({"input": [{"type": "program_output", "call_id": "c"}]}, "input[0].result", "invalid_value"),
    ({"input": [{"type": "nonsense"}]}, "input[0].type", "invalid_value"),
    ({"input": [{"type": "item_reference", "id": "msg_" + "0" * 36}]}, "input[0].id", "not_found"),
    ({"tools": [dict(TOOL, name="a b")]}, "tools[0].name", "invalid_value"), ({"tools": [dict(TOOL, name="x" * 65)]}, "tools[0].name", "invalid_value"),
    ({"tools": [dict(PATCH, name="a.b")]}, "tools[0].name", "invalid_value"), ({"tools": [dict(SPACE, name="a/b")]}, "tools[0].name", "invalid_value"),
    ({"tools": [dict(SPACE, tools=[dict(TOOL, name="a:b")])]}, "tools[0].tools[0].name", "invalid_value"),
    ({"instructions": ["x"]}, "instructions", "invalid_value"),
    ({"max_output_tokens": 0}, "max_output_tokens", "invalid_value"),
    ({"max_output_tokens": "9"}, "max_output_tokens", "invalid_value"),
    ({"temperature": 3}, "temperature", "invalid_value"),
    ({"top_p": "x"}, "top_p", "invalid_value"),
    ({"top_logprobs": 21}, "top_logprobs", "invalid_value"),
    ({"store": 1}, "store", "invalid_value"),
    ({"stream": "yes"}, "stream", "invalid_value"),
    ({"stream_options": {}}, "stream_options", "invalid_value"),
    ({"stream": True, "stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation",
     "unsupported_parameter"),
    ({"stream": True, "stream_options": {"include_obfuscation": 1}}, "stream_options.include_obfuscation", "invalid_value"),
    ({"metadata": []}, "metadata", "invalid_value"),
    ({"metadata": {"a": 1}}, "metadata.a", "invalid_value"),
    ({"metadata": {"a": "x" * 513}}, "metadata.a", "invalid_value"),
    ({"metadata": {str(i): "" for i in range(17)}}, "metadata", "invalid_value"),
    ({"previous_response_id": 7}, "previous_response_id", "invalid_value"),
    ({"service_tier": "best"}, "service_tier", "invalid_value"),
    ({"truncation": "auto"}, "truncation", "unsupported_parameter"),
    ({"background": True}, "background", "unsupported_parameter"),
    ({"conversation": "conv_1"}, "conversation", "unsupported_parameter"),
    ({"background_options": {"completion_window": "2h"}}, "background_options", "unsupported_parameter"),
    ({"access_programs": {}}, "access_programs", "unsupported_parameter"), ({"image": "x"}, "image", "invalid_value"),
    ({"prompt": {"id": "x"}}, "prompt", "unsupported_parameter"),
    ({"include": "x"}, "include", "invalid_value"),
    ({"include": ["reasoning.encrypted_content", "x"]}, "include[1]", "invalid_value"),
    ({"reasoning": "low"}, "reasoning", "invalid_value"),
    ({"reasoning": {"effort": "much"}}, "reasoning.effort", "invalid_value"),
    ({"reasoning": {"summary": True}}, "reasoning.summary", "invalid_value"),
    ({"reasoning": {"mode": "pro"}}, "reasoning.mode", "unsupported_parameter"),
    ({"text": "x"}, "text", "invalid_value"),
    ({"text": {"verbosity": "loud"}}, "text.verbosity", "invalid_value"),
    ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}}, "text.format", "unsupported_parameter"),
    ({"text": {"format": {"type": "json_object"}}}, "text.format", "unsupported_parameter"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", "invalid_value"),
    ({"tools": {}}, "tools", "invalid_value"),
    ({"tools": [TOOL, 7]}, "tools[1]", "invalid_value"),
    ({"tools": [{"type": "hammer"}]}, "tools[0].type", "invalid_value"),
    ({"tools": [{"type": "function"}]}, "tools[0].name", "invalid_value"),
    ({"tools": [dict(TOOL, parameters="x")]}, "tools[0].parameters", "invalid_value"),
    ({"tools": [dict(TOOL, strict="x")]}, "tools[0].strict", "invalid_value"),
    ({"tools": [TOOL, TOOL]}, "tools[1].name", "invalid_value"),
    ({"tools": [dict(PATCH, format={"type": "grammar", "syntax": "abnf"})]}, "tools[0].format.syntax", "invalid_value"),
    ({"tools": [dict(SPACE, tools=[{"type": "mcp"}])]}, "tools[0].tools[0].type", "invalid_value"),
    ({"tools": [TOOL], "tool_choice": "required"}, "tool_choice", "unsupported_parameter"),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "get_weather"}}, "tool_choice", "unsupported_parameter"),
    ({"tool_choice": "perhaps"}, "tool_choice", "invalid_value"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "tool_choice.tools", "invalid_value"),
    ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
    ({"input": "x" * 120000}, "input", "context_length_exceeded"),
    ({"input": "@template-error"}, "input", "prompt_build_failed"),
    ({"model": "none"}, "model", "model_not_found"),
]


@pytest.mark.parametrize("fields,param,code", WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_wrong(server, fields, param, code):
    status = 404 if code in ("not_found", "model_not_found") else 400
    e = post(server, status, **dict({"input": "x"}, **fields))["error"]
    assert (e["param"], e["code"]) == (param, code), e
    assert e["type"] == "invalid_request_error" and e["message"]


def test_fine(server):
    """What says nothing, or is nobody's here, is taken."""
    post(server, input="x", background=False, conversation=None, background_options=None, image={}, truncation="disabled", tools=[], tool_choice="none",
         reasoning={"effort": "none", "context": "auto"}, text={"format": {"type": "text"}}, include=[], user="u",
         prompt_cache_retention="24h", safety_identifier="s", max_tool_calls=3, metadata=None, stream=False,
         context_management=[], service_tier="flex", unknown={"a": 1})


THEIRS = [
    {"type": "file_search_call", "id": "a", "queries": ["q"], "status": "completed", "results": [{"filename": "a.txt", "text": "found"}]},
    {"type": "code_interpreter_call", "id": "b", "code": "1 + 1", "container_id": "c", "outputs": [{"type": "logs", "logs": "2"}], "status": "completed"},
    {"type": "mcp_call", "id": "d", "name": "look", "server_label": "s", "arguments": "{}", "output": "seen"},
    {"type": "tool_search_call", "call_id": "e", "arguments": {"goal": "g"}}, {"type": "tool_search_output", "call_id": "e", "tools": [{"type": "function", "name": "f"}]},
    {"type": "program", "id": "p", "call_id": "h", "code": "go", "fingerprint": "x"},
    {"type": "program_output", "id": "o", "call_id": "h", "result": "gone", "status": "completed"},
]
SILENT = ["web_search_call", "image_generation_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "additional_tools",
          "configuration_update", "compaction", "compaction_trigger"]


def test_items_of_services(server):
    """What a service's own tools did is a call and its result; what says nothing to a model is left out, and told."""
    body = {"model": "fake-model", "input": [{"role": "user", "content": "@echo-prompt"}, *THEIRS, {"role": "user", "content": "x"}]}
    status, headers, out = server.request("POST", "/v1/responses", body)
    assert status == 200 and "warning" not in headers, out
    status, _, counted = server.request("POST", "/v1/responses/input_tokens", body)
    assert status == 200
    for item in THEIRS:
        less = dict(body, input=[i for i in body["input"] if i is not item])
        fewer = json.loads(server.request("POST", "/v1/responses/input_tokens", less)[2])["input_tokens"]
        assert fewer < json.loads(counted)["input_tokens"], item
    for kind in SILENT:
        more = dict(body, input=[*body["input"], {"type": kind, "id": "z"}])
        status, headers, out = server.request("POST", "/v1/responses", more)
        assert status == 200 and headers["warning"] == '299 cairn "not here and left out: items of type %s"' % kind, (headers, out)
        assert server.request("POST", "/v1/responses/input_tokens", more)[2] == counted
    both = dict(body, input=[*body["input"], *({"type": kind, "id": "z"} for kind in SILENT)], tools=[{"type": "web_search"}])
    warning = server.request("POST", "/v1/responses", both)[1]["warning"]
    assert warning.startswith('299 cairn "not here and left out: tools of type web_search; items of type web_search_call, ') and warning.endswith(', ..."'), warning
