"""Fields of the chat request: what is normalised, what is refused and how."""
import json
import re

import pytest
import util


def calls(*list_, **message):
    return [{"role": "user", "content": "x"}, dict({"role": "assistant", "content": None, "tool_calls": list(list_)}, **message)]


def call(**function):
    return {"id": "c", "type": "function", "function": dict({"name": "f", "arguments": "{}"}, **function)}


CALL = "messages[1].tool_calls[0]"
def function(**fields):
    return {"type": "function", "function": dict({"name": "f"}, **fields)}


def custom(fields):
    return [{"type": "custom", "custom": fields}]


def grammar(**fields):
    return custom({"name": "c", "format": {"type": "grammar", "grammar": dict({"syntax": "lark", "definition": "a"}, **fields)}})


def allowed(**fields):
    return {"type": "allowed_tools", "allowed_tools": dict({"mode": "auto", "tools": [function(name="g")]}, **fields)}


BAD = [
    ("messages", None), ("messages", []), ("messages", "hi"), ("messages[0]", ["hi"]),
    ("messages[0].role", [{"role": "boss", "content": "x"}]), ("messages[0].role", [{"content": "x"}]),
    ("messages[0].role", [{"role": 1, "content": "x"}]),
    ("messages[0].content", [{"role": "user"}]), ("messages[0].content", [{"role": "user", "content": 3}]),
    ("messages[0].content", [{"role": "user", "content": []}]),
    ("messages[0].content", [{"role": "assistant", "content": None}]), ("messages[0].content", [{"role": "assistant"}]),
    ("messages[0].content", [{"role": "assistant", "tool_calls": []}]),
    ("messages[0].content[1]", [{"role": "user", "content": [
        {"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:"}}]}]),
    ("messages[0].content[0].text", [{"role": "user", "content": [{"type": "text"}]}]),
    ("messages[0].content[0]", [{"role": "user", "content": ["x"]}]),
    (CALL, calls(1)), (CALL, calls(None)), ("messages[1].tool_calls[1]", calls(call(), "f")),
    ("messages[1].tool_calls", calls(tool_calls={"a": 1})), ("messages[1].tool_calls", calls(tool_calls="f")),
    (CALL + ".function", calls({"id": "c"})), (CALL + ".function", calls({"function": "f"})),
    (CALL + ".function.name", calls(call(name=3))), (CALL + ".function.name", calls({"function": {}})),
    (CALL + ".function.arguments", calls(call(arguments=7))), (CALL + ".function.arguments", calls(call(arguments=[1]))),
    (CALL + ".type", calls(dict(call(), type=1))), (CALL + ".type", calls(dict(call(), type="hammer"))),
    (CALL + ".custom", calls(dict(call(), type="custom"))), (CALL + ".custom.name", calls({"type": "custom", "custom": {"input": "x"}})),
    (CALL + ".custom.input", calls({"type": "custom", "custom": {"name": "c", "input": {}}})),
    (CALL + ".id", calls(dict(call(), id=7))), (CALL + ".id", calls(dict(call(), id={"a": 1}))),
    ("messages[1].tool_call_id", calls(call())[:1] + [{"role": "tool", "content": "x", "tool_call_id": 7}]),
    ("messages[0].tool_call_id", [{"role": "tool", "content": "x", "tool_call_id": ["c"]}]),
    ("messages[1].function_call", calls(function_call=1)),
    ("messages[1].function_call.name", calls(function_call={"arguments": "{}"})),
    ("temperature", 2.5), ("temperature", -1), ("temperature", "hot"), ("top_p", 1.5),
    ("priority", 9), ("priority", "high"), ("top_k", 1.5), ("top_k", -2), ("min_p", 2), ("n", 0), ("n", 129), ("n", "2"),
    ("max_tokens", 0), ("max_tokens", "9"), ("max_completion_tokens", -1), ("seed", "x"),
    ("seed", 1.5), ("seed", 2**64), ("seed", -2**63 - 1), ("stop", [""]), ("stop", ["a"] * 17), ("stop", "a" * 1025), ("stop", 3), ("stop", ""),
    ("presence_penalty", 3), ("frequency_penalty", -3), ("repetition_penalty", 0),
    ("repeat_penalty", "1"), ("repeat_last_n", -2), ("repeat_last_n", 1.5), ("presence_context_size", -1),
    ("frequency_context_size", "3"), ("typical_p", 1.5), ("typical_p", [1]), ("xtc_probability", -0.1),
    ("xtc_threshold", 2), ("mirostat", 3), ("mirostat", True), ("mirostat_tau", -1), ("mirostat_eta", 11),
    ("dry_multiplier", -1), ("dry_base", 0.5), ("dry_base", "2"), ("dry_allowed_length", -1),
    ("dry_allowed_length", 10001), ("dry_penalty_last_n", -2), ("dry_sequence_breakers", "a"),
    ("dry_sequence_breakers", [""]), ("dry_sequence_breakers", [1]), ("dry_sequence_breakers", ["a"] * 33),
    ("dry_sequence_breakers", ["a" * 65]), ("top_n_sigma", 1), ("dynatemp_range", 0.5), ("adaptive_target", 0.5),
    ("min_keep", 2), ("samplers", ["top_k"]), ("chat_template", "x"), ("grammar", "root ::= \"a\""), ("grammar", {}), ("prompt_logprobs", 0), ("lora", [{"id": 0}]), ("min_tokens", 2), ("stop_token_ids", [2]),
    ("bad_words", ["x"]), ("allowed_token_ids", [2]), ("use_beam_search", True), ("truncate_prompt_tokens", 9), ("n_probs", 2),
    ("logit_bias", {"a": 1}), ("logit_bias", {"5": 101}), ("logit_bias", [1]),
    ("logit_bias", {"5": "x"}), ("logprobs", 1), ("top_logprobs", 21), ("top_logprobs", 2),
    ("stream", "yes"), ("return_progress", 1), ("return_progress", "yes"), ("stream_options", {"include_usage": True}), ("model", 7),
    ("response_format", {"type": "json_object"}),
    ("response_format", {"type": "json_schema", "json_schema": {}}), ("response_format", "x"),
    ("tool_choice", "required"), ("tool_choice", {"type": "function", "function": {"name": "f"}}),
    ("functions", [{"name": "f"}]), ("modalities", ["text", "audio"]), ("audio", {"voice": "x"}),
    ("guided_json", {}), ("guided_regex", "a"), ("web_search_options", {}), ("moderation", {"type": "auto"}), ("best_of", 3),
    ("echo", True), ("store", True), ("tools", {"a": 1}),
    ("tools[0].type", [{"type": "hammer"}]), ("tools[0].custom", [{"type": "custom", "name": "c"}]), ("tools[0].custom.name", custom({"name": "a b"})), ("tools[0].custom.name", custom({})),
    ("tools[1].custom.name", custom({"name": "c"}) * 2), ("tools[0].custom.description", custom({"name": "c", "description": 1})),
    ("tools[0].custom.format", custom({"name": "c", "format": "text"})), ("tools[0].custom.format.type", custom({"name": "c", "format": {"type": "yaml"}})),
    ("tools[0].custom.format.grammar", custom({"name": "c", "format": {"type": "grammar", "syntax": "regex", "definition": "a"}})),
    ("tools[0].custom.format.grammar.syntax", grammar(syntax="peg")), ("tools[0].custom.format.grammar.definition", grammar(definition=1)),
    ("tools[0].function.name", [{"type": "function", "function": {}}]),
    ("tools[0]", [1]), ("tools[0].function", [{"type": "function", "function": "f"}]),
    ("tools[0].function.parameters", [{"type": "function", "function": {"name": "f", "parameters": 1}}]),
    ("logit_bias", {"999999": 1}),
    ("chat_template_kwargs", 3), ("reasoning_effort", 3), ("reasoning_effort", "zzq"), ("service_tier", 5), ("service_tier", "best"),
    ("metadata", "x"), ("metadata.a", {"a": 1}), ("metadata", {str(i): "" for i in range(17)}), ("user", 5), ("verbosity", "loud"),
    ("safety_identifier", 5), ("prompt_cache_key", 5), ("prompt_cache_retention", "1h"), ("prediction", "x"), ("prediction.type", {"content": "x"}),
    ("prediction.content", {"type": "content", "content": 5}), ("chat_template_kwargs.enable_thinking", {"enable_thinking": 5}), ("tool_choice", "zzz"), ("tool_choice", False), ("tool_choice.allowed_tools", {"type": "allowed_tools"}),
    ("tool_choice.allowed_tools.mode", allowed(mode="never")), ("tool_choice.allowed_tools.mode", allowed(mode=None)), ("tool_choice.allowed_tools.tools", allowed(tools={})),
    ("tool_choice", allowed(mode="required")),
    ("messages[0].name", [{"role": "user", "content": "x", "name": 5}]), ("messages[0].reasoning_content", [{"role": "assistant", "content": "x", "reasoning_content": 5}]),
    ("messages[0].tool_call_id", [{"role": "tool", "content": "x"}]), ("messages[0].tool_call_id", [{"role": "tool", "content": "x", "tool_call_id": ""}]),
    ("tools[0].function.description", [function(description=5)]), ("tools[0].function.strict", [function(strict="x")]),
    ("tools[1].function.name", [function(), function()]), ("tools[0].function.name", [function(name="a b")]), ("tools[0].function.name", [function(name="x" * 65)]),
]


