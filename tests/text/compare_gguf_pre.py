#!/usr/bin/env python3
"""Compares every pre-tokenizer and vocabulary kind of GGUF files with llama.cpp itself.

usage: compare_gguf_pre.py DRIVER LLAMA [--texts N] [--seed N] [NAME...]

LLAMA is a folder with llama.cpp's source under src/ (or itself) and its libraries under build/bin, as
bench/get-llama.cpp makes it.  The names are those that its src/llama-vocab.cpp compares with
`tokenizer_pre`; each is written into a vocabulary of its models/ folder.  Kinds without such a file
(t5, rwkv, plamo2, whitespace) get a small one made here.  Where llama.cpp's spelling of a rule is known
to be rougher than the model's own (ROUGH), texts are ASCII; cairn has the model's own.
"""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from compare_tokenizers import CHUNKS, SPACES, make_text

# Case and classes of letters outside ASCII; Han among letters; \\s and marks in collapsed classes.
ROUGH = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2", "granite-embed-multi-97m", "tekken", "youtu",
         "tiny_aya", "cohere2moe", "kimi-k2", "superbpe"}
# What differs even so: a lower-case letter before an upper-case one, where the rules' own classes
# divide and the folded ones do not; long numbers that end in the middle of a word; the line separator,
# which deepseek's range of ideographs includes; blanks before a number, which afmoe's reader there
# joins to it.
CASES, NUMBERS, LINE = r"[a-z][A-Z]", r"\d{4,}[A-Za-z_]", "\u2028"
NOT_IN = {"kimi-k2": CASES, "youtu": CASES, "tiny_aya": f"{CASES}|{NUMBERS}", "cohere2moe": f"{CASES}|{NUMBERS}",
          "deepseek-coder": LINE, "deepseek-llm": LINE,
          "afmoe": r"\s[\d\u2070-\u2189\u2460-\u249b\u2776-\u2793\u3007-\u3289]"}
KEY = b"tokenizer.ggml.pre"


def patched(path, name, out):
    data = open(path, "rb").read()
    at = data.index(KEY + struct.pack("<I", 8)) + len(KEY) + 4
    n, = struct.unpack_from("<Q", data, at)
    new = name.encode()
    with open(out, "wb") as f:
        f.write(data[:at] + struct.pack("<Q", len(new)) + new + data[at + 8 + n:])


class Llama:
    def __init__(self, program, path):
        self.p = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.fine = self.p.stdout.readline().strip() == b"open"

    def ask(self, text, flags):
        b = text.encode()
        self.p.stdin.write(b"%d %d\n" % (flags, len(b)) + b)
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        return [int(x) for x in line.split()] if line else None

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def ours(driver, path, texts):
    req = "".join(json.dumps({"s": s, "flags": f}) + "\n" for s in texts for f in range(4))
    p = subprocess.run([driver, path], input=req.encode(), capture_output=True, check=False)
    if p.returncode:
        return p.stderr.decode().strip()
    return [json.loads(x) for x in p.stdout.decode().splitlines()]


