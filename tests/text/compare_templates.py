#!/usr/bin/env python3
"""Renders whole chat templates with the reference and with `test_jinja --batch`, and compares.

  compare_templates.py TEST_JINJA PATH… [--generated N] [--seed N]
                                            PATH: a .jinja file, a tokenizer_config.json, or a folder of them

The reference is the environment that transformers builds (its own where it is installed, else reference.py's),
rendered with the very same variables.  Where it raises, cairn must, with the template's own message.  Says so and
passes where jinja2 or the paths are missing."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import conversations  # noqa: E402


def token(v):
    return v["content"] if isinstance(v, dict) else v


def load(path):
    """(name, template, variables) of every template in a file."""
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as f:
            cfg = json.load(f)
        names = ("bos_token", "eos_token", "unk_token", "pad_token")
        extra = {k: token(cfg[k]) for k in names if cfg.get(k)}
        t = cfg.get("chat_template")
        many = t if isinstance(t, list) else [{"name": "default", "template": t}] if t else []
        return [(f"{path}:{x['name']}", x["template"], extra) for x in many]
    with open(path, encoding="utf-8") as f:
        return [(path, f.read(), {"bos_token": "<s>", "eos_token": "</s>"})]


def paths(args):
    for a in args:
        if os.path.isdir(a):
            yield from sorted(glob.glob(os.path.join(a, "**", "*.jinja"), recursive=True) +
                              glob.glob(os.path.join(a, "**", "tokenizer_config.json"), recursive=True))
        elif os.path.exists(a):
            yield a


def wanted(compile_template, text, context):
    """(text, None), or (None, the message that raise_exception was given, or "" for any other error)."""
    import jinja2
    try:
        return compile_template(text).render(**json.loads(context)), None
    except Exception as e:  # noqa: BLE001: whatever a template can raise
        return None, str(e) if type(e) is jinja2.exceptions.TemplateError else ""


def fits(want, line):
    text, message = want
    if text is not None:
        # The date of today may change between the two.
        return re.sub(r"\d\d:\d\d(:\d\d)?", "T", line.get("result", "")) == re.sub(r"\d\d:\d\d(:\d\d)?", "T", text) and "result" in line
    return "error" in line and (not message or line["error"].endswith(": " + message) or len(line["error"]) >= 399)


def run(driver, cases):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump(cases, f, ensure_ascii=False)
        f.flush()
        p = subprocess.run([driver, "--batch", f.name], stdout=subprocess.PIPE, check=True)
    return [json.loads(x) for x in p.stdout.decode().split("\n") if x]


def compare(driver, compile_template, name, text, extra, contexts):
    """(renders, failures in both, different) of one template."""
    cases, want = [], []
    for ctx in contexts:
        ctx = dict(extra, documents=None, **ctx)
        cases.append({"template": text, "context": ctx})
        want.append(wanted(compile_template, text, json.dumps(ctx)))
    bad = 0
    lines = run(driver, cases)
    assert len(lines) == len(cases)
    for w, c, line in zip(want, cases, lines):
        if fits(w, line):
            continue
        bad += 1
        if bad <= 2:
            print("%s\n  context %s\n  want %r\n  got  %r" % (name, json.dumps(c["context"], ensure_ascii=False)[:600], w, line))
    return len(cases), sum(w[0] is None for w in want), bad


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("driver")
    ap.add_argument("paths", nargs="*")
    ap.add_argument("--generated", type=int, default=12)
    ap.add_argument("--seed", type=int, default=1)
    o = ap.parse_intermixed_args()
    try:
        import reference
    except ImportError as e:
        print("skipped:", e)
        return 0
    files = list(paths(o.paths))
    if not files:
        print("skipped: no templates at", " ".join(o.paths))
        return 0
    compile_template = reference.transformers_compile() or reference.compile_template
    contexts = list(conversations.contexts(o.seed, o.generated))
    total = failed = bad = n = 0
    for path in files:
        for name, text, extra in load(path):
            a, b, c = compare(o.driver, compile_template, name, text, extra, contexts)
            total, failed, bad, n = total + a, failed + b, bad + c, n + 1
    print(f"{n} templates x {len(contexts) // 5} conversations: {total} renders ({failed} raise in both), {bad} different")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
