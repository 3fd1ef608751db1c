#!/usr/bin/env python3
"""Write docs/families.md from a run of the golden tests: which families are proven in which files, and how close they come.

    tools/golden/table.py [--check] [build/tests/golden]

The tests print a line a checkpoint and fails where one is too far off, so what stands here is green.  --check writes nothing and
fails when the committed table names other checkpoints than the run did (the figures may differ in their last digits).
"""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOC = ROOT / "docs" / "families.md"
KINDS = ("hf", "gguf", "mlx", "quant")
EMBED = re.compile(r"tests/golden/embed/(\S+)\s+worst error (\S+) = (\S+) of what is allowed")
LINE = re.compile(r"tests/golden/(\w+)/(\S+)\s+worst error \S+ = (\S+) deviations \(allowed (\S+)\)")

HEAD = """# Families and files, as tested

Written by `tools/golden/table.py` from a run of `tests/golden/test_families`. Each cell is the largest error of a logit over all positions,
in standard deviations of the logits, in `--compute f32` against the reference's own (allowed: 2e-3, or 100 times the reference's rounding
noise). Every checkpoint also passed, layer by layer: hidden states; greedy text; and **one numerics**: the same bits whatever the chunks,
company and threads, in f32 and in the fast mode.

- **HF**: safetensors in BF16, against transformers. **GGUF**: written by llama.cpp's converter from the same weights, against transformers.
- **MLX**: affine, mxfp and nvfp4 layouts as mlx-lm writes them, against mlx-lm, or where its function is another than transformers', against
  transformers on mlx's tensors (tests/golden/README.md says where). **Quantised HF**: fp8, compressed-tensors, GPTQ, AWQ, MXFP4, against their
  libraries.

A family's own name is its first row; NAME_more is another shape of it. Cells that no reference can fill:

- ministral: neither llama.cpp's converter nor mlx-lm knows it (ministral3 both do).
- mistral3_wrapped: a GGUF of its text model is one of Mistral; its MLX layout is the row mistral3.
- cohere is Command R, command_r its GGUF. llama_minicpm5 is a Llama; so are its files.
- RoBERTa and XLM-R are one architecture in GGUF. mlx-lm has no encoders; EmbeddingGemma and Qwen3-Embedding are in MLX what Gemma 3 and Qwen 3 are.
- Shapes of a family that differ in numbers alone stand in HF files only: a GGUF or MLX file of them has the names of the family's.

"""

EMBED_HEAD = """
## Embeddings

From a run of `tests/golden/test_embeddings`: the largest error of an element of a vector (of length 1, where the model normalises), and its share of what is
allowed, against transformers and sentence-transformers. Each model also passed hidden states layer by layer, and one numerics.

"""


def run(program):
    return subprocess.run([str(program)], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def table(found, kinds):
    """Rows by name, columns by kind; found: (name, kind, what the cell says)."""
    cells = {}
    for name, kind, says in found:
        cells.setdefault(name, {}).setdefault(kind, []).append(says)
    for name in sorted(cells):
        yield f"| {name} | " + " | ".join(", ".join(sorted(cells[name].get(k, []))) for k in kinds) + " |\n"


def main():
    check = "--check" in sys.argv[1:]
    rest = [x for x in sys.argv[1:] if x != "--check"]
    folder = pathlib.Path(rest[0]) if rest else ROOT / "build/tests/golden"
    models, vectors = LINE.findall(run(folder / "test_families")), EMBED.findall(run(folder / "test_embeddings"))
    out = [HEAD, "| checkpoint | HF | GGUF | MLX | quantised HF |\n|---|---|---|---|---|\n"]
    named = [(kind, *name.partition("."), error) for kind, name, error, _ in models]
    out += table([(base, kind, f"{layout} {error}" if layout else error) for kind, base, _, layout, error in named], KINDS)
    out += [f"\n{len(models)} checkpoints.\n", EMBED_HEAD, "| model | HF | GGUF |\n|---|---|---|\n"]
    out += table([(name.removesuffix(".gguf"), name.endswith(".gguf"), f"{error} ({share})") for name, error, share in vectors], (False, True))
    n = len(models) + len(vectors)
    if not check:
        DOC.write_text("".join(out))
        print(f"{n} checkpoints -> {DOC.relative_to(ROOT)}")
        return
    figure = re.compile(r"\d\.\d+e[-+]\d+|\(0\.\d+\)")
    if figure.sub("x", DOC.read_text()) != figure.sub("x", "".join(out)):
        sys.exit("docs/families.md names other checkpoints than were run: tools/golden/table.py writes it anew")
    print(f"{n} checkpoints as in docs/families.md")


main()
