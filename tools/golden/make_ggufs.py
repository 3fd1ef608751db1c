#!/usr/bin/env python3
"""Make a tiny GGUF file of each family with llama.cpp's own converter, beside what the HF reference computes from the same weights.

    pip install torch transformers safetensors numpy gguf
    python make_ggufs.py --llama-cpp DIR [--out DIR] [--only NAME,...]

DIR of --llama-cpp is llama.cpp's source tree.  For every entry OUT/NAME/ gets
    model.gguf               matrices bf16, vectors f32; names, permutations and keys are the converter's; no tokenizer
    golden.safetensors       as make_goldens.py states
"""
import argparse, json, os, shutil, sys, tempfile
from pathlib import Path
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_goldens, make_quant_goldens, weights
import numpy as np, torch
from make_goldens import L4, S4, c


def t(**kw):
    d = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, max_position_embeddings=256)
    d.update(kw)
    return c(**d)


def rope(kind, **kw):
    return dict(rope_type=kind, rope_theta=10000.0, **kw)


LATENT = dict(num_attention_heads=4, num_key_value_heads=4, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
              first_k_dense_replace=1, n_group=1, topk_group=1, q_lora_rank=24, kv_lora_rank=256, qk_rope_head_dim=8, qk_nope_head_dim=32,
              v_head_dim=24, num_nextn_predict_layers=0)

