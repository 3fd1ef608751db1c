/* Nonsense in a model's parameters, field by field and in both formats: each is refused by a message of
   FILE: FIELD: found …; expected ….  A sound file gets past its parameters, to its first tensor. */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "format/hfconfig.h"
#include "model/family.h"

typedef struct bad {
    const char *members;        /* appended to the sound file: the last of a name counts */
    const char *field, *expect; /* of the message; field NULL: the file is still sound */
} bad;

static const char llama[] =
    "\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
    "\"max_position_embeddings\":512,\"rms_norm_eps\":1e-5,\"vocab_size\":100";
static const char gemma2[] =
    "\"model_type\":\"gemma2\",\"hidden_size\":64,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,\"head_dim\":16,"
    "\"max_position_embeddings\":512,\"vocab_size\":100";
static const char qwen2[] =
    "\"model_type\":\"qwen2\",\"hidden_size\":64,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,\"vocab_size\":9";

static cairn_status open_family(source *src, const family *fam, cairn_diag *dg)
{
    model m = {.src = src};
    arena_init(&m.a, MEM_MODEL);
    config c = config_of(src, dg);
    cairn_status st = c.status;
    if (st == CAIRN_OK) st = fam->open(&m, &c, dg);
    arena_deinit(&m.a);
    return st;
}

static void judge(const bad *b, cairn_status st, const cairn_diag *dg, const char *file)
{
    char want[300];
    assert_int_not_equal(st, CAIRN_OK);
    (void)snprintf(want, sizeof want, b->field ? "%s: %s: found " : "%s: tensor ", file,
                   b->field ? b->field : "");
    if (!strstr(dg->message, want) || (b->field && !strstr(dg->message, b->expect)))
        fail_msg("%s: \"%s\"; expected \"%s...%s\"", b->members, dg->message, want,
                 b->field ? b->expect : "");
}

static void run_json(const char *sound, const family *fam, const bad *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cairn_diag dg = {0};
        char text[4000];
        hfconfig *h = NULL;
        source src = {.format = SOURCE_SAFETENSORS, .path = "m"};
        (void)snprintf(text, sizeof text, "{%s%s%s}", sound, *b[i].members ? "," : "",
                       b[i].members);
        if (hfconfig_parse("m/config.json", str_of(text), &h, &dg) != CAIRN_OK)
            fail_msg("%s: %s", b[i].members, dg.message);
        src.meta = hfconfig_meta(h);
        const cairn_status st = open_family(&src, fam, &dg);
        judge(&b[i], st, &dg, b[i].field ? "m/config.json" : "m");
        hfconfig_close(h);
    }
}

#define ROPE(kind, more) "\"rope_scaling\":{\"rope_type\":\"" kind "\"" more "}"
#define YARN(more)       ROPE("yarn", ",\"factor\":4,\"original_max_position_embeddings\":128" more)
#define LLAMA3(more)                                                                               \
    ROPE("llama3", ",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"                   \
                   "\"original_max_position_embeddings\":64" more)
#define EIGHT      "[1,1,1,1,1,1,1,2]"
#define LONG(more) ROPE("longrope", ",\"short_factor\":" EIGHT ",\"long_factor\":" EIGHT more)
#define IN(f)      "rope_scaling." f

