#!/usr/bin/env python3
"""Small model files by the formats' own reference writers, for the reader's tests and fuzz corpora.

    pip install gguf safetensors numpy;   python make_format_data.py TESTS_DIR

TESTS_DIR/fuzz/corpus/{gguf,safetensors,hfconfig}/   one file each, also read by the unit tests
TESTS_DIR/unit/format/data/                          split and sharded sets, arrays as numpy writes them
Everything is a function of fixed seeds: a second run writes the same bytes.
"""
import io
import json
import os
import shutil
import sys
import zipfile

import gguf
import numpy as np
from safetensors.numpy import save_file

T = gguf.GGUFValueType
root = sys.argv[1]
corpus = os.path.join(root, "fuzz", "corpus")
data = os.path.join(root, "unit", "format", "data")
for d in (corpus + "/gguf", corpus + "/safetensors", corpus + "/hfconfig", data + "/sharded"):
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)


def ramp(*shape, dtype=np.float32):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape).astype(dtype)


def small_gguf(path):
    """Every metadata type, arrays of strings and of arrays, dense and quantised tensors."""
    w = gguf.GGUFWriter(path, "llama")
    for t, key, v in ((T.UINT8, "u8", 200), (T.INT8, "i8", -100), (T.UINT16, "u16", 60000), (T.INT16, "i16", -30000),
                      (T.UINT32, "u32", 4000000000), (T.INT32, "i32", -2000000000), (T.FLOAT32, "f32", 0.15625),
                      (T.BOOL, "bool", True), (T.STRING, "str", "h\u00e9llo"), (T.UINT64, "u64", 2**64 - 1),
                      (T.INT64, "i64", -2**62), (T.FLOAT64, "f64", 0.1)):
        w.add_key_value("test." + key, v, t)
    w.add_array("test.ints", [1, -2, 3])
    w.add_array("test.floats", [0.5, 1.5])
    w.add_array("test.bools", [True, False])
    w.add_array("test.strings", ["", "a", "bc", "\u00e9"])
    w.add_array("test.nested", [[1, 2, 3], [4]])
    w.add_token_list(["<unk>", "<s>", "</s>", "a", "b"])
    w.add_tensor("token_embd.weight", ramp(5, 32))
    w.add_tensor("blk.0.norm", ramp(32, dtype=np.float16))
    q = gguf.quants.quantize(ramp(2, 32) / 64, gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("blk.0.q8", q, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


small_gguf(corpus + "/gguf/small.gguf")
raw = bytearray(open(corpus + "/gguf/small.gguf", "rb").read())
raw[4:8] = (2).to_bytes(4, "little")  # version 2 has the same layout
open(corpus + "/gguf/small-v2.gguf", "wb").write(raw)

w = gguf.GGUFWriter(corpus + "/gguf/vocab.gguf", "gpt2")  # a vocabulary without tensors
w.add_token_list([chr(33 + i) for i in range(64)])
w.write_header_to_file()
w.write_kv_data_to_file()
w.close()

w = gguf.GGUFWriter(data + "/chat.gguf", "llama")
w.add_token_list(["<unk>", "<s>", "</s>", "a"])
w.add_chat_template("GGUF")
w.write_header_to_file()
w.write_kv_data_to_file()
w.close()

for f in os.listdir(data):
    if f.startswith("split-"):
        os.remove(os.path.join(data, f))
w = gguf.GGUFWriter(os.path.join(data, "split.gguf"), "llama", split_max_tensors=1)
w.add_string("general.name", "three parts")
for i in range(3):
    w.add_tensor(f"t{i}", ramp(4, 4) + 100 * i)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()

small = {"f32": ramp(2, 3), "f16": ramp(4, dtype=np.float16), "i64": np.array([-1, 2**40]), "u8": np.array([1, 2, 3], np.uint8),
         "b": np.array([True, False]), "scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 4), np.float32),
         "five": ramp(1, 2, 3, 1, 2), "six": ramp(2, 1, 2, 1, 2, 2)}
save_file(small, corpus + "/safetensors/small.safetensors", {"note": "made by numpy"})
save_file({"w": ramp(2, 2)}, corpus + "/safetensors/one.safetensors")

sh = data + "/sharded"
names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
save_file({"a": ramp(2, 2), "twice": ramp(3)}, f"{sh}/{names[0]}")
save_file({"b": ramp(4), "twice": ramp(3) + 7}, f"{sh}/{names[1]}")
json.dump({"metadata": {"total_size": 44}, "weight_map": {"a": names[0], "b": names[1], "twice": names[1]}},
          open(f"{sh}/model.safetensors.index.json", "w"), indent=1)
json.dump({"model_type": "llama", "hidden_size": 4}, open(f"{sh}/config.json", "w"))

json.dump({"model_type": "gemma3", "eos_token_id": [1, 106], "flag": True, "none": None, "eps": 1e-6, "big": 2**64 - 1,
           "huge": 10**30, "text_config": {"hidden_size": 640, "rope": {"theta": 1e6, "low": float("-inf")},
                                           "layer_types": ["sliding_attention", "full_attention"]},
           "time_step_limit": [0.0, float("inf")], "nan": float("nan"), "note": "NaN, -Infinity and \"1234567890123456789012\"",
           "quantization": {"bits": 4, "model.layers.0.mlp": {"bits": 8}, "model.layers.1.mlp": False}},
          open(corpus + "/hfconfig/multi.json", "w"))
json.dump({"model_type": "llama", "hidden_size": 64, "rope_parameters": {"rope_theta": 10000.0}},
          open(corpus + "/hfconfig/llama.json", "w"), indent=2)

for i, (path, text) in enumerate((("a.b.1", '{"a.b": [1, 2], "a": {"b": 3}}'), ("text_config.x", '{"text_config": {"x": [[NaN], -1e400]}}'))):
    with open(f"{corpus}/hfconfig/path{i}", "w") as f:  # for the fuzzer: a path, then a file
        f.write(path + "\n" + text)

np.save(data + "/ramp.npy", ramp(2, 3))
np.save(data + "/row.npy", ramp(5))
np.save(data + "/scalar.npy", np.float32(2.5))
with zipfile.ZipFile(data + "/top.npz", "w", zipfile.ZIP_STORED) as z:
    for name, a in (("ids", np.array([[7, -1], [3, 9]], np.int32)), ("logits", np.array([[1.5, 0.25], [8, -2]], np.float32)),
                    ("lse", np.array([2, 9], np.float32))):
        b = io.BytesIO()
        np.save(b, a)
        info = zipfile.ZipInfo(name + ".npy")
        info.create_system = 3
        info.external_attr = 0o100644 << 16
        z.writestr(info, b.getvalue())
for folder, _, files in os.walk(root):
    for f in files:
        if f.endswith(".safetensors"):
            os.chmod(os.path.join(folder, f), 0o644)