FAMILIES = {
    # name (_fused: q, k and v in one tensor): (model_type, config, fields that only the converter reads)
    "llama": ("llama", t(rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                              original_max_position_embeddings=64)), {}),
    "qwen2": ("qwen2", t(tie_word_embeddings=True), {}),
    "qwen3": ("qwen3", t(head_dim=16), {}),
    "gemma": ("gemma", t(head_dim=16), {}),
    "gemma2": ("gemma2", t(head_dim=16, sliding_window=16, query_pre_attn_scalar=16, attn_logit_softcapping=20.0,
                           final_logit_softcapping=10.0), {}),
    "gemma3": ("gemma3_text", t(head_dim=16, sliding_window=16, num_hidden_layers=6, query_pre_attn_scalar=16,
                                rope_parameters={"full_attention": rope("linear", factor=8.0),
                                                 "sliding_attention": rope("default")}), {}),
    "phi3": ("phi3", t(sliding_window=7, original_max_position_embeddings=256,
                       rope_parameters=rope("default", partial_rotary_factor=0.75, original_max_position_embeddings=256)), {}),
    "phi3_long": ("phi3", t(original_max_position_embeddings=32, tie_word_embeddings=True, rope_parameters=rope(
        "longrope", short_factor=[1.0 + 0.1 * i for i in range(4)], long_factor=[2.0 + 0.5 * i for i in range(4)])), {}),
    "granite": ("granite", t(embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=2.0), {}),
    "olmo2": ("olmo2", t(num_attention_heads=4, num_key_value_heads=4), {}),
    "olmo3": ("olmo3", t(sliding_window=16, num_hidden_layers=4, layer_types=[S4, S4, S4, L4], rope_parameters={
        "full_attention": dict(rope("yarn", factor=8.0, original_max_position_embeddings=32, beta_fast=32.0, beta_slow=1.0)),
        "sliding_attention": rope("default")}), {}),
    "cohere2": ("cohere2", t(sliding_window=16, num_hidden_layers=4, layer_types=[S4, S4, S4, L4], logit_scale=0.25), {"rotary_pct": 1.0}),
    "smollm3": ("smollm3", t(num_hidden_layers=4), {}),
    "glm4": ("glm4", t(head_dim=16, attention_bias=True, rope_parameters=rope("default", partial_rotary_factor=0.5)), {}),
    "ernie4_5": ("ernie4_5", t(head_dim=16), {}),
    "seed_oss": ("seed_oss", t(head_dim=16, attention_bias=True), {}),
    "hunyuan": ("hunyuan_v1_dense", t(head_dim=16), {}),
    "apertus": ("apertus", t(rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                  original_max_position_embeddings=64)), {}),
    # What Granite computes, as its fields are spelled here: MiniCPM's own modelling file is not part of transformers.
    "minicpm": ("granite", t(embedding_multiplier=4.0, attention_multiplier=8.0 ** -0.5, residual_multiplier=1.4 / 2.0 ** 0.5,
                             logits_scaling=2.0),
                {"model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"], "scale_emb": 4, "scale_depth": 1.4, "dim_model_base": 16}),
    "seed_oss_fused": ("seed_oss", t(head_dim=16, attention_bias=True), {}),
    "ministral3": ("ministral3", t(head_dim=16, rope_parameters=rope(
        "yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
        llama_4_scaling_beta=0.5)), {}),
    "qwen2_moe": ("qwen2_moe", t(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=64), {}),
    "qwen3_moe": ("qwen3_moe", t(head_dim=16, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True), {}),
    "glm4_moe": ("glm4_moe", t(head_dim=16, num_hidden_layers=3, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                               first_k_dense_replace=1, routed_scaling_factor=1.5, use_qk_norm=True, attention_bias=True,
                               num_nextn_predict_layers=0), {}),
    "minimax_m2": ("minimax_m2", t(head_dim=16, num_local_experts=6, num_experts_per_tok=2,
                                   rope_parameters=rope("default", partial_rotary_factor=0.5)), {"rotary_dim": 8}),
    "gpt_oss": ("gpt_oss", t(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=16, intermediate_size=32,
                             num_hidden_layers=2), {}),
    "deepseek_v3": ("deepseek_v3", t(num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=3, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32,
                                     first_k_dense_replace=1, n_group=4, topk_group=2, routed_scaling_factor=2.5, q_lora_rank=24,
                                     kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=24, num_nextn_predict_layers=0,
                                     rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32.0,
                                                          beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0)), {}),
    "gemma4": ("gemma4_text", t(head_dim=16, num_hidden_layers=6, sliding_window=16, final_logit_softcapping=30.0,
                                hidden_size_per_layer_input=0, attention_k_eq_v=True, global_head_dim=32, num_global_key_value_heads=1), {}),
    "gemma4_e2b": ("gemma4_text", t(head_dim=16, num_hidden_layers=6, sliding_window=16, final_logit_softcapping=30.0,
                                    hidden_size_per_layer_input=8, vocab_size_per_layer_input=64, num_kv_shared_layers=2,
                                    use_double_wide_mlp=True, global_head_dim=32,
                                    layer_types=[S4, L4, S4, L4, S4, L4]), {}),
    "lfm2": ("lfm2", t(num_hidden_layers=4, layer_types=["conv", L4, "conv", "conv"], conv_L_cache=4, block_ff_dim=100, block_multiple_of=16), {}),
    "lfm2_moe": ("lfm2_moe", t(num_hidden_layers=4, layer_types=["conv", "conv", L4, "conv"], num_experts=6, num_experts_per_tok=2,
                               moe_intermediate_size=32, num_dense_layers=2), {}),
    "qwen3_next": ("qwen3_next", t(head_dim=16, num_hidden_layers=4, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                                   shared_expert_intermediate_size=32, linear_num_key_heads=2, linear_num_value_heads=4,
                                   linear_key_head_dim=16, linear_value_head_dim=8, rope_parameters=rope("default", partial_rotary_factor=0.5)), {}),
    "qwen3_5": ("qwen3_5_text", t(head_dim=16, num_hidden_layers=3, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=16,
                                  linear_value_head_dim=8, layer_types=["linear_attention", L4, "linear_attention"],
                                  rope_parameters=rope("default", partial_rotary_factor=0.25)), {}),
    "qwen3_5_moe": ("qwen3_5_moe_text", t(head_dim=16, intermediate_size=None, num_hidden_layers=4, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                                          shared_expert_intermediate_size=32, linear_num_key_heads=2, linear_num_value_heads=4,
                                          linear_key_head_dim=8, linear_value_head_dim=16), {}),
    "gemma3n": ("gemma3n_text", t(head_dim=16, num_hidden_layers=6, sliding_window=16, layer_types=[S4, S4, L4] * 2, num_kv_shared_layers=2,
                                  hidden_size_per_layer_input=8, vocab_size_per_layer_input=64, laurel_rank=8, intermediate_size=[48] * 6,
                                  activation_sparsity_pattern=[0.95, 0.5, 0.0, 0.9, 0.0, 0.0]), {}),
    "gemma4_moe": ("gemma4_text", t(head_dim=16, num_hidden_layers=4, sliding_window=16, layer_types=[S4, L4, S4, L4], final_logit_softcapping=30.0,
                                    hidden_size_per_layer_input=0, attention_k_eq_v=True, global_head_dim=32, num_global_key_value_heads=1,
                                    enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=32), {}),
    "command_r": ("cohere", t(use_qk_norm=True, num_key_value_heads=2, logit_scale=0.25), {"model_max_length": 256}),
    "mistral4": ("mistral4", t(num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24,
                               num_hidden_layers=3, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1,
                               norm_topk_prob=False, rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32.0,
                                                                          beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)),
                 {"architectures": ["Ministral3ForCausalLM"]}),  # the converter's name for a text model by itself
    "deepseek_v3_k_b": ("deepseek_v3", t(**LATENT), {}),
    "deepseek_v3_kv_b": ("deepseek_v3", t(**LATENT), {}),
    "mamba2": ("mamba2", t(num_heads=4, head_dim=16, state_size=16, n_groups=2, expand=2, chunk_size=16, num_attention_heads=None,
                           num_key_value_heads=None, intermediate_size=None), {}),
    # Powers of two: the converter multiplies matrices by them and writes bf16.
    "falcon_h1": ("falcon_h1", t(mamba_d_ssm=48, mamba_n_heads=6, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=16, mamba_chunk_size=16,
                                 embedding_multiplier=2.0, lm_head_multiplier=0.5, key_multiplier=0.25, attention_in_multiplier=2.0,
                                 attention_out_multiplier=0.5, ssm_in_multiplier=2.0, ssm_out_multiplier=0.25, mlp_multipliers=[2.0, 0.5],
                                 ssm_multipliers=[0.5, 0.5, 0.25, 2.0, 0.5]), {"head_dim": 8}),
    "falcon_h1_normed": ("falcon_h1", t(mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8, mamba_chunk_size=16,
                                        mamba_rms_norm=True, mamba_norm_before_gate=False), {"head_dim": 8}),
    "granite_h": ("granitemoehybrid", t(layer_types=["linear_attention", L4, "linear_attention"], num_hidden_layers=3, mamba_n_heads=4,
                                        mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16, mamba_chunk_size=16, num_local_experts=4,
                                        num_experts_per_tok=2, intermediate_size=32, shared_intermediate_size=48, embedding_multiplier=3.0,
                                        attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=2.0,
                                        position_embedding_type="nope"), {"layer_types": ["mamba", "attention", "mamba"]}),
    "granite_h_dense": ("granitemoehybrid", t(layer_types=[L4, "linear_attention"], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=16,
                                              mamba_chunk_size=16, num_local_experts=0, intermediate_size=48, shared_intermediate_size=48,
                                              position_embedding_type="nope"), {"layer_types": ["attention", "mamba"]}),
    "nemotron_h": ("nemotron_h", t(head_dim=16, hybrid_override_pattern="M-*M", mamba_num_heads=8, mamba_head_dim=8, n_groups=2,
                                   ssm_state_size=16, chunk_size=16, num_hidden_layers=4),
                   {"hybrid_override_pattern": "M-*M"}),
    "nemotron_h_moe": ("nemotron_h", t(head_dim=16, hybrid_override_pattern="ME*E", mamba_num_heads=4, mamba_head_dim=16, n_groups=1,
                                       ssm_state_size=16, chunk_size=16, num_hidden_layers=4, n_routed_experts=8, num_experts_per_tok=3,
                                       moe_intermediate_size=32, moe_shared_expert_intermediate_size=48, moe_latent_size=24,
                                       routed_scaling_factor=2.5), {"hybrid_override_pattern": "ME*E"}),
    "deepseek_v32": ("deepseek_v32", t(num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=3, n_routed_experts=8, num_experts_per_tok=2,
                                       moe_intermediate_size=32, first_k_dense_replace=1, n_group=2, topk_group=1, q_lora_rank=24, kv_lora_rank=32,
                                       qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=24, index_n_heads=5, index_head_dim=16, index_topk=9,
                                       num_nextn_predict_layers=0), {}),
    "glm_moe_dsa": ("glm_moe_dsa", t(num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=4, n_routed_experts=6, num_experts_per_tok=2,
                                     moe_intermediate_size=32, first_k_dense_replace=1, q_lora_rank=24, kv_lora_rank=32, qk_rope_head_dim=8,
                                     qk_nope_head_dim=16, v_head_dim=24, index_n_heads=6, index_head_dim=24, index_topk=12,
                                     indexer_types=["full", "shared", "full", "shared"], num_nextn_predict_layers=0), {}),
    "granite_moe": ("granitemoe", t(num_local_experts=6, num_experts_per_tok=2, intermediate_size=32, embedding_multiplier=3.0,
                                    attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=2.0), {}),
    "granite_moe_shared": ("granitemoeshared", t(num_local_experts=4, num_experts_per_tok=2, intermediate_size=32, shared_intermediate_size=48,
                                                 attention_multiplier=0.3, residual_multiplier=0.7), {}),
    "mistral": ("mistral", t(head_dim=16, sliding_window=None), {}),
}
# The matrices of latent attention get these types, layer by layer; attn_kv_b: both in one tensor, as older files have them.
QUANTISED = {
    "deepseek_v3_k_b": {"attn_k_b": ["Q8_0", "Q4_0"], "attn_v_b": ["Q4_K", "Q6_K"]},
    "deepseek_v3_kv_b": {"attn_kv_b": ["Q8_0", "Q4_K"]},
}