static const bad llama_cases[] = {
    {"", NULL, NULL},
    {"\"hidden_size\":0", "hidden_size", "from 1 to"},
    {"\"hidden_size\":null", "hidden_size", "an integer"},
    {"\"hidden_size\":NaN", "hidden_size", "an integer"},
    {"\"hidden_size\":\"64\"", "hidden_size", "an integer"},
    {"\"hidden_size\":66", "hidden_size", "a multiple of the 4 heads"},
    {"\"hidden_size\":64.5", "hidden_size", "an integer"},
    {"\"hidden_size\":1e99", "hidden_size", "from 1 to"},
    {"\"num_hidden_layers\":-1", "num_hidden_layers", "from 1 to 4096"},
    {"\"num_hidden_layers\":Infinity", "num_hidden_layers", "from 1 to 4096"},
    {"\"num_attention_heads\":0", "num_attention_heads", "from 1 to"},
    {"\"num_key_value_heads\":3", "num_key_value_heads", "a divisor of the 4 heads"},
    {"\"num_key_value_heads\":8", "num_key_value_heads", "a divisor of the 4 heads"},
    {"\"num_key_value_heads\":0", "num_key_value_heads", "from 1 to"},
    {"\"head_dim\":0", "head_dim", "from 1 to"},
    {"\"head_dim\":-16", "head_dim", "from 1 to"},
    {"\"head_dim\":15", "head_dim", "a positive even number"},
    {"\"head_dim\":null", NULL, NULL},
    {"\"head_dim\":true", "head_dim", "an integer"},
    {"\"intermediate_size\":0", "intermediate_size", "from 1 to"},
    {"\"max_position_embeddings\":0", "max_position_embeddings", "from 1 to"},
    {"\"rms_norm_eps\":-1e-6", "rms_norm_eps", "0 to 1"},
    {"\"rms_norm_eps\":NaN", "rms_norm_eps", "a finite number"},
    {"\"rms_norm_eps\":2", "rms_norm_eps", "0 to 1"},
    {"\"rms_norm_eps\":[1e-6]", "rms_norm_eps", "a number"},
    {"\"vocab_size\":0", "vocab_size", "from 1 to"},
    {"\"tie_word_embeddings\":1", "tie_word_embeddings", "true or false"},
    {"\"attention_bias\":\"no\"", "attention_bias", "true or false"},
    {"\"hidden_act\":\"relu\"", "hidden_act", "silu"},
    {"\"hidden_act\":NaN", "hidden_act", "silu"},
    {"\"layer_types\":[\"full_attention\"]", "layer_types", "one entry for each of 2 layers"},
    {"\"layer_types\":[\"full_attention\",7]", "layer_types.1", "sliding_attention"},
    {"\"layer_types\":\"full_attention\"", "layer_types", "one entry for each"},
    {"\"rope_theta\":0", "rope_theta", "1.01 to 1e+12"},
    {"\"rope_theta\":-10000", "rope_theta", "1.01 to"},
    {"\"rope_theta\":NaN", "rope_theta", "a finite number"},
    {"\"partial_rotary_factor\":0", "partial_rotary_factor", "1e-06 to 1"},
    {"\"partial_rotary_factor\":1.5", "partial_rotary_factor", "1e-06 to 1"},
    {"\"partial_rotary_factor\":0.01", NULL, NULL}, /* heads rotate whole */
    {ROPE("linear", ",\"factor\":2,\"partial_rotary_factor\":0.5"), "partial_rotary_factor",
     "heads that rotate whole"},
    {"\"head_dim\":7", "head_dim", "a positive even number"},
    {"\"rope_scaling\":\"yarn\"", "rope_scaling", "an object"},
    {"\"rope_scaling\":null", NULL, NULL},
    {"\"time_step_limit\":[0.0,Infinity]", NULL, NULL}, /* not this family's */
    {ROPE("spiral", ""), IN("rope_type"), "default, linear"},
    {ROPE("default", ",\"factor\":0"), NULL, NULL}, /* which that kind does not use */
    {ROPE("linear", ""), IN("factor"), "a number"},
    {ROPE("linear", ",\"factor\":0"), IN("factor"), "0.001 to"},
    {ROPE("linear", ",\"factor\":-2"), IN("factor"), "0.001 to"},
    {ROPE("linear", ",\"factor\":Infinity"), IN("factor"), "a finite number"},
    {ROPE("linear", ",\"factor\":2"), NULL, NULL},
    {ROPE("linear", ",\"factor\":2,\"rope_theta\":0"), IN("rope_theta"), "1.01 to"},
    {ROPE("dynamic", ",\"factor\":NaN"), IN("factor"), "a finite number"},
    {ROPE("dynamic", ",\"factor\":0"), IN("factor"), "0.001 to"},
    {YARN(""), NULL, NULL},
    {ROPE("yarn", ""), IN("factor"), "null for the ratio"},
    {ROPE("yarn", ",\"factor\":null"), NULL, NULL},
    {YARN(",\"factor\":0"), IN("factor"), "0.001 to"},
    {YARN(",\"factor\":NaN"), IN("factor"), "a finite number"},
    {YARN(",\"factor\":-4"), IN("factor"), "0.001 to"},
    {YARN(",\"factor\":\"4\""), IN("factor"), "a number"},
    {YARN(",\"original_max_position_embeddings\":0"), IN("original_max_position_embeddings"),
     "from 2 to"},
    {YARN(",\"beta_fast\":0"), IN("beta_fast"), "0.001 to"},
    {YARN(",\"beta_slow\":-1"), IN("beta_slow"), "0.001 to"},
    {YARN(",\"mscale\":-1"), IN("mscale"), "0 to 1000"},
    {YARN(",\"mscale_all_dim\":NaN"), IN("mscale_all_dim"), "a finite number"},
    {YARN(",\"attention_factor\":0"), IN("attention_factor"), "0.001 to"},
    {YARN(",\"truncate\":0"), IN("truncate"), "true or false"},
    {LLAMA3(""), NULL, NULL},
    {LLAMA3(",\"factor\":0"), IN("factor"), "0.001 to"},
    {LLAMA3(",\"low_freq_factor\":0"), IN("low_freq_factor"), "0.001 to"},
    {LLAMA3(",\"high_freq_factor\":1"), IN("high_freq_factor"), "1.001 to"},
    {LLAMA3(",\"high_freq_factor\":null"), IN("high_freq_factor"), "a number"},
    {LLAMA3(",\"original_max_position_embeddings\":1"), IN("original_max_position_embeddings"),
     "from 2 to"},
    {LONG(""), NULL, NULL},
    {LONG(",\"factor\":0"), IN("factor"), "0.001 to"},
    {LONG(",\"attention_factor\":-1"), IN("attention_factor"), "0.001 to"},
    {LONG(",\"short_factor\":[1,2]"), IN("short_factor"), "8 numbers"},
    {LONG(",\"short_factor\":5"), IN("short_factor"), "8 numbers"},
    {LONG(",\"long_factor\":null"), IN("long_factor"), "8 numbers"},
    {LONG(",\"long_factor\":[1,1,1,0,1,1,1,1]"), IN("long_factor.3"), "more than 0"},
    {LONG(",\"long_factor\":[1,1,1,1,1,1,1,NaN]"), IN("long_factor.7"), "more than 0"},
    {LONG(",\"long_factor\":[1,1,\"1\",1,1,1,1,1]"), IN("long_factor.2"), "more than 0"},
};

