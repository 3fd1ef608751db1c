"""/v1/embeddings of the real program, by the official client and by hand."""
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import util

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import test_embed as bert  # noqa: E402
import test_every_field as every_field  # noqa: E402
from tiny import CAIRN, make, run  # noqa: E402

openai = pytest.importorskip("openai")
model = bert.model


@contextlib.contextmanager
def served(*models):
    p = subprocess.Popen([CAIRN, "serve", *models, "--port", "0", "-t", "1", "--drain", "1"],
                         stdout=subprocess.PIPE, text=True)
    found = re.search(r"http://\S+", util.line_of(p))
    assert found
    yield p, found.group(0)
    p.send_signal(signal.SIGTERM)
    assert p.wait(util.PATIENCE) == 0


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    """The process and its address: a model that only embeds beside one that only chats."""
    with served(model, make(tmp_path_factory.mktemp("served") / "llama")) as s:
        yield s


@pytest.fixture(scope="module")
def url(server):
    return server[1]


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=util.PATIENCE) as c:
        yield c


@pytest.fixture(scope="module")
def name(model):
    return os.path.basename(model)


def line(model, file, *more):
    return json.loads(bert.embed(model, "-f", model + "/" + file, *more)[0])


def post(url, body, path="/v1/embeddings"):
    rq = urllib.request.Request(url + path, json.dumps(body).encode())
    try:
        with urllib.request.urlopen(rq, timeout=util.PATIENCE) as r:
            return r.status, json.load(r)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-7 for x, y in zip(a, b))


def test_texts(client, model, name):
    texts = [bert.TEXTS[k] for k in "abc"]
    want = [line(model, k) for k in "abc"]
    for how in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        r = client.embeddings.create(model=name, input=texts, **how)
        assert (r.object, r.model) == ("list", name)
        assert [(d.index, d.object) for d in r.data] == [(i, "embedding") for i in range(3)]
        got = [d.embedding for d in r.data]
        if how.get("encoding_format") == "base64":
            got = [list(struct.unpack("<%df" % len(want[0]), base64.b64decode(g))) for g in got]
        assert all(close(g, w) for g, w in zip(got, want))
        assert r.usage.prompt_tokens == r.usage.total_tokens == 5 + 3 + 9
    (d,) = client.embeddings.create(model=name, input=texts[0]).data
    assert close(d.embedding, want[0])


def test_tokens(client, model, name):
    ids = [json.loads(run("tokenize", model, "-f", model + "/" + k).out) for k in "ab"]
    r = client.embeddings.create(model=name, input=ids)
    assert all(close(d.embedding, line(model, k)) for d, k in zip(r.data, "ab"))
    (d,) = client.embeddings.create(model=name, input=ids[1]).data
    assert close(d.embedding, line(model, "b"))


def test_dimensions_and_prompts(client, model, name):
    (d,) = client.embeddings.create(model=name, input=bert.TEXTS["a"], dimensions=7).data
    assert close(d.embedding, line(model, "a", "--dimensions", 7))
    (d,) = client.embeddings.create(model=name, input=bert.TEXTS["a"],
                                    extra_body={"prompt_name": "query"}).data
    assert close(d.embedding, line(model, "q"))


