"""cairn doctor: a model that is bad in each way, and models as they are."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
CAIRN = os.environ["CAIRN_BIN"]
GOOD = ("{{ '<|im_start|>' }}{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}{{ m.role ~ '\n' ~ m.content "
        "~ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def doctor(path, *more):
    p = subprocess.run([CAIRN, "doctor", path, "--json", *more], capture_output=True, check=False)
    assert p.returncode in (0, 1), p.stderr
    out = json.loads(p.stdout)
    assert (p.returncode == 1) == (out["bad"] > 0) == any(f["level"] == "bad" for f in out["findings"])
    return {f["code"]: f for f in out["findings"]}


class Folder:
    """A folder with a small byte-level BPE and whatever a test changes."""

    def __init__(self, path):
        self.path = path
        with open(os.path.join(HERE, "data/bytes_smollm.json"), encoding="utf-8") as f:
            self.tokenizer = json.loads(json.dumps(json.load(f)["tokenizer"]))
        n = max(self.tokenizer["model"]["vocab"].values()) + 1
        n = max([n] + [t["id"] + 1 for t in self.tokenizer["added_tokens"]])
        for k, text in enumerate(["<|im_start|>", "<|im_end|>", "<s>"]):
            old = [t for t in self.tokenizer["added_tokens"] if t["content"] == text]
            if not old:
                self.tokenizer["added_tokens"].append({"id": n, "content": text, "special": True, "single_word": False,
                                                       "lstrip": False, "rstrip": False, "normalized": False})
                n += 1
            else:
                old[0]["special"] = True
        self.n = n
        self.config = {"chat_template": GOOD, "eos_token": "<|im_end|>", "bos_token": "<s>"}
        self.model = {"vocab_size": n}
        self.generation = None

    def id(self, text):
        return [t["id"] for t in self.tokenizer["added_tokens"] if t["content"] == text][0]

    def look(self):
        for name, value in (("tokenizer.json", self.tokenizer), ("tokenizer_config.json", self.config), ("config.json", self.model),
                            ("generation_config.json", self.generation)):
            if value is not None:
                (self.path / name).write_text(json.dumps(value), encoding="utf-8")
        return doctor(self.path)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_good(folder):
    assert set(folder.look()) == {"template-unknown"}


def level(findings, code):
    return findings[code]["level"]


def test_templates(folder):
    folder.config["chat_template"] = "{% if %}"
    assert level(folder.look(), "template-broken") == "bad"
    folder.config["chat_template"] = "{{ raise_exception('never') }}"
    f = folder.look()["template-fails"]
    assert f["level"] == "bad" and "never" in f["message"]
    folder.config["chat_template"] = "{{ messages|length }}"
    f = folder.look()
    assert level(f, "template-drops-user") == "bad" and level(f, "template-without-tools") == "note"
    folder.config["chat_template"] = GOOD + "{% if tools %}{{ raise_exception('none of that') }}{% endif %}"
    assert level(folder.look(), "template-refuses-tools") == "note"
    del folder.config["chat_template"]
    assert level(folder.look(), "template-missing") == "note"


def test_bos(folder):
    folder.config.update(chat_template="<s>" + GOOD, add_bos_token=True)
    folder.tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [
        {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [folder.id("<s>")], "tokens": ["<s>"]}}}
    assert level(folder.look(), "bos-doubled") == "note"
    folder.config["chat_template"] = "{{ bos_token }}<s>" + GOOD
    assert level(folder.look(), "bos-twice") == "bad"


def test_stops(folder):
    folder.config["eos_token"] = "<s>"
    folder.config["chat_template"] = GOOD.replace("<|im_end|>", "<|im_start|>")
    f = folder.look()["turn-end-not-stop"]
    assert f["level"] == "bad" and "<|im_start|>" in f["message"]
    folder.generation = {"eos_token_id": [folder.id("<|im_start|>")]}
    f = folder.look()
    assert "turn-end-not-stop" not in f and level(f, "eos-differs") == "note"


def test_marks_and_sizes(folder):
    for t in folder.tokenizer["added_tokens"]:
        if t["content"] == "<|im_end|>":
            t["special"] = False
    assert level(folder.look(), "special-unmarked") == "bad"
    for t in folder.tokenizer["added_tokens"]:
        t["special"] = True
    folder.model["vocab_size"] = folder.n + 64
    assert level(folder.look(), "vocab-smaller") == "note"
    folder.model["vocab_size"] = folder.n - 1
    f = folder.look()
    assert level(f, "vocab-larger") == "bad" and level(f, "added-token-outside") == "bad"


def test_broken_files(folder):
    folder.tokenizer["model"] = {"type": "Nothing"}
    assert level(folder.look(), "tokenizer-broken") == "bad"
    p = subprocess.run([CAIRN, "doctor", "/nowhere/at/all"], capture_output=True, check=False)
    assert p.returncode == 1 and b"nowhere" in p.stderr
    assert subprocess.run([CAIRN, "doctor"], capture_output=True, check=False).returncode == 2


def gguf_file(path, pre, rows=None):
    import gguf
    with open(os.path.join(HERE, "data/bytes_smollm.json"), encoding="utf-8") as f:
        t = json.load(f)["tokenizer"]
    tokens = [k for k, _ in sorted(t["model"]["vocab"].items(), key=lambda x: x[1])]
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model("gpt2")
    if pre is not None:
        w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types([1] * len(tokens))
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]])
    w.add_eos_token_id(0)
    w.add_tensor("token_embd.weight", np.zeros((rows or len(tokens), 32), dtype=np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def test_gguf(tmp_path):
    path = tmp_path / "m.gguf"
    gguf_file(path, None)
    assert level(doctor(path), "pre-missing") == "bad"
    gguf_file(path, "default")
    assert level(doctor(path), "pre-default") == "bad"
    gguf_file(path, "from-next-year")
    f = doctor(path)["pre-unknown"]
    assert f["level"] == "bad" and "from-next-year" in f["message"]
    gguf_file(path, "smollm", rows=3)
    f = doctor(path)
    assert level(f, "special-unmarked") == "bad" and level(f, "vocab-larger") == "bad"


def test_known_bad(folder, tmp_path):
    """The list has them, and a model with one is told."""
    home = os.environ.get("CAIRN_LLAMA_CPP") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cairn/llama.cpp")
    path = os.path.join(home, "src/models/templates/deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja")
    if not os.path.exists(path):
        pytest.skip("llama.cpp's templates are not there (bench/get-llama.cpp)")
    with open(path, encoding="utf-8") as f:
        folder.config["chat_template"] = f.read()
    assert level(folder.look(), "template-known-bad") == "bad"


@pytest.mark.parametrize("model,codes", [("smollm2", {"template-without-tools"}),
                                         ("gemma3-270m", {"template-missing"}), ("qwen2.5-coder-0.5b", set())])
def test_models_as_they_are(model, codes):
    p = subprocess.run([os.path.join(ROOT, "tools/get-models"), "--have", model], capture_output=True, text=True, check=False)
    if p.returncode != 0 or not p.stdout.strip():
        pytest.skip(model + " is not there")
    f = doctor(p.stdout.strip())
    assert set(f) == codes and all(x["level"] == "note" for x in f.values())