static const bad gemma_cases[] = {
    {"", NULL, NULL},
    {"\"attn_logit_softcapping\":0", "attn_logit_softcapping", "0.001 to"},
    {"\"attn_logit_softcapping\":-50", "attn_logit_softcapping", "0.001 to"},
    {"\"attn_logit_softcapping\":NaN", "attn_logit_softcapping", "a finite number"},
    {"\"attn_logit_softcapping\":null", NULL, NULL}, /* none */
    {"\"final_logit_softcapping\":0.0", "final_logit_softcapping", "0.001 to"},
    {"\"final_logit_softcapping\":Infinity", "final_logit_softcapping", "a finite number"},
    {"\"final_logit_softcapping\":\"30\"", "final_logit_softcapping", "a number"},
    {"\"query_pre_attn_scalar\":0", "query_pre_attn_scalar", "0.001 to"},
    {"\"query_pre_attn_scalar\":-1", "query_pre_attn_scalar", "0.001 to"},
    {"\"sliding_window\":0", "sliding_window", "from 1 to"},
    {"\"sliding_window_pattern\":0", "sliding_window_pattern", "from 1 to"},
    {"\"use_bidirectional_attention\":true", "use_bidirectional_attention", "a causal model"},
    {"\"hidden_activation\":\"silu\"", "hidden_activation", "gelu_pytorch_tanh or gelu_new"},
};

static const bad qwen_cases[] = {
    {"", NULL, NULL},
    {"\"use_sliding_window\":true,\"sliding_window\":-1", "sliding_window", "from 1 to"},
    {"\"use_sliding_window\":true,\"max_window_layers\":-1", "max_window_layers", "from 0 to"},
    {"\"num_key_value_heads\":null", "num_key_value_heads", "a divisor"}, /* its default is 32 */
};

static void json_nonsense(void **state)
{
    (void)state;
    run_json(llama, &family_llama, llama_cases, sizeof llama_cases / sizeof *llama_cases);
    run_json(gemma2, &family_gemma, gemma_cases, sizeof gemma_cases / sizeof *gemma_cases);
    run_json(qwen2, &family_qwen, qwen_cases, sizeof qwen_cases / sizeof *qwen_cases);
}

/* GGUF: a table of keys, of which one is replaced. */
typedef struct pair {
    const char *key;
    meta m;
} pair;

#define INT(v)                                                                                     \
    {                                                                                              \
        .type = META_INT, .u = {.i = (v) }                                                         \
    }
#define NUM(v)                                                                                     \
    {                                                                                              \
        .type = META_FLOAT, .u = {.f = (v) }                                                       \
    }
#define TEXT(z)                                                                                    \
    {                                                                                              \
        .type = META_STR, .u = {.s = {(z), sizeof(z) - 1} }                                        \
    }

static const pair sound_gguf[] = {
    {"general.architecture", TEXT("gemma2")},
    {"gemma2.embedding_length", INT(64)},
    {"gemma2.block_count", INT(2)},
    {"gemma2.attention.head_count", INT(4)},
    {"gemma2.attention.head_count_kv", INT(2)},
    {"gemma2.attention.key_length", INT(16)},
    {"gemma2.attention.value_length", INT(16)},
    {"gemma2.feed_forward_length", INT(96)},
    {"gemma2.context_length", INT(512)},
    {"gemma2.attention.layer_norm_rms_epsilon", NUM(1e-6)},
};

