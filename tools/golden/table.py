#!/usr/bin/env python3
"""Write docs/families.md from a run of the golden test: which families are proven in which files, and how close they come.

    tools/golden/table.py [--check] [build/tests/golden/test_families]

The test prints a line a checkpoint and fails where one is too far off, so what stands here is green.  --check writes nothing and
fails when the committed table names other checkpoints than the run did (the figures may differ in their last digits).
"""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOC = ROOT / "docs" / "families.md"
KINDS = ("hf", "gguf", "mlx", "quant")
LINE = re.compile(r"tests/golden/(\w+)/(\S+)\s+worst error \S+ = (\S+) deviations \(allowed (\S+)\)")

HEAD = """# Families and files, as tested

Written by `tools/golden/table.py` from a run of `tests/golden/test_families`. Each cell is the largest error of a logit over all positions,
in standard deviations of the logits, in `--compute f32` against the reference's own (allowed: 2e-3, or 100 times the reference's rounding
noise). Every checkpoint also passed, layer by layer: hidden states; greedy text; and **one numerics**: the same bits whatever the chunks,
company and threads, in f32 and in the fast mode.

- **HF**: safetensors in BF16, against transformers. **GGUF**: written by llama.cpp's converter from the same weights, against transformers.
- **MLX**: affine, mxfp and nvfp4 layouts, against mlx-lm. **Quantised HF**: fp8, compressed-tensors, GPTQ, AWQ, MXFP4, against their libraries.

"""


def main():
    check = "--check" in sys.argv[1:]
    rest = [x for x in sys.argv[1:] if x != "--check"]
    run = subprocess.run([rest[0] if rest else str(ROOT / "build/tests/golden/test_families")], cwd=ROOT, check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    cells = {}
    for kind, name, error, _ in LINE.findall(run.stdout):
        base, _, layout = name.partition(".")
        cells.setdefault(base, {}).setdefault(kind, []).append((layout, error))
    out = [HEAD, "| checkpoint | HF | GGUF | MLX | quantised HF |\n|---|---|---|---|---|\n"]
    for base in sorted(cells):
        row = [", ".join(f"{l} {e}" if l else e for l, e in sorted(cells[base].get(k, []))) for k in KINDS]
        out.append(f"| {base} | " + " | ".join(row) + " |\n")
    n = sum(len(v) for row in cells.values() for v in row.values())
    out.append(f"\n{n} checkpoints.\n")
    if not check:
        DOC.write_text("".join(out))
        print(f"{n} checkpoints -> {DOC.relative_to(ROOT)}")
        return
    figure = re.compile(r"\d\.\d+e[-+]\d+")
    if figure.sub("x", DOC.read_text()) != figure.sub("x", "".join(out)):
        sys.exit("docs/families.md names other checkpoints than were run: tools/golden/table.py writes it anew")
    print(f"{n} checkpoints as in docs/families.md")


main()
