"""Progress of the prefill in a stream: `return_progress` and the chunks that it brings, in llama-server's form."""
import json
import re
import socket

import conform
import pytest
import util

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
HELLO = "Hello from the test double."


def ask(path, text, **fields):
    what = {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
    return {"model": "fake-model", **what, **fields}


def stream(server, path, text, **fields):
    """The chunks; request() holds the answer to the schema."""
    status, _, body = server.request("POST", path, ask(path, text, stream=True, **fields))
    assert status == 200, body
    *chunks, done = util.events(body)
    assert done == "[DONE]"
    return [json.loads(c) for c in chunks]


def said(chunks, i=0):
    """What choice i is, all chunks joined."""
    of = [c["choices"][0] for c in chunks if c["choices"] and c["choices"][0]["index"] == i]
    return "".join(c.get("text") or c.get("delta", {}).get("content") or "" for c in of)


def told(chunks, i=0):
    """The progress of the prompt of choice i, which goes on, is told before its text, and says nothing else."""
    out = []
    for c in chunks:
        if "prompt_progress" in c and c["choices"][0]["index"] == i:
            assert not said([c], i) and c["choices"][0].get("delta", {}) == {} and c["choices"][0]["finish_reason"] is None
            out.append(c["prompt_progress"])
            before = chunks[:chunks.index(c)]
            assert not said([b for b in before if "prompt_progress" not in b], i)
    assert all(a["processed"] < b["processed"] for a, b in zip(out, out[1:]))
    assert all((a["total"], a["cache"]) == (b["total"], b["cache"]) and a["processed"] >= a["cache"] for a, b in zip(out, out[1:]))
    return out


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_while_it_runs(server, path, tmp_path):
    """The steps are told as they are done: the prefill does not end before three of four were seen."""
    gate = util.Gate(tmp_path)
    body = ask(path, "@cached=4 @progress=4 @until=%s " % gate, stream=True, return_progress=True,
               stream_options={"include_usage": True})
    got = b""

    def three():
        nonlocal got
        part = c.recv(65536)
        assert part, got
        got += part
        steps = re.findall(rb'"total":(\d+),"cache":4,"processed":(\d+),', got)
        return any(int(done) == 4 + (int(total) - 4) * 3 // 4 for total, done in steps)

    with server.connect() as c:
        c.sendall(util.build("POST", path, body, {"Connection": "close"}))
        util.until(three, "the third step")
        assert b'"%s"' % HELLO[:1].encode() not in got
        gate.open()
        got += util.read_all(c)
    status, _, out = util.parse(got)
    *chunks, usage = [json.loads(e) for e in util.events(out)[:-1]]
    steps = told(chunks)
    assert status == 200 and said(chunks) == HELLO
    assert steps[-1]["processed"] == steps[-1]["total"] == usage["usage"]["prompt_tokens"] and steps[-1]["cache"] == 4
    assert len(steps) in (2, 3, 4, 5)  # those that came while another was on its way make one
    assert all(c["usage"] is None for c in chunks)
    if path == CHAT:
        assert [c["choices"][0]["delta"].get("role") for c in chunks] == ["assistant"] + [None] * (len(chunks) - 1)


@pytest.mark.parametrize("path", [CHAT, TEXT])
@pytest.mark.parametrize("asked", [{}, {"return_progress": False}, {"return_progress": None}])
def test_not_asked(server, path, asked):
    chunks = stream(server, path, "@progress=3", **asked)
    assert not told(chunks) and said(chunks) == HELLO


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_without_stream(server, path):
    """Accepted, and nothing comes of it."""
    status, _, body = server.request("POST", path, ask(path, "@progress=3", return_progress=True))
    assert status == 200 and b"progress" not in body


def test_choices(server):
    """Each prompt is told once, with its first choice."""
    chunks = stream(server, CHAT, "@progress=3", return_progress=True, n=3)
    assert [bool(told(chunks, i)) for i in range(3)] == [True, False, False]
    assert [said(chunks, i) for i in range(3)] == [HELLO] * 3
    chunks = stream(server, TEXT, ["@progress=3", "@progress=2 longer"], return_progress=True, n=2, echo=True)
    assert [bool(told(chunks, i)) for i in range(4)] == [True, False, True, False]
    assert [told(chunks, i)[-1]["processed"] for i in (0, 2)] == [11, 18]
    assert [said(chunks, i) for i in range(4)] == ["@progress=3" + HELLO] * 2 + ["@progress=2 longer" + HELLO] * 2


def test_failure(server):
    status, _, body = server.request("POST", CHAT, ask(CHAT, "@progress=2 @fail=0", stream=True, return_progress=True))
    assert status == 200 and "error" in json.loads(util.events(body)[-1])


def test_client(server):
    """The official client joins the chunks as if there were no others among them."""
    openai = pytest.importorskip("openai")
    asked = {"model": "fake-model", "messages": [{"role": "user", "content": "@progress=3"}], "extra_body": {"return_progress": True}}
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        with c.chat.completions.stream(**asked) as s:
            final = s.get_final_completion()
        last = [k.prompt_progress for k in c.chat.completions.create(stream=True, **asked) if hasattr(k, "prompt_progress")][-1]
    assert (final.choices[0].message.role, final.choices[0].message.content) == ("assistant", HELLO)
    assert last["processed"] == last["total"]


def test_not_read():
    """Who reads nothing is spared what is old by then: 64 prompts of 150 steps are more than a stream may leave unread,
    and it is not cut."""
    with util.serving("--seqs", 64) as s:
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.settimeout(util.PATIENCE)
        c.connect(("127.0.0.1", s.port))
        body = ask(TEXT, ["@progress=150 @n=1 %d" % i for i in range(64)], stream=True, return_progress=True)
        c.sendall(util.build("POST", TEXT, body, {"Connection": "close"}))
        s.wait_for(lambda: s.stats()["models"][0]["active_rows"] > 0, True)
        s.wait_rows()
        status, headers, out = util.parse(util.read_all(c))
        c.close()
        conform.answer("POST", TEXT, status, headers, out)
        *chunks, done = util.events(out)
        chunks = [json.loads(k) for k in chunks]
        assert done == "[DONE]" and all(said(chunks, i) == "H" for i in range(64))
        assert 0 < sum("prompt_progress" in k for k in chunks) < 64 * 150


OTHERS = {
    "/v1/responses": (lambda text: {"input": text}, rb": prompt_progress (\{.*\})\n\n"),
    "/v1/messages": (lambda text: {"max_tokens": 99, "messages": [{"role": "user", "content": text}]}, rb'event: ping\ndata: \{"type":"ping","prompt_progress":(\{.*\})\}\n\n'),
    "/api/chat": (lambda text: {"messages": [{"role": "user", "content": text}]}, rb'"content":""\},"done":false,"prompt_eval_count":\d+,"prompt_progress":(\{.*\})\}\n'),
    "/api/generate": (lambda text: {"prompt": text}, rb'"response":"","done":false,"prompt_eval_count":\d+,"prompt_progress":(\{.*\})\}\n'),
}


@pytest.mark.parametrize("path", OTHERS)
def test_other_routes(server, path):
    """Each in the form of its own API, before anything is said, and only where it is asked for."""
    fields, form = OTHERS[path]
    body = dict(fields("@cached=4 @progress=4 "), model="fake-model", stream=True)
    for asked in (True, False, None):
        status, _, out = server.request("POST", path, dict(body, return_progress=asked))
        steps = [json.loads(x) for x in re.findall(form, out)]
        assert status == 200 and HELLO[:1].encode() in out, out
        if not asked:
            assert not steps and b"prompt_progress" not in out
            continue
        assert out.count(b"prompt_progress") == len(steps) > 0
        assert all(a["processed"] < b["processed"] for a, b in zip(steps, steps[1:]))
        assert {s["cache"] for s in steps} == {4} and steps[-1]["processed"] == steps[-1]["total"]
        assert re.search(form, out).start() < out.index(b'"H')
    status, _, out = server.request("POST", path, dict(body, stream=False, return_progress=True))
    assert status == 200 and b"prompt_progress" not in out
    status, _, out = server.request("POST", path, dict(body, return_progress="yes"))
    assert status == 400 and b"return_progress" in out
