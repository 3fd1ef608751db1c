"""`serve` as an operator meets it: a file of flags, the log, keys and certificates that change."""
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, PATIENCE, line_of, make, put, refused, run  # noqa: E402

CHAT = {"messages": [{"role": "user", "content": "w1 w2"}], "max_tokens": 2}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    m = make(tmp_path_factory.mktemp("m") / "served")
    put(m, "tokenizer_config.json", {"chat_template": "{{ messages[0].content }}"})
    return m


class Serve:
    """`cairn serve`, with its log."""

    def __init__(self, *words):
        self.err = tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen([CAIRN, "serve", *map(str, words)], stdout=subprocess.PIPE, stderr=self.err, text=True)
        line = line_of(self.p)
        assert line.startswith("listening on "), self.said()
        self.url = line.split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGTERM)
            self.p.communicate(timeout=PATIENCE)
        self.log = self.said()
        self.err.close()
        assert self.p.returncode == 0, self.log

    def said(self):
        """The log until now.  Its place is shared with the process, which writes at its end all the same."""
        return os.pread(self.err.fileno(), 1 << 24, 0).decode()

    def status(self, path="/v1/models", body=None, context=None, **headers):
        rq = urllib.request.Request(self.url + path, body and json.dumps(body).encode(), headers)
        try:
            return urllib.request.urlopen(rq, timeout=PATIENCE, context=context).status
        except urllib.error.HTTPError as e:
            return e.code

    def reload(self, event):
        """Until the log has one more line that tells of it."""
        before, end = self.said().count(event), time.monotonic() + PATIENCE
        self.p.send_signal(signal.SIGHUP)
        while self.said().count(event) == before:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_keys_rotate(model, tmp_path):
    old, both, new = "key-old", "key-both", "key-new"
    keys = put(tmp_path, "keys", "%s\n%s\n" % (old, both))
    with Serve(model, "--port", "0", "-t", "1", "--api-key-file", keys, "-v") as s:
        assert [s.status(**{"x-api-key": k}) for k in (old, both, new)] == [200, 200, 401]
        put(tmp_path, "keys", "%s\n%s\n" % (new, both))
        s.reload("keys_loaded")
        assert [s.status(**{"x-api-key": k}) for k in (old, both, new)] == [401, 200, 200]
        for broken in "", "# none\n", "k\0e\0y\0":  # locks nobody out, opens nothing
            put(tmp_path, "keys", broken)
            s.reload("keys_kept")
            assert s.status(**{"x-api-key": new}) == 200 and s.status(**{"x-api-key": "k"}) == 401
        os.remove(keys)
        s.reload("keys_kept")
        assert s.status(**{"x-api-key": new}) == 200
    assert "keys_loaded file=%s keys=2" % keys in s.log
    assert "keys_kept file=%s why=" % keys in s.log
    assert "key-" not in s.log


def test_config(model, tmp_path):
    keys = put(tmp_path, "keys", "k\n")
    conf = put(tmp_path, "serve.conf", "# what this machine serves\nmodel %s\nport = 1\nthreads 1\napi-key-file %s\n"
               "allow-host box.lan\nlog-json\nlog-level info\nctx 100\n" % (model, keys))
    with Serve("--config", conf, "--port", "0", "--allow-host", "other.lan") as s:
        key = {"x-api-key": "k"}
        assert s.status() == 401 and s.status(**key) == 200
        assert [s.status(Host=h, **key) for h in ("box.lan", "other.lan", "evil.lan")] == [200, 200, 403]
        with urllib.request.urlopen(urllib.request.Request(s.url + "/stats", headers=key), timeout=PATIENCE) as r:
            assert json.load(r)["models"][0]["context_window"] == 100
        assert s.status("/v1/chat/completions", CHAT, **key) == 200
    lines = [json.loads(line) for line in s.log.splitlines()]
    one = [x for x in lines if x["event"] == "http_request" and x["path"] == "/v1/chat/completions"]
    assert len(one) == 1 and one[0]["status"] == 200 and one[0]["method"] == "POST" and one[0]["level"] == "info"
    assert one[0]["prompt_tokens"] == 2 and isinstance(one[0]["ms"], int)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one[0]["time"])


def test_config_models(model, tmp_path):
    """Models of the command line replace those of the file."""
    other = make(tmp_path / "other")
    conf = put(tmp_path, "serve.conf", "model %s\nport 0\nthreads 1\n" % model)
    with Serve("--config", conf, other) as s:
        with urllib.request.urlopen(s.url + "/v1/models", timeout=PATIENCE) as r:
            assert [m["id"] for m in json.load(r)["data"]] == ["other"]


