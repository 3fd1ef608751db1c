/* Coded caches under the numerics contract: on small models of every layout, the logits of a prompt are the same bits
   whatever the chunks, company, threads and prefixes; and they are not those of a plain cache. */
#include "test.h"

#include <stdio.h>

#include "cairn/engine.h"
#include "cairn/score.h"
#include "mkweights.h"

enum { N_IDS = 150 }; /* three blocks */

typedef struct case_ {
    const char *dir, *codec, *text;
} case_;

static const case_ cases[] = {
    {"llama", "q8", "q8:16"},
    {"llama", "q4@64", "q4:16@64"},
    {"qwen3", "k8v4:32", "q8:32/q4:32"},
    {"gemma3", "q4", "q4:32"},
    {"gemma3", "q8@70", "q8:32@128"},
    {"gpt_oss", "k8v4", "q8:32/q4:32"},
    {"deepseek_v3", "q8", "q8:16"},
    {"llama_minicpm5", "turbo", "turbo-k8:32/turbo-v3:32"},
    {"llama_minicpm5", "turbo:k4v3", "turbo-k4:32/turbo-v3:32"},
};

typedef struct rows {
    float last[8];
} rows;

static bool keep_last(void *ctx, int32_t pos, const float *logits)
{
    (void)pos;
    memcpy(((rows *)ctx)->last, logits, sizeof(rows));
    return true;
}

static cairn_model *open_with(const char *path, const char *codec)
{
    cairn_model_opts o;
    cairn_model *m = NULL;
    cairn_diag dg = {0};
    cairn_model_opts_init(&o);
    o.kv_codec = codec;
    o.no_text = true;
    if (cairn_model_open(path, &o, &m, &dg) != CAIRN_OK) fail_msg("%s: %s", codec, dg.message);
    return m;
}

static void fill_ids(const cairn_model *m, int32_t *ids)
{
    cairn_model_info i;
    cairn_model_info_init(&i);
    cairn_model_get_info(m, &i);
    for (int32_t k = 0; k < N_IDS; k++) ids[k] = k * 37 % i.vocab;
}

static void holds(void **state)
{
    const case_ *c = *state;
    char made[MKWEIGHTS_PATH], dir[100];
    cairn_diag dg = {0};
    int32_t ids[N_IDS];
    rows coded, plain;
    cairn_numerics_report r;
    cairn_model_info i;
    (void)snprintf(dir, sizeof dir, "tests/golden/hf/%s", c->dir);
    if (mkweights_temp(dir, made, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    cairn_model *m = open_with(made, c->codec), *other = open_with(made, NULL);
    fill_ids(m, ids);
    cairn_model_info_init(&i);
    cairn_model_get_info(m, &i);
    assert_string_equal(i.kv_codec, c->text);
    cairn_numerics_report_init(&r);
    if (cairn_check_numerics(m, ids, N_IDS, 2, NULL, NULL, &r, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    if (r.n_different) fail_msg("%s, %s: %s", c->dir, c->codec, r.first);
    assert_true(r.n_comparisons > 0);
    assert_ok(cairn_score(m, ids, N_IDS, NULL, keep_last, &coded, &dg));
    assert_ok(cairn_score(other, ids, N_IDS, NULL, keep_last, &plain, &dg));
    assert_true(memcmp(&coded, &plain, sizeof coded) != 0);
    cairn_model_close(m);
    cairn_model_close(other);
    mkweights_remove(made);
}

int main(void)
{
    enum { N = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[N];
    size_t n = 0;
    for (size_t i = 0; i < N; i++)
        if (test_part() == 1 || i % 3 == 0)
            tests[n++] = (struct CMUnitTest){.name = cases[i].codec,
                                             .test_func = holds,
                                             .initial_state = (void *)(uintptr_t)&cases[i]};
    return _cmocka_run_group_tests("codecs", tests, n, NULL, NULL);
}
