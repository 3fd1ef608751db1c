"""cairn's tokenizers beside the `tokenizers` package: a fixed seed of random texts, both directions, special tokens
parsed and not, on the small vocabularies of every kind in data/, on that of SmolLM2's GGUF, and on those of
the folder that CAIRN_TOKENIZERS names (a folder for each, with a tokenizer.json)."""
import json
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import compare_tokenizers  # noqa: E402

BIN = pathlib.Path(os.environ["CAIRN_BIN"]).parent
DRIVER = str(BIN / "tests/text/tok_driver")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "cairn/models"
LARGE = pathlib.Path(os.environ.get("CAIRN_TOKENIZERS") or HERE / "none")
PLAIN = BIN.name == "build"  # under a sanitizer the large vocabularies take minutes
# Several vocabularies of data/ differ only in the split rule; these have all models, fallbacks and decoders.
WHOLE = ["bytes_qwen2", "bytes_llama3", "bytes_o200k", "bytes_deepseek3", "fallback_gemma", "fallback_llama2", "unigram_bytes",
         "wordpiece"]
SOME = sorted(p.stem for p in (HERE / "data").glob("*.json") if p.stem not in WHOLE)
SMOLLM = "SmolLM2-135M-Instruct.Q4_1.gguf"


def check(name, path, config=None, texts=5000, **kw):
    bad, n = compare_tokenizers.compare(name, str(path), config, DRIVER, 0, 20261130, texts, **kw)
    assert bad == 0 and n == 3 * texts


def check_small(name, texts, where):
    golden = json.loads((HERE / "data" / f"{name}.json").read_text())
    path, config = where / "tokenizer.json", where / "tokenizer_config.json"
    path.write_text(json.dumps(golden["tokenizer"]))
    config.write_text(json.dumps(golden["config"]))
    check(name, path, str(config), texts)


@pytest.mark.parametrize("name", WHOLE)
def test_small(name, tmp_path):
    check_small(name, 5000 if PLAIN else 500, tmp_path)


@pytest.mark.parametrize("name", SOME)
def test_other_steps(name, tmp_path):
    check_small(name, 500 if PLAIN else 100, tmp_path)


def smollm_reference(path):
    """The package's tokenizer of the GGUF's pieces and merges."""
    import gguf
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    f = gguf.GGUFReader(path).fields
    tokens, merges = f["tokenizer.ggml.tokens"].contents(), f["tokenizer.ggml.merges"].contents()
    types = f["tokenizer.ggml.token_type"].contents()
    t = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in merges]))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, normalized=False) for s, kind in zip(tokens, types) if kind == 3])
    return t


@pytest.mark.skipif(not PLAIN, reason="large vocabularies run in the plain build")
def test_model_cache():
    from tokenizers import Tokenizer

    path = CACHE / SMOLLM
    if not path.exists():
        pytest.skip(f"{path} is not here: tools/get-models smollm2 fetches it")
    reference = smollm_reference(path).to_str()
    check("smollm2", path, make_reference=lambda: Tokenizer.from_str(reference))


@pytest.mark.skipif(not PLAIN or not LARGE.is_dir(), reason="CAIRN_TOKENIZERS names a folder of large vocabularies")
@pytest.mark.parametrize("name", sorted(p.name for p in LARGE.iterdir() if p.is_dir()) if LARGE.is_dir() else [])
def test_large(name, tmp_path):
    folder = LARGE / name
    check(name, compare_tokenizers.unpack(str(folder), str(tmp_path)), str(folder / "tokenizer_config.json"))
