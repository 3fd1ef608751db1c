"""What transformers computes from tensors that mlx-lm has renamed, turned, stacked and multiplied: for make_mlx_goldens.py.

Where mlx-lm's function is not the reference's (README.md under tests/golden says which), its layout and its dequantised values are taken
back into the reference's names, and the golden is what the reference makes of them.
"""
import re
import numpy as np, torch, transformers
import mlx.core as mx
from mlx.utils import tree_flatten
from make_quant_goldens import golden


def values(model):
    """Every tensor in f32 by mlx's name, quantised matrices as mlx dequantises them."""
    flat = dict(tree_flatten(model.parameters()))
    for path, m in model.named_modules():
        if "scales" not in m: continue
        flat[path + ".weight"] = mx.dequantize(m.weight, m.scales, m.get("biases"), group_size=m.group_size, bits=m.bits, mode=m.mode)
        del flat[path + ".scales"]; flat.pop(path + ".biases", None)
    return {k: torch.from_numpy(np.array(v.astype(mx.float32))) for k, v in flat.items()}


def renamed(t, *pairs):
    for old, new in pairs: t = {re.sub(old, new, k): v for k, v in t.items()}
    return t


def joined(t, gate, up, both, dim):
    """One tensor of two, for every layer."""
    for k in [k for k in t if k.endswith(gate)]:
        at = k.removesuffix(gate)
        t[at + both] = torch.cat([t.pop(k), t.pop(at + up)], dim)
    return t


def conv(t, c): return {k: v.swapaxes(1, 2) if k.endswith("conv1d.weight") else v for k, v in t.items()}


def falcon_h1(t, c):
    """mlx-lm's files hold matrices that are multiplied already."""
    parts = torch.tensor(c.ssm_multipliers)
    bc = c.mamba_n_groups * c.mamba_d_state
    by = {"embed_tokens": c.embedding_multiplier, "lm_head": c.lm_head_multiplier, "q_proj": c.attention_in_multiplier,
          "k_proj": c.attention_in_multiplier, "o_proj": c.attention_out_multiplier, "out_proj": c.ssm_out_multiplier,
          "gate_proj": c.mlp_multipliers[0], "down_proj": c.mlp_multipliers[1],
          "in_proj": c.ssm_in_multiplier * parts.repeat_interleave(torch.tensor([c.mamba_d_ssm, c.mamba_d_ssm, bc, bc, c.mamba_n_heads]))[:, None]}
    return {k: v / by.get(k.split(".")[-2], 1.0) if k.endswith(".weight") else v for k, v in conv(t, c).items()}


def granite_h(t, c):
    t = joined(conv(t, c), "switch_mlp.gate_proj.weight", "switch_mlp.up_proj.weight", "experts.gate_up_proj", 1)
    t = renamed(t, (r"switch_mlp.down_proj.weight", "experts.down_proj"), (r"router\.layer", "router"), (r"\.mlp\.", ".shared_mlp."),
                (r"shared_mlp.down_proj", "shared_mlp.output_linear"))
    return joined(t, "shared_mlp.gate_proj.weight", "shared_mlp.up_proj.weight", "shared_mlp.input_linear.weight", 0)


def nemotron_h(t, c):
    return renamed(conv(t, c), (r"^backbone", "model"), (r"switch_mlp.fc1.weight", "experts.up_proj"), (r"switch_mlp.fc2.weight", "experts.down_proj"))


def gpt_oss(t, c):
    """The reference's experts have inputs first, gate and up by turns."""
    for k in [k for k in t if "experts.gate_proj" in k]:
        both = torch.stack([t.pop(k), t.pop(k.replace("gate_proj", "up_proj"))], 2).flatten(1, 2)
        t[k.replace("gate_proj.weight", "gate_up_proj").replace("gate_proj.bias", "gate_up_proj_bias")] = both
    t = renamed(t, (r"experts.down_proj.weight", "experts.down_proj"), (r"experts.down_proj.bias", "experts.down_proj_bias"))
    return {k: v.swapaxes(1, 2).contiguous() if re.search(r"experts.*proj$", k) else v for k, v in t.items()}


def apertus(t, c):
    """Numbers of an activation: mlx-lm holds the two constants among them without storing them."""
    return {k: v.reshape(1) if "act_fn" in k else v for k, v in t.items()}


def same(t, c): return t


BACK = {"gemma": same, "olmo3": same, "apertus": apertus, "mamba2": conv, "falcon_h1": falcon_h1, "granitemoehybrid": granite_h, "nemotron_h": nemotron_h, "gpt_oss": gpt_oss}


def make(d, model, cfg, seed):
    """Writes d/golden.safetensors; returns what golden() does."""
    fields = {k: v for k, v in cfg.items() if k not in ("model_type", "quantization", "quantization_config")}
    config = transformers.AutoConfig.for_model(cfg["model_type"], **fields)
    law = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager",
                                                        experts_implementation="eager").eval()
    t = BACK[cfg["model_type"]](values(model), config)
    if config.tie_word_embeddings: t["lm_head.weight"] = law.get_input_embeddings().weight
    law.load_state_dict({k: v for k, v in t.items() if k in law.state_dict() or "lm_head" not in k})
    if config.tie_word_embeddings: law.tie_weights()
    return golden(d, law, seed, config)
