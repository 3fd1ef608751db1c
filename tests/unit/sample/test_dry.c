/* DRY's penalties against llama.cpp and a definition in Python (tools/golden/make_samplers.py), and breakers in
   the text of tokens. */
#include "test.h"

#include <math.h>

#include "sample/sample.h"
#include "tok_json.h"

enum { VOCAB = 40, N_POS = 300 };

typedef struct penalty {
    int32_t id; /* -1: no more */
    double by;
} penalty;

typedef struct golden {
    float multiplier, base;
    int32_t allowed, window;
    size_t n_breakers; /* of those below */
    int32_t n_ids;
    int32_t ids[200];
    penalty want[18];
} golden;

static const golden goldens[] = {
#include "golden_dry.inc"
};

/* The text of id 0 is "a", and so on to "z"; then pieces of several letters. */
static const char *const more[] = {"ab", "mno", "xm", "nox", "\\n"};
static tok *t;

static int setup(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    buf json;
    buf_init(&json, MEM_MISC);
    buf_puts(&json, "{\"added_tokens\":[],\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (int i = 0; i < 26; i++) buf_printf(&json, "\"%c\":%d,", 'a' + i, i);
    for (int i = 0; i < 5; i++) buf_printf(&json, "%s\"%s\":%d", i ? "," : "", more[i], 26 + i);
    buf_puts(&json, "}}}");
    if (tok_open_hf(buf_view(&json), (cairn_str){"", 0}, "test", &t, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    buf_deinit(&json);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tok_close(t);
    return 0;
}

/* What a step takes from each of VOCAB logits, 0 before. */
static void punish(const cairn_sampling *how, const tok *text, const int32_t *ids, int32_t n,
                   float *x)
{
    sampler *s = NULL;
    sample_out out;
    const sample_in in = {.how = how, .ids = ids, .n_ids = n, .n_logprobs = -1};
    memset(x, 0, VOCAB * sizeof *x);
    assert_ok(sampler_new(VOCAB, N_POS, text, &s));
    assert_ok(sample_check(how, VOCAB, NULL));
    assert_ok(sample_step(s, x, &in, &out, NULL));
    sampler_free(s);
}

static void as_llama_cpp(void **state)
{
    (void)state;
    static const cairn_str breakers[] = {{"m", 1}, {"no", 2}, {"pnn", 3}}; /* 12; 13 14; 15 13 13 */
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        cairn_sampling how = sample_neutral();
        float x[VOCAB], want[VOCAB] = {0};
        how.dry_multiplier = g->multiplier;
        how.dry_base = g->base;
        how.dry_allowed_length = g->allowed;
        how.dry_window = g->window;
        how.dry_breakers = breakers;
        how.n_dry_breakers = g->n_breakers;
        for (const penalty *p = g->want; p->id >= 0; p++) want[p->id] = -(float)p->by;
        punish(&how, t, g->ids, g->n_ids, x);
        for (int32_t k = 0; k < VOCAB; k++)
            if (fabsf(x[k] - want[k]) > 1e-6f * fabsf(want[k]))
                fail_msg("case %zu: %g of id %d, expected %g", i, (double)x[k], k, (double)want[k]);
    }
}

/* The letters of a text, as ids; upper case names the pieces of several letters: A for "ab". */
static int32_t spell(const char *text, int32_t *ids)
{
    int32_t n = 0;
    for (; *text; text++) ids[n++] = *text >= 'a' ? *text - 'a' : *text - 'A' + 26;
    return n;
}

static void breakers_in_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *breaker;
        char token;
        int over; /* tokens beyond the allowed one, in the repeat that it would prolong; -1: none */
    } cases[] = {
        {"pqrspqr", "zz", 's', 2},      {"pqrspqr", "q", 's', 0},
        {"pqrspqr", "r", 's', -1},      {"pqrspqr", "s", 's', -1},       /* its own text breaks */
        {"cdAefcdAe", "b", 'f', 0},                                      /* inside a piece */
        {"cdAefcdAe", "dab", 'f', 0},                                    /* over two */
        {"cdAefcdAe", "bd", 'f', 3},    {"cdCDefcdCDe", "mnox", 'f', 0}, /* ends inside "nox" */
        {"cdCDefcdCDe", "mno", 'f', 0}, {"cdCDefcdCD", "ox", 'e', -1},
        {"cdEefcdEe", "\n", 'f', 0},    {"ababab", "zz", 'a', 3}, /* over itself */
        {"aaaaa", "zz", 'a', 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const cairn_str breaker = {cases[i].breaker, strlen(cases[i].breaker)};
        cairn_sampling how = sample_neutral();
        int32_t ids[N_POS];
        float x[VOCAB];
        how.dry_multiplier = 1;
        how.dry_base = 2;
        how.dry_allowed_length = 1;
        how.dry_breakers = &breaker;
        how.n_dry_breakers = 1;
        punish(&how, t, ids, spell(cases[i].text, ids), x);
        const float want = cases[i].over < 0 ? 0 : (float)(1 << cases[i].over);
        if (-x[cases[i].token - 'a'] != want)
            fail_msg("case %zu: %g, expected %g", i, (double)-x[cases[i].token - 'a'],
                     (double)want);
        if (cases[i].over < 3) continue;
        punish(&how, NULL, ids, spell(cases[i].text, ids), x); /* no text, no breaker */
        assert_true(-x[cases[i].token - 'a'] == want);
    }
}

/* A penalty stays finite whatever is asked; 300 equal tokens take no longer than a moment. */
static void extremes(void **state)
{
    (void)state;
    static int32_t ids[N_POS];
    cairn_sampling how = sample_neutral();
    float x[VOCAB];
    how.dry_multiplier = 1e6f;
    how.dry_base = 1e6f;
    how.dry_allowed_length = 0;
    punish(&how, t, ids, N_POS, x);
    assert_true(x[0] == -1e30f && x[1] == 0);
    punish(&how, t, ids, 0, x);
    assert_true(x[0] == 0);
    how.dry_base = 1;
    punish(&how, t, ids, N_POS, x);
    assert_true(x[0] == -1e6f);
}

/* XTC never takes away what ends a line. */
static void spared_by_xtc(void **state)
{
    (void)state;
    sampler *s = NULL;
    cairn_sampling how = sample_neutral();
    how.temperature = 1;
    how.xtc_probability = 1;
    assert_ok(sampler_new(VOCAB, N_POS, t, &s));
    float x[VOCAB];
    for (int i = 0; i < VOCAB; i++) x[i] = -50;
    x[3] = 4;
    x[5] = 3.5f;
    x[30] = 5; /* "\n" */
    const sample_in in = {.how = &how, .n_logprobs = -1};
    sample_out out;
    assert_ok(sample_step(s, x, &in, &out, NULL));
    const sample_rest r = sampler_rest(s);
    bool has[VOCAB] = {0};
    for (int32_t i = 0; i < r.n; i++) has[r.ids[i]] = true;
    assert_true(!has[3] && has[5] && has[30] && r.n == VOCAB - 1);
    sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_llama_cpp),
        cmocka_unit_test(breakers_in_text),
        cmocka_unit_test(extremes),
        cmocka_unit_test(spared_by_xtc),
    };
    return cmocka_run_group_tests_name("dry", tests, setup, teardown);
}
