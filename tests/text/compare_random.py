#!/usr/bin/env python3
"""Compares our tokenizer with PyPI's `tokenizers` over random tokenizer.json files: models, normalizers,
pre-tokenizers, post-processors, decoders and added tokens in random combinations over small vocabularies.

usage: compare_random.py DRIVER [--files N] [--texts N] [--seed N] [--keep FOLDER]

A file that we refuse by name counts apart: it must be one of the few combinations that README.md lists.
--keep writes files that differ there.
"""
import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile

from compare_tokenizers import make_text

SPACE = "\u2581"
HERE = os.path.dirname(os.path.abspath(__file__))


def charsmap():
    data = open(os.path.join(HERE, "models", "unigram_nfkc.model"), "rb").read()
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    while at < len(data):  # ModelProto: field 3, NormalizerSpec: field 2
        key = varint()
        n = varint()
        if key >> 3 == 3:
            end = at + n
            while at < end:
                key = varint()
                n = varint()
                if key >> 3 == 2:
                    return base64.b64encode(data[at:at + n]).decode()
                if key & 7 == 2:
                    at += n
        else:
            at += n
    return ""


WORDS = ("the of and to in is he llo wor ld ing er th an a e i o u t s r n l d h c m 1 2 12 . , ! ' 's don can t "
         "e\u0301 \u00e9 \u4f60 \u597d \u4f60\u597d \u3053 \u0434\u0430 \u0434 \u0430 \u00df ss x= == ab ba aa bb aaa").split()


def pattern(rng):
    k = rng.random()
    if k < 0.4:
        return {"String": rng.choice([" ", "a", "l", "--", "  ", ".", "th", SPACE])}
    return {"Regex": rng.choice([r"\s+", r"[aeiou]+", r"\d", r"\d{1,3}", r"\w+|[^\w\s]+", r"(?<=a)b", r"[A-Z]", r"\p{L}+",
                                 r" ?\p{P}+", r"\b", r"x*", r"(?i)th", r"\p{Han}", r"$", r"(?=(\d{3})+(?!\d))",
                                 r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"\d{1,3}(?=(?:\d{3})*\b)"])}


def one_norm(rng, cm):
    kind = rng.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Nmt", "BertNormalizer",
                       "Precompiled", "Replace", "Prepend", "ByteLevel"])
    b = lambda: rng.random() < 0.5
    return {"NFC": {}, "NFD": {}, "NFKC": {}, "NFKD": {}, "Lowercase": {}, "StripAccents": {}, "Nmt": {}, "ByteLevel": {},
            "Strip": {"strip_left": b(), "strip_right": b()}, "Precompiled": {"precompiled_charsmap": cm},
            "BertNormalizer": {"clean_text": b(), "handle_chinese_chars": b(), "strip_accents": rng.choice([None, True, False]),
                               "lowercase": b()},
            "Replace": {"pattern": pattern(rng), "content": rng.choice(["", "_", SPACE, "aa", "\u00e9"])},
            "Prepend": {"prepend": rng.choice([SPACE, "a", "\u00e9"])}}[kind] | {"type": kind}


def one_pre(rng):
    kind = rng.choice(["ByteLevel", "Whitespace", "WhitespaceSplit", "Punctuation", "Metaspace", "CharDelimiterSplit", "Split",
                       "Split", "Digits", "UnicodeScripts", "BertPreTokenizer", "FixedLength"])
    b = lambda: rng.random() < 0.5
    behavior = lambda: rng.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
    return {"ByteLevel": {"add_prefix_space": b(), "trim_offsets": True, "use_regex": b()}, "Whitespace": {}, "WhitespaceSplit": {},
            "Punctuation": {"behavior": behavior()}, "UnicodeScripts": {}, "BertPreTokenizer": {},
            "Metaspace": {"replacement": rng.choice([SPACE, "_"]), "prepend_scheme": rng.choice(["always", "first", "never"]), "split": b()},
            "CharDelimiterSplit": {"delimiter": rng.choice([" ", "a", "|"])}, "FixedLength": {"length": rng.randint(1, 6)},
            "Split": {"pattern": pattern(rng), "behavior": behavior(), "invert": b()},
            "Digits": {"individual_digits": b()}}[kind] | {"type": kind}


def sequence(rng, make, name, key, most):
    n = rng.choice([0, 1, 1, 1] + list(range(2, most + 1)))
    if n == 0:
        return None
    if n == 1:
        return make()
    return {"type": "Sequence", key: [make() for _ in range(n)]}


