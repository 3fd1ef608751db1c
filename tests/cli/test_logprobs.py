"""The bytes of a chat answer's log-probabilities, joined, are its text, as OpenAI's clients expect: also where a token holds a
part of a character, and where a thought is told beside the answer."""
import http.client
import json
import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, CONFIG, PATIENCE, line_of, make, put  # noqa: E402

N = 60


def byte_letters():
    """The reference's letters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    more = iter(range(256, 512))
    return {b: chr(b) if b in plain else chr(next(more)) for b in range(256)}


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    path = make(tmp_path_factory.mktemp("logprobs") / "model")
    letters = byte_letters()
    texts = [bytes([b]) for b in (*range(0x41, 0x5b), 0x20, 0x0a, 0xc3, 0xa9, 0xa8, 0xe4, 0xb8, 0x96, 0xf0, 0x9f, 0x98, 0x80, 0xff)]
    texts += [" a".encode(), "é".encode(), "世".encode(), b"\xc3", b"x\xc3", b"\xa9y", b"\x98\x80z", "😀".encode()]
    words = list(dict.fromkeys("".join(letters[b] for b in t) for t in texts))
    words += ["%d" % i for i in range(64 - len(words))]
    put(path, "tokenizer.json", {
        "added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {w: i for i, w in enumerate(words)}, "merges": []}})
    put(path, "chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}")
    put(path, "config.json", {k: v for k, v in CONFIG.items() if k != "eos_token_id"})
    p = subprocess.Popen([CAIRN, "serve", path, "--port", "0", "-t", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    yield int(re.search(r"127.0.0.1:(\d+)", line_of(p))[1])
    p.terminate()
    assert p.wait(PATIENCE) == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_joined(port, stream, seed):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    c.request("POST", "/v1/chat/completions", json.dumps({
        "messages": [{"role": "user", "content": "A B"}], "max_tokens": N, "temperature": 1.5, "seed": seed, "logprobs": True,
        "top_logprobs": 2, "stream": stream}))
    body = c.getresponse().read().decode()
    parts = [json.loads(x[6:]) for x in body.split("\n\n") if x.startswith("data: {")] if stream else [json.loads(body)]
    choices = [ch for p in parts for ch in p["choices"]]
    text = "".join(ch["delta" if stream else "message"].get("content") or "" for ch in choices)
    told = [t for ch in choices if ch.get("logprobs") for t in ch["logprobs"]["content"]]
    data = b"".join(bytes(t["bytes"]) for t in told)
    assert len(told) == N and data.decode("utf-8", "replace") == text
    for t in told:
        for one in (t, *t["top_logprobs"]):
            assert bytes(one["bytes"]).decode("utf-8", "replace") == one["token"]
    assert any("\ufffd" in t["token"] for t in told)
