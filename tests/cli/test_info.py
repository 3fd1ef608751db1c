"""info: the memory that it tells counts what loading takes."""
import json
import os
import sys

import gguf
import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import run  # noqa: E402

HIDDEN, FFN, VOCAB = 256, 512, 64


def model(path, kind):
    """A llama of one layer whose matrices are zeros of the type `kind`."""
    w = gguf.GGUFWriter(path, "llama")
    w.add_block_count(1)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(FFN)
    w.add_head_count(4)
    w.add_context_length(4096)
    w.add_layer_norm_rms_eps(1e-5)
    for name in "output_norm", "blk.0.attn_norm", "blk.0.ffn_norm":
        w.add_tensor(name + ".weight", np.zeros(HIDDEN, np.float32))
    _, size = gguf.GGML_QUANT_SIZES[kind]
    for name, rows, cols in [("token_embd", VOCAB, HIDDEN), ("output", VOCAB, HIDDEN),
                             *(("blk.0.attn_" + n, HIDDEN, HIDDEN) for n in ("q", "k", "v", "output")),
                             ("blk.0.ffn_gate", FFN, HIDDEN), ("blk.0.ffn_up", FFN, HIDDEN),
                             ("blk.0.ffn_down", HIDDEN, FFN)]:
        w.add_tensor(name + ".weight", np.zeros((rows, cols // 256 * size), np.uint8), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return str(path)


@pytest.mark.parametrize("kind", [gguf.GGMLQuantizationType.IQ2_XXS, gguf.GGMLQuantizationType.Q4_K],
                         ids=lambda k: k.name)
def test_memory_by_context_counts_what_loading_takes(kind, tmp_path):
    path = model(tmp_path / "m.gguf", kind)
    told = json.loads(run("info", path, "--json").out)
    loaded = told["loaded_weights_bytes"]
    assert loaded > told["weights_bytes"]
    for at in told["memory_by_context"]:
        cache = told["cache_per_token_bytes"] * at["context_tokens"]
        assert at["needed_bytes"] == loaded + cache
    assert "once loaded %.1f MB" % (loaded / 1e6) in run("info", path).out.decode()