def decoder(rng):
    b = lambda: rng.random() < 0.5
    strip = lambda: {"type": "Strip", "content": rng.choice([" ", "a"]), "start": rng.randint(0, 2), "stop": rng.randint(0, 2)}
    meta = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": rng.choice(["always", "first", "never"]), "split": True}
    replace = lambda: {"type": "Replace", "pattern": rng.choice([{"String": SPACE}, {"String": "a"}, {"Regex": "[aeiou]+"}]),
                       "content": rng.choice([" ", "", "xy"])}
    k = rng.randrange(9)
    if k == 0:
        return None
    if k == 1:
        return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    if k == 2:
        return {"type": "WordPiece", "prefix": rng.choice(["##", ""]) or "##", "cleanup": b()}
    if k == 3:
        return meta
    if k == 4:
        return {"type": "BPEDecoder", "suffix": "</w>"}
    if k == 5:
        return {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": rng.choice(["|", "a"]), "cleanup": b()}
    steps = [replace() for _ in range(rng.randint(0, 2))]
    if b():
        steps.append(strip())
    if b():
        steps.append({"type": "ByteFallback"})
    if b():
        steps.append({"type": "Fuse"})
        if b():
            steps.append(strip())
    return {"type": "Sequence", "decoders": steps} if steps else {"type": "Fuse"}


def model(rng):
    b = lambda: rng.random() < 0.5
    kind = rng.choice(["BPE", "BPE", "BPE", "Unigram", "WordPiece", "WordLevel"])
    alphabet = sorted(set("".join(WORDS)) | set("abcdefghijklmnopqrstuvwxyz0123456789 " + SPACE + "_\u0120\u010a\u00c3\u00a9"))
    words = ["<unk>"] + alphabet + [w for w in WORDS if len(w) > 1]
    if kind == "BPE":
        prefix, suffix = rng.choice([(None, None)] * 4 + [("##", None), (None, "</w>"), ("##", "</w>")])
        vocab = dict.fromkeys(words)
        merges = []
        if prefix:
            vocab.update(dict.fromkeys(prefix + a for a in alphabet))
        if suffix:
            vocab.update(dict.fromkeys([a + suffix for a in alphabet] + [(prefix or "") + a + suffix for a in alphabet]))
        for _ in range(rng.randint(5, 60)):
            left, right = rng.choice(list(vocab)), rng.choice(list(vocab))
            if "unk" in left + right or (suffix and left.endswith(suffix)):
                continue
            if prefix and not right.startswith(prefix):
                continue
            whole = left + (right[len(prefix):] if prefix else right)
            if len(whole) > 10 or [left, right] in merges:
                continue
            vocab.setdefault(whole)
            merges.append([left, right])
        fallback = b()
        if fallback:
            vocab.update(dict.fromkeys(f"<0x{i:02X}>" for i in range(256)))
        return {"type": "BPE", "dropout": None, "unk_token": rng.choice([None, "<unk>"]), "continuing_subword_prefix": prefix,
                "end_of_word_suffix": suffix, "fuse_unk": b(), "byte_fallback": fallback, "ignore_merges": b(),
                "vocab": {w: i for i, w in enumerate(vocab)}, "merges": merges}
    if kind == "Unigram":
        fallback = b()
        vocab = [["<unk>", 0.0]] + [[w, -rng.choice([1.0, 2.0, 3.5, rng.random() * 9])] for w in dict.fromkeys(words[1:] + [SPACE + "the", SPACE + "a"])]
        if fallback:
            vocab += [[f"<0x{i:02X}>", -12.0] for i in range(256)]
        return {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": fallback}
    if kind == "WordPiece":
        vocab = dict.fromkeys(words + ["##" + w for w in words[1:]])
        return {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": rng.choice([100, 6]), "vocab": {w: i for i, w in enumerate(vocab)}}
    return {"type": "WordLevel", "unk_token": "<unk>", "vocab": {w: i for i, w in enumerate(dict.fromkeys(words))}}


def make_file(rng, cm):
    m = model(rng)
    n = len(m["vocab"])
    b = lambda: rng.random() < 0.3
    added = []
    for k, text in enumerate(rng.sample(["<s>", "</s>", "<tool>", "<tool><x>", "word", "\u00e9t\u00e9", "  ", "ab", "A b", "<pad>", "\u4f60"], rng.randint(0, 6))):
        if text in (m["vocab"] if isinstance(m["vocab"], dict) else [w for w, _ in m["vocab"]]):
            continue
        added.append({"id": n + len(added), "content": text, "single_word": b(), "lstrip": b(), "rstrip": b(), "normalized": b(), "special": b()})
    post = None
    ids = {a["content"]: a["id"] for a in added}
    if "<s>" in ids and "</s>" in ids:
        post = rng.choice([
            None, {"type": "BertProcessing", "sep": ["</s>", ids["</s>"]], "cls": ["<s>", ids["<s>"]]},
            {"type": "RobertaProcessing", "sep": ["</s>", ids["</s>"]], "cls": ["<s>", ids["<s>"]], "trim_offsets": True, "add_prefix_space": False},
            {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
             "special_tokens": {"<s>": {"id": "<s>", "ids": [ids["<s>"]], "tokens": ["<s>"]}}},
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}])
        if post and b():
            post = {"type": "Sequence", "processors": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}, post]}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": sequence(rng, lambda: one_norm(rng, cm), "Sequence", "normalizers", 3),
            "pre_tokenizer": sequence(rng, lambda: one_pre(rng), "Sequence", "pretokenizers", 3),
            "post_processor": post, "decoder": decoder(rng), "model": m}


