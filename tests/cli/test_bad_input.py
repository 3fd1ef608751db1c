"""Files that are not what they should be: one line with file, field, found and expected, soon."""
import json
import os
import shutil
import struct
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CONFIG, TOKENIZER, make, put, refused, safetensors  # noqa: E402
from tiny import measure as run  # noqa: E402


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return make(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def model(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "m")


def answer(model, *more):
    return run("run", model, "-p", "w1 w2", "-n", 2, "--raw", "-t", 1, *more)


def test_the_sound_one_answers(model):
    r = answer(model)
    assert r.code == 0, r.err


CONFIGS = [
    ({"rms_norm_eps": float("nan")}, "rms_norm_eps: found NaN; expected a finite number"),
    ({"rope_theta": float("inf")}, "rope_theta: found Infinity; expected a finite number"),
    ({"hidden_size": float("-inf")}, "hidden_size: found -Infinity; expected an integer"),
    ({"rope_scaling": {"type": "yarn", "factor": float("nan")}},
     "rope_scaling.factor: found NaN; expected a finite number"),
    ({"rope_scaling": {"type": "linear", "factor": 0}}, "rope_scaling.factor: found 0; expected"),
    ({"head_dim": 0}, "head_dim: found 0; expected"),
    ({"num_key_value_heads": 3}, "num_key_value_heads: found 3; expected a divisor of the 4 heads"),
    ({"model_type": "zebra"}, 'model_type: found "zebra"; expected one of: llama'),
    ({"model_type": 5}, "model_type: found 5; expected a model family"),
    ({"pad_token_id": "7"}, 'pad_token_id: found "7"; expected a token id'),
    ({"eos_token_id": "x"}, 'eos_token_id: found "x"; expected a token id'),
]


@pytest.mark.parametrize("change,says", [
    ({"eos_token_id": {}}, "eos_token_id: found an object; expected a token id or a list of them"),
    ({"eos_token_id": True}, "eos_token_id: found true; expected"),
    ({"eos_token_id": [1, -1]}, "eos_token_id: found -1; expected"),
    ({"bos_token_id": "x"}, 'bos_token_id: found "x"; expected a token id'),
    ({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 0}}, "says gptq, but no tensor"),
    ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling.factor: found nothing; expected a number"),
])
def test_config_without_text(model, change, says):
    put(model, "config.json", {**CONFIG, **change})
    refused(run("info", model), "m/config.json: ", says)


def test_a_byte_order_mark(model):
    put(model, "config.json", b"\xef\xbb\xbf" + json.dumps(CONFIG).encode())
    refused(answer(model), "m/config.json: JSON, byte 0 (line 1, column 1): byte order mark; expected a value")


@pytest.mark.parametrize("change,says", CONFIGS)
def test_config(model, change, says):
    put(model, "config.json", {**CONFIG, **change})
    refused(answer(model), "m/config.json: " + says)


def test_what_is_not_used_may_be_infinite(model):
    put(model, "config.json", {**CONFIG, "time_step_limit": [0.0, float("inf")]})
    assert answer(model).code == 0


# file, what else must go so that it is read, the verb
READ = [("config.json", [], "run"), ("tokenizer.json", [], "tokenize"),
        ("tokenizer_config.json", [], "tokenize"), ("generation_config.json", [], "tokenize"),
        ("chat_template.jinja", [], "tokenize"), ("chat_template.json", [], "tokenize"),
        ("model.safetensors", [], "run"),
        ("model.safetensors.index.json", ["model.safetensors"], "run")]


