"""What a model writes, as clients get it: thoughts, content and calls, whole and streamed."""
import contextlib
import http.client
import json
import os

import pytest
import util

with open(os.path.join(util.ROOT, "tests/text/reply_cases.json"), encoding="utf-8") as f:
    GOLDEN = json.load(f)
TOOLS = GOLDEN["tools"]

# Markup by which a template is known to be of the family.
TEMPLATES = {
    "hermes": "<tool_call>", "qwen3-coder": "<tool_call><function=<parameter=",
    "llama3": "<|start_header_id|>", "harmony": "<|channel|><|message|>",
    "deepseek": "<｜Assistant｜>", "mistral": "[TOOL_CALLS]", "gemma4": "<|channel><channel|>",
    "glm": "<arg_key>", "kimi-k2": "<|tool_calls_section_begin|>", "dsml": "｜DSML｜",
    "cohere": "<|START_ACTION|>", "seed-oss": "seed:think",
}
PLAIN = "{{enable_thinking}}{{reasoning_effort}}"


class Client:
    """One kept connection."""

    def __init__(self, server):
        self.c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=util.PATIENCE)

    def post(self, body):
        self.c.request("POST", "/v1/chat/completions", json.dumps(body))
        r = self.c.getresponse()
        return r.status, r.read()

    def whole(self, body):
        status, out = self.post(body)
        assert status == 200, out
        return json.loads(out)

    def stream(self, body):
        status, out = self.post(dict(body, stream=True))
        assert status == 200, out
        chunks = util.events(out)
        assert chunks.pop() == "[DONE]"
        return [json.loads(c) for c in chunks]


@contextlib.contextmanager
def model(template, *flags):
    with util.serving("--template", template, *flags) as s:
        yield Client(s)


@pytest.fixture(scope="module", params=sorted(TEMPLATES))
def family(request):
    with model(TEMPLATES[request.param]) as c:
        yield request.param, c


def script(text, end="assistant: ", words="", tools=None, **fields):
    content = "%s\n@says=%s\n@ends=%s\n" % (words, json.dumps(text), json.dumps(end))
    body = {"messages": [{"role": "user", "content": content}], "seed": 7, **fields}
    return dict(body, tools=TOOLS) if tools is None else dict(body, tools=tools) if tools else body


def message(choice):
    """(thought, content, [(id, name, arguments)], finish) of a whole answer's choice."""
    m = choice["message"]
    assert m["role"] == "assistant" and m.get("reasoning") == m.get("reasoning_content")
    assert m["content"] is not None or m["tool_calls"]
    assert m.get("tool_calls") != []
    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"])
             for c in m.get("tool_calls", []) if c["type"] == "function"]
    return m.get("reasoning_content", ""), m["content"] or "", calls, choice["finish_reason"]