def test_ollamas_routes(url, name):
    """The same vectors by another name, to the last digit that is told."""
    texts = [bert.TEXTS[k] for k in "abc"]
    want = post(url, {"model": name, "input": texts})[1]
    vectors = [d["embedding"] for d in want["data"]]
    status, got = post(url, {"model": name, "input": texts}, "/api/embed")
    assert status == 200 and got["model"] == name and got["embeddings"] == vectors
    assert got["prompt_eval_count"] == want["usage"]["prompt_tokens"] == 17
    assert post(url, {"model": name + ":latest", "input": texts[1]}, "/api/embed")[1]["embeddings"] == vectors[1:2]
    short = post(url, {"model": name, "input": texts[0], "dimensions": 7})[1]["data"][0]["embedding"]
    assert post(url, {"model": name, "input": texts[0], "dimensions": 7}, "/api/embed")[1]["embeddings"] == [short] and len(short) == 7
    for text, vector in zip(texts, vectors):
        assert post(url, {"model": name, "prompt": text}, "/api/embeddings") == (200, {"embedding": vector})
    # What is too long is cut there, as Ollama does, unless asked not to be.
    long = {"model": name, "input": bert.TEXTS["long"]}
    cut = post(url, long | {"truncate": True})[1]["data"][0]["embedding"]
    assert post(url, long, "/api/embed")[1]["embeddings"] == [cut]
    status, got = post(url, long | {"truncate": False}, "/api/embed")
    assert status == 400 and "found 20 tokens" in got["error"]
    ask = {"model": name, "input": texts[1]}
    for keep in "5m", -1, 3600.5, 1e300, -1e300, "9" * 300 + "h", "-1h", "1h30m0.5s", None:
        assert post(url, ask | {"keep_alive": keep}, "/api/embed")[1]["embeddings"] == vectors[1:2]
    for wrong in "5", "5x", "", "abc", "1e300h", "nan", "inf", "5m ", "--1m", True, [], {}:
        status, got = post(url, ask | {"keep_alive": wrong}, "/api/embed")
        assert status == 400 and "`keep_alive` must be" in got["error"], (wrong, got)


@pytest.mark.parametrize("change, status, says", [
    ({"input": [3] * 17}, 400, "found 17 tokens; expected at most the 16"),
    ({"prompt": "w1", "prompt_name": "query"}, 400, "expected one of them"),
    ({"prompt": 1}, 400, "`prompt` must be"), ({"prompt_name": 1}, 400, "`prompt_name` must be"),
    ({"truncate": 1}, 400, "`truncate` must be"), ({"encoding_format": 1}, 400, "`encoding_format` must be"),
    ({"input": None}, 400, "`input` must be"), ({"input": []}, 400, "`input` must be"),
    ({"input": {"a": 1}}, 400, "`input` must be"), ({"input": ["w1"] * 2049}, 400, "`input` must be"),
    ({"prompt": "w1", "input": [3]}, 400, "`prompt` goes before texts"),
    ({"prompt_name": "query", "input": [[3]]}, 400, "`prompt_name` goes before texts"),
    ({"input": bert.TEXTS["long"]}, 400, "20 tokens"),
    ({"dimensions": 25}, 400, "25 dimensions"), ({"dimensions": 0}, 400, "`dimensions` must be"),
    ({"encoding_format": "hex"}, 400, "`encoding_format` is"), ({"prompt_name": "nope"}, 400, "nope"),
    ({"model": "nothing"}, 404, "does not exist"), ({"model": "llama"}, 400, "no embedding model"),
    ({"model": 5}, 400, "`model` must be a string"),
])
def test_what_is_refused(url, name, change, status, says):
    code, body = post(url, {"model": name, "input": "w1"} | change)
    assert code == status and says in body["error"]["message"], (code, body)
    assert body["error"]["param"].split("[")[0] == next(iter(change)), body


@pytest.mark.parametrize("texts, at, says", [
    (["w1", "w2", bert.TEXTS["long"]], "input[2]", "input[2]: found 20 tokens"),
    ([[3], [3] * 17], "input[1]", "input[1]: found 17 tokens"),
    (["w1", 3], "input[1]", "`input[1]` must be a text"), ([[3], "w1"], "input[1]", "`input[1]` must be a list of token ids"),
    ([[]], "input[0]", "`input[0]` must be a list"), ([[3], [3], []], "input[2]", "`input[2]` must be a list"),
    ([None], "input[0]", "`input[0]` must be a text, a token id or a list of token ids"), ([1.5], "input[0]", "must be a text"),
    ([3, "w1"], "input[1]", "`input[1]` must be a token id from 0 to 63, found a string"),
    ([64], "input[0]", "`input[0]` must be a token id from 0 to 63, found 64"), ([3, 1 << 40], "input[1]", "found 1099511627776"),
    ([3, 1.5], "input[1]", "found a number"), ([[3], [63, 64]], "input[1][1]", "`input[1][1]` must be a token id from 0 to 63, found 64"),
    ([[3], [3, -1]], "input[1][1]", "found -1"), ([[3], [3, None]], "input[1][1]", "found null"),
    (bert.TEXTS["long"], "input", "input: found 20 tokens"),
])
def test_which_text_is_refused(url, name, texts, at, says):
    code, body = post(url, {"model": name, "input": texts})
    assert code == 400 and says in body["error"]["message"] and body["error"]["param"] == at, body


