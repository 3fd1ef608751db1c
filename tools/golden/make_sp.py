#!/usr/bin/env python3
"""Makes tests/text/models/: small SentencePiece models and tiktoken rank files, each with the answers of
its own library in a .json beside it.

usage: make_sp.py [--check DRIVER [--texts N]]     (pip install sentencepiece tiktoken tokenizers)

With --check nothing is written: the models are compared with DRIVER (tests/text/tok_driver) over N random
texts each.  A .json has "cases": [[text, ids], …], "decodes": [[ids, text], …] and "long": [[text, times, rest, ids], …].
"""
import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile

import sentencepiece as sp
import tiktoken
from tiktoken import _educational

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, "tests", "text", "models")
sys.path.insert(0, os.path.join(ROOT, "tests", "text"))
from compare_tokenizers import make_text  # noqa: E402

CORPUS = [
    "The harbour lights were lit at seven; nobody's boat had come back, and they'd waited since 1921.",
    "hello world, hello Hello HELLO, it's what we've said 123 times (1234567 to be exact)!!!",
    "for (int i = 0; i < n; i++) { sum += x[i];  // a comment }   return sum;",
    "Der Fluß fließt über die Brücke; la forêt où l'été s'achève. Ça va ? Où ça ?",
    "Москва и река, ночь без огней. Ελληνικά γράμματα και λέξεις. עברית וערבית العربية",
    "你好世界，今天天气很好。こんにちは世界。カタカナ 한국어 문장 입니다.",
    "aaaaaaaaaaaaaaaa abababab 0000000 ......   ---- ====  a  b   c",
] * 6
KINDS = {
    "bpe_llama": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
                      remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True),
    "bpe_user": dict(model_type="bpe", vocab_size=450, normalization_rule_name="identity",
                     user_defined_symbols=["<tool>", "<tool><x>", "  ", "[a]"], control_symbols=["<ctl>"]),
    "bpe_suffix": dict(model_type="bpe", vocab_size=400, normalization_rule_name="identity",
                       treat_whitespace_as_suffix=True),
    "unigram_nfkc": dict(model_type="unigram", vocab_size=420, normalization_rule_name="nmt_nfkc"),
    "unigram_user": dict(model_type="unigram", vocab_size=650, byte_fallback=True, add_dummy_prefix=False,
                         normalization_rule_name="identity", remove_extra_whitespaces=False,
                         user_defined_symbols=["<tool>", "the", "[a]"]),
    "unigram_raw": dict(model_type="unigram", vocab_size=400, normalization_rule_name="identity",
                        add_dummy_prefix=False),
}
EXTRA = ["<tool>", "<tool><x>", "[a]", "the", "<unk>", "<s>", "</s>", "<ctl>", "  ", "\u2581", "<0x41>", "of the"]
NAMES = {"cl100k_base": "cl100k_base", "o200k_base": "o200k_base"}


def train(name, kind):
    with tempfile.TemporaryDirectory() as work:
        prefix = os.path.join(work, name)
        sp.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_prefix=prefix, minloglevel=2,
                                      hard_vocab_limit=False, character_coverage=0.995, num_threads=1, **kind)
        return open(prefix + ".model", "rb").read()


def patterns():
    import tiktoken_ext.openai_public as public
    import inspect

    text = inspect.getsource(public)
    scope = {}
    exec(text.replace("load_tiktoken_bpe(", "(lambda *a, **k: {})(")
         .replace("data_gym_to_mergeable_bpe_ranks(", "(lambda *a, **k: {})("), scope)
    return {n: scope[n]()["pat_str"] for n in NAMES}


def ranks(pattern):
    return _educational.bpe_train(data=" ".join(CORPUS), vocab_size=600, pat_str=pattern, visualise=None)


def makers():
    """name, file's bytes, its ending, encode, decode, number of pieces, ids of the bytes of a character"""
    for name, kind in KINDS.items():
        model = train(name, kind)
        p = sp.SentencePieceProcessor(model_proto=model)
        both = [p.piece_to_id(b) for b in ("<0xC8>", "<0xAB>")] if kind.get("byte_fallback") else []
        yield name, model, ".model", p.encode, p.decode, p.get_piece_size(), both
    for name, pattern in patterns().items():
        r = ranks(pattern)
        e = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=r, special_tokens={})
        text = b"".join(base64.b64encode(b) + b" %d\n" % k for b, k in sorted(r.items(), key=lambda x: x[1]))
        yield (name, text, ".tiktoken", lambda s, e=e: e.encode(s, disallowed_special=()),
               lambda ids, e=e: e.decode(ids), len(r), [])


def cases(name, encode, decode, n, bytes_of, count):
    rng = random.Random(name)
    fixed = CORPUS[:7] + ["", " ", "   ", "  x", "x  ", " a  b ", "\n", "\t a"]
    # Equal sums but for their rounding, which what a user-defined piece adds decides.
    fixed += ["?!the!!!", "!!![a]!!!", "\u206a<tool>\u2015\u203900000000000000000000"]
    texts = fixed + [make_text(rng, EXTRA, ()) for _ in range(count)]
    # A NUL ends a string for SentencePiece's trie; U+2581 comes back as a space.
    texts = [s for s in texts if "\0" not in s]
    decodes = [[rng.randrange(n) for _ in range(rng.randint(1, 20))] for _ in range(count // 2)]
    # A control piece between two bytes of a character.
    decodes += [[b[0], 2, b[1]] for b in [bytes_of] if b]
    return [[s, encode(s)] for s in texts], [[i, decode(i)] for i in decodes]


def long_cases(name, encode):
    """[text, times, rest, ids]: sums so long that they would lose their digits, but are counted anew."""
    if not name.startswith("unigram_raw"):
        return []
    rest = " ".join(CORPUS[:7])
    return [["\x7f", 1500000, rest, encode("\x7f" * 1500000 + rest)]]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--check", default="")
    ap.add_argument("--texts", type=int, default=2000)
    o = ap.parse_args()
    os.makedirs(OUT, exist_ok=True)
    bad = 0
    for name, data, ext, encode, decode, n, both in makers():
        path = os.path.join(OUT, name + ext)
        if not o.check:
            enc, dec = cases(name, encode, decode, n, both, 60)
            open(path, "wb").write(data)
            with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as f:
                json.dump({"cases": enc, "decodes": dec, "long": long_cases(name, encode)}, f, separators=(",", ":"))
                f.write("\n")
            print(f"{name}: {len(data)} bytes, {len(enc)} texts, {len(dec)} decodes")
            continue
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, name + ext)
            open(path, "wb").write(data)
            enc, dec = cases(name + "x", encode, decode, n, both, o.texts)
            req = [{"s": s, "flags": 0} for s, _ in enc] + [{"ids": i, "keep": False} for i, _ in dec]
            p = subprocess.run([o.check, path], input="".join(json.dumps(r) + "\n" for r in req).encode(),
                               capture_output=True, check=False)
            got = [json.loads(x) for x in p.stdout.decode().split("\n")[:-1]]
        wrong = 0
        if len(got) != len(req):
            print(f"{name}: {p.stderr.decode()}")
            wrong += 1
        for r, g, (x, want) in zip(req, got, enc + dec):
            have = g if "s" in r else g["text"]
            if have != want or (isinstance(g, dict) and g["text"] != g["stream"]):
                wrong += 1
                if wrong < 4:
                    print(f"{name}: {x!r}\n  want {want!r}\n  got  {g!r}")
        print(f"{name}: {len(req)} comparisons, {wrong} differ")
        bad += wrong
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
