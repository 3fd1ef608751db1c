#!/usr/bin/env python3
"""Compares our tokenizer with PyPI's `tokenizers` over random text, both directions.

usage: compare_tokenizers.py DRIVER FOLDER [--seconds S] [--texts N] [--seed N] [NAME...]

DRIVER is the built tests/text/tok_driver.  FOLDER holds a folder for each vocabulary (tokenizer.json
or tokenizer.json.zst, and tokenizer_config.json); names choose among them.  Skips with a message when
it, or the package, is absent.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata

SCRIPTS = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
    (0x531, 0x58F), (0x5D0, 0x5EA), (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FF),
    (0xB80, 0xBFF), (0xE00, 0xE7F), (0xF00, 0xFFF), (0x10A0, 0x10FF), (0x1100, 0x11FF),
    (0x1200, 0x137F), (0x13A0, 0x13F4), (0x1780, 0x17FF), (0x1E00, 0x1EFF), (0x1F00, 0x1FFF),
    (0x2000, 0x206F), (0x2070, 0x209F), (0x20A0, 0x20CF), (0x2100, 0x218F), (0x2190, 0x23FF),
    (0x2460, 0x24FF), (0x2580, 0x27BF), (0x3000, 0x303F), (0x3040, 0x30FF), (0x3130, 0x318F),
    (0x4E00, 0x9FFF), (0xA000, 0xA0FF), (0xAC00, 0xD7A3), (0xE000, 0xE010), (0xF900, 0xFAFF),
    (0xFB00, 0xFB4F), (0xFE00, 0xFE0F), (0xFE50, 0xFF5E), (0xFFF0, 0xFFFF), (0x10330, 0x1034A),
    (0x10400, 0x1044F), (0x1D400, 0x1D7FF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F64F),
    (0x1F900, 0x1F9FF), (0x20000, 0x20050), (0x2F800, 0x2F830), (0xE0001, 0xE007F),
]
SPACES = [" ", "  ", "   ", " " * 7, " " * 33, "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u3000",
          "\u2028", "\u200b", "\u200d", "\x0b", "\x0c", "\x85", "\ufeff", " \n ", "\n  \n"]
CHUNKS = ["'s", "'S", "'re", "'LL", "'\u017f", "don't", "I'VE", "hello", " world", "The", "HTTPServer",
          "camelCase", "x=1;", "/*", "//", "...", "!!!", "?!", "--", "1", "12", "123", "1234567",
          "3.14", "\u0663\u0664", "\u00b2", "\u2167", "\u2460", "\u1e9e", "\u0130", "\u00e9", "e\u0301",
          "a\u0323\u0307", "\u212b", "\u1100\u1161\u11a8", "\U0001f469\u200d\U0001f469\u200d\U0001f467",
          "\U0001f3f4\U000e0067\U000e007f", "\u2764\ufe0f", "\x00", "\x01", "\x7f", "\x1b[0m", "\u2581",
          "\u2581\u2581a", "<0x0A>", "\ufffd", "\u4f60\u597d", "\u3053\u3093", "\ud55c\uad6d", "def f(x):\n",
          "    return", "a" * 60, "ab" * 40, "0" * 20, "\u00e4" * 20, "http://a.b/c?d=e&f#g"]


def assigned(cp):
    return unicodedata.category(chr(cp)) not in ("Cn", "Cs")


def make_text(rng, specials, young):
    out = []
    for _ in range(rng.randint(1, 14)):
        k = rng.random()
        if k < 0.30:
            lo, hi = rng.choice(SCRIPTS)
            n = rng.randint(1, 8)
            cps = [rng.randint(lo, hi) for _ in range(n)]
            out.append("".join(chr(c) for c in cps if assigned(c) and c not in young))
        elif k < 0.5:
            out.append(rng.choice(SPACES))
        elif k < 0.75:
            out.append(rng.choice(CHUNKS))
        elif k < 0.88:
            out.append("".join(chr(rng.randint(32, 126)) for _ in range(rng.randint(1, 12))))
        elif specials:
            s = rng.choice(specials)
            out.append(s[: rng.randint(1, len(s))] if rng.random() < 0.15 else s)
    return "".join(out)


class Driver:
    def __init__(self, path, *args):
        self.p = subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **req):
        self.p.stdin.write((json.dumps(req) + "\n").encode())
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            raise SystemExit(f"driver died with {self.p.wait()} on {req!r}")
        return json.loads(line)

    def ask_all(self, reqs):
        """The answers in order; written beside the reading, so that no pipe fills up."""
        def write():
            try:
                self.p.stdin.write("".join(json.dumps(r) + "\n" for r in reqs).encode())
                self.p.stdin.flush()
            except BrokenPipeError:
                pass

        writer = threading.Thread(target=write)
        writer.start()
        lines = [self.p.stdout.readline() for _ in reqs]
        writer.join()
        if not lines[-1]:
            raise SystemExit(f"driver died with {self.p.wait()} on {reqs[lines.index(b'')]!r}")
        return [json.loads(x) for x in lines]

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def unpack(folder, work):
    plain = os.path.join(folder, "tokenizer.json")
    if os.path.exists(plain):
        return plain
    out = os.path.join(work, os.path.basename(folder) + ".json")
    subprocess.run(["zstd", "-dqf", plain + ".zst", "-o", out], check=True)
    return out


BLOCK = 256  # texts that are under way at once


def requests_of(ref, rng, s, vocab):
    """What is asked of one text, each with the reference's answer."""
    out = []
    for parse in (True, False):
        add = rng.random() < 0.5
        want = ref[parse].encode(s, add_special_tokens=add).ids
        out.append(({"s": s, "flags": (1 if add else 0) | (2 if parse else 0)}, want))
    ids = want if rng.random() < 0.5 else [rng.randrange(vocab) for _ in range(rng.randint(1, 30))]
    ids = [i for i in ids if ref[True].id_to_token(i) is not None]
    keep = rng.random() < 0.5
    want = ref[True].decode(ids, skip_special_tokens=not keep)
    out.append(({"ids": ids, "keep": keep}, {"text": want, "stream": want}))
    return out


