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
}
