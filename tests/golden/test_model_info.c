/* What the public interface tells about a model: the family's word, sizes that follow from the tensors,
   cache bytes that are those of a real engine. */
#include "test.h"

#include <stdio.h>

#include "cairn/engine.h"
#include "mkweights.h"

typedef struct case_ {
    const char *dir, *family;
    bool tied, windowed;
} case_;

static const case_ cases[] = {
    {"tests/golden/hf/llama", "llama", false, false},
    {"tests/golden/hf/llama_tied", "llama", true, false},
    {"tests/golden/hf/qwen2", "qwen2", true, false},
    {"tests/golden/hf/mistral", "mistral", false, true},
    {"tests/golden/hf/gemma3", "gemma3_text", true, true},
    {"tests/golden/hf/mamba2", "mamba2", false, false}, /* states alone */
    {"tests/golden/hf/falcon_h1", "falcon_h1", false, false},
    {"tests/golden/hf/nemotron_h", "nemotron_h", false, false},
};

/* Elements of all matrices. */
static uint64_t matrix_elements(const cairn_model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < cairn_model_n_tensors(m); i++) {
        cairn_tensor_info t;
        cairn_model_tensor(m, i, &t);
        if (t.n_dim == 2) sum += (uint64_t)t.dim[0] * (uint64_t)t.dim[1];
    }
    return sum;
}

static void check_cache(cairn_model *m, const cairn_model_info *i, bool windowed)
{
    const int32_t lens[] = {64, 100, i->ctx_train};
    assert_int_equal(i->cache_bytes_window > 0, windowed);
    for (size_t k = 0; k < sizeof lens / sizeof *lens; k++) {
        cairn_engine_opts o;
        cairn_engine_stats s;
        cairn_engine *e = NULL;
        cairn_diag dg = {0};
        cairn_engine_opts_init(&o);
        cairn_engine_stats_init(&s);
        o.max_seqs = 1;
        o.ctx_len = lens[k];
        o.prefix_limit = CAIRN_NO_PREFIX;
        if (cairn_engine_open(m, &o, &e, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
        cairn_engine_get_stats(e, &s);
        assert_int_equal(s.ctx_len, lens[k]);
        assert_int_equal(cairn_model_cache_bytes(m, lens[k]), s.cache_bytes_total);
        cairn_engine_close(e);
    }
    const int32_t n = 1 << 20;
    assert_int_equal(cairn_model_cache_bytes(m, n), i->cache_bytes_token * (uint64_t)n +
                                                        i->cache_bytes_window +
                                                        i->cache_bytes_state);
    assert_int_equal(cairn_model_cache_bytes(m, 0), 0);
}

static void info(void **state)
{
    const case_ *c = *state;
    char made[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    cairn_model *m = NULL;
    cairn_model_info i;
    if (mkweights_temp(c->dir, made, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    if (cairn_model_open(made, NULL, &m, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    cairn_model_info_init(&i);
    cairn_model_get_info(m, &i);
    assert_string_equal(i.family, c->family);
    assert_string_equal(i.format, "safetensors");
    const uint64_t head = (uint64_t)i.vocab * (uint64_t)i.hidden;
    assert_int_equal(i.head_params, head);
    assert_int_equal(i.matmul_params, matrix_elements(m) - (c->tied ? 0 : head));
    check_cache(m, &i, c->windowed);

    i.struct_size = (uint32_t)offsetof(cairn_model_info, head_params);
    i.head_params = 1;
    cairn_model_get_info(m, &i);
    assert_int_equal(i.head_params, 1);
    cairn_model_close(m);
    mkweights_remove(made);
}

int main(void)
{
    enum { N = sizeof cases / sizeof cases[0] };
    struct CMUnitTest tests[N];
    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){cases[i].dir, info, NULL, NULL, (void *)(uintptr_t)&cases[i]};
    return _cmocka_run_group_tests("model_info", tests, N, NULL, NULL);
}