def write_vocab(src, n):
    """Some converters count it."""
    vocab = {"model": {"vocab": {str(k): k for k in range(n)}}, "added_tokens": []}
    json.dump(vocab, open(os.path.join(src, "tokenizer.json"), "w"))


def blocks(x, kind, seed, gguf):
    """x in blocks of a type, and their values; K-quants, which gguf-py only reads, are random blocks as wide as x."""
    if not kind.name.endswith("_K"):
        q = gguf.quants.quantize(x, kind)
        return q, gguf.quants.dequantize(q, kind)
    per, size = gguf.GGML_QUANT_SIZES[kind]
    raw = (weights.words(seed, kind.name, x.size // per * size) >> np.uint64(8)).astype(np.uint8).reshape(-1, size)
    if kind.name == "Q4_K":  # d, dmin, then scales and codes
        raw[:, :4] = np.array([0.0004, 0.003], np.float16).view(np.uint8)
    else:  # Q6_K: d at the end
        raw[:, -2:] = np.array([0.00006], np.float16).view(np.uint8)
    q = raw.reshape(*x.shape[:-1], -1)
    return q, gguf.quants.dequantize(q, kind)


def requantise(writer, types, seed, gguf):
    """Makes the writer give tensors of the converter other types; the result collects layer -> kv_b as it is then."""
    plain, keys, kv_b = writer.add_tensor, {}, {}
    def put(part, layer, x):
        kind = gguf.GGMLQuantizationType[types[part][layer]]
        q, values = blocks(np.ascontiguousarray(x), kind, seed + layer, gguf)
        plain(f"blk.{layer}.{part}.weight", q, raw_dtype=kind)
        return values
    def add(name, data, raw_shape=None, raw_dtype=None):
        part = name.split(".")[2] if name.startswith("blk.") else ""
        if part not in ("attn_k_b", "attn_v_b"): return plain(name, data, raw_shape, raw_dtype)
        layer, x = int(name.split(".")[1]), gguf.quants.dequantize(data, raw_dtype)
        if part == "attn_k_b":
            keys[layer] = (put(part, layer, x) if part in types else x).swapaxes(1, 2)
            return
        if part in types: x = put(part, layer, x)
        both = np.concatenate([keys[layer], x], axis=1)
        both = both.reshape(-1, both.shape[-1])
        kv_b[layer] = put("attn_kv_b", layer, both) if "attn_kv_b" in types else both
    writer.add_tensor = add
    return kv_b


def golden_of(src, kv_b, seed):
    """The golden of src with other kv_b."""
    model = make_goldens.transformers.AutoModelForCausalLM.from_pretrained(
        src, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager").eval()
    for layer, x in kv_b.items():
        model.model.layers[layer].self_attn.kv_b_proj.weight.data.copy_(torch.from_numpy(x))
    make_quant_goldens.golden(src, model, seed, model.config)


def convert(src, out, gguf, get_model_class, fuse, types, seed):
    arch = json.load(open(os.path.join(src, "config.json")))["architectures"][0]
    kind = get_model_class(arch)
    kind.no_mtp = True
    model = kind(Path(src), gguf.LlamaFileType.MOSTLY_BF16, Path(out), model_name="tiny", fuse_qkv=fuse)
    for m in (model, getattr(model, "impl", model)):  # some only pass on
        m.set_vocab = m._set_vocab_none
    kv_b = requantise(model.gguf_writer, types, seed, gguf) if types else None
    model.write()
    if types: golden_of(src, kv_b, seed)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--llama-cpp", required=True)
    a.add_argument("--out", default="tests/golden/gguf")
    a.add_argument("--only")
    a = a.parse_args()
    sys.path[:0] = [a.llama_cpp, os.path.join(a.llama_cpp, "gguf-py")]
    import gguf
    from conversion import get_model_class
    for i, (name, (model_type, config, more)) in enumerate(FAMILIES.items()):
        if a.only and name not in a.only.split(","):
            continue
        seed = weights.seed_of(os.path.join(a.out, name), 3000 + i)
        with tempfile.TemporaryDirectory() as tmp:
            print(make_goldens.make(name, model_type, config, tmp, seed), flush=True)
            src, dst = os.path.join(tmp, name), os.path.join(a.out, name)
            weights.materialize(src)
            cj = os.path.join(src, "config.json")
            merged = json.load(open(cj)) | more
            json.dump(merged, open(cj, "w"))
            write_vocab(src, merged["vocab_size"])
            os.makedirs(dst, exist_ok=True)
            convert(src, os.path.join(dst, "model.gguf"), gguf, get_model_class, name.endswith("_fused"),
                    QUANTISED.get(name), seed)
            shutil.copy(os.path.join(src, "golden.safetensors"), dst)


if __name__ == "__main__":
    main()