@pytest.mark.parametrize("param,value", BAD, ids=["%s=%s" % (p, str(v)[:30]) for p, v in BAD])
def test_refused_by_name(server, param, value):
    field = re.split(r"[.\[]", param)[0]
    status, _, body = server.chat(**{field: value})
    e = json.loads(body)["error"]
    assert status == 400, body
    assert e["param"] == param and field in e["message"], e
    assert e["type"] == "invalid_request_error" and e["code"]


def test_wrong_in_streams(server):
    for options, param, code in [({"include_usage": 5}, "stream_options.include_usage", "invalid_value"),
                                 ({"include_obfuscation": 5}, "stream_options.include_obfuscation", "invalid_value"),
                                 ({"include_obfuscation": True}, "stream_options.include_obfuscation", "unsupported_parameter")]:
        for path, more in [("/v1/chat/completions", {}), ("/v1/completions", {"prompt": "x"}), ("/v1/responses", {"input": "x"})]:
            status, _, body = server.request("POST", path, util.ask(stream=True, stream_options=options, **more))
            e = json.loads(body)["error"]
            assert (status, e["param"], e["code"]) == (400, param, code), e


@pytest.mark.parametrize("fields,says", [
    ({"messages": [{"role": 1, "content": "x"}]}, "`messages[0].role` must be system, developer, user, "
     "assistant, tool or function, found 1"),
    ({"messages": [{"content": "x"}]}, "function, found nothing"),
    ({"messages": [{"role": "boss", "content": "x"}]}, "function, found `boss`"),
    ({"messages": [{"role": "x" * 1000, "content": "x"}]}, "function, found a string"),
    ({"messages": [{"role": "user", "content": []}]}, "must hold at least one part, found an empty array"),
    ({"messages": [{"role": "assistant", "content": None}]}, "where there are no `tool_calls`, found null"),
    ({"messages": calls(1)}, "`messages[1].tool_calls[0]` must be an object, found 1"),
    ({"messages": calls(tool_calls="f")}, "`messages[1].tool_calls` must be an array, found `f`"),
    ({"messages": calls({"id": "c"})}, "`messages[1].tool_calls[0].function` must be an object, found nothing"),
    ({"messages": calls(call(arguments=7))},
     "`messages[1].tool_calls[0].function.arguments` must be a string or an object, found 7"),
    ({"messages": calls(dict(call(), type=[]))}, "`messages[1].tool_calls[0].type` must be function or custom, found an array"),
    ({"messages": calls(dict(call(), id=7))}, "`messages[1].tool_calls[0].id` must be a string, found 7"),
    ({"messages": [{"role": "tool", "content": "x", "tool_call_id": False}]},
     "`messages[0].tool_call_id` must be a string, found false"),
    ({"tools": [1]}, "`tools[0]` must be an object, found 1"),
    ({"logit_bias": {"999999": 1}}, "`logit_bias` takes token ids from 0 to 255, found 999999"),
])
def test_says_what_was_found(server, fields, says):
    assert says in json.loads(server.chat(**fields)[2])["error"]["message"]


