#!/usr/bin/env python3
"""Compares what normalizers, pre-tokenizers and the hand-written scanners do to every code point with
`tokenizers`: ids are bytes here and words end in a mark, so that nothing of the result is hidden.

usage: compare_classes.py DRIVER [NAME...]
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def rules():
    """The patterns of scan.c's table, as rules.h spells them: the preprocessor reads them."""
    src = os.path.join(HERE, "..", "..", "src")
    scan = open(os.path.join(src, "text", "scan.c"), encoding="utf-8").read()
    names = sorted(set(re.findall(r"\{(RULE_\w+),", scan)))
    code = '#include <stdio.h>\n#include "text/rules.h"\nint main(void){' + "".join(
        f'fwrite({n},1,sizeof {n},stdout);' for n in names) + "}"
    with tempfile.TemporaryDirectory() as d:
        open(d + "/r.c", "w").write(code)
        subprocess.run(["gcc", "-I", src, "-o", d + "/r", d + "/r.c"], check=True)
        out = subprocess.run([d + "/r"], capture_output=True, check=True).stdout.decode().split("\0")
    return {n: {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for n, p in zip(names, out)}


def norm(kind, **kw):
    return {"normalizer": {"type": kind, **kw}, "pre_tokenizer": None}


def pre(kind, **kw):
    return {"normalizer": None, "pre_tokenizer": {"type": kind, **kw}}


FORMS = ("NFC", "NFD", "NFKC", "NFKD")
KINDS = {k: norm(k) for k in FORMS + ("Lowercase", "StripAccents", "Nmt")}
KINDS |= {"Bert clean": norm("BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False),
          "Bert accents": norm("BertNormalizer", clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=True),
          "Strip": norm("Strip", strip_left=True, strip_right=True),
          "Punctuation": pre("Punctuation", behavior="Isolated"), "Whitespace": pre("Whitespace"),
          "WhitespaceSplit": pre("WhitespaceSplit"), "Digits": pre("Digits", individual_digits=True),
          "UnicodeScripts": pre("UnicodeScripts"), "BertPreTokenizer": pre("BertPreTokenizer"),
          "number": pre("Split", pattern={"Regex": r"\p{N}"}, behavior="Isolated", invert=False)}


def main():
    try:
        import tokenizers
    except ImportError:
        print("skipped: the package `tokenizers` is not there")
        return 0
    kinds = KINDS | {n: {"normalizer": None, "pre_tokenizer": p} for n, p in rules().items()}
    vocab = {f"<0x{i:02X}>": i for i in range(256)}
    driver, names = sys.argv[1], sys.argv[2:]
    bad = 0
    for name, steps in kinds.items():
        if names and name not in names:
            continue
        doc = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None, "decoder": None,
               "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": "|",
                         "fuse_unk": False, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": []}} | steps
        t = tokenizers.Tokenizer.from_str(json.dumps(doc))
        cps = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
        if name == "Strip":
            texts = [chr(c) + "a" + chr(c) for c in cps if c < 0x4000]
        elif name in FORMS:  # beside marks of the lowest and highest class, which change places with it
            texts = ["".join(f"a{chr(c)}\u0334b\u0345{chr(c)} {chr(c)}{chr(c)}B" for c in cps[i:i + 16]) for i in range(0, len(cps), 16)]
        else:
            texts = ["".join(f"a{chr(c)}b1 {chr(c)}{chr(c)}B" for c in cps[i:i + 16]) for i in range(0, len(cps), 16)]
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "t.json")
            open(path, "w").write(json.dumps(doc))
            p = subprocess.run([driver, path], input="".join(json.dumps({"s": s, "flags": 0}) + "\n" for s in texts).encode(),
                               capture_output=True, check=False)
        got = [json.loads(x) for x in p.stdout.decode().splitlines()]
        if len(got) != len(texts):
            print(f"{name}: {p.stderr.decode()}")
            bad += 1
            continue
        wrong = []
        for k, (s, g) in enumerate(zip(texts, got)):
            if t.encode(s).ids != g:
                wrong.append(k)
        found = []
        for k in wrong:  # which of them
            for c in sorted(set(texts[k]) - set("ab1 B")):
                one = f"a{c}b1 {c}{c}B"
                q = tokenizers.Tokenizer.encode(t, one).ids
                found.append((ord(c), q, one))
        if found:
            with tempfile.TemporaryDirectory() as work:
                path = os.path.join(work, "t.json")
                open(path, "w").write(json.dumps(doc))
                p = subprocess.run([driver, path], input="".join(json.dumps({"s": o, "flags": 0}) + "\n" for _, _, o in found).encode(),
                                   capture_output=True, check=False)
            found = [c for (c, q, _), x in zip(found, p.stdout.decode().splitlines()) if json.loads(x) != q]
        bad += len(wrong)
        print(f"{name}: {len(texts)} texts over {len(cps)} code points, {len(wrong)} differ"
              + (": " + " ".join(f"{c:04X}" for c in found[:60]) if found else ""), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