def test_a_prompt_of_nothing_is_fine_before_tokens(url, name):
    assert post(url, {"model": name, "input": [3], "prompt": ""})[0] == 200


@pytest.mark.parametrize("body, says", [
    (b'{"input": [}', "invalid JSON body: JSON, byte 11 (line 1, column 12): unexpected character"),
    (b"[1]", "the body must be a JSON object, found an array"), (b"", "invalid JSON body: "),
    (b'{"model": "bert", "dimensions": 1e400}', "`dimensions` must be from 1 to 1048576, found inf"),
])
def test_bodies_that_are_no_request(url, name, body, says):
    rq = urllib.request.Request(url + "/v1/embeddings", body.replace(b"bert", name.encode()))
    with pytest.raises(urllib.error.HTTPError) as e:
        urllib.request.urlopen(rq, timeout=util.PATIENCE)
    assert e.value.code == 400 and says in json.load(e.value)["error"]["message"]


def test_what_caches_hold_is_for_chats(model):
    """Vectors are compared with others made under other flags."""
    said = []
    for more in (), ("--kv-cache", "q4"):
        with served(model, *more) as (_, url):
            said.append(post(url, {"input": bert.TEXTS["a"]}))
    assert said[0] == said[1] and said[0][0] == 200


def test_it_does_not_warn_of_chats(model):
    p = subprocess.Popen([CAIRN, "serve", model, "--port", "0", "-t", "1", "--drain", "1"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    assert "http://" in util.line_of(p)
    p.send_signal(signal.SIGTERM)
    said = p.communicate(timeout=util.PATIENCE)[1]
    assert p.returncode == 0 and "no_chat_template" not in said, said


def test_the_longest_text_may_be_below_the_positions(model, tmp_path):
    """max_seq_length counts for tokens as it does for texts."""
    m = str(tmp_path / "m")
    shutil.copytree(model, m)
    bert.put(m, "sentence_bert_config.json", {"max_seq_length": 12})
    with served(m) as (_, url):
        said = [post(url, {"input": x})[1]["error"] for x in ([3] * 13, " ".join(["w3"] * 11))]
        assert said[0] == said[1] and "found 13 tokens; expected at most the 12" in said[0]["message"]
        assert said[0]["param"] == "input"
        cut, whole = (post(url, {"input": [3] * n, "truncate": True}) for n in (13, 12))
        assert cut == whole and cut[0] == 200


@pytest.mark.skipif(util.SLOW > 1, reason="sanitizers keep freed memory")
def test_what_is_refused_is_let_go(server, name):
    """A list whose last token is bad: its ids take 800 KB, of 40 such requests 32 MB."""
    process, url = server
    bad = {"model": name, "input": [[1] * 200_000 + [-1]]}
    for _ in range(4):
        post(url, bad)
    before = util.resident_kib(process.pid)
    for _ in range(40):
        assert post(url, bad)[0] == 400
    assert util.resident_kib(process.pid) - before < 16 << 10


def test_it_does_not_chat(client, name):
    with pytest.raises(openai.BadRequestError, match="only embeds"):
        client.chat.completions.create(model=name, messages=[{"role": "user", "content": "w1"}])
    assert sorted(m.id for m in client.models.list()) == sorted([name, "llama"])


@pytest.mark.parametrize("path,schema", [r for r in every_field.ROUTES if r[1] in every_field.EMBEDS], ids=lambda v: v if v[0] == "/" else "")
def test_every_field(url, name, path, schema):
    """As test_every_field.py has it for the routes of models that answer."""
    with socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])), util.PATIENCE) as c:
        every_field.check_refused(c, path, schema, every_field.bodies(schema, name))