def joined(chunks, index=0):
    """The same, joined as a client joins the deltas; checks each."""
    thought, content, calls, finish = "", "", [], None
    mine = [c["choices"][0] for c in chunks if c["choices"] and c["choices"][0]["index"] == index]
    assert mine[0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    for c in mine[1:]:
        d = c["delta"]
        assert finish is None and "role" not in d
        assert d.get("reasoning") == d.get("reasoning_content")
        thought += d.get("reasoning_content", "")
        content += d.get("content", "")
        for t in d.get("tool_calls", []):
            if "id" in t:
                assert t["index"] == len(calls) and t["type"] == "function"
                calls.append([t["id"], t["function"]["name"], ""])
            else:
                assert t["index"] == len(calls) - 1 and "name" not in t["function"]
                assert t["function"]["arguments"]
            calls[t["index"]][2] += t["function"]["arguments"]
        finish = c["finish_reason"]
    assert mine[-1]["delta"] == {} and finish
    return thought, content, [tuple(c) for c in calls], finish


def named(got):
    """Without ids, which are a function of the prompt: and how the double splits stands in that."""
    return got[:2] + ([c[1:] for c in got[2]],) + got[3:]


def of_family(name):
    return [c for c in GOLDEN["cases"] if c["family"] == name]


def test_turns(family):
    """Turns of real templates: the message is what was rendered, and the joined stream is the message."""
    name, client = family
    for case in of_family(name):
        body = script(case["text"], case["prompt"])
        got = message(client.whole(body)["choices"][0])
        calls = [{"name": n, "arguments": json.loads(a)} for _, n, a in got[2]]
        want = [{"name": c["name"], "arguments": c["arguments"]} for c in case["calls"]]
        assert (got[0], got[1]) == (case["thought"], case["content"]), case["name"]
        assert calls == want, case["name"]
        assert got[3] == ("tool_calls" if want else "stop")
        assert len({c[0] for c in got[2]}) == len(got[2])
        for step in (1, 3, 1000000):
            body = script(case["text"], case["prompt"], "@step=%d" % step)
            streamed = joined(client.stream(body))
            assert named(streamed) == named(got), (case["name"], step)
            assert streamed == message(client.whole(body)["choices"][0])


@pytest.mark.skipif(util.SLOW > 1, reason="the same code as test_turns, thousands of times")
def test_every_split(family):
    name, client = family
    cases = [c for c in of_family(name) if c["calls"] and len(c["text"].encode()) < 500]
    for case in sorted(cases, key=lambda c: -len(c["text"]))[:2]:
        want = named(joined(client.stream(script(case["text"], case["prompt"]))))
        for at in range(1, len(case["text"].encode())):
            body = script(case["text"], case["prompt"], "@cut=%d" % at)
            assert named(joined(client.stream(body))) == want, (case["name"], at)


def test_length(family):
    """However early an answer is cut, both ways give the same, and a call that had begun stays."""
    name, client = family
    case = [c for c in of_family(name) if c["calls"]][0]
    begun = 0
    for n in range(1, len(case["text"].encode()), 3):
        body = script(case["text"], case["prompt"], max_tokens=n)
        got = message(client.whole(body)["choices"][0])
        assert got == joined(client.stream(body)) and got[3] == "length"
        begun += len(got[2])
    assert begun


def test_first_byte_at_once():
    """The token that brings the first byte of the arguments brings a chunk with it."""
    head = '<tool_call>\n{"name": "run-code", "arguments": '
    text = head + '{"code": "x"}}\n</tool_call>'
    with model(TEMPLATES["hermes"]) as client:
        chunks = client.stream(script(text, max_tokens=len(head) + 1))
        deltas = [c["choices"][0]["delta"] for c in chunks]
        calls = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
        assert calls[0]["function"] == {"name": "run-code", "arguments": ""}
        assert calls[1] == {"index": 0, "function": {"arguments": "{"}}
        assert not any(d.get("content") for d in deltas)


BROKEN = [
    '<tool_call>\n{"name": "run-code", "arguments": {"code": }}\n</tool_call>',
    '<tool_call>\n{"name": "run-code", "arguments": {"code": "never ends"',
    '<tool_call>\n{"name": "unheard_of", "arguments": {"code": "x"}}\n</tool_call>',
    '<tool_call>\nnot JSON\n</tool_call>',
    'Use <tool_call> for it.',
]


@pytest.mark.parametrize("text", BROKEN)
def test_broken_calls_are_content(text):
    with model(TEMPLATES["hermes"]) as client:
        got = message(client.whole(script(text))["choices"][0])
        assert got[2:] == ([], "stop")
        assert got[1].replace("\n", "") == text.replace("\n", "")
        streamed = joined(client.stream(script(text)))
        assert (streamed[:2], streamed[3]) == (got[:2], "stop")


def test_without_tools():
    call = '<tool_call>\n{"name": "run-code", "arguments": {"code": "x"}}\n</tool_call>'
    with model(TEMPLATES["hermes"]) as client:
        for body in (script(call, tools=[]), script(call, tool_choice="none"),
                     script("<think>\nHm.\n</think>\n" + call, tools=[])):
            got = message(client.whole(body)["choices"][0])
            assert got == joined(client.stream(body))
            assert (got[1], got[2], got[3]) == (call, [], "stop")
        assert got[0] == "Hm."
    with model(PLAIN) as client:
        text = "Just a\n\ttext with { and < and \"é漢\" in it."
        got = message(client.whole(script(text, tools=[]))["choices"][0])
        assert got == ("", text, [], "stop") == joined(client.stream(script(text, tools=[])))
        assert message(client.whole(script("", tools=[]))["choices"][0]) == ("", "", [], "stop")


TWO = ('<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>\n'
       '<tool_call>\n{"name": "run-code", "arguments": {"code": "x"}}\n</tool_call>')


def test_parallel():
    """parallel_tool_calls false: nothing of a second call leaves, and the generation ends there."""
    with model(TEMPLATES["hermes"]) as client:
        both = message(client.whole(script(TWO, parallel_tool_calls=True))["choices"][0])
        assert [c[1] for c in both[2]] == ["ping", "run-code"]
        slow = "@pace=1 @n=%d" % (len(TWO) + 60000)  # a minute, if it is not ended
        for words in ("", slow):
            body = script(TWO, words=words, parallel_tool_calls=False)
            got = message(client.whole(body)["choices"][0])
            assert [c[1] for c in got[2]] == ["ping"] and got[3] == "tool_calls"
            assert joined(client.stream(body)) == got
        one = TWO[:TWO.index("\n<tool_call>")] + "\nDone."
        got = message(client.whole(script(one, parallel_tool_calls=False))["choices"][0])
        assert got[1] == "Done." and len(got[2]) == 1
        status, out = client.post(script(TWO, parallel_tool_calls="no"))
        assert (status, json.loads(out)["error"]["param"]) == (400, "parallel_tool_calls")


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "ping"}},
                                    {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": TOOLS}}])
def test_enforced_calls_are_refused(server, choice):
    status, _, out = server.chat(tools=TOOLS, tool_choice=choice)
    e = json.loads(out)["error"]
    assert (status, e["param"], e["code"]) == (400, "tool_choice", "unsupported_parameter")
    assert "tool_choice" in e["message"] and "needs grammars" in e["message"]


def test_ids():
    """Of the same request the same, of another seed, choice or turn others."""
    with model(TEMPLATES["hermes"]) as client:
        def ids(**fields):
            return [c[0] for ch in client.whole(script(TWO, **fields))["choices"]
                    for c in message(ch)[2]]
        first = ids()
        assert first == ids() and len(set(first)) == 2 and first[0].startswith("call_")
        others = [ids(seed=8), ids(words="another turn"), ids(seed=None), ids(seed=None)]
        assert len({i for some in others + [first] for i in some}) == 10
        assert len(set(ids(n=3))) == 6


def test_choices_streamed():
    with model(TEMPLATES["hermes"]) as client:
        chunks = client.stream(script(TWO, n=3))
        whole = client.whole(script(TWO, n=3))["choices"]
        for i in range(3):
            assert joined(chunks, i) == message(whole[i])


def test_keep_special():
    for name, want in (("harmony", 1), ("hermes", 0)):
        with model(TEMPLATES[name]) as client:
            got = client.whole(script("", words="@echo", tools=[]))["choices"][0]["message"]
            assert "keep_special=%d" % want in got["content"]


def test_stop_and_logprobs():
    """A stop string ends thoughts too; each token's log-probability comes once, calls' included."""
    text = "<think>\nOne two.\n</think>\nThree" + TWO
    with model(TEMPLATES["hermes"]) as client:
        got = message(client.whole(script(text, stop="two"))["choices"][0])
        assert got == ("One ", "", [], "stop") == joined(client.stream(script(text, stop=["two"])))
        body = script(text, logprobs=True)
        whole = client.whole(body)
        n = len(text.encode())
        assert len(whole["choices"][0]["logprobs"]["content"]) == n
        assert whole["usage"]["completion_tokens"] == n
        chunks = client.stream(body)
        assert joined(chunks) == message(whole["choices"][0])
        streamed = [t for c in chunks for t in (c["choices"][0]["logprobs"] or {}).get("content", [])]
        assert streamed == whole["choices"][0]["logprobs"]["content"]


THINKERS = [
    ("{{enable_thinking}}", {"reasoning_effort": "none"}, {"enable_thinking": False}),
    ("{{enable_thinking}}", {"reasoning_effort": "high"}, {"enable_thinking": True}),
    ("{{thinking}}", {"chat_template_kwargs": {"enable_thinking": True}},
     {"thinking": True, "enable_thinking": True}),
    ("{{thinking}}", {"chat_template_kwargs": {"enable_thinking": False, "thinking": 3}},
     {"thinking": 3, "enable_thinking": False}),
    ("{{reasoning_effort}}", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    ("{{enable_thinking}}", {"reasoning_effort": "none",
                             "chat_template_kwargs": {"enable_thinking": True}},
     {"enable_thinking": True}),
    ("{{reasoning_effort}}", {"reasoning_effort": "low",
                              "chat_template_kwargs": {"reasoning_effort": "high"}},
     {"reasoning_effort": "high"}),
    ("nothing", {"reasoning_effort": "low"}, {}),
]


@pytest.mark.parametrize("template,fields,want", THINKERS)
def test_thinking(template, fields, want):
    with util.serving("--template", template) as s:
        status, _, out = s.request("POST", "/apply-template", util.ask(**fields))
        line = json.loads(out)["prompt"].split("\n")[0]
        assert status == 200 and json.loads(line[len("kwargs: "):]) == want


def test_many_tools_for_many_choices(server):
    big = [dict(TOOLS[0], function=dict(TOOLS[0]["function"], description="x" * (1 << 20)))]
    status, _, out = server.chat(tools=big, n=128)
    e = json.loads(out)["error"]
    assert (status, e["param"]) == (400, "messages" if "tokens" in e["message"] else "tools")