def odd(path, kind):
    if os.path.lexists(path):
        os.unlink(path)
    if kind == "zero":
        os.symlink("/dev/zero", path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "sparse":
        with open(path, "wb") as f:
            f.truncate(1 << 36)
    else:
        with open(path, "wb"):
            pass


KINDS = {"zero": "found a device; expected a regular file",
         "pipe": "found a pipe; expected a regular file",
         "folder": "found a directory; expected a regular file", "sparse": "", "empty": ""}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name,gone,verb", READ, ids=[r[0] for r in READ])
def test_odd_files(model, name, gone, verb, kind):
    for g in gone:
        os.unlink(model / g)
    odd(model / name, kind)
    r = answer(model) if verb == "run" else run("tokenize", model, "-p", "w1")
    if kind == "empty" and name == "chat_template.jinja":
        assert r.code == 0  # an empty template is one
    else:
        refused(r, "m/" + name, KINDS[kind])


@pytest.mark.parametrize("kind", ["zero", "pipe", "sparse", "empty"])
def test_odd_gguf(tmp_path, kind):
    path = tmp_path / "m.gguf"
    odd(path, kind)
    for verb in ["info"], ["tokenize", "-p", "x"], ["run", "-p", "x"]:
        refused(run(verb[0], path, *verb[1:]), "m.gguf: ", KINDS[kind])


def test_folders_that_are_no_models(tmp_path):
    refused(run("info", tmp_path), "config.json: no such file; expected the folder of a checkpoint")
    put(tmp_path, "config.json", CONFIG)
    refused(run("info", tmp_path), "expected model.safetensors or model.safetensors.index.json")
    refused(run("tokenize", tmp_path, "-p", "x"), "expected tokenizer.json")
    refused(run("info", tmp_path / "none"), "none: no such file")


@pytest.mark.parametrize("words", [["run", "-n", 1, "-f"], ["tokenize", "-f"], ["detokenize", "-f"],
                                   ["render", "--messages"], ["logits", "--out", "/tmp/x.npy", "--ids"],
                                   ["check-numerics", "--ids"], ["score", "-f"]],
                         ids=lambda w: w[0])
def test_endless_and_odd_inputs(model, words):
    refused(run(words[0], model, *words[1:], "/dev/zero"),
            "/dev/zero: found more than", "bytes; expected at most 67108864")
    refused(run(words[0], model, *words[1:], model), "m: found a directory; expected a regular file")
    os.mkfifo(model / "pipe")
    refused(run(words[0], model, *words[1:], model / "pipe"), "pipe: found an empty pipe")
    refused(run(words[0], model, *words[1:], model / "no"), "no: cannot open: No such file")
    with open("/dev/zero", "rb") as f:
        refused(run(words[0], model, *words[1:], "-", stdin=f),
                "standard input: found more than", "bytes; expected at most")


def normalizers(*steps):
    return {**TOKENIZER, "normalizer": {"type": "Sequence", "normalizers": list(steps)}}


def replace(a, b):
    return {"type": "Replace", "pattern": {"String": a}, "content": b}


@pytest.mark.parametrize("tokenizer,says", [
    (normalizers(*[replace("w", "ww")] * 60), "found a text of 3007 bytes that normalizer step 15 makes longer than 112608"),
    (normalizers(*[replace("w", "w" * 1000)] * 3), "normalizer step"),
    (normalizers({"type": "Prepend", "prepend": "w" * (10 << 20)}), "tokenizer.json: `prepend`"),
    (normalizers(replace("w", "w" * (10 << 20))), "tokenizer.json: `content`"),
    ({**TOKENIZER, "decoder": {"type": "Sequence", "decoders": [replace("w", "ww")] * 40}},
     "tokenizer.json: decoder: found piece"),
    (normalizers({"type": "Replace", "pattern": {"Regex": "(a|aa|aaa)+$"}, "content": ""}),
     'pattern "(a|aa|aaa)+$"'),
    (normalizers({"type": "Precompiled"}), "precompiled_charsmap: found nothing; expected a map in base64"),
    (normalizers({"type": "Precompiled", "precompiled_charsmap": ""}), "precompiled_charsmap: found an empty text"),
], ids=["chain", "long", "prepend", "content", "decoder", "regex", "no map", "empty map"])
def test_hostile_tokenizers(model, tokenizer, says):
    put(model, "tokenizer.json", tokenizer)
    text = put(model, "text", "w1 w2 " + "a" * 3000 + "b")
    r = run("tokenize", model, "-f", text)
    refused(r, says)
    assert "found a text" not in says or r.err.startswith("cairn: %s: found a text" % text), r.err
    refused(run("run", model, "--raw", "-f", text), says)


def test_great_tokenizers_of_nothing(model):
    path = model / "tokenizer.json"
    with open(path, "wb") as f:
        f.truncate(40 << 20)
    refused(run("tokenize", model, "-p", "x"), "tokenizer.json: JSON, byte 0")
    path.write_bytes(b'{"a":"' + b"x" * (40 << 20))
    refused(run("tokenize", model, "-p", "x"), "tokenizer.json: JSON, byte", "string without an end")
    with open(path, "wb") as f:
        f.truncate(45 << 20)
    refused(run("tokenize", model, "-p", "x"),
            "tokenizer.json: found 47185920 bytes; expected at most 46137344")


def test_weights_of_a_wrong_kind(model):
    whole = safetensors()
    n = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8:8 + n])
    for field, value in [("dtype", "F33"), ("dtype", 4), ("shape", [64, -64]), ("shape", "64"),
                         ("data_offsets", [0, 1 << 60]), ("data_offsets", [8, 0]),
                         ("shape", [1 << 40, 1 << 40])]:
        bad = {k: dict(v) for k, v in header.items()}
        bad["model.norm.weight"][field] = value
        text = json.dumps(bad).encode()
        put(model, "model.safetensors", struct.pack("<Q", len(text)) + text + whole[8 + n:])
        refused(answer(model), "m/model.safetensors: tensor model.norm.weight", field)
    put(model, "model.safetensors", whole[:len(whole) // 2])
    refused(answer(model), "m/model.safetensors: ")


def test_an_index_of_a_great_model(model):
    os.unlink(model / "model.safetensors")
    weights = {"language_model.model.layers.%d.mlp.experts.%d.down_proj.weight_packed" % (i // 2000, i):
               "model-%05d-of-00163.safetensors" % (i % 163) for i in range(140000)}
    text = json.dumps({"metadata": {}, "weight_map": weights}, indent=2)
    put(model, "model.safetensors.index.json", text)
    refused(answer(model), "163 of 163 files missing")
    put(model, "model.safetensors.index.json", text[:len(text) - 100])
    refused(answer(model), "index.json: the object that begins at byte 0 does not end")


def test_headers_need_no_tokenizer(model):
    put(model, "tokenizer.json", "not even JSON")
    ids = put(model, "ids.json", "[1,2,3]")
    told = json.loads(run("info", model, "--json").out)
    assert told["has_chat_template"] is False
    assert {c["class"] for c in told["tensor_classes"]} >= {"embedding", "norms", "attention", "mlp"}
    assert sum(c["size_bytes"] for c in told["tensor_classes"]) == sum(c["size_bytes"] for c in told["tensor_types"])
    put(model, "chat_template.jinja", "{{ messages }}")
    assert json.loads(run("info", model, "--json").out)["has_chat_template"] is True
    for words in (["info", model], ["logits", model, "--ids", ids, "--out", model / "x.npy"],
                  ["bench", model, "-p", 8, "-n", 2, "-r", 1, "-t", 1],
                  ["check-numerics", model, "--ids", ids, "-t", 1]):
        r = run(*words)
        assert r.code == 0, r.err
    refused(answer(model), "m/tokenizer.json: ")


def test_messages_name_the_model(model):
    os.unlink(model / "tokenizer.json")
    ids = put(model, "ids.json", "[1, 2, 99]")
    refused(run("logits", model, "--ids", ids, "--out", model / "x.npy"),
            "m: found id 99 at place 2; expected 0 to 63")
    put(model, "ids.json", json.dumps([1] * 129))
    refused(run("logits", model, "--ids", ids, "--out", model / "x.npy"),
            "m: found 129 ids; expected 1 to the context of 128")
    refused(run("info", model, "--tensor", "nope", "--out", model / "x.npy"),
            "m: tensor nope: found none of that name")
    put(model, "tokenizer.json", TOKENIZER)
    refused(run("run", model, "--raw", "-p", ""), "m: the prompt has no ids; expected at least one")
    nan = bytearray(safetensors())
    nan[-4:] = struct.pack("<f", float("nan"))
    put(model, "model.safetensors", bytes(nan))
    refused(run("run", model, "--raw", "-p", "w1"), "m: logits of position 1 are not finite")
    put(model, "ids.json", "[1, 2]")
    text = put(model, "text", "w1 w2 w3")
    for words in (["score", model, "-f", text], ["bench", model, "-p", 8, "-n", 2, "-r", 1],
                  ["check-numerics", model, "--ids", ids], ["logits", model, "--ids", ids, "--out", model / "x.npy"]):
        refused(run(*words, "-t", 1), "m: logit", "not finite; expected finite weights")


def test_a_bench_beyond_the_context(model):
    refused(run("bench", model, "-p", 100000, "-t", 1),
            "m: found prompt 100000, decode 128, depth 0; expected", "the context of 128")


def test_a_bench_of_nothing(model):
    refused(run("bench", model, "-p", 0, "-n", 0), "found 0 for both; expected one over 0", code=2)


@pytest.mark.parametrize("verb", ["bench", "check-numerics", "info", "score", "logits"])
def test_what_is_measured_is_named(verb, tmp_path):
    """No MODEL is no wish for the default one, which answers alone have."""
    refused(run(verb, XDG_CACHE_HOME=str(tmp_path)), verb + ": 0 words given; expected at least 1; usage: cairn %s MODEL" % verb, code=2)


def test_ids_beyond_the_vocabulary(model):
    ids = put(model, "ids.json", "[1, 2, 99999999]")
    refused(run("detokenize", model, "-f", ids), "ids.json: element 2 is 99999999; expected ids of the vocabulary, 0 to 63")
    put(model, "ids.json", "[1, 63]")
    assert run("detokenize", model, "-f", ids).code == 0


def test_render_names_files(tmp_path):
    good = put(tmp_path, "good.json", '[{"role": "user", "content": "w1"}]')
    bad = put(tmp_path, "bad.json", "{")
    t = put(tmp_path, "t.jinja", "{{ messages[0].content }}")
    broken = put(tmp_path, "broken.jinja", "x\n{{ messages[0 }}")
    refuses = put(tmp_path, "refuses.jinja", "x\n{{ raise_exception('no') }}")
    for words, says in [((t, bad), "bad.json: messages: JSON, byte 1"), ((t, good, "--tools", bad), "bad.json: tools: JSON"),
                        ((broken, good), "broken.jinja: template, line 2: unexpected"),
                        ((refuses, good), "refuses.jinja: template, line 2: no")]:
        refused(run("render", "--template", words[0], "--messages", *words[1:]), says)


def test_sizes_in_their_unit(model):
    refused(run("serve", model, "--port", 0, "--memory", 10000), "m: weights take 0.2", "MB; expected at most the 0.01 MB")


def test_many_tensors_of_no_use(model):
    put(model, "config.json", {**CONFIG, "num_hidden_layers": 1})
    whole = safetensors()
    n = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8:8 + n])
    data = whole[8 + n:] + bytes(4 * 198)
    for i in range(198):
        at = len(data) - 4 * (i + 1)
        header["model.layers.1.none.%d" % i] = {"dtype": "F32", "shape": [1], "data_offsets": [at, at + 4]}
    text = json.dumps(header).encode()
    put(model, "model.safetensors", struct.pack("<Q", len(text)) + text + data)
    refused(run("info", model), "m: 207 tensors that this family does not use: ", " and 204 more; expected none")
