"""cairn embed: a line a file, the same line whatever the company; what is refused, and how."""
import json
import math
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import WORDS, make, put, refused, run, safetensors  # noqa: E402

HIDDEN, FFN, POSITIONS, LAYERS = 24, 40, 16, 2
CONFIG = {"model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
          "num_attention_heads": 3, "intermediate_size": FFN, "max_position_embeddings": POSITIONS,
          "type_vocab_size": 2, "vocab_size": len(WORDS)}
TOKENIZER = {"added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
             "model": {"type": "WordLevel", "unk_token": "<unk>",
                       "vocab": {w: i for i, w in enumerate(WORDS)}},
             "post_processor": {"type": "TemplateProcessing", "pair": [],
                                "single": [{"SpecialToken": {"id": "w60", "type_id": 0}},
                                           {"Sequence": {"id": "A", "type_id": 0}},
                                           {"SpecialToken": {"id": "w61", "type_id": 0}}],
                                "special_tokens": {w: {"id": w, "ids": [WORDS.index(w)], "tokens": [w]}
                                                   for w in ("w60", "w61")}}}
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
           {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
           {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]


def shapes():
    def norm(name):
        yield name + ".weight", [HIDDEN]
        yield name + ".bias", [HIDDEN]

    def linear(name, out, into):
        yield name + ".weight", [out, into]
        yield name + ".bias", [out]
    yield "embeddings.word_embeddings.weight", [len(WORDS), HIDDEN]
    yield "embeddings.position_embeddings.weight", [POSITIONS, HIDDEN]
    yield "embeddings.token_type_embeddings.weight", [2, HIDDEN]
    yield from norm("embeddings.LayerNorm")
    for i in range(LAYERS):
        p = "encoder.layer.%d." % i
        for name in ("query", "key", "value"):
            yield from linear(p + "attention.self." + name, HIDDEN, HIDDEN)
        yield from linear(p + "attention.output.dense", HIDDEN, HIDDEN)
        yield from norm(p + "attention.output.LayerNorm")
        yield from linear(p + "intermediate.dense", FFN, HIDDEN)
        yield from linear(p + "output.dense", HIDDEN, FFN)
        yield from norm(p + "output.LayerNorm")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    m = str(tmp_path_factory.mktemp("bert"))
    put(m, "config.json", CONFIG)
    put(m, "tokenizer.json", TOKENIZER)
    put(m, "model.safetensors", safetensors(shapes))
    put(m, "modules.json", MODULES)
    os.mkdir(m + "/1_Pooling")
    put(m, "1_Pooling/config.json", {"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": True})
    put(m, "config_sentence_transformers.json", {"prompts": {"query": "w7 w8 "}, "default_prompt_name": None})
    for name, text in TEXTS.items():
        put(m, name, text)
    return m


TEXTS = {"a": "w1 w2 w3", "b": "w4", "c": "w5 w6 w1 w9 w9 w9 w2", "q": "w7 w8 w1 w2 w3",
         "long": " ".join(["w1 w2 w3"] * 6), "cut": " ".join((["w1 w2 w3"] * 6)).rsplit(" ", 4)[0], "empty": ""}


def embed(m, *words):
    r = run("embed", m, "-t", 1, *words)
    assert r.code == 0, r.err
    return r.out.decode().splitlines()


def test_a_line_a_file(model):
    p = [model + "/" + n for n in "abc"]
    alone = [embed(model, "-f", f)[0] for f in p]
    for line in alone:
        v = json.loads(line)
        assert len(v) == HIDDEN and all(isinstance(x, float) for x in v)
        assert abs(math.fsum(x * x for x in v) - 1) < 1e-6
    assert len(set(alone)) == 3
    assert embed(model, "-f", *p) == alone
    assert embed(model, "-f", p[2], "-f", p[1], "-f", p[0]) == alone[::-1]
    assert embed(model, "-t", 3, "-f", *p) == alone
    assert embed(model, "-f", model + "/empty")[0] != alone[0]  # the special tokens alone


def test_a_model_for_text(model, tmp_path):
    """It embeds, and says on standard error that nobody meant it to; a model that is meant to says nothing."""
    m = make(tmp_path / "chat")
    put(m, "a", TEXTS["a"])
    r = run("embed", m, "-t", 1, "-f", m + "/a")
    assert r.code == 0 and len(json.loads(r.out)) == 64
    assert r.err == "cairn: warning: %s: its files say nothing of embeddings: a model that writes text, whose vectors were not trained to be compared\n" % m
    assert run("embed", model, "-t", 1, "-f", model + "/a").err == ""
    refused(run("embed", m, "-f", m + "/none"), "none")


def test_standard_input(model):
    with open(model + "/a", "rb") as f:
        r = run("embed", model, "-f", "-", stdin=f)
    assert r.out.decode().splitlines() == embed(model, "-f", model + "/a")


def test_fewer_dimensions(model):
    whole = json.loads(embed(model, "-f", model + "/a")[0])
    v = json.loads(embed(model, "-f", model + "/a", "--dimensions", 5)[0])
    n = math.sqrt(math.fsum(x * x for x in whole[:5]))
    assert len(v) == 5
    assert all(abs(x - y / n) < 1e-6 for x, y in zip(v, whole))
    refused(run("embed", model, "-f", model + "/a", "--dimensions", HIDDEN + 1), "25 dimensions", "24")


def test_prompts(model):
    asked = embed(model, "-f", model + "/a", "--prompt-name", "query")
    assert asked == embed(model, "-f", model + "/q")
    assert asked == embed(model, "-f", model + "/a", "--prompt", "w7 w8 ")
    refused(run("embed", model, "-f", model + "/a", "--prompt-name", "passage"), 'prompt "passage"')


def test_a_text_that_is_too_long(model):
    refused(run("embed", model, "-f", model + "/a", model + "/long"), model + "/long: ", "20 tokens", "16",
            "--truncate")
    assert embed(model, "-f", model + "/long", "--truncate") == embed(model, "-f", model + "/cut")


def test_a_text_that_is_far_too_long(model, tmp_path):
    """It is not tokenised to its end, which only the number in the message would need."""
    text = tmp_path / "far"
    text.write_text("w3 w4 w5 w6 " * 50_000)
    (tmp_path / "near").write_text("w3 w4 w5 w6 " * 5)
    refused(run("embed", model, "-f", text), "found at least 65", " tokens", "16", "--truncate")
    assert embed(model, "-f", text, "--truncate") == embed(model, "-f", tmp_path / "near", "--truncate")


def test_bytes_that_are_no_text(model, tmp_path):
    """As everywhere: U+FFFD for each malformed part."""
    (tmp_path / "bytes").write_bytes(b"w3 \xff w4")
    (tmp_path / "text").write_text("w3 \ufffd w4", encoding="utf-8")
    assert embed(model, "-f", tmp_path / "bytes") == embed(model, "-f", tmp_path / "text")
    assert run("tokenize", model, "-f", tmp_path / "bytes").out == run("tokenize", model, "-f", tmp_path / "text").out


def test_what_is_refused(model, tmp_path):
    a = model + "/a"
    refused(run("embed", model), "-f FILE is missing", code=2)
    refused(run("embed", model, "-f", a, "-f", a, a), "expected files after one -f", code=2)
    refused(run("embed", model, "-f", "-", "-f", "-"), "-f -: found twice", code=2)
    refused(run("embed", model, "-f", a, "-", "-"), "-f -: found twice", code=2)
    refused(run("embed", model, "-f", a, "--prompt", "x", "--prompt-name", "query"), "one of", code=2)
    refused(run("embed", model, "-f", model + "/none"), "none")
    refused(run("run", model, "-p", "w1"), "only embeds (bert)")
    refused(run("bench", model), "only embeds (bert)")
    refused(run("score", model, "-f", a), "only embeds (bert)")


def test_numerics(model):
    r = run("check-numerics", model, "-t", 2)
    assert r.code == 0 and b" 0 different bits" in r.out, (r.out, r.err)


def test_a_model_that_generates_embeds_too(tmp_path):
    m = make(tmp_path / "llama")
    put(m, "text", "w1 w2")
    (line,) = embed(m, "-f", m + "/text")
    assert len(json.loads(line)) == 64


def test_lower_case_is_the_tokenizers_matter(model, tmp_path):
    """do_lower_case is nothing to do where the tokenizer lowers, and refused where it does not."""
    m = str(tmp_path / "m")
    shutil.copytree(model, m)
    for name in ("w1", "W1"):
        put(m, name, name)
    put(m, "sentence_bert_config.json", {"max_seq_length": 12, "do_lower_case": True})
    line = refused(run("embed", m, "-f", m + "/w1"), "do_lower_case: found true", "expected")
    assert line.count(m) == 1, line
    put(m, "tokenizer.json", {**TOKENIZER, "normalizer": {"type": "Lowercase"}})
    a, b = (run("embed", m, "-f", m + "/" + name) for name in ("w1", "W1"))
    assert a.code == 0 and a.out == b.out, (a.err, b.err)
