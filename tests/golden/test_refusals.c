/* Fields of config.json that change the function: a value that a family does not compute, or that
   contradicts the tensors, is an error that names the field or the tensor. */
#include "test.h"

#include <stdio.h>

#include "base/buf.h"
#include "cairn/model.h"
#include "mkweights.h"

typedef struct refusal {
    const char *golden, *key, *value, *says;
} refusal;

static const refusal cases[] = {
    {"apertus", "hidden_act", "\"silu\"", "hidden_act: found \"silu\"; expected xielu"},
    {"apertus", "post_norm", "true", "post_norm: found true"},
    {"apertus", "qk_norm", "false", "qk_norm: found false"},
    {"cohere", "use_qk_norm", "true", "self_attn.q_norm.weight is missing"},
    {"cohere_normed", "use_qk_norm", "false", "model.layers.0.self_attn.k_norm.weight"},
    {"cohere_normed", "num_key_value_heads", "3", "k_proj.weight: shape is [32, 96]"},
    {"cohere2", "hidden_act", "\"gelu\"", "hidden_act: found \"gelu\""},
    {"cohere2", "use_qk_norm", "true", "use_qk_norm: found true; expected false"},
    {"cohere2", "use_parallel_block", "false", "use_parallel_block: found false; expected true"},
    {"cohere2", "rotary_pct", "0.5", "rotary_pct: found 0.5"},
    {"cohere2", "position_embedding_type", "\"alibi\"", "position_embedding_type: found \"alibi\""},
    {"cohere2", "logit_scale", "0", "logit_scale: found 0"},
    {"cohere2", "layer_norm_eps", "-1e-05", "layer_norm_eps: found -1e-05; expected 0 to 1"},
    {"lfm2", "norm_eps", "NaN", "norm_eps: found NaN; expected a finite number"},
    {"mamba2", "layer_norm_epsilon", "-1e-05", "layer_norm_epsilon: found -1e-05; expected 0 to 1"},
    {"cohere2", "sliding_window", "null", "sliding_window: found nothing"},
    {"ernie4_5", "use_bias", "true", "self_attn.q_proj.bias is missing"},
    {"gemma", "use_bidirectional_attention", "true", "use_bidirectional_attention: found true"},
    {"gemma", "hidden_act", "\"silu\"", "hidden_act: found \"silu\""},
    {"glm4", "attention_bias", "false", "model.layers.0.self_attn.k_proj.bias"},
    {"glm4", "partial_rotary_factor", "1.5", "partial_rotary_factor: found 1.5"},
    {"glm4", "partial_rotary_factor", "0.01", "found 0 rotated elements of a head"},
    {"granite", "attention_bias", "true", "self_attn.q_proj.bias is missing"},
    {"granite", "mlp_bias", "true", "mlp.gate_proj.bias is missing"},
    {"granite", "residual_multiplier", "0", "residual_multiplier: found 0"},
    {"granite", "logits_scaling", "-1", "logits_scaling: found -1"},
    {"granite_moe", "num_local_experts", "5", "router.layer.weight: shape is [6, 64]"},
    {"granite_moe", "num_experts_per_tok", "7", "num_experts_per_tok: found 7; expected at most 6"},
    {"granite_moe", "attention_bias", "true", "self_attn.q_proj.bias is missing"},
    {"granite_moe_shared", "shared_intermediate_size", "0", "shared_mlp.input_linear.weight"},
    {"granite_moe_shared", "shared_intermediate_size", "48",
     "shared_mlp.input_linear.weight: shape is [112, 72]"},
    {"hunyuan", "use_qk_norm", "false", "use_qk_norm: found false"},
    {"hunyuan", "use_cla", "true", "use_cla: found true"},
    {"hunyuan", "num_experts", "8", "num_experts: found 8"},
    {"lfm2", "layer_types", "[\"conv\", \"mamba\", \"conv\", \"conv\"],\n\"unread\": [",
     "layer_types.1: found \"mamba\"; expected conv or full_attention"},
    {"lfm2", "layer_types", "[\"conv\"],\n\"unread\": [", "layer_types: found an array of 1"},
    {"lfm2", "layer_types", "null,\n\"full_attn_idxs\": -1, \"unread\": [",
     "full_attn_idxs: found -1; expected a list"},
    {"lfm2", "layer_types", "null,\n\"full_attn_idxs\": [\"x\"], \"unread\": [",
     "full_attn_idxs.0: found \"x\""},
    {"lfm2", "conv_L_cache", "1", "conv_L_cache: found 1"},
    {"lfm2", "conv_L_cache", "4", "conv.conv.weight: shape is [64, 1, 3]; expected [64, 1, 4]"},
    {"lfm2", "conv_bias", "true", "conv.in_proj.bias is missing"},
    {"lfm2", "block_auto_adjust_ff_dim", "true", "feed_forward.w1.weight: shape is [128, 64]"},
    {"lfm2_moe", "use_expert_bias", "false", "feed_forward.expert_bias"},
    {"mamba2", "hidden_act", "\"gelu\"", "hidden_act: found \"gelu\"; expected silu"},
    {"mamba2", "num_heads", "7",
     "num_heads: found 7; expected as many heads of 16 as fill the width of 128"},
    {"mamba2", "n_groups", "3", "n_groups: found 3; expected a divisor of the 8 heads"},
    {"mamba2", "state_size", "8", "mixer.in_proj.weight: shape is [328, 64]; expected [296, 64]"},
    {"mamba2", "time_step_limit", "[0.0, -1.0],\n\"unread\": [", "time_step_limit.1: found -1"},
    {"mamba2", "use_bias", "true", "mixer.in_proj.bias is missing"},
    {"mamba2", "use_conv_bias", "false", "mixer.conv1d.bias"},
    {"falcon_h1", "mamba_rms_norm", "true", "mamba.norm.weight is missing"},
    {"falcon_h1", "mamba_d_ssm", "96", "mamba_n_heads: found 8; expected as many heads"},
    {"falcon_h1", "key_multiplier", "0", "key_multiplier: found 0"},
    {"falcon_h1", "projectors_bias", "true", "mamba.out_proj.bias is missing"},
    {"../mlx/falcon_h1.bf16", "projectors_bias", "true",
     "projectors_bias: found true; expected false, in the layout of MLX"},
    {"granite_h", "position_embedding_type", "\"alibi\"",
     "position_embedding_type: found \"alibi\""},
    {"granite_h", "shared_intermediate_size", "64",
     "shared_mlp.input_linear.weight: shape is [192"},
    {"granite_h", "num_local_experts", "0", "block_sparse_moe"},
    {"nemotron_h", "mlp_hidden_act", "\"silu\"", "mlp_hidden_act: found \"silu\"; expected relu2"},
    {"nemotron_h", "mlp_bias", "true", "mixer.up_proj.bias is missing"},
    {"nemotron_h", "layers_block_type", "[\"mlp\", \"rwkv\"],\n\"unread\": [",
     "layers_block_type.1: found \"rwkv\"; expected mamba or linear_attention"},
    {"nemotron_h", "layers_block_type",
     "null,\n\"hybrid_override_pattern\": \"MX-*\",\n\"unread\": [",
     "hybrid_override_pattern: found another letter"},
    {"minicpm", "sparse_config", "{\"kernel_size\": 32}", "sparse_config: found present"},
    {"minicpm", "dim_model_base", "0", "dim_model_base: found 0"},
    {"mistral4", "qk_nope_head_dim", "17", "qk_nope_head_dim: found an odd number"},
    {"mistral4", "topk_group", "5", "topk_group: found 5; expected at most the 4 groups"},
    {"mistral4", "llama_4_scaling_beta", "null", "llama_4_scaling_beta: found nothing"},
    {"ministral3", "llama_4_scaling_beta", "-1", "llama_4_scaling_beta: found -1"},
    {"olmo2", "num_key_value_heads", "4", "k_norm.weight: shape is [32]; expected [64]"},
    {"olmo3", "sliding_window", "null", "sliding_window: found nothing"},
    {"phi3", "rope_type", "\"yarn\", \"factor\": 2", "rope_scaling.type: found \"yarn\""},
    {"phi3", "num_attention_heads", "2", "qkv_proj.weight: shape is [128, 64]; expected [192, 64]"},
    {"phi3", "intermediate_size", "64", "gate_up_proj.weight: shape is [256, 64]"},
    {"seed_oss", "attention_out_bias", "true", "self_attn.o_proj.bias is missing"},
    {"seed_oss", "attention_bias", "false", "model.layers.0.self_attn.k_proj.bias"},
    {"qwen3_5", "linear_num_value_heads", "3",
     "linear_num_value_heads: found 3; expected a multiple of the 2 heads of keys"},
    {"qwen3_5", "linear_num_key_heads", "0", "linear_num_key_heads: found 0"},
    {"qwen3_5", "linear_key_head_dim", "16", "conv1d.weight: shape is [256, 1, 4]"},
    {"qwen3_5", "linear_conv_kernel_dim", "3", "shape is [256, 1, 4]; expected [256, 1, 3]"},
    {"qwen3_5", "linear_conv_kernel_dim", "99", "linear_conv_kernel_dim: found 99"},
    {"qwen3_5", "output_gate_type", "\"tanh\"", "output_gate_type: found \"tanh\""},
    {"qwen3_5", "layer_types", "[\"full_attention\"],\n\"unread\": [",
     "layer_types: found an array of 1"},
    {"qwen3_next", "full_attention_interval", "0", "full_attention_interval: found 0"},
    {"qwen3_next", "num_experts_per_tok", "9", "num_experts_per_tok: found 9; expected at most 8"},
    {"smollm3", "no_rope_layer_interval", "0", "no_rope_layer_interval: found 0"},
    {"deepseek_v3", "n_group", "8", "n_group: found 8; expected a divisor of the 8 experts"},
    {"deepseek_v3", "n_group", "3", "n_group: found 3"},
    {"deepseek_v3", "topk_group", "5", "topk_group: found 5; expected at most the 4 groups"},
    {"deepseek_v3", "num_experts_per_tok", "5", "num_experts_per_tok: found 5; expected at most 4"},
    {"deepseek_v3", "kv_lora_rank", "65537",
     "kv_lora_rank: found 65537; expected an integer from 1 to 65536"},
    {"deepseek_v3", "num_key_value_heads", "1", "num_key_value_heads: found fewer"},
    {"deepseek_v3", "num_hidden_layers", "3", "model.layers.3."},
    {"deepseek_v32", "q_lora_rank", "null", "q_lora_rank: found nothing"},
    {"deepseek_v32", "index_head_dim", "8", "index_head_dim: found 8; expected at least the 16"},
    {"deepseek_v32", "index_n_heads", "8",
     "indexer.wq_b.weight: shape is [128, 32]; expected [256"},
    {"deepseek_v32", "index_topk", "0", "index_topk: found 0"},
    {"deepseek_v32", "indexer_rope_interleave", "true", "indexer_rope_interleave: found true"},
    {"deepseek_v32", "mlp_layer_types", "[\"dense\"],\n\"unread\": [",
     "mlp_layer_types: found an array of 1; expected an entry for each layer"},
    {"glm_moe_dsa", "indexer_types", "[\"shared\", \"full\", \"full\", \"full\"],\n\"unread\": [",
     "found a first layer that is shared"},
    {"glm_moe_dsa", "indexer_types", "[\"full\", \"full\", \"none\", \"full\"],\n\"unread\": [",
     "indexer_types.2: found \"none\"; expected full or shared"},
    {"glm_moe_dsa", "indexer_types", "[\"full\", \"full\", \"full\", \"shared\"],\n\"unread\": [",
     "tensors that this family does not use: model.layers.3.self_attn.indexer."},
    {"glm_moe_dsa", "indexer_types", "null, \"index_topk_pattern\": \"FFXF\",\n\"unread\": [",
     "index_topk_pattern: found another letter"},
    {"glm4_moe", "num_hidden_layers", "3", "model.layers.3."},
    {"gemma3n", "activation_sparsity_pattern", "[0.95],\n\"unread\": [",
     "activation_sparsity_pattern: found an array"},
    {"gemma3n", "activation_sparsity_pattern", "[0, 0, 0, 1, 0, 0],\n\"unread\": [",
     "activation_sparsity_pattern.3: found 1"},
    {"gemma3n", "activation_sparsity_pattern", "[0, 0, 0, 1e-30, 0, 0],\n\"unread\": [",
     "activation_sparsity_pattern: found nearly 0"},
    {"gemma3n", "altup_active_idx", "4", "altup_active_idx: found 4"},
    {"gemma3n", "altup_num_inputs", "3",
     "modality_router.weight: shape is [4, 64]; expected [3, 64]"},
    {"gemma3n", "laurel_rank", "9", "laurel.linear_left.weight: shape is [8, 64]"},
    {"gemma3n", "hidden_size_per_layer_input", "0", "hidden_size_per_layer_input: found 0"},
    {"gemma3n", "vocab_size_per_layer_input", "383", "embed_tokens_per_layer.weight: shape is"},
    {"gemma3n", "num_kv_shared_layers", "6", "num_kv_shared_layers: found 6"},
    {"gemma3n", "num_kv_shared_layers", "5", "num_kv_shared_layers: found too many"},
    {"gemma4", "rope_parameters", "[],\n\"unread\": {", "rope_parameters: found"},
    {"gemma4", "final_logit_softcapping", "1e-30", "final_logit_softcapping: found 1e-30"},
    {"gemma4", "num_key_value_heads", "[2]", "num_key_value_heads: found"},
    {"gemma4_moe", "top_k_experts", "null", "top_k_experts: found null"},
    {"gemma4_moe", "num_experts", "0", "num_experts: found 0"},
    {"gemma4_e2b", "num_kv_shared_layers", "5", "num_kv_shared_layers: found too many"},
    {"qwen2_moe", "num_experts_per_tok", "99", "num_experts_per_tok: found 99; expected at most 8"},
    {"smollm3", "no_rope_layers", "[1, 2, 1, 1],\n\"unread\": [",
     "no_rope_layers: found another list"},
};

