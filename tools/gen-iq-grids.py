#!/usr/bin/env python3
"""Writes src/tensor/iq_grid_table.c: the codebooks of GGUF's IQ types, packed.

    pip install gguf numpy;   python tools/gen-iq-grids.py > src/tensor/iq_grid_table.c

A point of 8 elements over 3 levels takes 2 bits an element, one of 4 over 8 levels 3 bits, lowest
first.  The points come from gguf-py's dequantiser, which is the reference for what a code means.
"""
import sys

try:
    from gguf import quants
except ImportError as e:
    sys.exit(f"gen-iq-grids.py: {e.name} is missing; expected a python with gguf and numpy, such as tools/py-venv prints")

TABLES = [("iq1s_grid", quants.IQ1_S, 2), ("iq2xxs_grid", quants.IQ2_XXS, 2), ("iq2xs_grid", quants.IQ2_XS, 2),
          ("iq2s_grid", quants.IQ2_S, 2), ("iq3xxs_grid", quants.IQ3_XXS, 3), ("iq3s_grid", quants.IQ3_S, 3)]

print("/* Codebooks of the IQ types, packed; dequant.h says how.  Made by tools/gen-iq-grids.py. */")
print('#include "tensor/dequant.h"\n\n/* clang-format off */')
for name, kind, bits in TABLES:
    kind.init_grid()
    level = {float(v): i for i, v in enumerate(kind.grid_map)}
    points = kind.grid.reshape(kind.grid_shape)
    words = [sum(level[float(v)] << (bits * j) for j, v in enumerate(p)) for p in points]
    print(f"const uint16_t {name}[{len(words)}] = {{")
    for i in range(0, len(words), 14):
        print("    " + ", ".join(f"{w}" for w in words[i:i + 14]) + ",")
    print("};")
