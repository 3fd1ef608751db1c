#!/usr/bin/env python3
"""The layer test: who may include whom, and the few banned calls.  The rules are in layers.txt.

usage: layers.py [ROOT]      exit status 1 and one line for each breach
       layers.py --self-test checks the checker against small wrong trees
"""
import os
import re
import sys
import tempfile

LIBM = set("""acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2
expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10
log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder rint round scalbn sin sinh
sqrt tan tanh tgamma trunc exp10 sincos""".split())
LIBM |= {name + suffix for name in LIBM for suffix in "fl"}


class Rules:
    def __init__(self, text):
        self.layer, self.only, self.public, self.bans, self.words, self.math = {}, {}, {}, [], [], {}
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            kind, rest = line.split(None, 1)
            if kind in ("ban", "ban-word"):
                names, where = rest.split("|")
                out = self.bans if kind == "ban" else self.words
                pattern = "|".join(n.replace("*", r"\w*") for n in names.split())
                tail = r"\s*\(" if kind == "ban" else r"\b"
                out.append((re.compile(r"(?<![\w.>])(" + pattern + ")" + tail), where.split()))
                continue
            left, right = rest.split(":")
            names = right.split()
            if kind == "layer":
                for folder in names:
                    self.layer[folder] = int(left)
            elif kind == "only":
                self.only[left.strip()] = set(names)
            elif kind == "public":
                self.public[left.strip()] = set(names)
            elif kind == "math":
                for folder in left.split():
                    self.math[folder] = set(names)
            else:
                sys.exit(f"layers.txt:{number}: unknown rule {kind}")


def strip(text):
    """Comments and literals become blanks; line numbers stay."""
    def blank(m):
        s = m.group(0)
        if s.startswith("/"):
            return re.sub(r"[^\n]", " ", s)
        return s[0] + re.sub(r"[^\n]", " ", s[1:-1]) + s[-1]
    token = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    return re.sub(token, blank, text, flags=re.S)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_includes(rules, rel, text, out):
    folder = rel.split("/")[0]
    for m in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.M):
        target, where = m.group(1), f"src/{rel}:{line_of(text, m.start())}"
        top = target.split("/")[0]
        if "/" not in target:
            out.append(f'{where}: "{target}": name the folder too')
            continue
        if top == "cairn":
            allowed = rules.public.get(folder)
            stem = os.path.splitext(target.split("/", 1)[1])[0]
            if allowed is not None and stem not in allowed:
                out.append(f"{where}: {folder} may not see cairn/{stem}.h")
            continue
        if top not in rules.layer:
            out.append(f"{where}: \"{target}\": no such layer")
            continue
        if target.endswith("_priv.h") and top != folder:
            out.append(f"{where}: {target} is private to {top}")
        if top == folder:
            continue
        if folder in rules.only:
            if top not in rules.only[folder]:
                out.append(f"{where}: {folder} sees the public headers and "
                           f"{', '.join(sorted(rules.only[folder]))} only, not {top}")
        elif rules.layer[top] >= rules.layer[folder]:
            out.append(f"{where}: {folder} (layer {rules.layer[folder]}) may not include {top} "
                       f"(layer {rules.layer[top]})")


def allowed_here(rel, places):
    return any(rel == p or (p.endswith("/") and rel.startswith(p)) for p in places)


def check_calls(rules, rel, text, out):
    plain = strip(text)
    for pattern, places in rules.bans + rules.words:
        if allowed_here(rel, places):
            continue
        for m in pattern.finditer(plain):
            out.append(f"src/{rel}:{line_of(plain, m.start())}: {m.group(1)} is banned here")
    folder = rel.split("/")[0]
    if folder not in rules.math:
        return
    for m in re.finditer(r"(?<![\w.>])(\w+)\s*\(", plain):
        name = m.group(1)
        if name in LIBM and name not in rules.math[folder]:
            out.append(f"src/{rel}:{line_of(plain, m.start())}: {name} of libm reaches a tensor")


def check(root, rules):
    out, n_files, seen = [], 0, {}
    src = os.path.join(root, "src")
    for folder, _, names in sorted(os.walk(src)):
        for name in sorted(names):
            if not name.endswith((".c", ".h", ".cc", ".inc")):
                continue
            path = os.path.join(folder, name)
            rel = os.path.relpath(path, src)
            n_files += 1
            if rel.split("/")[0] not in rules.layer:
                out.append(f"src/{rel}: its folder is in no layer")
                continue
            if name in seen:
                out.append(f"src/{rel}: src/{seen[name]} has the same name")
            seen[name] = rel
            with open(path, encoding="utf-8") as f:
                text = f.read()
            check_includes(rules, rel, text, out)
            check_calls(rules, rel, text, out)
    return out, n_files


def self_test(rules):
    """Each of these lines is a breach, or fine, in the file named."""
    cases = [
        ("tensor/a.c", '#include "base/alloc.h"\n', 0),
        ("tensor/a.c", '#include "text/tok.h"\n', 1),
        ("tensor/a.c", '#include "model/model.h"\n', 1),
        ("serve/a.c", '#include "engine/engine.h"\n', 1),
        ("serve/a.c", '#include "cairn/engine.h"\n#include "base/json.h"\n', 0),
        ("engine/a.c", '#include "cache/kv_priv.h"\n', 1),
        ("engine/a.c", '#include "engine/engine_priv.h"\n', 0),
        ("text/a.c", "void f(void) { char *p = malloc(3); free(p); }\n", 2),
        ("base/alloc.c", "void f(void) { free(malloc(3)); }\n", 0),
        ("text/a.c", "/* free(p) */ const char *z = \"malloc(3)\"; void g(void) { x.free(p); }\n", 0),
        ("tensor/a.c", "float f(float x) { return expf(x) + sqrtf(x); }\n", 1),
        ("text/a.c", "double f(double x) { return exp(x); }\n", 0),
        ("engine/a.c", "int f(void) { return printf(\"\"); }\n", 1),
        ("engine/a.c", "void f(void) { pthread_mutex_lock(0); }\n_Atomic int x;\n", 2),
        ("cli/a.c", "void f(void) { exit(1); }\n", 0),
        ("nowhere/a.c", "\n", 1),
    ]
    bad = 0
    for rel, text, want in cases:
        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, "src", rel)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            got, _ = check(root, rules)
            if len(got) != want:
                bad += 1
                print(f"self-test: {rel}: {text!r}: expected {want} breaches, found {got}")
    print(f"layers: self-test of {len(cases)} cases, {bad} wrong")
    return 1 if bad else 0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "layers.txt"), encoding="utf-8") as f:
        rules = Rules(f.read())
    if sys.argv[1:] == ["--self-test"]:
        return self_test(rules)
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(here)
    breaches, n_files = check(root, rules)
    for b in breaches:
        print(b)
    print(f"layers: {n_files} files, {len(breaches)} breaches")
    return 1 if breaches or n_files == 0 else 0


sys.exit(main())