/* GOLDEN, or GOLDEN:FILE for a file other than config.json.  No key: the value is the whole file. */
static const refusal embedding_cases[] = {
    {"bert", "hidden_act", "\"mish\"", "hidden_act: found \"mish\"; expected gelu"},
    {"bert", "is_decoder", "true", "is_decoder: found true"},
    {"bert", "position_embedding_type", "\"relative_key\"", "position_embedding_type: found"},
    {"bert", "type_vocab_size", "3", "token_type_embeddings.weight: shape is [2, 48]"},
    {"bert", "max_position_embeddings", "9", "position_embeddings.weight: shape is [320, 48]"},
    {"bert", "num_hidden_layers", "2", "encoder.layer.2."},
    {"bert_masked_cls", "num_hidden_layers", "4",
     "bert.encoder.layer.3.attention.self.query.weight is missing"},
    {"xlm_roberta", "pad_token_id", "200", "pad_token_id: found 200"},
    {"modernbert", "hidden_activation", "\"tanh\"", "hidden_activation: found \"tanh\""},
    {"modernbert", "norm_bias", "true", "embeddings.norm.bias is missing"},
    {"modernbert", "attention_bias", "true", "attn.Wqkv.bias is missing"},
    {"modernbert", "local_attention", "0", "local_attention: found 0"},
    {"modernbert_masked", "mlp_bias", "false", "mlp.Wi.bias"},
    {"bert:1_Pooling/config.json", "pooling_mode", "\"attention\"",
     "pooling_mode: found attention; expected"},
    {"bert:1_Pooling/config.json", "pooling_mode", "1", "pooling_mode: found an integer; expected"},
    {"bert:1_Pooling/config.json", "pooling_mode", "null", "pooling_mode: found null; expected"},
    {"bert:1_Pooling/config.json", "pooling_mode", "[]", "pooling_mode: found an empty array"},
    {"bert:1_Pooling/config.json", "pooling_mode", "[\"cls\", 2]", "found an integer; expected"},
    {"bert:1_Pooling/config.json", NULL,
     "{\"pooling_mode_mean_tokens\": false, \"pooling_mode_cls_token\": false}",
     "pooling_mode_*: found none that is true"},
    {"bert:1_Pooling/config.json", "pooling_mode_gem_tokens", "true",
     "pooling_mode_gem_tokens: found true"},
    {"bert:1_Pooling/config.json", "embedding_dimension", "47",
     "pooling of vectors of 47; expected 48"},
    {"bert:1_Pooling/config.json", "include_prompt", "1",
     "1_Pooling/config.json: `include_prompt` must be"},
    {"bert:modules.json", "type", "\"x.LSTM\"", "0.type: found LSTM; expected a Transformer"},
    {"bert:modules.json", NULL, "[1]", "a module: found an integer; expected an object"},
    {"bert:modules.json", NULL, "[{}]", "0.type: found nothing; expected a Transformer"},
    {"bert:config_sentence_transformers.json", NULL, "{\"prompts\": 1}",
     "prompts: found an integer; expected an object"},
    {"bert:config_sentence_transformers.json", NULL, "{\"prompts\": []}",
     "prompts: found an array; expected an object"},
    {"bert:2_Normalize/config.json", "module_input_name", "\"token_embeddings\"",
     "module_input_name: found token_embeddings"},
    {"bert:sentence_bert_config.json", "max_seq_length", "0", "`max_seq_length` must be"},
    {"bert:config_sentence_transformers.json", "default_prompt_name", "\"nope\"",
     "default_prompt_name: found nope"},
    {"bert_masked_cls:2_Dense/config.json", "activation_function", "\"my.Tanh\"",
     "activation_function: found my.Tanh"},
    {"bert_masked_cls:2_Dense/config.json", "in_features", "41",
     "2_Dense.linear takes vectors of 41; expected 40"},
    {"bert_masked_cls:2_Dense/config.json", "in_features", "null",
     "in_features: found null; expected the length"},
    {"bert_masked_cls:2_Dense/config.json", NULL, "{\"in_features\": 40}",
     "out_features: found nothing; expected the length"},
    {"bert_masked_cls:2_Dense/config.json", "out_features", "25",
     "2_Dense.linear.weight: shape is [24, 40]; expected [25, 40]"},
    {"bert", "layer_norm_eps", "-1e-12", "layer_norm_eps: found -1e-12; expected 0 to 1"},
    {"modernbert", "norm_eps", "Infinity", "norm_eps: found"},
    {"bert_masked_cls:2_Dense/config.json", "bias", "false", "does not use: 2_Dense.linear.bias"},
};