def compare(name, path, driver, program, texts, show=3):
    got = ours(driver, path, texts)
    if isinstance(got, str):
        print(f"{name}: {got}")
        return 1
    ref = Llama(program, path)
    if not ref.fine:
        print(f"{name}: llama.cpp cannot open it")
        return 1
    bad = 0
    for i, g in enumerate(got):
        s, flags = texts[i // 4], i % 4
        want = ref.ask(s, flags)
        if want is None:
            print(f"{name}: llama.cpp died on {s!r}")
            return bad + 1
        if want != g:
            bad += 1
            if bad <= show:
                print(f"{name}: {s!r} flags {flags}\n  want {want}\n  got  {g}")
    ref.close()
    print(f"{name}: {len(got)} comparisons, {bad} differ")
    return bad


def ascii_text(rng, specials):
    out = []
    for _ in range(rng.randint(1, 10)):
        k = rng.random()
        if k < 0.4:
            out.append("".join(chr(rng.randint(32, 126)) for _ in range(rng.randint(1, 12))))
        elif k < 0.8:
            out.append(rng.choice([c for c in CHUNKS + SPACES if c.isascii()]))
        elif k < 0.9:
            out.append(str(rng.randint(0, 10 ** rng.randint(1, 12))))
        elif specials:
            out.append(rng.choice(specials))
    return "".join(out)


def write_gguf(path, model, tokens, **kw):
    from gguf import GGUFWriter

    w = GGUFWriter(path, "llama")
    w.add_tokenizer_model(model)
    w.add_token_list([t for t, _, _ in tokens])
    w.add_token_scores([s for _, s, _ in tokens])
    w.add_token_types([k for _, _, k in tokens])
    for key, v in kw.items():
        key = "tokenizer.ggml." + key
        if isinstance(v, bool):
            w.add_bool(key, v)
        elif isinstance(v, int):
            w.add_uint32(key, v)
        elif isinstance(v, str):
            w.add_string(key, v)
        else:
            w.add_array(key, v)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def make_kinds(work):
    """name → a small vocabulary of a kind without a file in models/."""
    words = "the of and a to in is you that it he was for on are with as I his they be at one have this from or had by hot word but what some we can out other were all there when up use your how said an each she which do their time if will way about many then them write would like so these her long make thing see him two has look more day could go come did number sound no most people my over know water than call first who may down side been now find any new work part take get place made live where after back little only round man year came show every good me give our under name very through just form sentence great think say help low line differ turn cause much mean before move right boy old too same tell does set three want air well also play small end put home read hand port large spell add even land here must big high such follow act why ask men change went light kind off need house picture try us again animal point mother world near build self earth father".split()
    rng = random.Random(7)
    made = {}
    spm = [("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2)]
    spm += [("\u2581" + w, -float(5 + i % 17) - rng.random(), 1) for i, w in enumerate(dict.fromkeys(words))]
    spm += [(c, -12.0 - rng.random(), 1) for c in "abcdefghijklmnopqrstuvwxyzABCDE0123456789.,!?'\u2581\u00e9\u4f60\u597d"]
    spm += [(c, -9.0 - rng.random(), 1) for c in ("th", "er", "in", "an", "ed", "ing", "\u4f60\u597d", "\u2581\u2581")]
    spm += [("<tool>", 0.0, 4), ("[x]", 0.0, 4), ("unus", -1.0, 5)]
    for both in (True, False):  # alone they differ from SentencePiece there, whose rules cairn has
        path = os.path.join(work, f"t5-{both}.gguf")
        write_gguf(path, "t5", spm, add_space_prefix=both, remove_extra_whitespaces=both)
        made[f"t5 prefix and squeeze={both}"] = path
    rwkv = [("<s>", 0.0, 3)] + [(f"\\x{i:02x}", 0.0, 1) if i < 32 or i > 126 or i == 92 else (chr(i), 0.0, 1) for i in range(256)]
    rwkv += [(w, 0.0, 1) for w in dict.fromkeys(words) if len(w) > 1] + [(" " + w, 0.0, 1) for w in dict.fromkeys(words)]
    rwkv += [("\\n\\n", 0.0, 1), ("\\t\\t", 0.0, 1), ("\u4f60\u597d", 0.0, 1), ("\\xe4\\xbd", 0.0, 1)]
    made["rwkv"] = os.path.join(work, "rwkv.gguf")
    write_gguf(made["rwkv"], "rwkv", rwkv)
    plamo = [("<|plamo:unk|>", 0.0, 2), ("<|plamo:bos|>", 0.0, 3), ("<|plamo:eos|>", 0.0, 3), ("<|plamo:pad|>", 0.0, 3)]
    plamo += [(f"<0x{i:02X}>", 0.0, 6) for i in range(256)]
    plamo += [(w, -float(5 + i % 17) - rng.random(), 1) for i, w in enumerate(dict.fromkeys(words)) if len(w) > 1]
    plamo += [(" " + w, -float(4 + i % 17) - rng.random(), 1) for i, w in enumerate(dict.fromkeys(words))]
    plamo += [(c, -12.0 - rng.random(), 1) for c in "abcdefghijklmnopqrstuvwxyz .,\u4f60\u597d\u3053"]
    made["plamo2"] = os.path.join(work, "plamo2.gguf")
    write_gguf(made["plamo2"], "plamo2", plamo)
    white = [("<s>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2)] + [(chr(c), 0.0, 1) for c in range(33, 127)]
    white += [("\u4f60", 0.0, 1), ("\u597d", 0.0, 1), ("\u4f60\u597d", 0.0, 1), ("th", 0.0, 1), ("the", 0.0, 1), ("an", 0.0, 1)]
    made["whitespace"] = os.path.join(work, "white.gguf")
    write_gguf(made["whitespace"], "whitespace", white, pre="whitespace",
               merges=["t h", "th e", "a n", "\u4f60 \u597d"])
    return made


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("driver")
    ap.add_argument("llama")
    ap.add_argument("--texts", type=int, default=60)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("names", nargs="*")
    o = ap.parse_intermixed_args()
    src = os.path.join(o.llama, "src")
    if not os.path.isdir(os.path.join(src, "ggml")):
        src = o.llama
    code = os.path.join(src, "src", "llama-vocab.cpp")
    if not os.path.exists(code):
        print("skipped: no llama.cpp")
        return 0
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    names = re.findall(r'tokenizer_pre == "([^"]+)"', open(code, encoding="utf-8").read())
    names = [n for n in dict.fromkeys(names) if not o.names or n in o.names]
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "llama_tokenize")
        lib = os.path.join(o.llama, "build", "bin")
        subprocess.run(["gcc", "-O1", f"-I{src}/include", f"-I{src}/ggml/include", "-o", program,
                        os.path.join(here, "bench", "llama_tokenize.c"), f"-L{lib}", "-lllama", "-lggml",
                        "-lggml-base", f"-Wl,-rpath,{lib}"], check=True)
        for name in names:
            rng = random.Random(f"{o.seed}{name}")
            spaced = name in ("gemma4", "granite-embed-multi-311m", "sarvam-moe")
            if name == "whitespace":
                continue
            base = "gemma-4" if spaced else "llama-bpe"
            path = os.path.join(work, "vocab.gguf")
            vocab = os.path.join(src, "models", f"ggml-vocab-{base}.gguf")
            if spaced:  # that file's model names its rule; as gpt2 the name counts
                data = open(vocab, "rb").read()
                key = b"tokenizer.ggml.model" + struct.pack("<I", 8)
                at = data.index(key) + len(key)
                n, = struct.unpack_from("<Q", data, at)
                data = (data[:at] + struct.pack("<Q", 4) + b"gpt2" + data[at + 8 + n:])
                if KEY + struct.pack("<I", 8) not in data:
                    count, = struct.unpack_from("<Q", data, 16)
                    extra = struct.pack("<Q", len(KEY)) + KEY + struct.pack("<I", 8) + struct.pack("<Q", 1) + b"x"
                    data = data[:16] + struct.pack("<Q", count + 1) + extra + data[24:]
                vocab = os.path.join(work, "spaced.gguf")
                open(vocab, "wb").write(data)
            patched(vocab, name, path)
            special = ["<bos>", "<eos>"] if spaced else ["<|begin_of_text|>", "<|eot_id|>"]
            make = (lambda: ascii_text(rng, special)) if name in ROUGH else (lambda: make_text(rng, special, ()))
            texts = [make() for _ in range(o.texts)]
            texts = [s for s in texts if not re.search(NOT_IN.get(name, "$^"), s)]
            bad += compare(name, path, o.driver, program, texts)
        for name, path in make_kinds(work).items():
            if o.names and name.split()[0] not in o.names:
                continue
            rng = random.Random(f"{o.seed}{name}")
            texts = [make_text(rng, ["<tool>", "[x]", "unus", "the water", "of you"], ()) for _ in range(o.texts * 3)]
            texts += [ascii_text(rng, ["<tool>", "</s>", " the", "you"]) for _ in range(o.texts * 3)]
            bad += compare(name, path, o.driver, program, texts)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
