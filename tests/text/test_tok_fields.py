"""Which tokenizer.json are refused: each member of each object left out, null or of another kind, beside the
`tokenizers` package.  What it refuses cairn refuses too, by the member's name, and takes what it takes."""
import copy
import json
import os
import subprocess

import pytest
from tokenizers import Tokenizer

CAIRN = os.environ["CAIRN_BIN"]
SPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True, "add_prefix_space": True}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
WORDS = {"<unk>": 0, "a": 1, "[CLS]": 2, "[SEP]": 3}
BASE = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": WORDS}}
PARTS = {
    "normalizer": [
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Prepend", "prepend": "x"}],
    "pre_tokenizer": [
        BYTES, SPACE, {"type": "Split", "pattern": {"String": "x"}, "behavior": "Isolated", "invert": False},
        {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "FixedLength", "length": 5}, {"type": "CharDelimiterSplit", "delimiter": "x"}],
    "decoder": [
        BYTES, SPACE, {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}],
    "post_processor": [
        BYTES, {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}],
    "truncation": [{"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}],
    "padding": [{"strategy": s, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
                 "pad_token": "[PAD]"} for s in ("BatchLongest", {"Fixed": 8})],
    "added_tokens": [[{"id": 1, "content": "a", "single_word": False, "lstrip": False, "rstrip": False, "normalized": True,
                       "special": False}]],
    "model": [
        {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
         "vocab": WORDS},
        {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]], "byte_fallback": False},
        BASE["model"]],
    "version": ["1.0"],
}
ABSENT = object()
OTHERS = [ABSENT, None, 7, -1, 1.5, True, "zz", {}]
# Not tried.  The package finds an object's kind by its members where `type` is wrong or absent, and a token that is
# none when it meets unknown text; cairn takes neither.  The others are no members with a kind alone.
APART = {"type", "vocab", "id", "content", "pattern"}


def changed(o):
    """Every member and the whole, as (name, the object then)."""
    first = o[0] if isinstance(o, list) else o
    for key in first if isinstance(first, dict) else ():
        for other in OTHERS:
            c = copy.deepcopy(o)
            inner = c[0] if isinstance(o, list) else c
            inner[key] = other
            if other is ABSENT:
                del inner[key]
            yield key, c
    for other in OTHERS[1:]:
        yield "", other


def reason(path):
    r = subprocess.run([CAIRN, "tokenize", path.parent, "-p", ""], capture_output=True, text=True, check=False)
    assert r.returncode in (0, 1), r
    return r.stderr.strip()


@pytest.mark.parametrize("part,whole", [(p, o) for p, os_ in PARTS.items() for o in os_],
                         ids=lambda v: v if isinstance(v, str) else str(v.get("type", "")) if isinstance(v, dict) else "")
def test_the_same_are_refused(part, whole, tmp_path):
    path = tmp_path / "tokenizer.json"
    wrong = []
    for key, o in [("", whole), *changed(whole)]:
        if key in APART or (key == "unk_token" and o.get("unk_token") == "zz"):
            continue
        path.write_text(json.dumps(dict(BASE, **{part: o})))
        try:
            Tokenizer.from_str(path.read_text())
            refused = False
        except Exception:
            refused = True
        says = reason(path)
        if refused != bool(says):
            wrong.append((part, key, o, says))
        elif refused and (key or part) not in says:
            wrong.append(("no name", part, key, o, says))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("scheme", [ABSENT, "always", "first", "never"])
@pytest.mark.parametrize("space", [ABSENT, None, True, False])
@pytest.mark.parametrize("part", ["pre_tokenizer", "decoder"])
def test_schemes_of_a_metaspace(part, space, scheme, tmp_path):
    o = {k: v for k, v in dict(SPACE, add_prefix_space=space, prepend_scheme=scheme).items() if v is not ABSENT}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(dict(BASE, **{part: o})))
    try:
        Tokenizer.from_str(path.read_text())
        assert reason(path) == ""
    except Exception:
        assert part + ".prepend_scheme: found" in reason(path)


FIRST = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
CHARS = {c: i for i, c in enumerate("\u2581abcx .,\u00e9\u0120\u00ef\u00bb\u00bf\u00e2\u0122\u00a8")}


@pytest.mark.parametrize("normalizer,pre", [
    (None, []), (None, [dict(BYTES, use_regex=False), {"type": "Punctuation", "behavior": "MergedWithPrevious"}]),
    ({"type": "Prepend", "prepend": "\u00e9"}, [{"type": "Split", "pattern": {"Regex": "[abc]+"}, "behavior": "Removed", "invert": True}]),
    ({"type": "Prepend", "prepend": "x."}, [{"type": "Punctuation", "behavior": "Isolated"}]),
    ({"type": "Strip", "strip_left": False, "strip_right": True}, []),
    ({"type": "Strip", "strip_left": True, "strip_right": True}, []),
    ({"type": "Replace", "pattern": {"String": "a"}, "content": ""}, [])],
    ids=["plain", "bytes", "prepend", "prepend two", "strip right", "strip", "replace"])
def test_first_word(normalizer, pre, tmp_path):
    """Each word is the first that begins where the text's first character did, as the package keeps count."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(dict(BASE, normalizer=normalizer, pre_tokenizer={"type": "Sequence", "pretokenizers": [*pre, FIRST]},
                                    model={"type": "BPE", "vocab": CHARS, "merges": []})))
    reference = Tokenizer.from_str(path.read_text())
    for text in ("a", "abc", "\u00e9a", ".a", "a.b", "..a", "\ufeffa", "\u2028 a", " a", "xa", "aab", "ab ", "\u2581a"):
        r = subprocess.run([CAIRN, "tokenize", tmp_path, "-p", text], capture_output=True, text=True, check=True)
        assert json.loads(r.stdout) == reference.encode(text).ids, text
