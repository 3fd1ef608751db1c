#!/usr/bin/env python3
"""Tiny random checkpoints as mlx-lm publishes them (its layout, its quantizations), and what mlx computes from them in f32.

    pip install "mlx[cpu]" mlx-lm torch transformers
    python make_mlx_goldens.py --out DIR [--seed N] [--only NAME,...] [--variants FILE.py]

DIR/NAME.SCHEME/ = config.json (with its "quantization" block), weights.json (see weights.py), golden.safetensors {ids i32 [T], logits f32 [T, vocab]}.
Schemes: plain bf16; affine 4-bit g64 and 8-bit g32; mixed affine 3/6/8-bit by layer; mxfp4, mxfp8, nvfp4.
Configs are shaped as published ones are: fields at top level or under text_config, rope_theta / rope_scaling beside rope_parameters.
"""
import argparse, json, os, sys
from pathlib import Path
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import weights
import numpy as np, mlx.core as mx, mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model, quantize_model, save_config
from safetensors.numpy import load_file, save_file

mx.set_default_device(mx.cpu)
SCHEMES = {
    "bf16":   None,
    "q4g64":  dict(group_size=64, bits=4, mode="affine"),
    "q8g32":  dict(group_size=32, bits=8, mode="affine"),
    "mixed":  dict(group_size=32, bits=3, mode="affine"),
    "mxfp4":  dict(group_size=32, bits=4, mode="mxfp4"),
    "mxfp8":  dict(group_size=32, bits=8, mode="mxfp8"),
    "nvfp4":  dict(group_size=16, bits=4, mode="nvfp4"),
    # "-f16", "-f32": the type of scales, biases and plain tensors
    "q2g32":  dict(group_size=32, bits=2, mode="affine"),
    "q3g128": dict(group_size=128, bits=3, mode="affine"),
    "q4g32-f16":  dict(group_size=32, bits=4, mode="affine"),
    "q4g128": dict(group_size=128, bits=4, mode="affine"),
    "q5g64":  dict(group_size=64, bits=5, mode="affine"),
    "q6g128-f16": dict(group_size=128, bits=6, mode="affine"),
    "q8g128-f32": dict(group_size=128, bits=8, mode="affine"),
}
WIDE = ["q2g32", "q3g128", "q4g32-f16", "q4g128", "q5g64", "q6g128-f16", "q8g128-f32"]
C = dict(vocab_size=384, hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
         max_position_embeddings=512, rms_norm_eps=1e-6, rope_theta=10000.0, rope_scaling=None, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2)
def c(**kw): return {**C, **kw}
L4, S4 = "full_attention", "sliding_attention"
MOE = dict(moe_intermediate_size=64, num_experts_per_tok=2)
DELTA = dict(linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32, linear_conv_kernel_dim=4, full_attention_interval=4)
ROPE35 = dict(rope_parameters=dict(type="default", mrope_section=[2, 1, 1], rope_theta=10000.0, partial_rotary_factor=0.25, mrope_interleaved=True))
ROPEG4 = dict(rope_parameters=dict(full_attention=dict(rope_type="proportional", rope_theta=1000000.0, partial_rotary_factor=0.25),
                                   sliding_attention=dict(rope_type="default", rope_theta=10000.0)))
G4 = dict(head_dim=32, global_head_dim=64, num_hidden_layers=6, layer_types=[S4, S4, L4] * 2, sliding_window=16, sliding_window_pattern=3,
          tie_word_embeddings=True, final_logit_softcapping=30.0, vocab_size_per_layer_input=384, **ROPEG4)
def tiny(**kw): return c(**{**dict(vocab_size=256, num_hidden_layers=3), **kw})  # as small as shows everything
FALCON_H1 = dict(embedding_multiplier=3.0, lm_head_multiplier=0.3, key_multiplier=0.6, attention_in_multiplier=1.3, attention_out_multiplier=0.8,
                 ssm_in_multiplier=1.2, ssm_out_multiplier=0.6, mlp_multipliers=[1.5, 0.7], ssm_multipliers=[0.9, 1.1, 0.8, 1.2, 0.7])
GRANITE_H = dict(mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=16, mamba_d_conv=4, mamba_chunk_size=16, mamba_conv_bias=True,
                 mamba_proj_bias=False, attention_bias=False, embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=2.0)
