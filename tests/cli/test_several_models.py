"""Several real models under a budget for one: what each answers is what it answers alone."""
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny  # noqa: E402
from tiny import CAIRN, PATIENCE, line_of, put, refused, run  # noqa: E402

SOME = "w1 w2 w3 w4 w5"
LONG = " ".join("w%d" % (i % 60) for i in range(100))  # of 128 positions, more than a block of the cache
FOR_ONE = "48M"  # a quarter is the server's; a model takes 23 MB at least, 16 of them for the program


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two that a command line names, and a folder with one more and what is none."""
    top = tmp_path_factory.mktemp("models")
    for name, layers in ("one", 2), ("two", 1), ("below/org/three", 3):
        c = dict(tiny.CONFIG, num_hidden_layers=layers)
        m = tiny.make(top / name)
        put(m, "config.json", c)
        put(m, "model.safetensors", tiny.safetensors(lambda c=c: tiny.shapes(c)))
        put(m, "tokenizer_config.json", {"chat_template": "{{ messages[0].content }}"})
    put(top / "below", "broken.gguf", "GGUF and no more")
    return top


@pytest.fixture(scope="module")
def alone(models):
    def answer(name, prompt):
        r = run("run", models / name, "-p", prompt, "-n", 12, "--raw", "--temp", 0, "-t", 1)
        assert r.code == 0, r.err
        return r.out.decode().strip()
    return {(name.split("below/")[-1], p): answer(name, p)
            for name in ("one", "two", "below/org/three") for p in (SOME, LONG)}


class Serve:
    def __init__(self, *words):
        self.p = subprocess.Popen([CAIRN, "serve", *map(str, words), "--port", "0", "-t", "1"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        line = line_of(self.p)
        assert line.startswith("listening on "), self.p.communicate()
        self.url = line.split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0]:
            self.p.kill()
        self.p.send_signal(signal.SIGTERM)
        err = self.p.communicate(timeout=PATIENCE)[1]
        assert error[0] or (self.p.returncode == 0 and "Sanitizer" not in err), err[-3000:]

    def get(self, path):
        return json.load(urllib.request.urlopen(self.url + path, timeout=PATIENCE))

    def post(self, path, **body):
        rq = urllib.request.Request(self.url + path, json.dumps(body).encode())
        try:
            with urllib.request.urlopen(rq, timeout=2 * PATIENCE) as r:
                return r.status, json.load(r)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)

    def complete(self, model, prompt):
        code, reply = self.post("/v1/completions", model=model, prompt=prompt, max_tokens=12, temperature=0)
        assert code == 200, reply
        assert reply["model"] == model
        return reply["choices"][0]["text"].strip(), reply["usage"]

    def wait_state(self, model, state):
        end = time.monotonic() + PATIENCE
        while self.states()[model] != state:
            assert time.monotonic() < end, self.states()
            time.sleep(0.02)

    def states(self):
        return {m["id"]: m["state"] for m in self.get("/stats")["known_models"]}


def test_a_budget_for_one(models, alone):
    with Serve(models / "one", models / "two", "--memory", FOR_ONE) as s:
        assert s.states() == {"one": "loaded", "two": "unloaded"}
        about = {m["id"]: m["context_window"] for m in s.get("/v1/models")["data"]}
        for name, prompt in ("one", SOME), ("two", SOME), ("two", LONG), ("one", LONG):
            assert s.complete(name, prompt)[0] == alone[name, prompt]
        assert {m["id"]: m["context_window"] for m in s.get("/v1/models")["data"]} == about == {"one": 128, "two": 128}
        said, held = [], []

        def ask(name, prompt):
            said.append((alone[name, prompt], s.complete(name, prompt)[0]))

        threads = [threading.Thread(target=ask, args=(name, p)) for name in ("one", "two") for p in (SOME, LONG)]
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            held.append(sum(state != "unloaded" for state in s.states().values()))
            threads[0].join(0.01)
            threads[-1].join(0.01)
        assert len(said) == 4 and all(want == got for want, got in said) and max(held, default=1) <= 1
        memory = s.get("/stats")["models"]
        assert len(memory) == 1 and memory[0]["memory"]["reserved_bytes"] <= memory[0]["memory"]["budget_bytes"] < 38 << 20


def test_prefixes_outlive_an_unloading(models, alone, tmp_path):
    with Serve(models / "one", models / "two", "--memory", "200M", "--ssd-cache", tmp_path) as s:
        assert s.states()["two"] == "unloaded"
        text, usage = s.complete("one", LONG)
        assert text == alone["one", LONG] and usage["prompt_tokens_details"]["cached_tokens"] == 0
        assert s.complete("two", LONG)[0] == alone["two", LONG] and s.states() == {"one": "unloaded", "two": "loaded"}
        text, usage = s.complete("one", LONG)
        assert text == alone["one", LONG] and usage["prompt_tokens_details"]["cached_tokens"] >= 64


def test_a_folder_of_models(models, alone):
    with Serve("--models-dir", models / "below", "--alias", "gpt=org/three") as s:
        assert s.states() == {"org/three": "unloaded"}  # the broken one is left out
        shown = s.get("/v1/models/gpt")
        assert (shown["id"], shown["family"], shown["context_window"]) == ("org/three", "llama", 128)
        assert s.post("/api/show", model="org/three")[1]["template"] and s.states() == {"org/three": "unloaded"}
        assert s.complete("org/three", SOME)[0] == alone["org/three", SOME]
        for name in "../one", "org/../org/three", "broken", str(models / "one"), "/etc/passwd", "org", "three":
            code, e = s.post("/v1/completions", model=name, prompt="w1")
            assert code == 404 and "expected `org/three`" in e["error"]["message"], (name, e)


def test_names(models, tmp_path):
    """A folder's name does not depend on how its path is written, nor on what lies beside it in which order."""
    for i in range(8):
        os.symlink(models / "two", tmp_path / ("m%d" % i))
        put(tmp_path, "m%d.gguf" % i, "GGUF and no more")
    os.symlink(tmp_path, tmp_path / "self")  # it leads back
    with Serve(str(models / "one") + "/", str(models / "two") + "//", "--models-dir", tmp_path) as s:
        assert list(s.states()) == ["one", "two"] + ["m%d" % i for i in range(8)]


