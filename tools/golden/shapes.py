"""Random legal shapes of each family: for try_shapes.py.  A draw takes a random.Random and returns a config for the reference's class.

What a family's class ties together (heads and widths, groups and experts, lists and layers) is drawn together; everything else is drawn
alone, so that no field keeps the value that published models give it.
"""
from make_goldens import L4, S4

HEAD_DIMS = [6, 8, 10, 12, 16, 20, 24, 32, 36]


def some(r, p=0.5, **kw):
    """Each of the fields with probability p: what is left out has the class's default."""
    return {k: v for k, v in kw.items() if r.random() < p}


def common(r, dim=HEAD_DIMS, share=False, kv=None, eps="rms_norm_eps", tied=True):
    """Numbers that nearly all have.  share: a head's width is its part of the hidden state; kv "same": as many as heads."""
    n_kv = r.choice([1, 1, 2, 3]); heads = n_kv * r.choice([1, 1, 2, 3, 5]); d = r.choice(dim)
    if kv == "same": n_kv = heads
    if share:
        d = r.choice([x for x in HEAD_DIMS if 30 <= x * heads <= 130] or [8])
        hidden = heads * d
    else: hidden = heads * r.randint(-(-36 // heads), max(-(-36 // heads), 100 // heads))
    out = dict(vocab_size=r.choice([257, 301, 383, 384]), hidden_size=hidden, intermediate_size=r.choice([36, 51, 77, 100, 128]),
               num_hidden_layers=r.choice([1, 2, 3, 4, 5]), num_attention_heads=heads, num_key_value_heads=n_kv, head_dim=d,
               max_position_embeddings=r.choice([64, 100, 512]), bos_token_id=1, eos_token_id=2, pad_token_id=0)
    out[eps] = r.choice([0.0, 1e-8, 1e-6, 1e-5, 1e-3, 0.03])
    if share: del out["head_dim"]
    if tied: out["tie_word_embeddings"] = r.random() < 0.5
    return out


def scaling(r, kind, pairs):
    """What a kind of rotation needs beside its name."""
    if kind in ("linear", "dynamic"): return dict(factor=r.choice([1.0, 1.5, 2, 7.3]))
    if kind == "llama3":
        return dict(factor=r.choice([2.0, 8.0, 5.5]), low_freq_factor=r.choice([0.5, 1.0, 1.5]), high_freq_factor=r.choice([2.0, 4.0, 9.0]),
                    original_max_position_embeddings=r.choice([16, 64]))
    if kind == "yarn":
        return dict(factor=r.choice([2.0, 4.0, 1.3, 16]), original_max_position_embeddings=r.choice([16, 32, 61])) | some(
            r, beta_fast=r.choice([8.0, 32.0]), beta_slow=r.choice([1.0, 2.5]), truncate=r.random() < 0.5) | some(
            r, 0.4, attention_factor=r.choice([0.8, 1.25]), mscale=r.choice([0.5, 1.0]), mscale_all_dim=r.choice([0.7, 1.0]))
    if kind == "longrope":
        return dict(short_factor=[round(r.uniform(1, 3), 2) for _ in range(pairs)], long_factor=[round(r.uniform(1, 9), 2) for _ in range(pairs)],
                    original_max_position_embeddings=r.choice([16, 32, 63])) | some(r, factor=r.choice([2.0, 5.0]), attention_factor=1.3)
    return {}


KINDS = ["default", "default", "linear", "dynamic", "yarn", "llama3", "longrope"]


def rope(r, dim, kinds=KINDS, partial=()):
    kind = r.choice(kinds)
    p = dict(rope_type=kind, rope_theta=r.choice([100.0, 10000.0, 12345.6, 500000.0, 1e6]))
    parts = [x for x in partial if int(dim * x) >= 2 and int(dim * x) % 2 == 0]
    if parts:
        p["partial_rotary_factor"] = r.choice(parts); dim = int(dim * p["partial_rotary_factor"])
    return p | scaling(r, kind, dim // 2)


def head_dim(c): return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def roped(r, c, **kw):
    if r.random() < 0.85: c["rope_parameters"] = rope(r, head_dim(c), **kw)
    return c


PARTS = [0.25, 0.5, 0.75, 1.0]


def pattern(r, n, kinds, need=None):
    """Kinds of layers: any mix, all of one, or few of one; `need` is among them."""
    p = r.choice([0.0, 0.2, 0.5, 0.8, 1.0])
    out = [kinds[0] if r.random() < p else kinds[1] for _ in range(n)]
    if need and need not in out: out[r.randrange(n)] = need
    return out


def window(r): return r.choice([1, 2, 3, 7, 16, 33, 100])


def windows(r, c):
    c["sliding_window"] = window(r)
    if r.random() < 0.8: c["layer_types"] = pattern(r, c["num_hidden_layers"], [S4, L4])
    return c


def bits(r, *names): return {n: r.random() < 0.5 for n in names}


def routed(r, count, width="moe_intermediate_size", k="num_experts_per_tok", groups=False):
    n = r.choice([2, 3, 4, 6, 8, 9, 12]); used = r.choice([1, n, r.randint(1, n)])
    out = {count: n, k: used, width: r.choice([20, 33, 40, 48])}
    if groups:
        g = r.choice([g for g in range(1, n) if n % g == 0 and n // g > 1]); top = r.randint(1, g)
        out |= dict(n_group=g, topk_group=top); out[k] = min(used, top * (n // g))
    return out


def llama(r): return roped(r, common(r)) | bits(r, "attention_bias", "mlp_bias")
def mistral(r): return roped(r, common(r)) | dict(sliding_window=r.choice([None, window(r)]))
def ministral(r): return windows(r, roped(r, common(r)))


def ministral3(r):
    c = roped(r, common(r, dim=[8, 16, 20, 32]), kinds=["yarn"])
    c.setdefault("rope_parameters", rope(r, head_dim(c), kinds=["yarn"]))
    c["rope_parameters"] |= dict(llama_4_scaling_beta=r.choice([0.0, 0.1, 0.7]))
    return c | dict(sliding_window=r.choice([None, window(r)]))


def qwen(r): return roped(r, common(r)) | dict(
    use_sliding_window=r.random() < 0.7, sliding_window=window(r), max_window_layers=r.randint(0, 5))
def qwen3(r): return qwen(r) | bits(r, "attention_bias")


def sparse_layers(r, c):
    return c | dict(decoder_sparse_step=r.choice([1, 1, 2, 3]), norm_topk_prob=r.random() < 0.5,
                    mlp_only_layers=[i for i in range(c["num_hidden_layers"]) if r.random() < 0.2])


def qwen2_moe(r): return sparse_layers(r, qwen(r) | routed(r, "num_experts") | bits(r, "qkv_bias")) | dict(shared_expert_intermediate_size=r.choice([24, 41]))
def qwen3_moe(r): return sparse_layers(r, qwen3(r) | routed(r, "num_experts"))


def delta(r):
    k = r.choice([1, 2, 3])
    return dict(linear_num_key_heads=k, linear_num_value_heads=k * r.choice([1, 2, 3]), linear_key_head_dim=r.choice([8, 12, 20, 32]),
                linear_value_head_dim=r.choice([8, 10, 24, 32]), linear_conv_kernel_dim=r.choice([2, 3, 4, 5]))


def hybrid(r, c):
    return roped(r, c, kinds=["default", "default", "linear", "yarn"], partial=PARTS[:3]) | delta(r) | bits(r, "attention_bias") | dict(
        layer_types=pattern(r, c["num_hidden_layers"], ["linear_attention", L4], L4 if r.random() < 0.7 else None))


def qwen3_next(r): return sparse_layers(r, hybrid(r, common(r, dim=[8, 16, 24, 32])) | routed(r, "num_experts")) | dict(
    shared_expert_intermediate_size=r.choice([24, 41]))
def qwen3_5(r): return hybrid(r, common(r, dim=[8, 16, 24, 32]))
def qwen3_5_moe(r): return qwen3_5(r) | routed(r, "num_experts") | dict(shared_expert_intermediate_size=r.choice([24, 41]))


def gemma(r): return roped(r, common(r)) | bits(r, "attention_bias")
def gemma2(r): return windows(r, gemma(r)) | dict(query_pre_attn_scalar=r.choice([5, 16, 24.5, 100])) | some(
    r, attn_logit_softcapping=r.choice([None, 3.0, 20.0]), final_logit_softcapping=r.choice([None, 4.0, 10.0]))


def by_kind(r, dim, kinds=KINDS, dims=None):
    return {k: rope(r, dim, kinds) for k in (L4, S4)}


def gemma3(r):
    c = gemma2(r); c.pop("rope_parameters", None)
    if r.random() < 0.8: c["rope_parameters"] = by_kind(r, c["head_dim"])
    return c


def gemma3n(r):
    c = common(r, tied=False); n = c["num_hidden_layers"] = r.choice([2, 3, 5, 6]); types = pattern(r, n, [S4, L4])
    shared = r.randint(0, n - 1)
    while not set(types[n - shared:]) <= set(types[:n - shared]): shared -= 1
    streams = r.choice([2, 3, 4])
    c |= dict(layer_types=types, sliding_window=window(r), num_kv_shared_layers=shared, hidden_size_per_layer_input=r.choice([5, 8, 12]),
              vocab_size_per_layer_input=r.choice([200, c["vocab_size"]]), laurel_rank=r.choice([1, 5, 8]), altup_num_inputs=streams,
              altup_active_idx=r.randrange(streams), altup_correct_scale=r.random() < 0.5, intermediate_size=[r.choice([40, 51, 77]) for _ in range(n)],
              activation_sparsity_pattern=[r.choice([0.0, 0.5, 0.95]) for _ in range(n)], attention_bias=r.random() < 0.5)
    if r.random() < 0.6: c["rope_parameters"] = by_kind(r, c["head_dim"], ["default", "linear", "yarn"])
    return c | some(r, final_logit_softcapping=r.choice([None, 5.0]), altup_coef_clip=r.choice([0.1, 1.0]))


def gemma4(r):
    c = common(r, dim=[8, 16, 20, 32], tied=False); n = c["num_hidden_layers"]; types = pattern(r, n, [S4, L4]); types[-1] = L4
    shared = r.randint(0, n - 1)
    while not set(types[n - shared:]) <= set(types[:n - shared]): shared -= 1
    kv = c["num_key_value_heads"]
    c |= dict(layer_types=types, sliding_window=window(r), num_kv_shared_layers=shared, global_head_dim=r.choice([16, 24, 40]),
              hidden_size_per_layer_input=r.choice([0, 6, 12]), vocab_size_per_layer_input=r.choice([260, c["vocab_size"]]),
              num_global_key_value_heads=r.choice([1, kv]), final_logit_softcapping=r.choice([None, 9.0])) | bits(
              r, "attention_k_eq_v", "use_double_wide_mlp", "attention_bias")
    if shared and c["attention_k_eq_v"]: c["num_kv_shared_layers"] = 0
    if r.random() < 0.4: c |= dict(enable_moe_block=True) | routed(r, "num_experts", k="top_k_experts")
    if r.random() < 0.6:
        c["rope_parameters"] = {L4: dict(rope_type="proportional", rope_theta=1e5, partial_rotary_factor=r.choice([0.25, 0.5, 1.0])),
                                S4: rope(r, c["head_dim"], ["default", "linear", "yarn"])}
    return c


def glm4(r): return roped(r, common(r), kinds=["default"] * 2 + KINDS, partial=PARTS) | bits(r, "attention_bias")
def glm4_moe(r): return glm4(r) | routed(r, "n_routed_experts", groups=True) | bits(r, "use_qk_norm", "norm_topk_prob") | dict(
    n_shared_experts=r.choice([1, 1, 2, 3]), first_k_dense_replace=r.choice([0, 1, 2, 9]), routed_scaling_factor=r.choice([1.0, 0.7, 2.5]))


def latent(r, **kw):
    c = common(r, kv="same"); del c["head_dim"]
    c |= routed(r, "n_routed_experts", groups=True) | dict(
        q_lora_rank=r.choice([9, 24, 32]), kv_lora_rank=r.choice([10, 24, 40]), qk_nope_head_dim=r.choice([6, 12, 16]),
        qk_rope_head_dim=r.choice([4, 8, 20]), v_head_dim=r.choice([7, 16, 20]), n_shared_experts=r.choice([1, 2, 3]),
        routed_scaling_factor=r.choice([1.0, 0.7, 2.5]), norm_topk_prob=r.random() < 0.5, first_k_dense_replace=r.choice([0, 1, 9]),
        attention_bias=r.random() < 0.4)
    if r.random() < 0.85: c["rope_parameters"] = rope(r, c["qk_rope_head_dim"], **kw)
    return c


def deepseek_v3(r): return latent(r) | bits(r, "rope_interleave") | some(r, 0.3, q_lora_rank=None)


def mistral4(r):
    c = latent(r, kinds=["yarn", "linear", "default"]) | bits(r, "rope_interleave")
    p = c.setdefault("rope_parameters", rope(r, c["qk_rope_head_dim"], kinds=["yarn"]))
    p.setdefault("original_max_position_embeddings", 8); p["llama_4_scaling_beta"] = r.choice([0.0, 0.1, 0.5])
    return c


def indexed(r):
    c = latent(r); c.pop("first_k_dense_replace")
    return c | dict(index_topk=r.choice([1, 3, 16, 64]), index_n_heads=r.choice([1, 3, 4]), index_head_dim=c["qk_rope_head_dim"] + r.choice([0, 4, 12]),
                    mlp_layer_types=pattern(r, c["num_hidden_layers"], ["dense", "sparse"]))


def glm_moe_dsa(r):
    c = indexed(r); types = pattern(r, c["num_hidden_layers"], ["full", "shared"]); types[0] = "full"
    return c | dict(indexer_types=types)


def gpt_oss(r):
    c = windows(r, roped(r, common(r), kinds=["default", "yarn", "linear"])) | routed(r, "num_local_experts", "intermediate_size") | bits(r, "attention_bias")
    return c | some(r, swiglu_alpha=r.choice([1.0, 2.5]), swiglu_limit=r.choice([0.5, 3.0]))


def phi3(r):
    c = common(r, share=True) | dict(sliding_window=r.choice([None, window(r)]), original_max_position_embeddings=r.choice([16, 512]))
    if r.random() < 0.85: c["rope_parameters"] = rope(r, head_dim(c), ["default", "longrope", "longrope"], PARTS)
    if c.get("rope_parameters", {}).get("rope_type") == "longrope": c["rope_parameters"].pop("original_max_position_embeddings")
    return c


def multipliers(r): return dict(embedding_multiplier=r.choice([1.0, 3.0, 12]), attention_multiplier=r.choice([1.0, 0.2, 0.0625]),
                                residual_multiplier=r.choice([1.0, 0.22]), logits_scaling=r.choice([1.0, 8.0, 0.5]))


def granite(r): return llama(r) | multipliers(r)
def granite_moe(r): return roped(r, common(r, share=True)) | multipliers(r) | routed(r, "num_local_experts", "intermediate_size") | bits(r, "attention_bias")
def granite_moe_shared(r): return granite_moe(r) | dict(shared_intermediate_size=r.choice([0, 24, 41]))
def olmo2(r): return roped(r, common(r)) | bits(r, "attention_bias")


def olmo3(r):
    c = windows(r, common(r)) | bits(r, "attention_bias")
    if r.random() < 0.7: c["rope_parameters"] = by_kind(r, head_dim(c))
    return c


def cohere(r): return roped(r, common(r, eps="layer_norm_eps")) | bits(r, "attention_bias", "use_qk_norm") | some(r, logit_scale=r.choice([0.25, 1.0, 3]))
def cohere2(r): return windows(r, roped(r, common(r, eps="layer_norm_eps"))) | bits(r, "attention_bias") | some(r, logit_scale=r.choice([0.25, 1.0, 3]))


def smollm3(r):
    c = llama(r) | dict(use_sliding_window=r.random() < 0.5, sliding_window=window(r))
    if r.random() < 0.5: c["layer_types"] = pattern(r, c["num_hidden_layers"], [S4, L4])
    return c | r.choice([dict(no_rope_layers=[r.randint(0, 1) for _ in range(c["num_hidden_layers"])]), dict(no_rope_layer_interval=r.choice([1, 2, 3]))])


def seed_oss(r): return roped(r, common(r)) | bits(r, "attention_bias", "attention_out_bias", "mlp_bias")


def hunyuan(r):
    c = roped(r, common(r)) | bits(r, "attention_bias")
    if r.random() < 0.3: c["rope_parameters"] = dict(rope_type="dynamic", rope_theta=1e4, factor=r.choice([1.0, 2.0]), alpha=r.choice([2.0, 1000.0]))
    return c


def ernie4_5(r): return roped(r, common(r)) | bits(r, "use_bias")
def apertus(r): return roped(r, common(r)) | bits(r, "attention_bias")


def convolved(r):
    c = roped(r, common(r, share=True, eps="norm_eps")) | dict(conv_L_cache=r.choice([2, 3, 4, 5])) | bits(r, "conv_bias")
    return c | dict(layer_types=pattern(r, c["num_hidden_layers"], ["conv", L4], L4 if r.random() < 0.7 else None))


def lfm2(r): return convolved(r) | dict(block_auto_adjust_ff_dim=r.random() < 0.5, block_ffn_dim_multiplier=r.choice([1.0, 1.3, 0.7]),
                                        block_multiple_of=r.choice([1, 7, 16]))
def lfm2_moe(r): return convolved(r) | routed(r, "num_experts") | bits(r, "use_expert_bias", "norm_topk_prob") | dict(
    num_dense_layers=r.choice([0, 1, 9]), routed_scaling_factor=r.choice([1.0, 0.7, 2.0]))


def scan(r): return r.choice([1, 2, 3]), r.choice([1, 2, 3]), r.choice([6, 8, 16]), r.choice([8, 12, 20])


LIMITS = [(0.0, float("inf")), (0.01, 0.2), (0.3, 2.0)]


def mamba2(r):
    g, each, dim, state = scan(r); n = g * each; e = r.choice([1, 2])
    while n * dim % e or n * dim // e < 24: n += g
    return dict(vocab_size=r.choice([257, 383]), hidden_size=n * dim // e, num_hidden_layers=r.choice([1, 2, 3]), num_heads=n, head_dim=dim, state_size=state,
                n_groups=g, expand=e, conv_kernel=r.choice([2, 3, 4]), chunk_size=r.choice([5, 16, 64]), layer_norm_epsilon=r.choice([0.0, 1e-6, 1e-3]),
                bos_token_id=1, eos_token_id=2, pad_token_id=0, time_step_limit=r.choice(LIMITS)) | bits(r, "use_bias", "use_conv_bias", "tie_word_embeddings")


def falcon_h1(r):
    g, each, dim, state = scan(r); n = g * each
    c = roped(r, common(r)) | dict(mamba_d_ssm=n * dim, mamba_n_heads=n, mamba_d_head=dim, mamba_n_groups=g, mamba_d_state=state,
                                   mamba_d_conv=r.choice([2, 3, 4]), mamba_chunk_size=r.choice([5, 16]), time_step_limit=r.choice(LIMITS))
    some_of = lambda: round(r.uniform(0.4, 1.6), 2)
    return c | bits(r, "mamba_rms_norm", "mamba_norm_before_gate", "mamba_conv_bias", "mamba_proj_bias", "projectors_bias", "attention_bias", "mlp_bias") | some(
        r, embedding_multiplier=some_of(), lm_head_multiplier=some_of(), key_multiplier=some_of(), attention_in_multiplier=some_of(),
        attention_out_multiplier=some_of(), ssm_in_multiplier=some_of(), ssm_out_multiplier=some_of(),
        mlp_multipliers=[some_of(), some_of()], ssm_multipliers=[some_of() for _ in range(5)])


def nemotron_h(r):
    g, each, dim, state = scan(r); c = common(r, eps="layer_norm_epsilon"); n = c["num_hidden_layers"] = r.choice([1, 3, 4, 6])
    return c | dict(hybrid_override_pattern="".join(r.choice("ME*-") for _ in range(n)), mamba_num_heads=g * each, mamba_head_dim=dim, n_groups=g,
                    ssm_state_size=state, chunk_size=r.choice([5, 16]), conv_kernel=r.choice([2, 3, 4]), moe_shared_expert_intermediate_size=r.choice([24, 41]),
                    moe_latent_size=r.choice([None, 18]), routed_scaling_factor=r.choice([1.0, 2.5])) | routed(r, "n_routed_experts", groups=True) | bits(
                    r, "use_bias", "use_conv_bias", "mlp_bias", "norm_topk_prob") | some(r, time_step_min=0.3)


def granite_h(r):
    g, each, dim, state = scan(r); n = g * each; c = common(r, share=True)
    while n * dim % c["hidden_size"]: c = common(r, share=True); n, dim = r.choice([(g * each, dim), (6 * g, c["hidden_size"] // 3), (2 * g, c["hidden_size"])])
    c |= dict(layer_types=pattern(r, c["num_hidden_layers"], ["mamba", "attention"]), mamba_n_heads=n, mamba_d_head=dim, mamba_n_groups=g,
              mamba_expand=n * dim // c["hidden_size"], mamba_d_state=state, mamba_d_conv=r.choice([2, 3, 4]), mamba_chunk_size=r.choice([5, 16]),
              shared_intermediate_size=r.choice([40, 77]), position_embedding_type=r.choice(["nope", "rope"]), time_step_limit=r.choice(LIMITS))
    c |= routed(r, "num_local_experts", "intermediate_size") | multipliers(r) | bits(r, "mamba_conv_bias", "mamba_proj_bias", "attention_bias")
    if r.random() < 0.3: c["num_local_experts"] = 0
    return roped(r, c)


def minimax_m2(r): return roped(r, common(r), partial=PARTS) | routed(r, "num_local_experts", "intermediate_size")


FAMILIES = {
    "llama": ("llama", llama), "mistral": ("mistral", mistral), "ministral": ("ministral", ministral), "ministral3": ("ministral3", ministral3),
    "qwen2": ("qwen2", qwen), "qwen2_moe": ("qwen2_moe", qwen2_moe), "qwen3": ("qwen3", qwen3), "qwen3_moe": ("qwen3_moe", qwen3_moe),
    "qwen3_next": ("qwen3_next", qwen3_next), "qwen3_5": ("qwen3_5_text", qwen3_5), "qwen3_5_moe": ("qwen3_5_moe_text", qwen3_5_moe),
    "gemma": ("gemma", gemma), "gemma2": ("gemma2", gemma2), "gemma3": ("gemma3_text", gemma3), "gemma3n": ("gemma3n_text", gemma3n),
    "gemma4": ("gemma4_text", gemma4), "glm4": ("glm4", glm4), "glm4_moe": ("glm4_moe", glm4_moe), "glm_moe_dsa": ("glm_moe_dsa", glm_moe_dsa),
    "deepseek_v3": ("deepseek_v3", deepseek_v3), "deepseek_v32": ("deepseek_v32", indexed), "mistral4": ("mistral4", mistral4),
    "gpt_oss": ("gpt_oss", gpt_oss), "phi3": ("phi3", phi3), "granite": ("granite", granite), "olmo2": ("olmo2", olmo2), "olmo3": ("olmo3", olmo3),
    "cohere": ("cohere", cohere), "cohere2": ("cohere2", cohere2), "smollm3": ("smollm3", smollm3), "seed_oss": ("seed_oss", seed_oss),
    "hunyuan": ("hunyuan_v1_dense", hunyuan), "ernie4_5": ("ernie4_5", ernie4_5), "apertus": ("apertus", apertus), "lfm2": ("lfm2", lfm2),
    "lfm2_moe": ("lfm2_moe", lfm2_moe), "mamba2": ("mamba2", mamba2), "falcon_h1": ("falcon_h1", falcon_h1), "nemotron_h": ("nemotron_h", nemotron_h),
    "granite_h": ("granitemoehybrid", granite_h), "minimax_m2": ("minimax_m2", minimax_m2),
    "granite_moe": ("granitemoe", granite_moe), "granite_moe_shared": ("granitemoeshared", granite_moe_shared),
}