NEMOTRON = dict(mamba_num_heads=8, mamba_head_dim=8, n_groups=2, ssm_state_size=16, chunk_size=16, conv_kernel=4, mamba_proj_bias=False, use_bias=False,
                use_conv_bias=True, mlp_bias=False, attention_bias=False, layer_norm_epsilon=1e-5, time_step_min=0.001)
ALL = ["bf16", "q4g64", "q8g32", "mixed", "mxfp4", "mxfp8", "nvfp4"]
FAMILIES = {
    "llama":      (c(model_type="llama", rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                     original_max_position_embeddings=64)), ALL),
    "qwen2":      (c(model_type="qwen2", tie_word_embeddings=True), ["q4g64"]),
    "qwen3":      (c(model_type="qwen3", head_dim=32, tie_word_embeddings=True), ["bf16", "q4g64", "mixed"]),
    "qwen3_moe":  (c(model_type="qwen3_moe", head_dim=32, num_experts=8, decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True, **MOE), ["bf16", "q4g64", "mxfp4"]),
    "qwen3_next": (c(model_type="qwen3_next", head_dim=32, num_experts=8, decoder_sparse_step=1, shared_expert_intermediate_size=64, mlp_only_layers=[],
                     partial_rotary_factor=0.25, norm_topk_prob=True, **MOE, **DELTA), ["q4g64"]),
    "qwen3_5":    (dict(model_type="qwen3_5", text_config=c(model_type="qwen3_5_text", head_dim=32, tie_word_embeddings=True, **DELTA, **ROPE35)), ["bf16", "q4g64", "mixed"]),
    "qwen3_5_moe":(dict(model_type="qwen3_5_moe", text_config=c(model_type="qwen3_5_moe_text", head_dim=32, num_experts=8, shared_expert_intermediate_size=64,
                     norm_topk_prob=True, **MOE, **DELTA, **ROPE35)), ["q4g64"]),
    "gemma2":     (c(model_type="gemma2", head_dim=32, query_pre_attn_scalar=24, attn_logit_softcapping=50.0, final_logit_softcapping=30.0), ["q4g64"]),
    "gemma3":     (c(model_type="gemma3_text", head_dim=32, num_hidden_layers=6, sliding_window=16, sliding_window_pattern=3, query_pre_attn_scalar=24,
                     rope_theta=1000000.0, rope_local_base_freq=10000.0, tie_word_embeddings=True), ["bf16", "q4g64"]),
    "gemma4":     (dict(model_type="gemma4", vocab_size=384, text_config=c(model_type="gemma4_text", num_kv_shared_layers=0, hidden_size_per_layer_input=0,
                     num_global_key_value_heads=1, attention_k_eq_v=True, use_double_wide_mlp=False, **G4)), ["bf16", "q4g64", "mixed"]),
    "gemma4_e2b": (dict(model_type="gemma4", vocab_size=384, text_config=c(model_type="gemma4_text", num_kv_shared_layers=3, hidden_size_per_layer_input=32,
                     use_double_wide_mlp=True, **G4)), ["bf16", "q4g64"]),
    "gemma4_moe": (dict(model_type="gemma4", vocab_size=384, text_config=c(model_type="gemma4_text", num_kv_shared_layers=0, hidden_size_per_layer_input=0,
                     num_global_key_value_heads=1, attention_k_eq_v=True, use_double_wide_mlp=False, enable_moe_block=True, num_experts=8,
                     top_k_experts=2, moe_intermediate_size=64, **G4)), ["bf16", "q4g64"]),
    "glm4_moe":   (c(model_type="glm4_moe", head_dim=32, norm_topk_prob=True, n_group=1, topk_group=1, n_shared_experts=1, n_routed_experts=8,
                     routed_scaling_factor=1.5, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True, partial_rotary_factor=0.5, **MOE), ["q4g64"]),
    "glm_moe_dsa":(c(model_type="glm_moe_dsa", index_head_dim=64, index_n_heads=4, index_topk=16, n_shared_experts=1, n_routed_experts=8, routed_scaling_factor=1.5,
                     kv_lora_rank=64, q_lora_rank=64, qk_rope_head_dim=32, v_head_dim=64, qk_nope_head_dim=64, topk_method="noaux_tc", scoring_func="sigmoid",
                     norm_topk_prob=True, n_group=1, topk_group=1, moe_layer_freq=1, first_k_dense_replace=1, num_key_value_heads=4, attention_bias=False,
                     rope_parameters=dict(rope_theta=10000.0, rope_type="default"), **MOE), ["q4g64"]),
    "deepseek_v3":(c(model_type="deepseek_v3", n_shared_experts=1, n_routed_experts=8, routed_scaling_factor=2.5, kv_lora_rank=64, q_lora_rank=64,
                     qk_rope_head_dim=32, v_head_dim=64, qk_nope_head_dim=64, topk_method="noaux_tc", scoring_func="sigmoid", norm_topk_prob=True, n_group=4,
                     topk_group=2, moe_layer_freq=1, first_k_dense_replace=1, num_key_value_heads=4, attention_bias=False, **MOE), ["q4g64"]),
    "gpt_oss":    (c(model_type="gpt_oss", head_dim=32, num_local_experts=8, num_experts_per_tok=2, sliding_window=16, layer_types=[S4, L4, S4, L4],
                     rope_scaling=dict(rope_type="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=64, truncate=False)), ["bf16", "mxfp4"]),
    "lfm2":       (c(model_type="lfm2", norm_eps=1e-5, conv_bias=False, conv_L_cache=3, block_dim=64, block_multiple_of=64, block_ffn_dim_multiplier=1.0,
                     block_auto_adjust_ff_dim=False, block_ff_dim=128, layer_types=["conv", "conv", L4, "conv"], full_attn_idxs=[2]), ["q4g64"]),
    "cohere2":    (c(model_type="cohere2", head_dim=16, sliding_window=16, sliding_window_pattern=4, logit_scale=0.25, layer_norm_eps=1e-5,
                     attention_bias=False, layer_norm_bias=False), ["q4g64"]),
    "minicpm":    (c(model_type="minicpm", dim_model_base=32, scale_emb=4, scale_depth=1.4), ["q4g64"]),
    "granite":    (c(model_type="granite", embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=2.0,
                     attention_bias=False, mlp_bias=False), ["q4g64"]),
    "wide":       (c(model_type="llama", hidden_size=128, intermediate_size=256, tie_word_embeddings=True), WIDE),
    "gemma3n":    (dict(model_type="gemma3n", text_config=c(
                     model_type="gemma3n_text", head_dim=32, num_hidden_layers=6, layer_types=[S4, S4, L4] * 2, sliding_window=16, intermediate_size=[128] * 6,
                     rope_theta=1000000.0, rope_local_base_freq=10000.0, num_kv_shared_layers=2, final_logit_softcapping=30.0, laurel_rank=8,
                     hidden_size_per_layer_input=32, vocab_size_per_layer_input=380, activation_sparsity_pattern=[0.95, 0.95, 0.0, 0.5, 0.0, 0.0],
                     altup_num_inputs=4, altup_coef_clip=120.0, altup_correct_scale=True, altup_active_idx=0, tie_word_embeddings=True)), ["bf16", "q4g64"]),
    "cohere":     (c(model_type="cohere", logit_scale=0.25, layer_norm_eps=1e-5, attention_bias=False, layer_norm_bias=False, use_qk_norm=True), ["q4g64"]),
    "mistral4":   (c(model_type="mistral4", n_shared_experts=1, n_routed_experts=8, routed_scaling_factor=1.5, kv_lora_rank=64, q_lora_rank=64,
                     qk_rope_head_dim=32, v_head_dim=64, qk_nope_head_dim=64, norm_topk_prob=True, n_group=1, topk_group=1, first_k_dense_replace=1,
                     num_key_value_heads=4, rope_interleave=True, rope_parameters=dict(
                         rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                         mscale_all_dim=1.0, llama_4_scaling_beta=0.5), **MOE), ["q4g64"]),
    "mamba2":     (tiny(model_type="mamba2", num_heads=8, head_dim=16, state_size=16, n_groups=2, expand=2, chunk_size=16, conv_kernel=4, use_bias=False,
                     use_conv_bias=True, layer_norm_epsilon=1e-5, time_step_limit=[0.0, float("inf")], time_step_rank=4), ["bf16", "q4g64"]),
    "falcon_h1":  (tiny(model_type="falcon_h1", head_dim=16, mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16,
                     mamba_chunk_size=16, mamba_rms_norm=True, **FALCON_H1), ["bf16", "q4g64"]),
    "falcon_h1_tied": (tiny(model_type="falcon_h1", head_dim=16, mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=16,
                     mamba_chunk_size=16, tie_word_embeddings=True, **FALCON_H1), ["bf16"]),
    "granite_h":  (tiny(model_type="granitemoehybrid", layer_types=["mamba", "attention", "mamba"], intermediate_size=64, num_local_experts=4,
                     num_experts_per_tok=2, shared_intermediate_size=64, position_embedding_type="nope", **GRANITE_H), ["bf16", "q4g64"]),
    "granite_h_dense": (tiny(model_type="granitemoehybrid", layer_types=["mamba", "attention"], num_hidden_layers=2, shared_intermediate_size=128,
                     num_local_experts=0, position_embedding_type="rope", **GRANITE_H), ["q4g64"]),
    "nemotron_h": (tiny(model_type="nemotron_h", head_dim=16, num_hidden_layers=4, hybrid_override_pattern="M-*M", **NEMOTRON), ["bf16", "q4g64"]),
    "nemotron_h_moe": (tiny(model_type="nemotron_h", head_dim=16, num_hidden_layers=4, hybrid_override_pattern="ME*E", n_routed_experts=6, n_shared_experts=1,
                     num_experts_per_tok=2, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, moe_intermediate_size=64,
                     moe_shared_expert_intermediate_size=128, **NEMOTRON), ["q4g64"]),
    "mistral":    (tiny(model_type="mistral", head_dim=32, sliding_window=None), ["q4g64"]),
    "qwen2_moe":  (tiny(model_type="qwen2_moe", num_experts=8, shared_expert_intermediate_size=64, decoder_sparse_step=1, norm_topk_prob=False, **MOE), ["q4g64"]),
    "gemma":      (tiny(model_type="gemma", head_dim=32, tie_word_embeddings=True), ["q4g64"]),
    "glm4":       (tiny(model_type="glm4", head_dim=32, partial_rotary_factor=0.5, attention_bias=True), ["q4g64"]),
    "deepseek_v32": (tiny(model_type="deepseek_v32", index_head_dim=64, index_n_heads=4, index_topk=16, n_shared_experts=1, n_routed_experts=8,
                     routed_scaling_factor=1.5, kv_lora_rank=64, q_lora_rank=64, qk_rope_head_dim=32, v_head_dim=64, qk_nope_head_dim=64,
                     topk_method="noaux_tc", scoring_func="sigmoid", norm_topk_prob=True, n_group=4, topk_group=2, moe_layer_freq=1,
                     first_k_dense_replace=1, num_key_value_heads=4, attention_bias=False, **MOE), ["q4g64"]),
    "phi3":       (tiny(model_type="phi3", original_max_position_embeddings=512), ["q4g64"]),
    "olmo2":      (tiny(model_type="olmo2"), ["q4g64"]),
    "olmo3":      (tiny(model_type="olmo3", sliding_window=16, layer_types=[S4, L4, S4]), ["q4g64"]),
    "smollm3":    (tiny(model_type="smollm3", no_rope_layers=[1, 0, 1]), ["q4g64"]),
    "seed_oss":   (tiny(model_type="seed_oss", head_dim=32, attention_bias=True, attention_out_bias=False), ["q4g64"]),
    "hunyuan":    (tiny(model_type="hunyuan_v1_dense", head_dim=32), ["q4g64"]),
    "ernie4_5":   (tiny(model_type="ernie4_5", head_dim=32, use_bias=False), ["q4g64"]),
    "apertus":    (tiny(model_type="apertus", mlp_bias=False, attention_bias=False, post_norm=False, qk_norm=True), ["q4g64"]),
    "lfm2_moe":   (tiny(model_type="lfm2_moe", norm_eps=1e-5, conv_bias=False, conv_L_cache=3, layer_types=["conv", L4, "conv"], num_experts=8,
                     num_dense_layers=1, use_expert_bias=True, norm_topk_prob=True, routed_scaling_factor=1.0, **MOE), ["q4g64"]),
    "minimax_m2": (tiny(model_type="minimax_m2", head_dim=32, rotary_dim=16, num_local_experts=8, num_experts_per_tok=2, shared_intermediate_size=0,
                     scoring_func="sigmoid", use_qk_norm=True), ["q4g64"]),
    "ministral3": (tiny(model_type="ministral3", head_dim=32, rope_parameters=dict(
                     rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                     mscale_all_dim=1.0, llama_4_scaling_beta=0.5)), ["q4g64"]),
    "mistral3":   (dict(model_type="mistral3", text_config=tiny(model_type="mistral", head_dim=32, sliding_window=None)), ["q4g64"]),
    "granite_moe": (tiny(model_type="granitemoe", num_local_experts=4, num_experts_per_tok=2, intermediate_size=64, attention_bias=False,
                     embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=2.0), ["q4g64"]),
}
T = 40
# Families of which mlx-lm computes another function than the reference: their goldens are the reference's, of mlx's tensors (mlx_law.py).
LAW = ("gpt_oss", "gemma", "olmo3", "apertus", "mamba2", "falcon_h1", "granitemoehybrid", "nemotron_h")

def build(cfg):
    from mlx_lm.utils import _get_classes
    M, A = _get_classes(config=cfg)
    return M(A.from_dict(cfg))

def manifest(model, bits_of, mlx_type, kind):
    """One draw per tensor, of type `kind`. Quantized codes are uniform bits; scales and biases make the dequantized weight zero-mean and as wide as a plain one."""
    out = {}
    flat = dict(tree_flatten(model.parameters()))
    for name, p in flat.items():
        leaf = name.split(".")[-1]; path = name.rsplit(".", 1)[0]; shape = list(p.shape)
        q = bits_of.get(path)
        if q:
            mode, bits, width = q
            std = (0.08 if "gemma" in mlx_type else 0.6) if "embed" in name else (3.0 if flat[path + ".weight"].shape[0] <= 16 else 1.2) / np.sqrt(width)
            if leaf == "weight":
                out[name] = ("U32", shape, ["fp8", 0x28, 0x44] if mode == "mxfp8" else ["bytes", 0, 255]); continue
            if mode == "affine" and leaf != "bias":
                s = std * 3.4641 / (2 ** bits - 1)
                out[name] = (kind, shape, ["normal", float(f"{s:.5g}"), float(f"{0.2 * s:.3g}")] if leaf == "scales" else
                             ["normal", float(f"{-s * (2 ** bits - 1) / 2:.5g}"), float(f"{0.3 * s:.3g}")]); continue
            if mode == "mxfp4": e = int(round(127 + np.log2(std / 2.7))); out[name] = ("U8", shape, ["bytes", e - 1, e + 1]); continue
            if mode == "mxfp8": e = int(round(127 + np.log2(std / 1.2))); out[name] = ("U8", shape, ["bytes", e - 1, e + 1]); continue
            if mode == "nvfp4": e = int(round(8 * (7 + np.log2(std / 2.7)))); out[name] = ("U8", shape, ["bytes", e - 6, e + 6]); continue
        mean = float(np.mean(np.array(p.astype(mx.float32)))) if p.size else 0.0
        gem = "gemma" in mlx_type
        if leaf in ("A_log", "dt_bias", "D"): r = [round(mean, 3) if np.isfinite(mean) else 0.5, 0.25]
        elif "correction_bias" in name or "expert_bias" in name: r = [0.0, 0.1]
        elif p.ndim <= 1 or leaf in ("sinks", "bias"):
            r = [1.0 if leaf not in ("bias", "sinks") and (mean > 0.5 or "norm" in name and not gem) else 0.0, 0.2]
        elif "embed" in name: r = [0.0, 0.08 if gem else 0.6]
        elif "conv" in name: r = [0.0, round(float(1 / np.sqrt(p.shape[1])), 6)]
        else: r = [0.0, round(float((3.0 if p.shape[0] <= 16 else 1.2) / np.sqrt(p.shape[-1])), 6)]
        out[name] = (kind, shape, ["normal", *r])
    return out

def earliest_partition(a, kth, axis=-1):
    """argpartition, of equal values at the border the first: an indexer's ReLU makes exact zeros, and mlx states no order."""
    return mx.argsort(-a, axis=axis)[..., ::-1] if kth < 0 else mx.argsort(a, axis=axis)

def make(name, cfg, scheme, out, seed):
    cfg = json.loads(json.dumps(cfg)); model = build(cfg); kw = SCHEMES[scheme]; bits_of = {}
    if kw:
        g = kw["group_size"]
        def pred(path, m):
            if not hasattr(m, "to_quantized") or m.weight.shape[-1] % g: return False
            q = dict(group_size=g, bits=kw["bits"])
            if "router" in path or path.endswith("mlp.gate") or path.endswith("shared_expert_gate"):
                if kw["mode"] != "affine" or m.weight.shape[-1] % 32: return False
                q = dict(group_size=32, bits=8)
            elif scheme == "mixed":
                i = sum(map(ord, path)) % 3
                q = dict(group_size=(32, 64, 32)[i] if m.weight.shape[-1] % 64 == 0 else 32, bits=(3, 6, 8)[i])
            bits_of[path] = (kw["mode"], q["bits"], m.weight.shape[-1])
            return True if q == dict(group_size=g, bits=kw["bits"]) else q
        model, cfg = quantize_model(model, cfg, kw["group_size"], kw["bits"], mode=kw["mode"], quant_predicate=pred)
    d = Path(out) / f"{name}.{scheme}"; d.mkdir(parents=True, exist_ok=True)
    save_config(cfg, d / "config.json")
    m = manifest(model, bits_of, cfg["model_type"], scheme.split("-")[1].upper() if "-" in scheme else "BF16")
    with open(d / "weights.json", "w") as f:
        f.write('{"seed": %d, "format": "mlx", "tensors": {\n' % seed + ",\n".join(
            json.dumps(k) + ": " + json.dumps({"dtype": t, "shape": s, "draw": r}) for k, (t, s, r) in sorted(m.items())) + "\n}}\n")
    weights.materialize(str(d))
    model, _ = load_model(d, strict=True); model.set_dtype(mx.float32)
    os.remove(d / "model.safetensors")
    v = cfg.get("text_config", cfg)["vocab_size"]
    ids = mx.array([1] + (3 + weights.words(seed, "ids", T - 1) % np.uint64(v - 3)).astype(int).tolist(), dtype=mx.int32)
    if "index_topk" in cfg: mx.argpartition = earliest_partition
    cache = model.make_cache() if name == "gemma3n" else None  # without one its last layers would not share another's
    logits = np.array(model(ids[None], cache=cache)[0].astype(mx.float32)); assert np.isfinite(logits).all()
    save_file({"ids": np.array(ids), "logits": logits}, str(d / "golden.safetensors"), {"reference": f"mlx {mx.__version__}, mlx-lm, f32", "scheme": scheme, "seed": str(seed)})
    said = ""
    if cfg["model_type"] in LAW:
        import mlx_law
        mlx_law.make(d, model, cfg, seed)
        law = load_file(d / "golden.safetensors")["logits"]
        said = f", mlx's logits {np.abs(law - logits).max() / law.std():.1e} deviations from the reference's"
    print(f"{name}.{scheme:7s} {len(bits_of)} quantized, {len(m)} tensors, logit std {logits.std():.3f}{said}", flush=True)

def main():
    a = argparse.ArgumentParser(); a.add_argument("--out", required=True); a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only"); a.add_argument("--variants"); a = a.parse_args()
    fam = FAMILIES; bad = []
    if a.variants:
        import importlib.util
        s = importlib.util.spec_from_file_location("variants", a.variants); m = importlib.util.module_from_spec(s); s.loader.exec_module(m); fam = m.MLX
    for i, (n, (cfg, schemes)) in enumerate(fam.items()):
        if a.only and n not in a.only.split(","): continue
        for s in schemes:
            try: make(n, cfg, s, a.out, weights.seed_of(os.path.join(a.out, f"{n}.{s}"), a.seed * 1000 + i))
            except Exception as e: bad.append(f"{n}.{s}"); print(f"{n}.{s} FAILED {type(e).__name__}: {str(e)[:400]}", flush=True)
    if bad: print("failed:", *bad); sys.exit(1)

if __name__ == "__main__": main()