def test_too_many_values(server):
    """Objects are walked for each field: a body of millions of members would take seconds."""
    body = b'{"messages": [{"role": "user", "content": "x"}], %s}'
    for members in [b'"a%d": 1' % i for i in range(2000000)], [b'"": [%s]' % b",".join([b"[]"] * 100001)]:
        whole = body % b",".join(members)
        status, _, out = server.request("POST", "/v1/chat/completions", whole)
        assert status == 400 and b"the body holds more than 100000 values" in out
    whole = body % (b'"": [%s]' % b", ".join([b"1"] * (2 << 20 | 2)))
    status, _, out = server.request("POST", "/v1/chat/completions", whole)
    assert status == 400 and b"more than 2097152 numbers" in out
    for value in [[1] * 200000, [[]] * 99990, ",\\" * 200000, ',"\\",' * 200000]:
        assert server.chat(unheard_of=value)[0] == 200


FINE = [
    {"user": "u", "metadata": {"a": "b"}, "service_tier": "auto", "unheard_of": [1]},
    {"safety_identifier": "s", "prompt_cache_key": "k", "prompt_cache_retention": "24h", "verbosity": "low", "reasoning_effort": "max",
     "prediction": {"type": "content", "content": "x"}, "tools": [function(strict=None, description=None), function(name="g-1_A")]},
    {"stream": True, "stream_options": {"include_usage": None, "include_obfuscation": False}},
    {"response_format": {"type": "text"}, "tool_choice": "auto", "modalities": ["text"]},
    {"temperature": None, "stop": None, "n": None, "seed": None, "logit_bias": None, "tools": None},
    {"stop": [], "logit_bias": {}, "tools": [], "best_of": 1, "top_k": -1, "store": False},
    {"seed": -5}, {"seed": 2**63 + 5}, {"temperature": 0}, {"temperature": 2},
    {"messages": [{"role": "assistant", "content": None, "reasoning_content": "hm"}]},
    {"messages": calls(call(arguments={"a": 1}), call(arguments=None), {"function": {"name": "f"}})},
    {"messages": calls(tool_calls=None, content="x")}, {"messages": calls(content="x")},
    {"model": None}, {"model": ""}, {"parallel_tool_calls": True, "echo": False},
    {"stop_token_ids": [], "min_tokens": 0, "bad_words": [], "allowed_token_ids": [], "use_beam_search": False, "n_probs": 0, "lora": [],
     "grammar": "", "chat_template": "", "prompt_logprobs": False, "samplers": [], "min_keep": 0},  # clients that send all they know
    dict.fromkeys(("stop_token_ids", "min_tokens", "bad_words", "allowed_token_ids", "use_beam_search", "n_probs", "lora", "grammar", "chat_template",
                   "prompt_logprobs", "truncate_prompt_tokens", "guided_json", "structured_outputs", "moderation", "response_format", "functions")),
]


