"""Several models by id: loaded when they are asked for, let go when their room is wanted, and by time.

A file in the gate's folder lets opening go on (fake_server.c), so that nothing here hangs on how fast it is."""
import contextlib
import json
import os
import socket
import tempfile
import threading
import time

import pytest

import util

IDS = ["fake-model", "org/other", "third", "fourth"]
ONE = 1000000  # bytes that each takes


class Doors:
    """Files in a folder, each of which lets something go on."""

    def __init__(self, folder):
        self.folder = str(folder)

    def put(self, name):
        with open(os.path.join(self.folder, name.replace("/", "_")), "w", encoding="ascii"):
            pass

    def cut(self, name):
        os.unlink(os.path.join(self.folder, name.replace("/", "_")))


@pytest.fixture
def gate(tmp_path):
    return Doors(tmp_path)


def known(s):
    return {m["id"]: m for m in s.stats()["known_models"]}


def wait(s, fine, what="", timeout=util.PATIENCE):
    """Until the models are as they should be."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        m = known(s)
        if fine(m):
            return m
        time.sleep(0.005)
    raise AssertionError("%s: %r" % (what, m))


def wait_state(s, model, state):
    return wait(s, lambda m: m[model]["state"] == state, "%s should be %s" % (model, state))


class Asking(threading.Thread):
    """One request, on a thread of its own."""

    def __init__(self, s, path, body):
        super().__init__(daemon=True)
        self.ask, self.reply = (s, path, body), None
        self.start()

    def run(self):
        s, path, body = self.ask
        with s.connect(timeout=util.PATIENCE) as c:
            c.sendall(util.build("POST", path, body, {"Connection": "close"}))
            self.reply = util.parse(util.read_all(c))

    def get(self):
        self.join(util.PATIENCE)
        assert self.reply, "no reply"
        return self.reply[0], self.reply[1], self.reply[2]


def chat(s, model, text="hi", **fields):
    return Asking(s, "/v1/chat/completions", util.ask(text, model=model, **fields))


def said(asking, model, text):
    status, _, body = asking.get()
    assert status == 200, body
    reply = json.loads(body)
    assert reply["model"] == model and reply["choices"][0]["message"]["content"] == text


@contextlib.contextmanager
def serving(gate, *flags, n=3, opened=True):
    if opened:
        gate.put("open")
    with util.serving("--models", n, "--gate", gate.folder, *flags) as s:
        yield s


def test_on_demand(gate):
    with serving(gate) as s:
        assert {m["state"] for m in known(s).values()} == {"unloaded"}
        for m in IDS[:3]:
            said(chat(s, m, "@reply=I am " + m), m, "I am " + m)
        assert {m: (x["state"], x["loads"]) for m, x in known(s).items()} == {m: ("loaded", 1) for m in IDS[:3]}
        said(chat(s, "third", "@reply=again"), "third", "again")
        assert known(s)["third"]["loads"] == 1


# Every API finds its model in the same way.
PATHS = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
    ("/v1/completions", {"prompt": "x"}),
    ("/v1/responses", {"input": "x"}),
    ("/v1/responses/input_tokens", {"input": "x"}),
    ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x"}]}),
    ("/api/chat", {"messages": [{"role": "user", "content": "x"}], "stream": False}),
    ("/api/generate", {"prompt": "x", "stream": False}),
    ("/api/generate", {"stream": False}),
    ("/tokenize", {"content": "x"}),
    ("/detokenize", {"tokens": [65]}),
    ("/apply-template", {"messages": [{"role": "user", "content": "x"}]}),
    ("/signal", {"prompt": "x"}),
    ("/generate", {"prompt": "x", "default": True}),
]


@pytest.mark.parametrize("path,body", PATHS)
def test_every_route_loads(gate, path, body):
    with serving(gate, opened=False) as s:
        asked = Asking(s, path, dict(body, model="org/other"))
        wait_state(s, "org/other", "loading")
        gate.put("open-org/other")
        status, _, reply = asked.get()
        assert status == 200, reply
        assert known(s)["org/other"]["loads"] == 1
        status, _, reply = s.request("POST", path, dict(body, model="nobody"))
        assert status == 404 and b"`nobody` does not exist; expected one of `fake-model`, `org/other`, `third`" in reply


def test_embeddings_load_too(gate):
    """The double embeds nothing, which is told of a model that is there."""
    with serving(gate) as s:
        for path, field in ("/v1/embeddings", "input"), ("/api/embed", "input"), ("/api/embeddings", "prompt"):
            status, _, body = s.request("POST", path, {"model": "third", field: "x"})
            assert status == 400 and b"no embedding model" in body
        assert known(s)["third"]["loads"] == 1
        status, _, body = s.request("POST", "/v1/embeddings", {"model": "nobody", "input": "x"})
        assert status == 404 and b"expected one of `fake-model`" in body


def test_first_requests_load_once(gate):
    with serving(gate, opened=False) as s:
        asked = [chat(s, "org/other", "@reply=%d" % i, stream=False) for i in range(8)]
        wait_state(s, "org/other", "loading")
        s.wait_prompts(8)
        gate.put("open")
        for i, a in enumerate(asked):
            said(a, "org/other", str(i))
        assert known(s)["org/other"]["loads"] == 1


def test_the_unused_for_longest_makes_room(gate):
    with serving(gate, "--model-bytes", 2 * ONE) as s:
        for m in "fake-model", "org/other", "fake-model", "third":
            said(chat(s, m, "@reply=x"), m, "x")
        states = {m: x["state"] for m, x in known(s).items()}
        assert states == {"fake-model": "loaded", "org/other": "unloaded", "third": "loaded"}


def test_the_busy_and_the_pinned_stay(gate):
    with serving(gate, "--model-bytes", 2 * ONE, "--pin", "fake-model") as s:
        said(chat(s, "fake-model", "@reply=x"), "fake-model", "x")
        with s.connect() as busy:
            busy.sendall(util.chat_bytes("@n=100000 @pace=50", model="org/other", stream=True))
            util.read_until(busy, b'"content":"')
            late = chat(s, "third", "@reply=there")
            wait_state(s, "org/other", "draining")
            behind = chat(s, "org/other", "@reply=later")  # new requests do not hold up who waits for the room
            s.wait_prompts(2)
            assert known(s)["org/other"]["uses"] > 0 and late.reply is None
            util.read_until(busy, b'"content":"')  # it goes on
        said(late, "third", "there")
        said(behind, "org/other", "later")
        m = known(s)
        assert (m["fake-model"]["state"], m["fake-model"]["loads"], m["org/other"]["loads"]) == ("loaded", 1, 2)


def test_two_that_are_always_busy(gate):
    """The one that is drained for a third stays chosen, though each end of a request of its makes it the last used."""
    with serving(gate, "--model-bytes", 2 * ONE) as s, contextlib.ExitStack() as streams:
        def begin(m):
            c = streams.enter_context(s.connect())
            c.sendall(util.chat_bytes("@n=100000 @pace=50", model=m, stream=True))
            util.read_until(c, b"\r\n\r\n")  # it runs, or waits for its model
            return c

        busy = {m: [begin(m), begin(m)] for m in IDS[:2]}
        for m in busy:
            wait(s, lambda k, m=m: k[m]["uses"] >= 2)
        late = chat(s, "third", "@reply=there")
        wait(s, lambda k: "draining" in {x["state"] for x in k.values()})
        for _ in range(3):
            for running in busy.values():
                running.append(begin(IDS[list(busy.values()).index(running)]))
                running.pop(0).close()
        said(late, "third", "there")


def flush(path):
    """By the local socket."""
    with util.Watched(socket.AF_UNIX) as c:
        c.settimeout(util.PATIENCE)
        c.connect(path)
        c.sendall(util.build("POST", "/admin/cache/flush", b"", {"Connection": "close"}))
        status, _, body = util.parse(util.read_all(c))
        return status, [m["id"] for m in json.loads(body)["models"]]


def test_a_flush_sees_what_leaves(gate):
    """200 means that all is on disk: of a model that is drained, or is just being closed, too."""
    with tempfile.TemporaryDirectory() as d, \
            serving(gate, "--model-bytes", ONE, "--admin-socket", d + "/admin") as s:
        assert flush(d + "/admin") == (200, [])
        with s.connect() as busy:
            busy.sendall(util.chat_bytes("@n=100000 @pace=50", model="org/other", stream=True))
            util.read_until(busy, b'"content":"')
            late = chat(s, "third", "@reply=there")
            wait_state(s, "org/other", "draining")
            assert flush(d + "/admin") == (503, ["org/other"])
            gate.put("stay")
        wait_state(s, "org/other", "unloading")
        assert flush(d + "/admin") == (503, [])
        gate.cut("stay")
        said(late, "third", "there")
        wait(s, lambda k: k["third"]["uses"] == 0)
        util.until(lambda: flush(d + "/admin") == (200, ["third"]), "it is not flushed")


def test_to_look_is_no_use(gate):
    """Who asks what would fit, or flushes, keeps no model loaded and changes no order."""
    with tempfile.TemporaryDirectory() as d, \
            serving(gate, "--model-bytes", 2 * ONE, "--admin-socket", d + "/admin") as s:
        for look in lambda: s.request("GET", "/fit")[0], lambda: flush(d + "/admin")[0]:
            for m in "org/other", "fake-model":
                said(chat(s, m, "@reply=x"), m, "x")
            wait(s, lambda k: all(m["uses"] == 0 for m in k.values()))
            util.until(lambda: look() == 200, "it cannot be looked at")
            said(chat(s, "third", "@reply=x"), "third", "x")
            states = {m: x["state"] for m, x in known(s).items()}
            assert states == {"fake-model": "loaded", "org/other": "unloaded", "third": "loaded"}


def test_what_never_fits(gate):
    with serving(gate, "--model-bytes", ONE, "--pin", "fake-model", n=2) as s:
        said(chat(s, "fake-model", "@reply=x"), "fake-model", "x")
        status, headers, body = chat(s, "org/other").get()
        e = json.loads(body)["error"]
        assert status == 503 and e["code"] == "model_failed" and int(headers["retry-after"]) >= 1
        assert "takes 1000000 bytes, and 0 of the 1000000" in e["message"]
        said(chat(s, "fake-model", "@reply=x"), "fake-model", "x")
    with serving(gate, "--model-bytes", ONE - 1, n=2) as s:
        status, _, body = chat(s, "org/other").get()
        assert status == 503 and b"takes 1000000 bytes, and 999999 of the 999999" in body


def test_a_failure_is_told_to_all_and_tried_again(gate):
    gate.put("fail")
    with serving(gate, "--retry-ms", 60000, opened=False) as s:
        asked = [chat(s, "org/other") for _ in range(4)] + [
            Asking(s, "/v1/messages", dict(util.ask(model="org/other"), max_tokens=9)),
            Asking(s, "/api/chat", util.ask(model="org/other", stream=False))]
        wait_state(s, "org/other", "loading")
        s.wait_prompts(6)
        gate.put("open")
        for a in asked:
            status, headers, body = a.get()
            assert status == 503 and 1 <= int(headers["retry-after"]) <= 60
            assert b"`org/other` is not loaded" in body and b"told to fail" in body and b"/secret" not in body
        gate.cut("fail")
        assert chat(s, "org/other").get()[0] == 503  # not yet
        m = known(s)["org/other"]
        assert (m["state"], m["loads"], m["failed_loads"]) == ("failed", 0, 1)
    gate.put("fail")
    with serving(gate, "--retry-ms", 1) as s:
        assert chat(s, "org/other").get()[0] == 503
        gate.cut("fail")
        util.until(lambda: chat(s, "org/other").get()[0] == 200, "it fails still")


# What a stream of each API begins with once there is an answer, and how it tells an error before that.
STREAMS = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, '"chat.completion.chunk"', 'data: {"error":'),
    ("/v1/completions", {"prompt": "x"}, '"text_completion"', 'data: {"error":'),
    ("/v1/responses", {"input": "x"}, "event: response.created", "event: error"),
    ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}, "event: message_start", "event: error"),
    ("/api/chat", {"messages": [{"role": "user", "content": "x"}]}, '"done":true', '{"error":'),
    ("/api/generate", {"prompt": "x"}, '"done":true', '{"error":'),
]


@pytest.mark.parametrize("path,body,begins,fails", STREAMS)
def test_a_stream_begins_before_its_model_is_there(gate, path, body, begins, fails):
    ask = util.build("POST", path, dict(body, model="third", stream=True), {"Connection": "close"})
    with serving(gate, opened=False) as s, s.connect(timeout=util.PATIENCE) as c:
        c.sendall(ask)
        head = util.read_until(c, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        wait_state(s, "third", "loading")
        gate.put("open")
        status, headers, text = util.parse(head + util.read_all(c))
        assert begins in text.decode() and fails not in text.decode()
        assert headers["content-type"].startswith(("text/event-stream", "application/x-ndjson"))
    gate.cut("open")
    gate.put("fail")
    with serving(gate, "--retry-ms", 600000, opened=False) as s, s.connect(timeout=util.PATIENCE) as c, s.connect(timeout=util.PATIENCE) as d:
        c.sendall(ask)
        head = util.read_until(c, b"\r\n\r\n")
        gate.put("open")
        text = util.parse(head + util.read_all(c))[2].decode()
        assert fails in text and "told to fail" in text and begins not in text and "[DONE]" not in text
        d.sendall(ask)  # and at once, where it is known before the stream begins
        assert util.read_all(d).startswith(b"HTTP/1.1 503")


@pytest.mark.parametrize("path,body,begins,fails", STREAMS)
def test_waiting_has_an_end(gate, path, body, begins, fails):
    """--timeout counts while a model is loaded too: the gate stays shut, so every request is late."""
    with serving(gate, "--timeout-ms", 20, opened=False) as s:
        for stream in False, True:
            status, _, text = Asking(s, path, dict(body, model="third", stream=stream)).get()
            assert status == (200 if stream else 503) and b"the time of the request passed" in text, text
            assert not stream or fails in text.decode()
        s.wait_prompts(0)


def test_waiting_for_vectors_has_an_end(gate):
    with serving(gate, "--timeout-ms", 20, opened=False) as s:
        for path in "/v1/embeddings", "/api/embed":
            status, _, text = s.request("POST", path, {"model": "third", "input": "x"})
            assert status == 503 and b"the time of the request passed" in text, text
        status, _, text = s.request("POST", "/signal", {"model": "third", "prompt": "x"})
        assert status == 503 and json.loads(text)["error"]["code"] == "deadline_exceeded"


def test_the_end_of_a_stream_that_waits(gate):
    with serving(gate, "--drain-ms", 50, opened=False) as s, s.connect(timeout=util.PATIENCE) as c:
        c.sendall(util.build("POST", "/v1/chat/completions", util.ask(model="third", stream=True), {"Connection": "close"}))
        head = util.read_until(c, b"\r\n\r\n")
        s.term()
        assert b"server_shutdown" in util.parse(head + util.read_all(c))[2]


def test_aliases_and_the_default(gate):
    with serving(gate, "--alias", "gpt", "--alias-of", "third", "--default", 2) as s:
        said(chat(s, "gpt", "@reply=x"), "third", "x")
        said(Asking(s, "/v1/chat/completions", {"messages": [{"role": "user", "content": "@reply=y"}]}), "org/other", "y")
        one = json.loads(s.request("GET", "/v1/models/gpt")[2])
        assert (one["id"], one["aliases"], one["state"]) == ("third", ["gpt"], "loaded")
        listed = json.loads(s.request("GET", "/v1/models")[2])["data"]
        assert [(m["id"], m["state"]) for m in listed] == [
            ("fake-model", "unloaded"), ("org/other", "loaded"), ("third", "loaded")]
    with serving(gate) as s:
        status, _, body = s.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
        assert status == 400 and json.loads(body)["error"]["param"] == "model"
        assert s.request("GET", "/v1/models/nobody")[0] == 404


def test_unused_for_long(gate):
    with serving(gate, "--keep-ms", 1) as s:
        said(chat(s, "third", "@reply=x"), "third", "x")
        wait_state(s, "third", "unloaded")
        said(chat(s, "third", "@n=30 @pace=5"), "third", ("Hello from the test double." * 2)[:30])
        assert wait_state(s, "third", "unloaded")["third"]["loads"] == 2
    with serving(gate, "--keep-ms", 1, "--pin", "third") as s:
        for m in "third", "fake-model":
            said(chat(s, m, "@reply=x"), m, "x")
        assert wait_state(s, "fake-model", "unloaded")["third"]["state"] == "loaded"


def ollama(s, path, **fields):
    status, _, body = s.request("POST", path, dict({"model": "third", "stream": False}, **fields))
    return status, json.loads(body)


def test_keep_alive(gate):
    say = {"messages": [{"role": "user", "content": "@reply=x"}]}
    with serving(gate, "--keep-ms", 600000) as s:
        assert ollama(s, "/api/chat")[1]["done_reason"] == "load"
        assert known(s)["third"]["state"] == "loaded"
        assert ollama(s, "/api/chat", keep_alive=0)[1]["done_reason"] == "unload"
        wait_state(s, "third", "unloaded")
        assert ollama(s, "/api/generate", keep_alive="0")[1]["done_reason"] == "unload"
        assert known(s)["third"]["loads"] == 1  # nothing was loaded for that
        assert ollama(s, "/api/chat", keep_alive="1ms", **say)[1]["message"]["content"] == "x"
        wait_state(s, "third", "unloaded")
        assert ollama(s, "/api/generate", prompt="@reply=x", keep_alive=0)[0] == 200
        wait_state(s, "third", "unloaded")
        for keep in -1, "-1m", "1h30m", 3600.5, "0.5h", None, -1e300, "-" + "9" * 300 + "h":
            assert ollama(s, "/api/chat", keep_alive=keep, **say)[0] == 200
            running = json.loads(s.request("GET", "/api/ps")[2])["models"]
            century = "21" if isinstance(keep, (int, float)) and keep < 0 or str(keep)[0] == "-" else "20"  # what stays does so for 100 years
            assert [(m["name"], m["expires_at"][:2]) for m in running] == [("third", century)], keep
            assert len(json.loads(s.request("GET", "/api/tags")[2])["models"]) == 3
        for wrong in "5", "m", "5x", "", "-", "5m3", ".m", "abc", "1e300h", "nan", True, [], {}:
            for path in "/api/chat", "/api/generate":  # /api/embed: test_embeddings.py
                status, e = ollama(s, path, keep_alive=wrong, prompt="x", **say)
                assert status == 400 and "keep_alive" in e["error"], (path, wrong, e)


def test_to_look_at_a_model_loads_none(gate):
    with serving(gate, opened=False) as s:
        shown = json.loads(s.request("POST", "/api/show", {"model": "third"})[2])
        assert shown["capabilities"] == ["completion", "tools", "thinking"] and "thinking" in shown["template"]
        for path in "/api/tags", "/api/ps", "/v1/models", "/v1/models/third", "/metrics", "/stats", "/health":
            assert s.request("GET", path)[0] == 200
        assert json.loads(s.request("GET", "/api/ps")[2])["models"] == []
        assert {m["state"] for m in known(s).values()} == {"unloaded"}
        loaded = [x for x in s.request("GET", "/metrics")[2].decode().splitlines() if x.startswith("cairn_model_loaded{")]
        assert loaded == ['cairn_model_loaded{model="%s"} 0' % m for m in IDS[:3]]


def test_who_leaves_while_it_waits(gate):
    with serving(gate, "--model-bytes", ONE, opened=False) as s:
        first = chat(s, "fake-model", "@reply=x")
        wait_state(s, "fake-model", "loading")
        with s.connect() as c:
            c.sendall(util.chat_bytes(model="org/other"))
            s.wait_prompts(2)
        s.wait_prompts(1)
        gate.put("open")
        said(first, "fake-model", "x")
        said(chat(s, "third", "@reply=y"), "third", "y")
        assert known(s)["org/other"]["loads"] == 0  # nobody waits for it any more


def test_only_so_many_wait(gate):
    most = 256  # JOBS_MAX_PARKED
    with serving(gate, opened=False) as s, contextlib.ExitStack() as all_of_them:
        for _ in range(most):
            c = all_of_them.enter_context(s.connect())
            c.sendall(util.chat_bytes(model="third"))
        s.wait_prompts(most)
        status, headers, body = chat(s, "third").get()
        assert status == 503 and json.loads(body)["error"]["code"] == "model_loading"
        assert int(headers["retry-after"]) >= 1
        assert {m["state"] for m in known(s).values()} == {"loading", "unloaded"}


def test_the_end_while_one_is_loaded(gate):
    """SIGTERM: who waits may still be served, and hears of the end otherwise; nothing hangs on the gate."""
    with serving(gate, "--drain-ms", 50, opened=False) as s:
        waits = chat(s, "third")
        wait_state(s, "third", "loading")
        rc, err = s.stop()
        assert rc == 0 and "Sanitizer" not in err
        status, _, body = waits.get()
        assert status == 503 and json.loads(body)["error"]["code"] == "server_shutdown"
    with serving(gate, "--drain-ms", 60000, opened=False) as s:
        waits = chat(s, "third", "@reply=x")
        wait_state(s, "third", "loading")
        s.term()
        gate.put("open")
        said(waits, "third", "x")


def test_a_flood_over_more_models_than_fit(gate):
    """None is lost, each is answered by its model, and the budget holds at every look."""
    each = 12 if util.SLOW == 1 else 4
    with serving(gate, "--model-bytes", 2 * ONE) as s:
        asked = [(m, "@reply=%s %d" % (m, i), chat(s, m, "@reply=%s %d" % (m, i)))
                 for i in range(each) for m in IDS[:3]]
        while any(a.is_alive() for _, _, a in asked):
            held = [x for x in known(s).values() if x["state"] in ("loaded", "draining", "loading", "unloading")]
            assert len(held) <= 2
            time.sleep(0.01)
        for m, text, a in asked:
            said(a, m, text[len("@reply="):])
        assert all(m["uses"] == 0 and m["failed_loads"] == 0 for m in wait(
            s, lambda k: all(x["uses"] == 0 for x in k.values())).values())


def test_kept_responses_outlive_a_reload(gate):
    with serving(gate, "--model-bytes", ONE) as s:
        ask = {"model": "third", "input": "@reply=one"}
        first = json.loads(s.request("POST", "/v1/responses", ask)[2])
        said(chat(s, "fake-model", "@reply=x"), "fake-model", "x")
        status, _, body = s.request("POST", "/v1/responses", dict(ask, input="@prompt", previous_response_id=first["id"]))
        text = json.loads(body)["output"][-1]["content"][0]["text"]
        assert status == 200 and "assistant: one" in text and known(s)["third"]["loads"] == 2
