#!/usr/bin/env python3
"""Makes tests/fuzz/corpus/tok from tests/text/data: one small file of each kind, its vocabulary cut."""
import glob
import json
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
out = os.path.join(ROOT, "tests", "fuzz", "corpus", "tok")
for path in sorted(glob.glob(os.path.join(ROOT, "tests", "text", "data", "*.json"))):
    doc = json.load(open(path, encoding="utf-8"))
    t = doc["tokenizer"]
    m = t["model"]
    keep = {a["content"] for a in t["added_tokens"]}
    if isinstance(m["vocab"], dict):
        m["vocab"] = {k: v for k, v in m["vocab"].items() if v < 60 or k in keep}
        if "merges" in m:
            m["merges"] = [x for x in m["merges"] if all(y in m["vocab"] for y in (x[0], x[1], x[0] + x[1]))]
    else:
        m["vocab"] = m["vocab"][:60]
    text = " ".join(c[0] for c in doc["cases"][:2])
    with open(os.path.join(out, os.path.basename(path)[:-5]), "wb") as f:
        f.write(json.dumps(t, ensure_ascii=False, separators=(",", ":")).encode() + b"\0" + text.encode())
