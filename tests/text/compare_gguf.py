#!/usr/bin/env python3
"""Compares our GGUF tokenizer with llama.cpp's recorded results.

usage: compare_gguf.py DRIVER [--vocabs FOLDER] [--goldens FOLDER --models FOLDER --prompts FOLDER]

--vocabs: llama.cpp's models/ folder (ggml-vocab-*.gguf with .inp and .out).
--goldens: recorded distributions NAME.safetensors with `k.ids` tensors, k the number of a prompt
(tide.txt, mixed.txt in --prompts); --models holds the GGUFs whose names begin likewise.  Skips with a message what is absent.
"""
import argparse
import glob
import json
import os
import subprocess
import sys


def ask(driver, path, requests):
    lines = "".join(json.dumps(r) + "\n" for r in requests).encode()
    p = subprocess.run([driver, path], input=lines, capture_output=True, check=False)
    if p.returncode:
        return p.stderr.decode().strip()
    return [json.loads(x) for x in p.stdout.decode().splitlines()]


def vocabs(driver, folder):
    bad = 0
    for path in sorted(glob.glob(os.path.join(folder, "ggml-vocab-*.gguf"))):
        name = os.path.basename(path)
        if not os.path.exists(path + ".inp"):
            continue
        # The recorder split at the separator; its last text ends with a line end of the file.
        texts = open(path + ".inp", encoding="utf-8", newline="").read()
        texts = texts.split("\n__ggml_vocab_test__\n")
        lines = open(path + ".out", encoding="utf-8").read().split("\n")
        want = [[int(x) for x in line.split()] for line in lines[: len(texts)]]
        got = ask(driver, path, [{"s": s, "flags": 0} for s in texts])
        if isinstance(got, str):
            print(f"{name}: {got}")
            continue
        diff = [i for i in range(len(texts)) if want[i] != got[i]]
        for i in diff[:3]:
            print(f"{name}: {texts[i]!r}\n  want {want[i]}\n  got  {got[i]}")
        texts_back = ask(driver, path, [{"ids": g, "keep": True} for g in got])
        back = [i for i, s in enumerate(texts) if texts_back[i]["text"] != s
                or texts_back[i]["stream"] != s]
        for i in back[:2]:
            print(f"{name}: decode {texts[i]!r} gave {texts_back[i]}")
        print(f"{name}: {len(texts)} texts, {len(diff)} differ, {len(back)} do not come back")
        bad += len(diff)
    return bad


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("driver")
    ap.add_argument("--vocabs", default="")
    ap.add_argument("--goldens", default="")
    ap.add_argument("--models", default="")
    ap.add_argument("--prompts", default="")
    o = ap.parse_args()
    bad = vocabs(o.driver, o.vocabs) if os.path.isdir(o.vocabs) else 0
    if not os.path.isdir(o.vocabs):
        print("skipped: no vocabularies with recorded results")
    if not os.path.isdir(o.goldens):
        print("skipped: no recorded distributions")
        return 1 if bad else 0
    from safetensors import safe_open

    prompts = [open(os.path.join(o.prompts, n), encoding="utf-8", newline="").read()
               for n in ("tide.txt", "mixed.txt")]
    for path in sorted(glob.glob(os.path.join(o.goldens, "*.safetensors"))):
        stem = os.path.basename(path)[: -len(".safetensors")]
        found = [m for m in glob.glob(os.path.join(o.models, "*.gguf"))
                 if stem.lower().startswith(os.path.basename(m).lower()[:-len(".gguf")])]
        if not found:
            print(f"skipped: no model for {stem}")
            continue
        got = ask(o.driver, found[0], [{"s": s, "flags": 3} for s in prompts])
        if isinstance(got, str):
            print(f"{stem}: {got}")
            bad += 1
            continue
        with safe_open(path, "np") as f:
            for k, g in enumerate(got):
                same = f.get_tensor(f"{k}.ids").tolist() == g
                bad += not same
                print(f"{stem} prompt {k}: {len(g)} ids, {'equal' if same else 'DIFFER'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