def compare(name, path, config, driver, seconds, seed, texts=0, limit=20, make_reference=None):
    """How many differ, and of how many.  texts: that many, else for that many seconds."""
    import tokenizers

    make_reference = make_reference or (lambda: tokenizers.Tokenizer.from_file(path))
    ref = {True: make_reference(), False: make_reference()}
    ref[False].encode_special_tokens = True
    specials = [t.content for t in ref[True].get_added_tokens_decoder().values()]
    d = Driver(driver, *([path] + ([config] if config and os.path.exists(config) else [])))
    rng = random.Random(seed)
    bad = n = done = 0
    end = time.time() + seconds
    vocab = ref[True].get_vocab_size()
    while (done < texts if texts else time.time() < end) and bad < limit:
        block = []
        for _ in range(min(BLOCK, texts - done) if texts else BLOCK):
            block += requests_of(ref, rng, make_text(rng, specials, ()), vocab)
            done += 1
        for (req, want), got in zip(block, d.ask_all([r for r, _ in block])):
            n += 1
            if want != got:
                bad += 1
                print(f"{name}: {req!r}\n  want {want!r}\n  got  {got!r}")
    d.close()
    print(f"{name}: {n} comparisons, {bad} differ")
    return bad, n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("driver")
    ap.add_argument("folder")
    ap.add_argument("--seconds", type=float, default=20)
    ap.add_argument("--texts", type=int, default=0, help="that many a vocabulary, instead of a time")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("names", nargs="*")
    o = ap.parse_intermixed_args()
    base = o.folder
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        print("skipped: the package `tokenizers` is not there")
        return 0
    if not os.path.isdir(base):
        print(f"skipped: no vocabularies under {base}")
        return 0
    names = o.names or sorted(n for n in os.listdir(base) if os.path.isdir(os.path.join(base, n)))
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            folder = os.path.join(base, name)
            config = os.path.join(folder, "tokenizer_config.json")
            bad += compare(name, unpack(folder, work), config, o.driver, o.seconds, o.seed, o.texts)[0]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