/* `text` with the line of "key" given another value, or with a first line of it; no key: the value. */
static void with_field(cairn_str text, const char *key, const char *v, buf *out)
{
    char quoted[64];
    if (!key) {
        buf_puts(out, v);
        return;
    }
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const size_t at = str_find(text, str_of(quoted), 0);
    if (at == SIZE_MAX) {
        buf_printf(out, "{\n  %s %s,%.*s", quoted, v, (int)(text.len - 1), text.ptr + 1);
        return;
    }
    const size_t end = str_find(text, STR_LIT("\n"), at);
    assert_true(end != SIZE_MAX);
    const bool comma = text.ptr[end - 1] == ',';
    buf_printf(out, "%.*s%s %s%s%.*s", (int)at, text.ptr, quoted, v, comma ? "," : "",
               (int)(text.len - end), text.ptr + end);
}

static void rewrite(const char *dir, const refusal *r)
{
    char path[MKWEIGHTS_PATH + 32];
    static char text[1 << 16];
    buf b;
    const char *file = strchr(r->golden, ':');
    (void)snprintf(path, sizeof path, "%s/%s", dir, file ? file + 1 : "config.json");
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t len = fread(text, 1, sizeof text, f);
    assert_int_equal(fclose(f), 0);
    buf_init(&b, MEM_MISC);
    with_field((cairn_str){text, len}, r->key, r->value, &b);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b.ptr, 1, b.len, f), b.len);
    assert_int_equal(fclose(f), 0);
    buf_deinit(&b);
}