def check(rng, doc, driver, n_texts, path):
    """differences, comparisons, refusal"""
    from tokenizers import Tokenizer

    text = json.dumps(doc)
    try:
        refs = [Tokenizer.from_str(text), Tokenizer.from_str(text)]
    except Exception as e:  # the reference refuses it: not a case
        return 0, 0, f"reference: {e}"
    refs[0].encode_special_tokens = True
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    norm = refs[0].normalizer
    try:
        shown = [norm.normalize_str(a["content"]) for a in doc["added_tokens"] if a["normalized"]] if norm else []
    except BaseException as e:  # noqa: B036
        return 0, 0, f"reference: {e}"
    if not all(shown):
        return 0, 0, "reference: matches an added token that is normalised to nothing everywhere"
    if len(set(shown)) < len(shown):
        return 0, 0, "reference: takes any of the added tokens that are normalised to the same, other ones in other runs"
    special = [a["content"] for a in doc["added_tokens"]]
    req, want = [], []
    size = refs[0].get_vocab_size()
    for _ in range(n_texts):
        s = make_text(rng, special or ["the", "hello  world"], ())
        for parse in (0, 1):
            for add in (0, 1):
                try:
                    ids = refs[parse].encode(s, add_special_tokens=bool(add)).ids
                except BaseException:  # noqa: B036  (a panic in the reference)
                    continue
                req.append({"s": s, "flags": add | parse << 1})
                want.append(ids)
        ids = [rng.randrange(size) for _ in range(rng.randint(1, 12))]
        for skip in (True, False):
            try:
                out = refs[1].decode(ids, skip_special_tokens=skip)
            except BaseException:  # noqa: B036
                continue
            req.append({"ids": ids, "keep": not skip})
            want.append(out)
    p = subprocess.run([driver, path], input="".join(json.dumps(r) + "\n" for r in req).encode(), capture_output=True, check=False)
    got = [json.loads(x) for x in p.stdout.decode().split("\n")[:-1]]
    if len(got) != len(req):
        return (0, 0, p.stderr.decode().strip()) if p.returncode == 1 else (1, 1, f"died with {p.returncode}")
    bad = 0
    for r, w, g in zip(req, want, got):
        fine = g == w if "s" in r else isinstance(g, dict) and g["text"] == w and g["stream"] == w
        if not fine:
            bad += 1
            if bad == 1:
                print(f"{r}\n  want {w!r}\n  got  {g!r}\n  {json.dumps({k: doc[k] for k in ('normalizer', 'pre_tokenizer', 'decoder', 'added_tokens')})[:1500]}"
                      f"\n  {json.dumps({k: v for k, v in doc['model'].items() if k not in ('vocab', 'merges')})}")
    return bad, len(req), ""


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("driver")
    ap.add_argument("--files", type=int, default=200)
    ap.add_argument("--texts", type=int, default=8)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--keep", default="")
    o = ap.parse_args()
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        print("skipped: the package `tokenizers` is not there")
        return 0
    cm = charsmap()
    files = total = bad = 0
    refused = {}
    with tempfile.TemporaryDirectory() as work:
        for k in range(o.files):
            rng = random.Random(f"{o.seed}/{k}")
            doc = make_file(rng, cm)
            path = os.path.join(o.keep or work, "t.json")
            d, n, why = check(rng, doc, o.driver, o.texts, path)
            bad += d
            total += n
            files += n > 0
            if why:
                why = why.split(": ", 2)[-1] if not why.startswith("reference") else why[:60]
                refused[why] = refused.get(why, 0) + 1
            if d:
                print(f"file {k} of seed {o.seed}: {d} of {n} differ")
                if o.keep:
                    os.replace(path, os.path.join(o.keep, f"{o.seed}-{k}.json"))
    for why, n in sorted(refused.items()):
        print(f"refused {n}: {why}")
    print(f"{files} files, {total} comparisons, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
