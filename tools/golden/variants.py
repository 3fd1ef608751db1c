"""Other shapes of the families: for make_goldens.py --variants.  What each varies stands in its name."""
from make_goldens import L4, S4, c


def rope(kind, **kw):
    return dict(rope_type=kind, rope_theta=10000.0, **kw)


FAMILIES = {
    "llama_linear": ("llama", c(rope_parameters=rope("linear", factor=3.0))),
    "llama_dynamic": ("llama", c(rope_parameters=rope("dynamic", factor=2.0))),
    "llama_long_short": ("llama", c(rope_parameters=rope(
        "longrope", factor=4.0, original_max_position_embeddings=128,
        short_factor=[1.0 + 0.1 * i for i in range(8)], long_factor=[2.0 + 0.5 * i for i in range(8)]))),
    "llama_long_long": ("llama", c(rope_parameters=rope(
        "longrope", factor=16.0, original_max_position_embeddings=32,
        short_factor=[1.0 + 0.1 * i for i in range(8)], long_factor=[2.0 + 0.5 * i for i in range(8)]))),
    "llama_yarn_mscale": ("llama", c(rope_parameters=rope(
        "yarn", factor=8.0, original_max_position_embeddings=64, mscale=0.8, mscale_all_dim=0.5,
        beta_fast=16.0, beta_slow=2.0, truncate=False))),
    "llama_mqa_odd": ("llama", c(hidden_size=72, num_attention_heads=6, num_key_value_heads=1, head_dim=20,
                                 intermediate_size=100, num_hidden_layers=3)),
    "mistral_no_window": ("mistral", c(sliding_window=None)),
    "qwen2_windowed": ("qwen2", c(use_sliding_window=True, sliding_window=12, max_window_layers=2)),
    "qwen3_biased": ("qwen3", c(head_dim=24, attention_bias=True, tie_word_embeddings=False,
                                num_attention_heads=6, num_key_value_heads=3)),
    "gemma2_narrow": ("gemma2", c(head_dim=16, sliding_window=5, query_pre_attn_scalar=16, num_hidden_layers=3)),
    "gemma3_scaled": ("gemma3_text", c(
        head_dim=32, sliding_window=8, num_hidden_layers=7, query_pre_attn_scalar=32,
        rope_parameters={"full_attention": dict(rope_type="linear", rope_theta=1000000.0, factor=8.0),
                         "sliding_attention": dict(rope_type="default", rope_theta=10000.0)})),
    "phi3_partial": ("phi3", c(hidden_size=96, num_attention_heads=6, num_key_value_heads=2, sliding_window=7,
                               tie_word_embeddings=True, num_hidden_layers=3, original_max_position_embeddings=512,
                               rope_parameters=rope("default", partial_rotary_factor=0.75))),
    "phi3_long_short": ("phi3", c(
        hidden_size=72, num_attention_heads=3, num_key_value_heads=1, num_hidden_layers=3, original_max_position_embeddings=64,
        rope_parameters=rope("longrope", partial_rotary_factor=0.5, short_factor=[1.0 + 0.1 * i for i in range(6)],
                             long_factor=[2.0 + 0.5 * i for i in range(6)]))),
    "phi3_long_long": ("phi3", c(
        hidden_size=64, num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=3, original_max_position_embeddings=16,
        rope_parameters=rope("longrope", partial_rotary_factor=0.75, short_factor=[1.0 + 0.1 * i for i in range(12)],
                             long_factor=[2.0 + 0.5 * i for i in range(12)]))),
    "granite_tied_biased": ("granite", c(
        hidden_size=72, num_attention_heads=6, num_key_value_heads=1, head_dim=20, tie_word_embeddings=True, attention_bias=True,
        mlp_bias=True, num_hidden_layers=3, embedding_multiplier=12.0, attention_multiplier=0.0625, residual_multiplier=0.22,
        logits_scaling=8.0)),
    "olmo2_biased": ("olmo2", c(hidden_size=60, num_attention_heads=5, num_key_value_heads=5, attention_bias=True,
                                tie_word_embeddings=True, num_hidden_layers=3)),
    "olmo3_scaled": ("olmo3", c(
        hidden_size=72, num_attention_heads=6, num_key_value_heads=3, num_hidden_layers=5, sliding_window=6, layer_types=None,
        rope_parameters={"full_attention": dict(rope_type="yarn", rope_theta=500000.0, factor=8.0, attention_factor=1.2,
                                                original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0),
                         "sliding_attention": dict(rope_type="default", rope_theta=500000.0)})),
    "cohere2_mqa": ("cohere2", c(hidden_size=96, num_attention_heads=6, num_key_value_heads=1, num_hidden_layers=5, sliding_window=5,
                                 attention_bias=True, logit_scale=0.5, layer_norm_eps=0.01)),
    "smollm3_windowed": ("smollm3", c(
        hidden_size=72, num_attention_heads=6, num_key_value_heads=2, num_hidden_layers=6, no_rope_layer_interval=3,
        tie_word_embeddings=False, attention_bias=True, mlp_bias=True, use_sliding_window=True, sliding_window=9)),
    "glm4_quarter": ("glm4", c(hidden_size=72, num_attention_heads=6, num_key_value_heads=1, head_dim=40, attention_bias=False,
                               tie_word_embeddings=True, num_hidden_layers=3, rope_parameters=rope("default", partial_rotary_factor=0.25))),
    "gemma_mqa": ("gemma", c(hidden_size=72, num_attention_heads=5, num_key_value_heads=1, head_dim=24, attention_bias=True,
                             num_hidden_layers=3)),
    "ernie4_5_biased": ("ernie4_5", c(num_attention_heads=6, num_key_value_heads=3, head_dim=20, use_bias=True,
                                      tie_word_embeddings=False, num_hidden_layers=3)),
    "seed_oss_out_biased": ("seed_oss", c(num_attention_heads=5, num_key_value_heads=1, head_dim=20, attention_bias=False,
                                          attention_out_bias=True, mlp_bias=True, tie_word_embeddings=True, num_hidden_layers=3)),
    "hunyuan_alpha": ("hunyuan_v1_dense", c(num_attention_heads=6, num_key_value_heads=2, head_dim=24, attention_bias=True,
                                            tie_word_embeddings=True, num_hidden_layers=3,
                                            rope_parameters=rope("dynamic", alpha=50.0, factor=1.0))),
    "apertus_plain": ("apertus", c(hidden_size=72, num_attention_heads=6, num_key_value_heads=1, attention_bias=True,
                                   tie_word_embeddings=True, num_hidden_layers=3, rope_parameters=rope("default"))),
    "ministral": ("ministral", c(head_dim=20, num_attention_heads=6, num_key_value_heads=3, sliding_window=6, num_hidden_layers=5,
                                 layer_types=[L4, S4, L4, S4, S4])),
    # The widths of MiniCPM5-1B, a Llama, but for the vocabulary, the MLP and the number of layers.
    "llama_minicpm5": ("llama", c(hidden_size=1536, num_attention_heads=16, num_key_value_heads=2, head_dim=128, num_hidden_layers=1,
                                  intermediate_size=384, vocab_size=128)),
    # MiniCPM's own modelling file is not part of transformers: what Granite computes, as its fields are spelled here.
    "minicpm": ("granite", c(embedding_multiplier=12.0, attention_multiplier=0.25, residual_multiplier=1.4 / 4 ** 0.5, logits_scaling=0.25),
                dict(model_type="minicpm", architectures=["MiniCPMForCausalLM"], scale_emb=12, scale_depth=1.4, dim_model_base=256,
                     embedding_multiplier=None, attention_multiplier=None, residual_multiplier=None, logits_scaling=None)),
    # A wrapper: the language model's fields under text_config, a tower for pictures beside it.
    "mistral3_wrapped": ("mistral3", dict(
        text_config=c(model_type="mistral", head_dim=20, num_hidden_layers=3, sliding_window=None),
        vision_config=dict(model_type="pixtral", hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, head_dim=8,
                           image_size=32, patch_size=8), image_token_index=7, tie_word_embeddings=False)),
    "ministral3": ("ministral3", c(head_dim=20, num_attention_heads=6, num_hidden_layers=3, rope_parameters=rope(
        "yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
        llama_4_scaling_beta=0.5))),
    "lfm2_biased": ("lfm2", c(hidden_size=72, num_attention_heads=6, num_key_value_heads=1, num_hidden_layers=5, conv_L_cache=5, conv_bias=True,
                              block_ff_dim=150, block_multiple_of=16, block_ffn_dim_multiplier=1.3, tie_word_embeddings=False,
                              layer_types=[L4, "conv", "conv", L4, "conv"])),
    "lfm2_moe_plain": ("lfm2_moe", c(num_hidden_layers=3, conv_L_cache=2, layer_types=["conv", L4, "conv"], num_experts=6, num_experts_per_tok=3,
                                     moe_intermediate_size=40, num_dense_layers=0, use_expert_bias=False, norm_topk_prob=False,
                                     routed_scaling_factor=2.0)),
    "qwen3_next_odd": ("qwen3_next", c(
        hidden_size=72, num_attention_heads=6, num_key_value_heads=1, head_dim=24, num_hidden_layers=5, num_experts=6, num_experts_per_tok=2,
        moe_intermediate_size=40, shared_expert_intermediate_size=56, linear_num_key_heads=3, linear_num_value_heads=6,
        linear_key_head_dim=20, linear_value_head_dim=24, linear_conv_kernel_dim=3, mlp_only_layers=[1], decoder_sparse_step=2,
        norm_topk_prob=False, attention_bias=True, tie_word_embeddings=True, layer_types=["linear_attention", L4] * 2 + ["linear_attention"],
        rope_parameters=rope("default", partial_rotary_factor=0.5))),
    "qwen3_5_ungrouped": ("qwen3_5_text", c(
        num_attention_heads=5, num_key_value_heads=5, head_dim=16, num_hidden_layers=3, linear_num_key_heads=3, linear_num_value_heads=3,
        linear_key_head_dim=16, linear_value_head_dim=40, linear_conv_kernel_dim=2, tie_word_embeddings=True,
        layer_types=[L4, "linear_attention", "linear_attention"])),
    "qwen3_5_wrapped": ("qwen3_5", dict(
        text_config=c(model_type="qwen3_5_text", head_dim=32, num_hidden_layers=4, linear_num_key_heads=2, linear_num_value_heads=4,
                      linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4,
                      rope_parameters=rope("default", partial_rotary_factor=0.25, mrope_section=[2, 1, 1], mrope_interleaved=True)),
        vision_config=dict(depth=1, hidden_size=16, intermediate_size=32, num_heads=2, out_hidden_size=64, num_position_embeddings=16),
        tie_word_embeddings=False)),
    "gemma3n_three": ("gemma3n_text", c(
        hidden_size=72, num_attention_heads=6, num_key_value_heads=1, head_dim=20, num_hidden_layers=7, sliding_window=5, layer_types=None,
        num_kv_shared_layers=0, hidden_size_per_layer_input=12, vocab_size_per_layer_input=300, laurel_rank=5, altup_num_inputs=3,
        altup_active_idx=1, altup_correct_scale=False, intermediate_size=[96, 100, 104, 108, 112, 116, 120], attention_bias=True,
        activation_sparsity_pattern=[0.5, 0.9, 0.0, 0.25, 0.99, 0.0, 0.75], final_logit_softcapping=5.0)),
    # The reference's own pattern of sparse layers, which it has from eleven layers on; layers without a cache of their own.
    "gemma3n_deep": ("gemma3n_text", c(
        num_attention_heads=4, num_key_value_heads=4, head_dim=16, hidden_size=48, num_hidden_layers=11, sliding_window=9, layer_types=[L4, S4] * 5 + [S4],
        num_kv_shared_layers=8, hidden_size_per_layer_input=8, vocab_size_per_layer_input=384, laurel_rank=16, altup_num_inputs=2, intermediate_size=80,
        rope_parameters={"full_attention": dict(rope_type="linear", rope_theta=500000.0, factor=4.0),
                         "sliding_attention": dict(rope_type="default", rope_theta=20000.0)})),
    "cohere": ("cohere", c(num_attention_heads=4, num_key_value_heads=None, logit_scale=0.25)),
    "cohere_normed": ("cohere", c(hidden_size=96, num_attention_heads=6, num_key_value_heads=2, num_hidden_layers=3, use_qk_norm=True,
                                  attention_bias=True, logit_scale=0.5, layer_norm_eps=0.01, tie_word_embeddings=False)),
    "mistral4": ("mistral4", c(
        num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24, n_routed_experts=8,
        num_experts_per_tok=2, moe_intermediate_size=48, n_group=4, topk_group=2, first_k_dense_replace=1, routed_scaling_factor=1.5,
        rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                             mscale_all_dim=1.0, llama_4_scaling_beta=0.5))),
    "mistral4_plain": ("mistral4", c(
        num_attention_heads=6, num_key_value_heads=6, num_hidden_layers=3, q_lora_rank=24, kv_lora_rank=40, qk_nope_head_dim=12, qk_rope_head_dim=20,
        v_head_dim=16, n_routed_experts=5, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=40, norm_topk_prob=False,
        attention_bias=True, rope_interleave=False,
        rope_parameters=rope("linear", factor=2.0, original_max_position_embeddings=8, llama_4_scaling_beta=0.1))),
    "qwen3_5_moe_bare": ("qwen3_5_moe_text", c(
        intermediate_size=None, head_dim=16, num_hidden_layers=3, layer_types=None, full_attention_interval=2, num_experts=6,
        num_experts_per_tok=3, moe_intermediate_size=32, shared_expert_intermediate_size=40, linear_num_key_heads=1,
        linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=20)),
    # Chunks of the reference's scan that divide nothing, and are shorter than the prompt.
    "mamba2_limited": ("mamba2", c(hidden_size=48, num_heads=6, head_dim=16, state_size=24, n_groups=3, expand=2, chunk_size=7, conv_kernel=3,
                                   use_bias=True, use_conv_bias=False, tie_word_embeddings=True, time_step_limit=(0.01, 0.04), num_hidden_layers=3,
                                   num_attention_heads=None, num_key_value_heads=None, intermediate_size=None)),
    "mamba2_own_group": ("mamba2", c(num_heads=16, head_dim=8, state_size=20, n_groups=16, expand=2, chunk_size=64, conv_kernel=2, num_hidden_layers=2,
                                     num_attention_heads=None, num_key_value_heads=None, intermediate_size=None)),
    "falcon_h1_scaled": ("falcon_h1", c(
        mamba_d_ssm=72, mamba_n_heads=9, mamba_d_head=8, mamba_n_groups=3, mamba_d_state=12, mamba_d_conv=2, mamba_chunk_size=16, num_hidden_layers=3,
        mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_conv_bias=False, mamba_proj_bias=True, projectors_bias=True, attention_bias=True,
        mlp_bias=True, num_key_value_heads=1, tie_word_embeddings=True, embedding_multiplier=2.0, lm_head_multiplier=0.5, key_multiplier=0.7,
        attention_in_multiplier=1.3, attention_out_multiplier=0.8, ssm_in_multiplier=1.2, ssm_out_multiplier=0.6, mlp_multipliers=[1.5, 0.7],
        ssm_multipliers=[0.9, 1.1, 0.8, 1.2, 0.7])),
    "falcon_h1_gate_first": ("falcon_h1", c(mamba_d_ssm=None, mamba_expand=1, mamba_n_heads=4, mamba_d_head="auto", mamba_d_state=16, mamba_chunk_size=16,
                                            mamba_rms_norm=True, mamba_norm_before_gate=False, num_hidden_layers=2)),
    "granite_h_dense": ("granitemoehybrid", c(
        hidden_size=72, num_attention_heads=6, num_key_value_heads=1, layer_types=[L4, "mamba", "mamba"], num_hidden_layers=3, mamba_n_heads=12,
        mamba_d_head="auto", mamba_n_groups=3, mamba_d_state=20, mamba_d_conv=3, mamba_chunk_size=9, mamba_proj_bias=True, mamba_conv_bias=False,
        num_local_experts=0, shared_intermediate_size=100, attention_bias=True, tie_word_embeddings=True, position_embedding_type="rope",
        attention_multiplier=0.3, residual_multiplier=0.7)),
    "nemotron_h_latent": ("nemotron_h", c(
        head_dim=20, num_attention_heads=6, num_key_value_heads=3, hybrid_override_pattern="ME*-E", mamba_num_heads=6, mamba_head_dim=12, n_groups=3,
        ssm_state_size=20, chunk_size=11, conv_kernel=3, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, moe_intermediate_size=40,
        moe_shared_expert_intermediate_size=56, moe_latent_size=24, routed_scaling_factor=2.5, norm_topk_prob=False, mlp_bias=True, use_bias=True,
        use_conv_bias=False, time_step_min=0.7, tie_word_embeddings=True)),
    "nemotron_h_moe": ("nemotron_h", c(head_dim=16, hybrid_override_pattern="EM*E", mamba_num_heads=8, mamba_head_dim=8, n_groups=1, ssm_state_size=16,
                                       chunk_size=16, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=48,
                                       moe_shared_expert_intermediate_size=64)),
    "deepseek_v32_odd": ("deepseek_v32", c(
        num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=3, q_lora_rank=24, kv_lora_rank=40, qk_nope_head_dim=12, qk_rope_head_dim=8,
        v_head_dim=20, n_routed_experts=6, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=24, n_group=1, topk_group=1,
        first_k_dense_replace=0, index_topk=3, index_head_dim=20, index_n_heads=7, norm_topk_prob=False, attention_bias=True,
        rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=0.7))),
    "deepseek_v32_dense": ("deepseek_v32", c(  # nothing is left out
        num_key_value_heads=4, num_hidden_layers=3, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=16,
        n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=48, n_group=4, topk_group=2, first_k_dense_replace=1, index_topk=64,
        index_head_dim=32, index_n_heads=4)),
    "glm_moe_dsa_shared": ("glm_moe_dsa", c(
        num_attention_heads=6, num_key_value_heads=6, num_hidden_layers=5, q_lora_rank=32, kv_lora_rank=24, qk_nope_head_dim=24, qk_rope_head_dim=8,
        v_head_dim=16, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=48, index_topk=10, index_head_dim=8, index_n_heads=9,
        mlp_layer_types=["sparse", "dense", "sparse", "dense", "sparse"], indexer_types=["full", "shared", "shared", "full", "shared"])),
    "glm_moe_dsa_pattern": ("glm_moe_dsa", c(
        num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=16, n_routed_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=48, first_k_dense_replace=2, index_topk=5, index_head_dim=32, index_n_heads=1,
        tie_word_embeddings=True, index_topk_pattern="FSFS"), {"indexer_types": None, "mlp_layer_types": None}),
    "glm_moe_dsa_every": ("glm_moe_dsa", c(
        num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=16, n_routed_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=48, first_k_dense_replace=1, index_topk=8, index_head_dim=32, index_n_heads=6,
        index_topk_freq=3, index_skip_topk_offset=1), {"indexer_types": None}),
    # As the first LFM2 configs are spelled.
    "lfm2_first": ("lfm2", c(num_hidden_layers=3, layer_types=["conv", L4, "conv"], intermediate_size=192, block_multiple_of=32),
                   dict(block_ff_dim=192, intermediate_size=None, layer_types=None, full_attn_idxs=[1])),
    # Fields that a class does not have, or reads without using them: nothing follows from them.
    "mistral_foreign": ("mistral", c(head_dim=16, num_hidden_layers=2, sliding_window=9, attention_bias=True, mlp_bias=True,
                                     rope_parameters=rope("default", partial_rotary_factor=0.5))),
    "qwen3_moe_foreign": ("qwen3_moe", c(head_dim=16, num_hidden_layers=2, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
                                         mlp_bias=True, routed_scaling_factor=2.5, n_group=4, topk_group=2)),
    "gemma3_uncapped": ("gemma3_text", c(
        hidden_size=60, num_attention_heads=5, num_key_value_heads=1, head_dim=16, num_hidden_layers=2, sliding_window=9, query_pre_attn_scalar=4,
        layer_types=[S4, L4], attn_logit_softcapping=2.0, final_logit_softcapping=4.0,
        rope_parameters={L4: rope("yarn", factor=4.0, original_max_position_embeddings=61, truncate=False), S4: rope("default")})),
    "gemma2_untied": ("gemma2", c(hidden_size=45, intermediate_size=51, vocab_size=301, num_attention_heads=5, num_key_value_heads=1, head_dim=10,
                                  num_hidden_layers=3, sliding_window=2, query_pre_attn_scalar=5, attention_bias=True, tie_word_embeddings=False)),
    "granite_moe": ("granitemoe", c(num_hidden_layers=3, num_local_experts=6, num_experts_per_tok=3, intermediate_size=40, embedding_multiplier=3.0,
                                    attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=2.0)),
    "granite_moe_shared": ("granitemoeshared", c(
        hidden_size=72, num_attention_heads=6, num_key_value_heads=1, num_hidden_layers=2, num_local_experts=4, num_experts_per_tok=1,
        intermediate_size=48, shared_intermediate_size=56, attention_bias=True, tie_word_embeddings=True, embedding_multiplier=2.0,
        attention_multiplier=0.3, residual_multiplier=0.7, logits_scaling=4.0, rms_norm_eps=1e-3)),
    "llama_f16": ("llama", c(dtype="float16", num_hidden_layers=2)),
    "llama_f32": ("llama", c(dtype="float32", num_hidden_layers=2, hidden_size=48, intermediate_size=77)),
    "llama_eps_zero": ("llama", c(rms_norm_eps=0.0, num_hidden_layers=2)),
    # Layers by the reference's other word for their list, which alone says how many there are.
    "nemotron_h_listed": ("nemotron_h", c(head_dim=16, hybrid_override_pattern="*EM", mamba_num_heads=4, mamba_head_dim=16, n_groups=2, ssm_state_size=8,
                                          chunk_size=16, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=40,
                                          moe_shared_expert_intermediate_size=48),
                          dict(layer_types=["full_attention", "moe", "linear_attention"], layers_block_type=None, num_hidden_layers=None,
                               num_local_experts=4, n_routed_experts=None)),
}
