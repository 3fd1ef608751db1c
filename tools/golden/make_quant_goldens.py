#!/usr/bin/env python3
"""Tiny random checkpoints in the quantised formats of HF repositories, and what transformers computes from them in f32.

    pip install torch transformers safetensors numpy compressed-tensors mlx mlx-lm
    python make_quant_goldens.py --out DIR [--seed N] [--only NAME,...]

DIR/NAME/ = config.json (with quantization_config), weights.json (see weights.py), golden.safetensors, as make_goldens.py has them.
The law is the dequantised weight, in f32, in the unquantised model: formats that round activations too (fp8) do so for speed.
Who dequantises: fp8 transformers' finegrained_fp8; mxfp4 transformers' convert_moe_packed_tensors; compressed-tensors its own
unpack_from_int32 and dequantize; awq mlx-lm's unpacking; gptq as its published kernel states it in torch (wf shifts, zeros + 1).
"""
import argparse, json, math, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import weights
from make_goldens import FAMILIES, T, run
import numpy as np, torch, transformers
from safetensors.torch import load_file, save_file

LLAMA = dict(vocab_size=384, hidden_size=192, intermediate_size=256, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
             max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
F32 = torch.float32

# Latent attention, whose kv_b holds keys and values in one.
DEEPSEEK = dict(vocab_size=384, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0, q_lora_rank=64, kv_lora_rank=64, qk_rope_head_dim=8,
                qk_nope_head_dim=24, v_head_dim=16, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=64,
                first_k_dense_replace=1)
MODELS = {"deepseek_fp8": ("fp8_block", "deepseek_v3", DEEPSEEK), "deepseek_int4": ("ct_int4_g64", "deepseek_v3", DEEPSEEK)}  # others: Llamas

# --- what a linear of [out, inn] becomes: {suffix: (dtype, shape, draw)} ---
def std(inn): return 1.2 / math.sqrt(inn)
def near(x): return ["normal", float(f"{x:.5g}"), float(f"{0.2 * x:.3g}")]
def fp8(out, inn, scale, suffix, kind="F32"):
    return {"weight": ("F8_E4M3", [out, inn], ["fp8", 0x28, 0x44]), suffix: (kind, scale, near(std(inn) / 1.2))}
def fp8_block(out, inn): return fp8(out, inn, [-(-out // 128), -(-inn // 128)], "weight_scale_inv")
def fp8_tensor(out, inn): return {**fp8(out, inn, [], "weight_scale_inv"), "activation_scale": ("F32", [], ["normal", 1.0, 0.1])}
def ct_fp8(out, inn): return fp8(out, inn, [out, 1], "weight_scale", "BF16")
def ct_packed(out, inn, bits, group, asym):
    g = inn // group if group > 0 else 1
    d = {"weight_packed": ("I32", [out, inn * bits // 32], ["bytes", 0, 255]), "weight_shape": ("I64", [2], ["pair", out, inn]),
         "weight_scale": ("BF16", [out, g], near(std(inn) * 3.46 / 2 ** bits))}
    if asym: d["weight_zero_point"] = ("I32", [out * bits // 32, g], ["bytes", 0x66, 0x99])
    return d
def ct_int8(out, inn): return {"weight": ("I8", [out, inn], ["bytes", 0, 255]), "weight_scale": ("BF16", [out, 1], near(std(inn) / 74))}
def gptq(out, inn, bits, group, order):
    g = inn // group
    return {"qweight": ("I32", [inn * bits // 32, out], ["bytes", 0, 255]), "qzeros": ("I32", [g, out * bits // 32], ["bytes", 0x66, 0x99]),
            "scales": ("F16", [g, out], near(std(inn) * 3.46 / 2 ** bits)), "g_idx": ("I32", [inn], order or ["ramp", group, g])}
def awq(out, inn):
    return {"qweight": ("I32", [inn, out // 8], ["bytes", 0, 255]), "qzeros": ("I32", [inn // 64, out // 8], ["bytes", 0x66, 0x99]),
            "scales": ("F16", [inn // 64, out], near(std(inn) * 3.46 / 16))}

# --- and back ---
def un_fp8(t, block=None):
    from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
    s = t.get("weight_scale_inv", t.get("weight_scale"))
    return _dequantize_fp8_weight(t["weight"], s, block, F32)
def un_ct(t, bits, group, asym=False):
    from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    s = t["weight_scale"].to(F32)
    q = unpack_from_int32(t["weight_packed"], bits, torch.Size(t["weight_shape"].tolist())) if "weight_packed" in t else t["weight"]
    z = unpack_from_int32(t["weight_zero_point"], bits, torch.Size([q.shape[0], s.shape[1]]), packed_dim=0) if asym else None
    args = QuantizationArgs(num_bits=bits, symmetric=not asym, strategy="group" if group > 0 else "channel", group_size=group if group > 0 else None)
    return dequantize(q, s, z, args, dtype=F32)
def un_gptq(t, bits, plus):
    wf = torch.arange(0, 32, bits, dtype=torch.int32)
    mask = 2 ** bits - 1
    z = (torch.bitwise_right_shift(t["qzeros"].unsqueeze(2), wf.view(1, 1, -1)) & mask).reshape(t["scales"].shape) + plus
    w = (torch.bitwise_right_shift(t["qweight"].unsqueeze(1), wf.view(1, -1, 1)) & mask).reshape(-1, t["qweight"].shape[1])
    g = t["g_idx"].long()
    return (t["scales"].to(F32)[g] * (w - z[g]).to(F32)).T.contiguous()
def un_awq(t):
    import mlx.core as mx
    from mlx_lm.utils import _unpack_awq_weights
    un = lambda x: torch.from_numpy(np.array(_unpack_awq_weights(mx.array(x.numpy().view(np.uint32)))).astype(np.int64))
    g = torch.arange(t["qweight"].shape[0]) // 64
    return (t["scales"].to(F32)[g] * (un(t["qweight"]) - un(t["qzeros"])[g]).to(F32)).T.contiguous()

def ct(fmt, bits, kind, group, asym=False):
    w = dict(num_bits=bits, type=kind, symmetric=not asym, strategy="group" if group > 0 else "channel", group_size=group if group > 0 else None)
    return dict(quant_method="compressed-tensors", format=fmt, config_groups=dict(group_0=dict(targets=["Linear"], weights=w, input_activations=None)), ignore=["lm_head"])
SCHEMES = {
    "fp8_block": (dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[128, 128]), fp8_block, lambda t: un_fp8(t, [128, 128])),
    "fp8_tensor": (dict(quant_method="fp8", activation_scheme="static", weight_block_size=None), fp8_tensor, un_fp8),
    "ct_fp8": (ct("float-quantized", 8, "float", 0), ct_fp8, un_fp8),
    "ct_int4_g64": (ct("pack-quantized", 4, "int", 64), lambda o, i: ct_packed(o, i, 4, 64, False), lambda t: un_ct(t, 4, 64)),
    "ct_int4_asym": (ct("pack-quantized", 4, "int", 32, True), lambda o, i: ct_packed(o, i, 4, 32, True), lambda t: un_ct(t, 4, 32, True)),
    "ct_int8": (ct("int-quantized", 8, "int", 0), ct_int8, lambda t: un_ct(t, 8, 0)),
    "ct_int8_packed": (ct("pack-quantized", 8, "int", 64), lambda o, i: ct_packed(o, i, 8, 64, False), lambda t: un_ct(t, 8, 64)),
    "gptq_g64": (dict(quant_method="gptq", bits=4, group_size=64, desc_act=False, sym=False, checkpoint_format="gptq"),
                 lambda o, i: gptq(o, i, 4, 64, None), lambda t: un_gptq(t, 4, 1)),
    "gptq_act": (dict(quant_method="gptq", bits=4, group_size=64, desc_act=True, sym=False, checkpoint_format="gptq_v2"),
                 lambda o, i: gptq(o, i, 4, 64, ["stride", 5, i // 64]), lambda t: un_gptq(t, 4, 0)),
    "gptq_q8": (dict(quant_method="gptq", bits=8, group_size=32, desc_act=False, sym=True, checkpoint_format="gptq"),
                lambda o, i: gptq(o, i, 8, 32, None), lambda t: un_gptq(t, 8, 1)),
    "awq_g64": (dict(quant_method="awq", bits=4, group_size=64, version="gemm", zero_point=True), awq, un_awq),
}

def golden(d, model, seed, cfg):
    ids = [1] + (3 + weights.words(seed, "ids", T - 1) % np.uint64(cfg.vocab_size - 3)).astype(int).tolist()
    logits, hidden = run(model, ids); assert torch.isfinite(logits).all()
    greedy, margin, seq = [], [], list(ids)
    for _ in range(16):
        l, _ = run(model, seq); top = torch.topk(l[-1], 2)
        greedy.append(int(top.indices[0])); margin.append(float(top.values[0] - top.values[1])); seq.append(greedy[-1])
    f64 = run(model.double(), ids)[0] if cfg.model_type != "mamba2" else logits
    t = {"ids": torch.tensor(ids, dtype=torch.int32), "logits": logits.contiguous(), "greedy": torch.tensor(greedy, dtype=torch.int32), "margin": torch.tensor(margin)}
    for i, h in enumerate(hidden): t[f"hidden.{i}"] = h[[0, 7, T - 1]].contiguous().clone()
    save_file(t, os.path.join(d, "golden.safetensors"), {"reference": f"transformers {transformers.__version__}, torch {torch.__version__}",
              "seed": str(seed), "f32_noise": f"{float((f64 - logits).abs().max()):.3e}"})
    return float(logits.std()), min(margin)

def write(d, config, tensors, seed, quant):
    os.makedirs(d, exist_ok=True)
    json.dump({**config.to_diff_dict(), "model_type": config.model_type, "quantization_config": quant}, open(os.path.join(d, "config.json"), "w"), indent=2)
    with open(os.path.join(d, "weights.json"), "w") as f:
        f.write('{"seed": %d, "tensors": {\n' % seed + ",\n".join(
            json.dumps(k) + ": " + json.dumps({"dtype": t, "shape": s, "draw": r}) for k, (t, s, r) in sorted(tensors.items())) + "\n}}\n")
    weights.materialize(d)
    raw = load_file(os.path.join(d, "model.safetensors")); os.remove(os.path.join(d, "model.safetensors"))
    return raw

def make(name, out, seed):
    scheme, model_type, fields = MODELS.get(name, (name, "llama", LLAMA))
    quant, scatter, gather = SCHEMES[scheme]
    config = transformers.AutoConfig.for_model(model_type, **fields)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=F32, attn_implementation="eager", experts_implementation="eager").eval()
    tensors, linears = {}, []
    for k, v in model.state_dict().items():
        if k.endswith("_proj.weight"):
            linears.append(k[:-7]); tensors |= {k[:-6] + s: x for s, x in scatter(*v.shape).items()}
        else: tensors[k] = ("BF16", list(v.shape), ["normal", 1.0, 0.2] if v.ndim == 1 else ["normal", 0.0, 0.6 if "embed" in k else round(std(v.shape[1]), 6)])
    raw = write(os.path.join(out, name), config, tensors, seed, quant)
    state = {k: raw[k].to(F32) for k in model.state_dict() if k in raw and k[:-7] not in linears}
    for l in linears: state[l + ".weight"] = gather({k[len(l) + 1:]: v for k, v in raw.items() if k.startswith(l + ".")})
    model.load_state_dict(state)
    print(name, *golden(os.path.join(out, name), model, seed, config), flush=True)

def make_mxfp4(out, seed):
    from transformers.integrations.mxfp4 import _convert_moe_packed_tensors
    config = transformers.AutoConfig.for_model("gpt_oss", **FAMILIES["gpt_oss"][1])
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=F32, attn_implementation="eager", experts_implementation="eager").eval()
    tensors, packed = {}, []
    for k, v in model.state_dict().items():
        if k.endswith(("experts.gate_up_proj", "experts.down_proj")):
            e, inn, rows = v.shape; packed.append(k)
            at = int(round(127 + math.log2(std(inn) / 2.7)))
            tensors[k + "_blocks"] = ("U8", [e, rows, inn // 32, 16], ["bytes", 0, 255])
            tensors[k + "_scales"] = ("U8", [e, rows, inn // 32], ["bytes", at - 1, at + 1])
        elif v.ndim == 1 or k.endswith("_bias"): tensors[k] = ("BF16", list(v.shape), ["normal", 1.0 if "norm" in k else 0.0, 0.2])
        else: tensors[k] = ("BF16", list(v.shape), ["normal", 0.0, 0.6 if "embed" in k else round((3 if "router" in k else 1.2) / math.sqrt(v.shape[-1]), 6)])
    raw = write(os.path.join(out, "gpt_oss_mxfp4"), config, tensors, seed, dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"]))
    state = {k: raw[k].to(F32) for k in model.state_dict() if k in raw}
    for k in packed: state[k] = _convert_moe_packed_tensors(raw[k + "_blocks"], raw[k + "_scales"], dtype=F32)
    model.load_state_dict(state)
    print("gpt_oss_mxfp4", *golden(os.path.join(out, "gpt_oss_mxfp4"), model, seed, config), flush=True)

def main():
    a = argparse.ArgumentParser(); a.add_argument("--out", required=True); a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only"); a = a.parse_args()
    for i, name in enumerate([*SCHEMES, "gpt_oss_mxfp4", *MODELS]):
        if a.only and name not in a.only.split(","): continue
        make_mxfp4(a.out, a.seed * 1000 + i) if name == "gpt_oss_mxfp4" else make(name, a.out, a.seed * 1000 + i)

if __name__ == "__main__": main()
