"""Streamed text beside the `tokenizers` package's decode: at every cut, what has left and what an end there would add
are the decode of the ids so far; nothing that leaves splits a character; time grows as the text does.  Spans of tokens are
the reference's offsets where a vocabulary writes all that it reads.  Over a
vocabulary of all kinds of pieces with each decoder, those of data/, and the large ones of CAIRN_TOKENIZERS."""
import json
import os
import pathlib
import random
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import compare_tokenizers  # noqa: E402

DRIVER = str(pathlib.Path(os.environ["CAIRN_BIN"]).parent / "tests/text/tok_driver")
LARGE = pathlib.Path(os.environ.get("CAIRN_TOKENIZERS") or HERE / "none")
PLAIN = pathlib.Path(os.environ["CAIRN_BIN"]).parent.name == "build"
LONGEST = 40  # ids; each cut streams anew

METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
BYTES, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DECODERS = {
    "none": None, "byte_level": BYTE_LEVEL, "byte_fallback": BYTES, "fuse": FUSE, "replace": REPLACE, "strip": STRIP,
    "metaspace": METASPACE,
    "metaspace_never": dict(METASPACE, prepend_scheme="never"), "wordpiece": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "wordpiece_raw": {"type": "WordPiece", "prefix": "##", "cleanup": False}, "bpe": {"type": "BPEDecoder", "suffix": "</w>"},
    "ctc": {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
    "ctc_raw": {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": False},
    "replace_regex": {"type": "Replace", "pattern": {"Regex": "[a▁]+"}, "content": "_"},
    "llama": [REPLACE, BYTES, FUSE, STRIP], "gemma": [REPLACE, BYTES, FUSE], "fallback_metaspace": [METASPACE, BYTES],
    "strip_both": [REPLACE, FUSE, {"type": "Strip", "content": " ", "start": 3, "stop": 2}],
    "strip_after_bytes": [BYTES, FUSE, {"type": "Strip", "content": "é", "start": 1, "stop": 1}],
}
PIECES = ["<unk>", "<pad>", "|", "a", "aa", "▁", "▁a", "▁▁", "é", "世界", "😀", " ", "  a", "##a", "##é", "a</w>", "</w>", "</w>b", "Ġ", "Ġa", "Ã©", "Ã",
          "©", "ð", "Ł", "ĺ", "Ģ", ".", "'", "n't"] + ["<0x%02X>" % b for b in (0x41, 0x20, 0xC3, 0xA9, 0xE4, 0xB8, 0x96, 0xF0, 0x9F, 0x98, 0x80, 0xFF)]


def decode(reference, ids, keep):
    """None where the reference itself breaks: Strip's `stop` on a text that is shorter."""
    try:
        return reference.decode(ids, skip_special_tokens=not keep)
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise
        return None


def check(reference, driver, ids, keep):
    got = driver.ask(ids=ids, keep=keep, cuts=True)
    assert got["whole"] and len(got["ends"]) == len(ids) + 1, ids
    text = ""
    for k, end in enumerate(got["ends"]):
        text += got["pieces"][k]
        want = decode(reference, ids[:k], keep)
        assert want is None or text + end == want, (ids[:k], keep)


def check_spans(driver, encoding, text, decoded):
    """Those of an encoding whose decode is its text are the reference's offsets, in bytes (RoBERTa's leave blanks out)."""
    got = driver.ask(ids=encoding.ids, keep=True, spans=True)
    starts = [len(text[:a].encode()) for a, _ in encoding.offsets], [len(text[:b].encode()) for _, b in encoding.offsets]
    assert decoded != text or got == [x for pair in zip(*starts) for x in pair], (text, encoding.tokens, got, encoding.offsets)
    return decoded == text


def check_many(path, config, count, texts, spans=False):
    """Random ids, and those of random texts where the vocabulary has what they need."""
    from tokenizers import Tokenizer

    reference = Tokenizer.from_file(str(path))
    driver = compare_tokenizers.Driver(DRIVER, str(path), *config)
    rng = random.Random(20261130)
    specials = [t.content for t in reference.get_added_tokens_decoder().values()]
    known = [i for i in range(reference.get_vocab_size()) if reference.id_to_token(i) is not None]
    n_spans = 0
    for k in range(count):
        ids = [rng.choice(known) for _ in range(rng.randint(0, LONGEST))]
        if texts and k % 2:
            text = compare_tokenizers.make_text(rng, specials, ())
            whole = reference.encode(text, add_special_tokens=False)
            ids = whole.ids[:LONGEST]
            if spans:
                n_spans += check_spans(driver, whole, text, reference.decode(whole.ids, skip_special_tokens=False))
        check(reference, driver, ids, k % 4 < 2)
    seconds = [min(driver.ask(ids=known[:500], repeat=n) for _ in range(3)) for n in (20, 160)]
    assert seconds[1] < 0.005 + 3 * 8 * seconds[0], seconds
    assert not spans or n_spans > count / 8
    driver.close()


@pytest.mark.parametrize("name", DECODERS)
def test_each_decoder(name, tmp_path):
    d = DECODERS[name]
    path = tmp_path / "tokenizer.json"
    special = {"id": len(PIECES), "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    path.write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "post_processor": None,
        "added_tokens": [special], "decoder": {"type": "Sequence", "decoders": d} if isinstance(d, list) else d,
        "model": {"type": "WordLevel", "vocab": {p: i for i, p in enumerate(PIECES)}, "unk_token": "<unk>"}}))
    check_many(path, [], 400 if PLAIN else 40, False)


@pytest.mark.parametrize("name", sorted(p.stem for p in (HERE / "data").glob("*.json")))
def test_each_file(name, tmp_path):
    golden = json.loads((HERE / "data" / f"{name}.json").read_text())
    path, config = tmp_path / "tokenizer.json", tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(golden["tokenizer"]))
    config.write_text(json.dumps(golden["config"]))
    check_many(path, [str(config)], 60 if PLAIN else 10, True, name.startswith("bytes_") and name != "bytes_roberta")


@pytest.mark.skipif(not PLAIN or not LARGE.is_dir(), reason="CAIRN_TOKENIZERS names a folder of large vocabularies")
@pytest.mark.parametrize("name", sorted(p.name for p in LARGE.iterdir() if p.is_dir()) if LARGE.is_dir() else [])
def test_large(name, tmp_path):
    folder = LARGE / name
    check_many(compare_tokenizers.unpack(str(folder), str(tmp_path)), [str(folder / "tokenizer_config.json")], 600, True, True)


@pytest.mark.parametrize("path", sorted((HERE / "models").glob("*.model")), ids=lambda p: p.stem)
def test_sentencepiece(path):
    """Of SentencePiece's own files the whole decode is ours, which test_tok_models.c holds against the library."""
    driver = compare_tokenizers.Driver(DRIVER, str(path))
    rng = random.Random(1)
    for _ in range(60 if PLAIN else 10):
        ids = [rng.randrange(300) for _ in range(rng.randint(0, LONGEST))]
        got = driver.ask(ids=ids, cuts=True)
        assert got["whole"]
        for k, end in enumerate(got["ends"]):
            want = driver.ask(ids=ids[:k], keep=False)["text"]
            assert "".join(got["pieces"][:k + 1]) + end == want, ids[:k]
    driver.close()