def test_wrong_config(tmp_path):
    refused(run("serve", "--config", tmp_path / "none"), "none: ", code=1)
    for text, says in [("prot 1\n", "serve.conf:1: --prot: unknown option"),
                       ("\nport 99999\n", "serve.conf:2: --port: found \"99999\"; expected 0 to 65535"),
                       ("config other\n", "names another --config; expected one file"),
                       ("tls-cert x\n", "one of --tls-cert and --tls-key; expected both"),
                       ("model a\n" * 9, "serve.conf:9: model: one too many; expected at most 8")]:
        refused(run("serve", "--config", put(tmp_path, "serve.conf", text)), says, code=2)


def test_log_levels(model):
    for flags, lines in (("--log-level", "error"), 0), (("--log-level", "warn"), 0), (("-v",), 1), \
            (("--log-level", "debug"), 1):
        with Serve(model, "--port", "0", "-t", "1", *flags) as s:
            assert s.status() == 200
        assert s.log.count("http_request") == lines, (flags, s.log)
    refused(run("serve", model, "--log-level", "loud"), "expected one of error|warn|info|debug", code=2)


def test_log_json_says_messages_whole(tmp_path):
    """A message in quotes that has quotes of its own."""
    m = make(tmp_path / "m")
    with Serve(m, "--port", "0", "-t", "1", "--log-json", "--log-prompts", "-v") as s:
        assert s.status("/v1/completions", {"prompt": 'a "b" c=d', "max_tokens": 1}) == 200
    lines = [json.loads(line) for line in s.log.splitlines()]
    warn = [x for x in lines if x["event"] == "no_chat_template"]
    assert len(warn) == 1 and warn[0]["level"] == "warn" and warn[0]["chats"] == "refused" and warn[0]["why"]
    assert [x["path"] for x in lines if x["event"] == "http_body"] == ["/v1/completions"]


HOSTILE = ["a b", 'q"u\\o"te', "x model=y status=200", "line\nlevel=error", "esc\x1b[31m\x7f", "time=1", "12", "gr\u00fc\u00df \u2028"]
FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "]*)(?: |$)')


def fields_of(line):
    """As docs/operations.md says that a line is read."""
    out, at = {}, 0
    while at < len(line):
        m = FIELD.match(line, at)
        assert m and m[1] not in out, line
        v = m[2]
        if v[:1] == '"':
            v = re.sub(rb'\\(x..|.)', lambda e: bytes([int(e[1][1:], 16)]) if e[1][:1] == b"x" else e[1], v[1:-1].encode()).decode()
        out[m[1]], at = v, m.end()
    return out


def test_hostile_names(tmp_path):
    """Of models and paths: a line is one line, a field one field."""
    for name in HOSTILE:
        make(tmp_path / "models" / name)
        put(tmp_path / "models", name + "-broken.gguf", "none")
    for flags in [], ["--log-json"]:
        with Serve("--models-dir", tmp_path / "models", "--port", "0", "-t", "1", "-v", *flags) as s:
            ask = dict(CHAT, model=HOSTILE[2])
            assert s.status("/v1/chat/completions", ask) in (200, 400)
            assert s.status("/no%20such%22%0a%1b") == 404
        lines = s.log.split("\n")[:-1]
        if flags:
            told = [json.loads(line) for line in lines]
        else:
            heads = [re.fullmatch("cairn: ([a-z_.]+) (.*)", line) for line in lines]
            told = [dict(fields_of(m[2]), event=m[1]) for m in heads]
        for event, names in ("model_known", HOSTILE), ("model_skipped", [n + "-broken" for n in HOSTILE]):
            assert {x["model"] for x in told if x["event"] == event} == set(names)
        assert [x["model"] for x in told if x["event"] == "model_loaded"] == [HOSTILE[2]]
        assert [x["path"] for x in told if x["event"] == "http_request"][-1] == '/no such"\n\x1b'


def test_beyond_loopback(model):
    p = run("serve", model, "--port", "0", "-t", "1", "--host", "0.0.0.0")
    refused(p, "other machines reach it, and there is no API key; expected keys", code=1)
    with Serve(model, "--port", "0", "-t", "1", "--host", "0.0.0.0", "--open") as s:
        assert s.status() == 200


def test_tls(model, tmp_path):
    crt, key = tmp_path / "crt", tmp_path / "key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", crt, "-days", "2", "-subj", "/CN=x", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, timeout=PATIENCE)
    with Serve(model, "--port", "0", "-t", "1", "--tls-cert", crt, "--tls-key", key) as s:
        assert s.url.startswith("https://127.0.0.1:")
        assert s.status("/v1/chat/completions", CHAT, ssl.create_default_context(cafile=crt)) == 200
