"""A model's vocabulary with more ids than its tokenizer names: those have no text, and that is all."""
import http.client
import json
import os
import re
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, CONFIG, PATIENCE, TOKENIZER, WORDS, line_of, make, put, refused, run, safetensors, shapes  # noqa: E402

NAMED = 4  # of the 64 ids, so that few tokens of an answer have a piece
GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm",
              "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
              "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def hf(folder):
    path = make(folder)
    put(path, "tokenizer.json", {**TOKENIZER, "model": {
        **TOKENIZER["model"], "vocab": {w: i for i, w in enumerate(WORDS[:NAMED])}}})
    put(path, "chat_template.jinja", "w1 w2")
    put(path, "config.json", {k: v for k, v in CONFIG.items() if k != "eos_token_id"})
    return path


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def key(name, value):
    kind = {str: 8, int: 4, float: 6}
    if isinstance(value, list):
        body = struct.pack("<IIQ", 9, kind[type(value[0])], len(value)) + b"".join(
            pack(v) for v in value)
    else:
        body = struct.pack("<I", kind[type(value)]) + pack(value)
    return text(name) + body


def pack(v):
    return text(v) if isinstance(v, str) else struct.pack("<I" if isinstance(v, int) else "<f", v)


def gguf(folder):
    """A GGUF file with the same weights; SentencePiece's kind of vocabulary."""
    c = CONFIG
    keys = {"general.architecture": "llama", "llama.embedding_length": c["hidden_size"],
            "llama.block_count": c["num_hidden_layers"], "llama.attention.head_count": 4,
            "llama.attention.head_count_kv": 2, "llama.feed_forward_length": c["intermediate_size"],
            "llama.context_length": 128, "llama.attention.layer_norm_rms_epsilon": 1e-5,
            "tokenizer.ggml.model": "llama", "tokenizer.chat_template": "w w",
            "tokenizer.ggml.tokens": ["<unk>", "</s>", "\u2581w", "w"],
            "tokenizer.ggml.token_type": [2, 3, 1, 1],
            "tokenizer.ggml.scores": [0.0, 0.0, -1.0, -2.0], "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 0}
    infos, at = [], 0
    for name, shape in shapes():
        layer = re.match(r"model\.layers\.(\d+)\.(.*)\.weight", name)
        name = ("blk.%s.%s.weight" % (layer[1], GGUF_NAMES[layer[2]]) if layer
                else GGUF_NAMES[name[:-7]] + ".weight")
        infos.append(text(name) + struct.pack("<I", len(shape)) +
                     struct.pack("<%dQ" % len(shape), *reversed(shape)) + struct.pack("<IQ", 0, at))
        at += 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        assert at % 32 == 0
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(
        key(k, v) for k, v in keys.items()) + b"".join(infos)
    whole = safetensors()
    return put(folder, "m.gguf", head + bytes(-len(head) % 32) +
               whole[8 + struct.unpack("<Q", whole[:8])[0]:])


def test_a_bad_tokenizer_is_found_before_the_weights_are_touched(tmp_path):
    for path, says in (hf(str(tmp_path / "hf")), "tokenizer.json: JSON, byte 1"), \
            (gguf(str(tmp_path)), "m.gguf: tokenizer.ggml.tokens: found piece 3 that is no UTF-8"):
        words = ["serve", path, "--port", 0, "--memory", 65536]
        assert "weights take" in run(*words).err
        if os.path.isdir(path):
            put(path, "tokenizer.json", "{")
        else:
            with open(path, "rb") as f:
                whole = f.read()
            assert whole.count(b"\1\0\0\0\0\0\0\0w") == 1
            put(str(tmp_path), "m.gguf", whole.replace(b"\1\0\0\0\0\0\0\0w", b"\1\0\0\0\0\0\0\0\xff"))
        r = run(*words)
        assert r.code == 1 and says in r.err, r.err


@pytest.fixture(scope="module", params=[hf, gguf], ids=["hf", "gguf"])
def model(request, tmp_path_factory):
    return request.param(str(tmp_path_factory.mktemp("padded")))


def test_an_answer(model):
    r = run("run", model, "-p", "w w", "-n", 30, "--raw", "--temp", 0, "-t", 1)
    assert (r.code, r.err) == (0, ""), r.err


def test_ids(model):
    folder = os.path.dirname(model) if model.endswith("gguf") else model
    r = run("detokenize", model, "-f", put(folder, "ids", "[63, 3, 62]"))
    assert r.code == 0 and r.out.strip() in (b"w1", b"w"), (r.out, r.err)
    refused(run("detokenize", model, "-f", put(folder, "ids", "[3, 64]")),
            "ids: element 1 is 64; expected ids of the vocabulary, 0 to 63")


@pytest.fixture(scope="module")
def port(model):
    p = subprocess.Popen([CAIRN, "serve", model, "--port", "0", "-t", "1"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    yield int(re.search(r"127.0.0.1:(\d+)", line_of(p))[1])
    p.terminate()
    assert p.wait(PATIENCE) == 0


@pytest.mark.parametrize("stream", [False, True])
def test_served_with_logprobs(port, stream):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    c.request("POST", "/v1/chat/completions", json.dumps({
        "messages": [{"role": "user", "content": "w1 w2"}], "max_tokens": 8, "temperature": 0,
        "ignore_eos": True, "logprobs": True, "top_logprobs": 4, "stream": stream}))
    r = c.getresponse()
    body = r.read().decode()
    assert r.status == 200, body
    parts = ([json.loads(x[6:]) for x in body.split("\n\n") if x.startswith("data: {")]
             if stream else [json.loads(body)])
    tokens = [t for p in parts for ch in p["choices"] if ch.get("logprobs")
              for t in ch["logprobs"]["content"]]
    assert len(tokens) == 8, body
    assert all(len(t["top_logprobs"]) == 4 for t in tokens)
    assert any(t["token"] == "" and t["bytes"] == [] for t in tokens), body