@pytest.mark.parametrize("fields", FINE)
def test_accepted(server, fields):
    status, _, body = server.chat(**fields)
    assert status == 200, body


def prompt_of(server, **body):
    status, _, out = server.request("POST", "/apply-template", dict({"model": "fake-model"}, **body))
    assert status == 200, out
    return json.loads(out)["prompt"]


def test_normalised(server):
    """Each line is one message: the double renders `role: content` and tool_calls as JSON."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": [1, 2]}'}}
    odd = {"id": "c2", "type": "function", "function": {"name": "g", "arguments": '{"x": '}}
    got = prompt_of(server, messages=[
        {"role": "developer", "content": "be good"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [call, odd]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "user", "content": ""},
    ]).split("\n")
    assert got[0] == "system: be good"
    assert got[1] == "user: ab"
    calls = json.loads(got[2][len("assistant: "):])
    assert calls[0]["function"] == {"name": "f", "arguments": {"x": [1, 2]}}
    assert calls[1]["function"] == odd["function"]
    assert got[3:] == ["tool c1: 3", "user: ", "assistant: "]


def test_text_is_exact(server):
    text = "tabs\tquotes\"\\ nul\u0000 é 漢 \U0001F600 \u2028"
    assert prompt_of(server, messages=[{"role": "user", "content": text}]) == \
        "user: %s\nassistant: " % text


def test_tools_and_kwargs(server):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    one = [{"role": "user", "content": "x"}]
    assert json.loads(prompt_of(server, messages=one, tools=tools).split("\n")[0][7:]) == tools
    assert "tools" not in prompt_of(server, messages=one, tools=tools, tool_choice="none")
    line = prompt_of(server, messages=one, reasoning_effort="none",
                     chat_template_kwargs={"a": {"b": 1}}).split("\n")[0]
    assert json.loads(line[len("kwargs: "):]) == {"reasoning_effort": "none",
                                                 "enable_thinking": False, "a": {"b": 1}}
    line = prompt_of(server, messages=one, reasoning_effort="high",
                     chat_template_kwargs={"enable_thinking": False}).split("\n")[0]
    assert json.loads(line[len("kwargs: "):]) == {"reasoning_effort": "high",
                                                 "enable_thinking": False}
    assert prompt_of(server, messages=one, add_generation_prompt=False) == "user: x\n"


@pytest.mark.parametrize("name", ["messages", "conversation", "tools", "add_generation_prompt",
                                  "continue_final_message", "chat_template", "tokenize"])
def test_reserved_kwargs(server, name):
    status, _, body = server.chat(chat_template_kwargs={"fine": 1, name: None})
    e = json.loads(body)["error"]
    assert status == 400 and e["param"] == "chat_template_kwargs." + name and name in e["message"]


def test_template_refuses(server):
    status, _, body = server.chat("@template-error")
    e = json.loads(body)["error"]
    assert status == 400 and e["code"] == "prompt_build_failed"
    assert e["message"] == "prompt build failed: chat_template.jinja, line 3: use and/or: roles must alternate"


def test_bias_outside_vocabulary(server):
    status, _, body = server.chat(logit_bias={"300": 1})
    assert status == 400 and b"300" in body


@pytest.mark.parametrize("body,where", [
    (b"", ""), (b"{", ""), (b'{"messages": [}', "byte 14"), (b"[1]", "object"), (b"\xff{}", ""),
    (b'{"a": "\xc3\x28"}', ""), (b"[" * 100000, ""), (b'{"a": 1} x', ""), (b"nul", ""),
    (b'{"messages": [{"role": "user", "content": "' + b"x" * 1000, ""),
])
def test_invalid_json(server, body, where):
    status, _, out = server.request("POST", "/v1/chat/completions", body)
    e = json.loads(out)["error"]
    assert status == 400 and where in e["message"], e
    assert e["param"] is None


def test_context_too_long():
    with util.serving("--ctx", 1000) as s:
        status, _, body = s.chat("x" * 5000)
        e = json.loads(body)["error"]
        assert (status, e["code"]) == (400, "context_length_exceeded")
        assert "5018 tokens" in e["message"] and "1000" in e["message"]
        status, _, body = s.chat("x" * 20000)  # seen without encoding it
        e = json.loads(body)["error"]
        assert (status, e["code"]) == (400, "context_length_exceeded")
        assert "at least 2001 tokens" in e["message"] and "1000" in e["message"]
        status, _, body = s.chat("@n=5000")
        assert json.loads(body)["choices"][0]["finish_reason"] == "length"


def test_two_models():
    with util.serving("--models", 2) as s:
        assert s.chat(model="org/other")[0] == 200
        assert s.request("GET", "/v1/models/org/other")[0] == 200
        assert s.request("GET", "/v1/models/org%2Fother")[0] == 200
        assert s.request("GET", "/v1/models/org")[0] == 404
        status, _, body = s.chat(model=None)
        assert status == 400 and json.loads(body)["error"]["param"] == "model"


def test_queue_full():
    with util.serving("--seqs", 1, "--queue", 1) as s:
        with s.connect() as a, s.connect() as b:
            a.sendall(util.chat_bytes("@n=60000 @pace=100", stream=True))
            b.sendall(util.chat_bytes("@n=60000 @pace=100", stream=True))
            s.wait_rows(1, 1)
            status, headers, body = s.chat()
            assert status == 429 and int(headers["retry-after"]) >= 1
            assert json.loads(body)["error"]["code"] == "queue_full"
            assert s.chat(n=2)[0] == 429
        s.wait_rows()
        assert s.chat(n=2)[0] == 200
        status, _, body = s.chat("@prefill=%d" % util.HOUR, n=3)  # more than can ever be there
        e = json.loads(body)["error"]
        assert status == 400 and "`n` is 3; expected at most 2" in e["message"]
        assert (e["param"], e["code"]) == ("n", "invalid_value")
        s.wait_rows()


def test_allowed_tools(server):
    """The others are not rendered."""
    one = [{"role": "user", "content": "x"}]
    tools = [function(), function(name="g")]
    told = prompt_of(server, messages=one, tools=tools, tool_choice=allowed())
    assert [t["function"]["name"] for t in json.loads(told.split("\n")[0][len("tools: "):])] == ["g"]
    assert "tools" not in prompt_of(server, messages=one, tools=tools, tool_choice=allowed(tools=[]))


def test_tools_of_a_service(server):
    """They are left out, and the client is told."""
    status, headers, body = server.request("POST", "/v1/chat/completions", util.ask("@prompt", tools=[{"type": "web_search"}, function(), {"type": "mcp"}, {"type": "web_search"}]))
    assert status == 200 and headers["warning"] == '299 cairn "not here and left out: tools of type web_search, mcp"'
    assert "web_search" not in json.loads(body)["choices"][0]["message"]["content"]
    status, headers, _ = server.chat(tools=[{"type": "web_search"}])
    assert status == 200 and headers["warning"] == '299 cairn "not here and left out: tools of type web_search"'


THOUGHT = "<think>\nTwo\nlines.\n</think>\n\n"


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_tokens(n, stream):
    """Those up to the last that released a thought, of all choices; none where nothing is thought."""
    with util.serving("--template", "<tool_call>{{enable_thinking}}") as s:
        for said, least, most in ((THOUGHT + "Yes.", len("Two\nlines."), len(THOUGHT)), ("Yes.", 0, 0)):
            text = "@says=%s\n@ends=\"assistant: \"\n" % json.dumps(said)
            status, _, out = s.request("POST", "/v1/chat/completions", util.ask(text, n=n, stream=stream))
            assert status == 200, out
            u = json.loads(util.events(out)[-2] if stream else out)["usage"]
            assert n * least <= u["completion_tokens_details"]["reasoning_tokens"] <= n * most
            assert u["completion_tokens"] == n * len(said)


@pytest.mark.parametrize("asked,told", [("auto", "default"), ("default", "default"), (None, "default"), ("scale", "default"), ("flex", "flex"),
                                        ("priority", "priority"), ("fast", "priority")])
def test_service_tier(server, asked, told):
    for stream in (False, True):
        status, _, out = server.request("POST", "/v1/chat/completions", util.ask("@reply=hi", stream=stream, service_tier=asked))
        assert status == 200, out
        answers = [json.loads(e) for e in util.events(out)[:-1]] if stream else [json.loads(out)]
        assert answers and {a["service_tier"] for a in answers} == {told}
