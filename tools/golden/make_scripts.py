#!/usr/bin/env python3
"""Makes src/text/script_table.inc: which characters the UnicodeScripts pre-tokenizer of `tokenizers` holds
together, asked of it character by character (pip install tokenizers).

Lines are {first code point, class}; a class goes on to the next line.  Class 0 goes with anything.
"""
import os

from tokenizers import pre_tokenizers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
pre = pre_tokenizers.UnicodeScripts()


def parts(s):
    return len(pre.pre_tokenize_str(s))


reps, rows, last = [], [], None
for cp in range(0x110000):
    if 0xD800 <= cp < 0xE000:
        continue
    c = chr(cp)
    if parts("a" + c) == 1 and parts("\u044f" + c) == 1:
        k = 0
    elif last and parts(reps[last - 1] + c) == 1:
        k = last
    else:
        k = next((i + 1 for i, r in enumerate(reps) if parts(r + c) == 1), 0)
        if not k:
            reps.append(c)
            k = len(reps)
    if not rows or rows[-1][1] != k:
        rows.append((cp, k))
    if k:
        last = k
with open(os.path.join(ROOT, "src", "text", "script_table.inc"), "w", encoding="utf-8") as f:
    f.write("/* Made by tools/golden/make_scripts.py: first code point, class of script. */\n")
    for i in range(0, len(rows), 8):
        f.write(" ".join(f"{{0x{a:X}, {k}}}," for a, k in rows[i:i + 8]) + "\n")
print(len(rows), "rows,", len(reps), "scripts")