def test_what_fits_beside_others(models):
    """Each of several has its part, less the server's: what is served is said to fit, with the cache that it has."""
    with Serve(models / "one", models / "two", "--memory", "64M", "--kv-cache", "q8") as s:
        stats = {m["id"]: m for m in s.get("/stats")["models"]}
        fits = {m["id"]: m for m in s.get("/fit")["models"]}
        assert set(fits) == set(stats) == {"one", "two"}
        for name, m in fits.items():
            assert m["cache_codec"] == stats[name]["plan"]["kv_codec"] != "f16"
            assert m["budget_bytes"] == stats[name]["memory"]["budget_bytes"]
            assert m["max_context_tokens"] == 128 and m["rows"][0]["fits"], m


def test_pinned_and_unused(models, alone):
    with Serve(models / "one", "--models-dir", models / "below", "--pin", "org/three", "--keep", 1) as s:
        s.wait_state("one", "unloaded")
        assert s.states()["org/three"] == "loaded"
        code, reply = s.post("/v1/completions", prompt=SOME, max_tokens=12, temperature=0)  # the first is the default
        assert (code, reply["model"], reply["choices"][0]["text"].strip()) == (200, "one", alone["one", SOME])
    with Serve(models / "one", "--keep", 1) as s:  # alone it has what there is, each time
        s.wait_state("one", "unloaded")
        assert s.complete("one", SOME)[0] == alone["one", SOME]


def test_a_model_gone_since(models, tmp_path):
    os.symlink(models / "two", tmp_path / "two")
    with Serve(models / "one", tmp_path / "two", "--memory", FOR_ONE) as s:
        os.unlink(tmp_path / "two")
        code, e = s.post("/v1/completions", model="two", prompt="w1")
        assert code == 503 and e["error"]["code"] == "model_failed" and str(tmp_path) not in e["error"]["message"], e
        assert e["error"]["message"].endswith("its files, which the server found when it looked for models, are gone"), e
        assert s.states()["two"] == "failed"
        assert s.complete("one", SOME)[0]


def test_what_cannot_be(models, tmp_path):
    serve = ("serve", models / "one", "--port", 0, "-t", 1)
    refused(run(*serve, "--pin", "none"), "--pin none: no model is called so")
    refused(run(*serve, "--alias", "a=none"), "alias a: no model is called none")
    refused(run(*serve, "--alias", "one=one"), "alias one: a model or an alias has that name")
    refused(run(*serve, "--models-dir", tmp_path / "none"), "none: No such file")
    refused(run("serve", "--models-dir", tmp_path, "--port", 0), "no model that can be opened")


def test_a_folder_of_which_nothing_fits(models):
    """It starts, as files may change, and says at once what is wanting; who asks is told so too."""
    p = subprocess.Popen([CAIRN, "serve", "--models-dir", str(models / "below"), "--memory", "20M", "--port", "0", "-t", "1"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert line_of(p).startswith("listening on ")
    p.send_signal(signal.SIGTERM)
    err = p.communicate(timeout=PATIENCE)[1]
    assert p.returncode == 0, err
    line, = [x for x in err.split("\n") if "no_model_fits" in x]
    told = dict(w.split("=", 1) for w in line.split() if "=" in w)
    assert told["models"] == "1" and told["smallest"] == "org/three" and told["budget"] == str(20 << 20), line
    assert int(told["at_least"]) > int(told["bytes"]) > 0 and int(told["server"]) > 0, line


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_ended_while_models_are_opened(models, tmp_path, sig):
    """Between two parts of that, with the status of a drain, whether it was reached before it listens or after."""
    put(tmp_path, "a.gguf", "GGUF and no more")  # the first that is looked at: a warning says so
    for i in range(400):
        os.symlink(models / "one", tmp_path / ("m%03d" % i))
    p = subprocess.Popen([CAIRN, "serve", "--models-dir", str(tmp_path), "--port", "0", "-t", "1", "-v"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert select.select([p.stderr], [], [], PATIENCE)[0] and "model_skipped" in p.stderr.readline()
        p.send_signal(sig)
        out, err = p.communicate(timeout=PATIENCE)
    finally:
        p.kill()
    assert p.returncode == 0 and "Sanitizer" not in err, (p.returncode, err[-2000:])
    assert "server_stopped" in err or out.startswith("listening on "), err[-2000:]
