#!/usr/bin/env python3
"""Makes src/text/mark_table.inc: the marks that the StripAccents and BertNormalizer of `tokenizers` strip.  Their tables
are older than Unicode's, so they are asked about every code point.

usage: make_marks.py > src/text/mark_table.inc     (pip install tokenizers)
"""
from tokenizers import normalizers

accents = normalizers.StripAccents()
bert = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
ranges = []  # first, last, stripped by both
for cp in range(0x110000):
    if 0xD800 <= cp < 0xE000 or accents.normalize_str(chr(cp)):
        continue
    both = int(not bert.normalize_str(chr(cp)))
    if ranges and ranges[-1][1:] == [cp - 1, both]:
        ranges[-1][1] = cp
    else:
        ranges.append([cp, cp, both])
print("/* Made by tools/golden/make_marks.py: first and last mark, stripped by BertNormalizer too. */")
for i in range(0, len(ranges), 4):
    print(" ".join("{0x%X, 0x%X, %d}," % tuple(r) for r in ranges[i : i + 4]))