typedef struct gguf_bad {
    pair p; /* of type NONE: the key is left out */
    const char *expect;
} gguf_bad;

static bool gguf_get(const void *self, const char *key, meta *out)
{
    const pair *one = self;
    if (strcmp(one->key, key) == 0) {
        *out = one->m;
        return one->m.type != META_NONE;
    }
    for (size_t i = 0; i < sizeof sound_gguf / sizeof *sound_gguf; i++)
        if (strcmp(sound_gguf[i].key, key) == 0) {
            *out = sound_gguf[i].m;
            return true;
        }
    return false;
}

static bool gguf_at(const void *self, const meta *arr, size_t i, meta *out)
{
    (void)self, (void)arr, (void)i;
    *out = (meta)INT(1);
    return true;
}

static const gguf_bad gguf_cases[] = {
    {{"none", {.type = META_NONE}}, NULL},
    {{"gemma2.attention.layer_norm_rms_epsilon", NUM(-1)}, "0 to 1"},
    {{"gemma2.attention.layer_norm_rms_epsilon", NUM((double)NAN)}, "a finite number"},
    {{"gemma2.attention.value_length", INT(8)}, "16 as attention.key_length"},
    {{"gemma2.attention.key_length", INT(0)}, "from 1 to"},
    {{"gemma2.attention.head_count_kv", INT(3)}, "a divisor of the 4 heads"},
    {{"gemma2.attention.head_count_kv", {.type = META_ARR, .u = {.n = 2}}}, "an integer"},
    {{"gemma2.attention.sliding_window", INT(0)}, "from 1 to"},
    {{"gemma2.attention.sliding_window_pattern", INT(-1)}, "a period"},
    {{"gemma2.attention.sliding_window_pattern", {.type = META_ARR, .u = {.n = 2}}},
     "a truth value for each layer"},
    {{"gemma2.attention.sliding_window_pattern", {.type = META_ARR, .u = {.n = 1}}},
     "one entry for each of 2 layers"},
    {{"gemma2.attn_logit_softcapping", NUM(0)}, "0.001 to"},
    {{"gemma2.final_logit_softcapping", NUM((double)INFINITY)}, "a finite number"},
    {{"gemma2.rope.freq_base", NUM(0)}, "1.01 to"},
    {{"gemma2.rope.freq_base", NUM((double)NAN)}, "a finite number"},
    {{"gemma2.rope.dimension_count", INT(0)}, "from 2 to 16"},
    {{"gemma2.rope.dimension_count", INT(15)}, "a positive even number"},
    {{"gemma2.rope.dimension_count", INT(32)}, "from 2 to 16"},
    {{"gemma2.rope.scaling.type", TEXT("llama3")}, "none, linear, yarn or longrope"},
    {{"gemma2.rope.scaling.type", INT(2)}, "a text"},
    {{"gemma2.rope.scaling.factor", NUM(-1)}, "0 to"},
    {{"gemma2.rope.scaling.factor", NUM((double)NAN)}, "a finite number"},
    {{"gemma2.rope.scaling.factor", NUM(0)}, NULL}, /* as the reference: none */
    {{"gemma2.rope.scale_linear", NUM(-1)}, "0 to"},
    {{"gemma2.rope.scaling.attn_factor", NUM(0)}, "0.001 to"},
    {{"gemma2.rope.scaling.yarn_beta_fast", NUM(-1)}, "0.001 to"},
    {{"gemma2.rope.scaling.original_context_length", INT(0)}, "from 2 to"},
};

static void gguf_nonsense(void **state)
{
    (void)state;
    const int64_t dim[4] = {100, 64};
    for (size_t i = 0; i < sizeof gguf_cases / sizeof *gguf_cases; i++) {
        const gguf_bad *g = &gguf_cases[i];
        cairn_diag dg = {0};
        tensor_desc t = {.name = STR_LIT("token_embd.weight"), .n_dim = 2};
        source src = {.format = SOURCE_GGUF, .path = "m.gguf", .tensor = &t, .n_tensor = 1};
        memcpy(t.dim, dim, sizeof t.dim);
        map_init(&src.index, MEM_MODEL);
        assert_ok(map_put(&src.index, t.name, 0));
        src.meta = (meta_view){&g->p, gguf_get, gguf_at};
        const cairn_status st = open_family(&src, &family_gemma, &dg);
        const bad b = {g->p.key, g->expect ? g->p.key : NULL, g->expect};
        judge(&b, st, &dg, "m.gguf");
        map_deinit(&src.index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_nonsense),
        cmocka_unit_test(gguf_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