static int count_bad(const char *root, const refusal *list, size_t n)
{
    int bad = 0;
    for (size_t i = 0; i < n; i++) {
        char golden[MKWEIGHTS_PATH], dir[MKWEIGHTS_PATH];
        cairn_diag dg = {0};
        const cairn_model_opts o = {.struct_size = sizeof o, .no_weights = true};
        cairn_model *m = NULL;
        (void)snprintf(golden, sizeof golden, "tests/golden/%s/%.*s", root,
                       (int)strcspn(list[i].golden, ":"), list[i].golden);
        assert_ok(mkweights_temp(golden, dir, &dg));
        rewrite(dir, &list[i]);
        const cairn_status st = cairn_model_open(dir, &o, &m, &dg);
        mkweights_remove(dir);
        if (st != CAIRN_OK && strstr(dg.message, list[i].says)) continue;
        print_error("%s with %s %s: \"%s\"; expected \"%s\"\n", list[i].golden,
                    list[i].key ? list[i].key : "the text", list[i].value,
                    st == CAIRN_OK ? "opens" : dg.message, list[i].says);
        cairn_model_close(m);
        bad++;
    }
    return bad;
}

static void fields_are_refused_by_name(void **state)
{
    (void)state;
    assert_int_equal(count_bad("hf", cases, sizeof cases / sizeof cases[0]), 0);
}

static void fields_of_embeddings_are_too(void **state)
{
    (void)state;
    assert_int_equal(
        count_bad("embed", embedding_cases, sizeof embedding_cases / sizeof embedding_cases[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_are_refused_by_name),
                                       cmocka_unit_test(fields_of_embeddings_are_too)};
    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
