/* Words and files for cache codecs: what each layer gets, the one text, what is refused and why; and that a
   cache takes the bytes that are said. */
#include "test.h"

#include "base/log.h"
#include "cache/cache.h"
#include "cache/scheme.h"
#include "tmp.h"

/* Full attention, a window, no keys, a latent, keys alone. */
static const cache_layer_spec layers[] = {{2, 128, 64, .window = 0},
                                          {2, 64, 64, .window = 100},
                                          {.n_state = 8},
                                          {1, 96, 64, .latent = true},
                                          {1, 32, 0, .window = 0}};
static const cachespec mixed = {5, layers};
static const cachespec plain_two = {2, layers}; /* without the odd ones */
static const cache_layer_spec turbo_layers[] = {{2, 128, 64, .window = 0},
                                                {2, 64, 256, .window = 0}};
static const cachespec turbo_two = {2, turbo_layers};

static void reads(const cachespec *s, const char *spec, const char *text)
{
    scheme r;
    cairn_diag dg = {0};
    if (scheme_read(spec, s, KV_F16, &r, &dg) != CAIRN_OK)
        fail_msg("%s: %s", spec ? spec : "nothing", dg.message);
    assert_str(buf_view(&r.text), text);
    scheme_free(&r);
}

static void words(void **state)
{
    (void)state;
    reads(&mixed, NULL, "f16");
    reads(&mixed, "bf16", "bf16");
    reads(&mixed, "f32", "f32");
    reads(&plain_two, "q8", "q8:64");
    reads(&plain_two, "q8:32", "q8:32");
    reads(&plain_two, "k8v4", "q8:64/q4:64");
    reads(&plain_two, "k4v8:32", "q4:32/q8:32");
    reads(&plain_two, "q8@0", "q8:64");
    reads(&plain_two, "q8@1", "q8:64@64");
    reads(&plain_two, "k8v4:32@1024", "q8:32/q4:32@1024");
    /* the largest of 64, 32, 16 that divides the head; layers without keys end no run */
    reads(&mixed, "q4", "0-1 q4:64, 3-4 q4:32");
    reads(&mixed, "k8v4", "0-1 q8:64/q4:64, 3-4 q8:32");
    reads(&turbo_two, "turbo", "turbo-k8:32/turbo-v3:32");
    reads(&turbo_two, "turbo:k4v3", "turbo-k4:32/turbo-v3:32");
    reads(&plain_two, "turbo:k8v2", "0 turbo-k8:32/turbo-v2:32, 1 f16");
    static const cachespec none = {1, layers + 2};
    reads(&none, "q8", "f16");
}

static void refuses(const cachespec *s, const char *spec, const char *why)
{
    scheme r;
    cairn_diag dg = {0};
    assert_int_equal(scheme_read(spec, s, KV_F16, &r, &dg), CAIRN_E_ARG);
    if (!strstr(dg.message, why)) fail_msg("%s: \"%s\", not \"%s\"", spec, dg.message, why);
}

static void bad_words(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           "q9",    "q8:",  "q8:65",       "q8:16",    "q8x",    "k8v3",      "turbo:32",
        "turbo:k8v8", "k8v8",  "k4v4", "f16:64",      "q8:64 ",   "turbo:", "k8v4:32:1", "Q8",
        "q8@",        "q8@-1", "q8@x", "q8@99999999", "turbo@64", "f16@64", "q8@64:64"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(&plain_two, bad[i], "expected f16");
    refuses(&mixed, "q8:64", "layer 3 has heads of 96; expected a multiple of 64");
    refuses(&mixed, "q4:128", "layer 0 has heads of 64; expected a multiple of 128");
    refuses(&mixed, "turbo", "layer 3 keeps latents");
    static const cache_layer_spec odd[] = {{1, 64, 64, .window = 0}, {1, 40, 40, .window = 0}};
    static const cachespec odd_two = {2, odd};
    refuses(&odd_two, "q8", "layer 1 has heads of 40; expected a multiple of 16");
    refuses(&odd_two, "turbo", "layer 1 has heads of 40 and 40; expected 64, 128, 256 or 512");
}

static int n_warnings;
static void count_warning(void *ctx, log_level level, const char *event, const char *line)
{
    (void)ctx;
    (void)level;
    assert_string_equal(event, "cache_codec");
    assert_non_null(strstr(line, "layers=1"));
    n_warnings++;
}

/* Layers of a window stay plain under turbo, with one warning. */
static void warns_once(void **state)
{
    (void)state;
    log_set(LOG_WARN, count_warning, NULL);
    reads(&turbo_two, "turbo", "turbo-k8:32/turbo-v3:32");
    assert_int_equal(n_warnings, 0);
    reads(&plain_two, "turbo", "0 turbo-k8:32/turbo-v3:32, 1 f16");
    assert_int_equal(n_warnings, 1);
    log_set(LOG_WARN, NULL, NULL);
}

static tmp_dir place;

static const char *config(const char *json)
{
    static char path[320];
    (void)snprintf(path, sizeof path, "%s/kv_config.json", place.path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(json, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void files(void **state)
{
    (void)state;
    assert_true(tmp_make(&place));
    reads(&mixed, config("[]"), "f16");
    reads(&mixed, config("[{\"layer_idx\": 0, \"bits\": 8, \"group_size\": 64}]"),
          "0 q8:64, 1-4 f16");
    reads(&mixed,
          config("[{\"layer_idx\": 1, \"bits\": 4}, {\"bits\": 8, \"group_size\": 32, "
                 "\"layer_idx\": 0}, {\"layer_idx\": 3, \"bits\": 8}]"),
          "0 q8:32, 1 q4:64, 3 q8:32, 4 f16");
    reads(&mixed, config("[{\"layer_idx\": 1, \"bits\": 8, \"start\": 130}]"),
          "0 f16, 1 q8:64@192, 3-4 f16");
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"{}", "expected an array"},
        {"[3]", "entry 0 is"},
        {"[", "kv_config.json"},
        {"[{\"layer_idx\": 0, \"bits\": 8, \"mode\": 1}]", "field \"mode\""},
        {"[{\"bits\": 8}]", "layer_idx -1"},
        {"[{\"layer_idx\": 5, \"bits\": 8}]", "layer_idx"},
        {"[{\"layer_idx\": 2, \"bits\": 8}]", "layer_idx 2; expected a layer that keeps keys"},
        {"[{\"layer_idx\": 0}]", "bits 0"},
        {"[{\"layer_idx\": 0, \"bits\": 5}]", "bits 5"},
        {"[{\"layer_idx\": 0, \"bits\": 16}]", "bits"},
        {"[{\"layer_idx\": 0, \"bits\": 8, \"group_size\": 48}]", "group_size 48"},
        {"[{\"layer_idx\": 0, \"bits\": \"8\"}]", "bits"},
        {"[{\"layer_idx\": 0, \"bits\": 8, \"start\": -1}]", "start"},
        {"[{\"layer_idx\": 0, \"bits\": 8}, {\"layer_idx\": 0, \"bits\": 8}]", "twice"},
        {"[{\"layer_idx\": 3, \"bits\": 8, \"group_size\": 64}]", "layer 3 has heads of 96"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(&mixed, config(bad[i].json), bad[i].why);
    scheme r;
    cairn_diag dg = {0};
    assert_int_equal(scheme_read("/nowhere/kv_config.json", &mixed, KV_F16, &r, &dg),
                     CAIRN_E_NOTFOUND);
    assert_true(tmp_drop(&place));
}

/* What a cache takes is what its scheme says: a position of each head of each layer, times 64, a block. */
static void exact_bytes(void **state)
{
    (void)state;
    enum { CTX = 300, STEP = 32 };
    scheme r;
    cache *c = NULL;
    seq_id q;
    assert_ok(scheme_read("k8v4", &plain_two, KV_F16, &r, NULL));
    const uint64_t one = cache_bytes(&plain_two, &r.kv, STEP, CTX);
    const uint64_t full = 2 * ((128 + 2 * 4) + (32 + 4)), windowed = 2 * ((64 + 4) + (32 + 4));
    assert_int_equal(one, 64 * (5 * full + 4 * windowed));
    const cache_opts o = {r.kv, 1, CTX, STEP, one, 0, 0};
    assert_ok(cache_new(&plain_two, &o, &c, NULL));
    assert_int_equal(cache_total(c), one);
    assert_ok(cache_open(c, CTX, &q));
    assert_int_equal(cache_reserved(c), one);
    assert_int_equal(cache_layers(c)[0].v_off, 2 * 64 * (128 + 2 * 4));
    cache_free(c);
    scheme_free(&r);
}

/* Positions before the start are plain, those after it coded: two pools, of 2 and 3 of 5 blocks. */
static void delayed_bytes(void **state)
{
    (void)state;
    enum { CTX = 300, STEP = 32, START = 128 };
    static const cachespec one_layer = {1, layers};
    scheme r;
    cache *c = NULL;
    seq_id q;
    assert_ok(scheme_read("q8@100", &one_layer, KV_F16, &r, NULL));
    const uint64_t early = 2 * (128 + 64) * 2, late = 2 * (128 + 8 + 64 + 4);
    assert_int_equal(cache_bytes(&one_layer, &r.kv, STEP, CTX), 64 * (2 * early + 3 * late));
    assert_int_equal(cache_bytes(&one_layer, &r.kv, STEP, START), 64 * 2 * early);
    assert_int_equal(cache_bytes(&one_layer, &r.kv, STEP, START + 1), 64 * (2 * early + late));
    const cache_opts o = {r.kv, 1, CTX, STEP, 64 * (2 * early + 3 * late), 0, 0};
    assert_ok(cache_new(&one_layer, &o, &c, NULL));
    assert_int_equal(cache_groups(c), 2);
    const kv_layer *l = cache_layers(c);
    assert_int_equal(l->late_from, START);
    assert_int_equal(l->k.kind, KV_F16);
    assert_int_equal(l->late->k.kind, KV_Q8);
    assert_int_equal(l->group, 0);
    assert_int_equal(l->late->group, 1);
    assert_ok(cache_open(c, CTX, &q));
    for (int32_t n = 0; n < CTX; n += STEP) {
        cache_reserve(c, q, CTX - n < STEP ? CTX - n : STEP);
        cache_commit(c, q, CTX - n < STEP ? CTX - n : STEP);
    }
    for (int32_t i = 0; i < 5; i++) {
        assert_int_equal(cache_blocks(c, q)[0][i] != NULL, i < 2);
        assert_int_equal(cache_blocks(c, q)[1][i] != NULL, i >= 2);
    }
    assert_int_equal(cache_used(c), cache_total(c));
    cache_close(c, q);
    assert_int_equal(cache_used(c), 0);
    cache_free(c);
    scheme_free(&r);
}

static cairn_status read_and_free(void *ctx)
{
    scheme r;
    const cairn_status st = scheme_read(ctx, &mixed, KV_F16, &r, NULL);
    if (st == CAIRN_OK) scheme_free(&r);
    return st;
}

static void no_memory(void **state)
{
    (void)state;
    char word[] = "k8v4";
    assert_true(fault_loop(read_and_free, word) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),    cmocka_unit_test(bad_words),   cmocka_unit_test(warns_once),
        cmocka_unit_test(files),    cmocka_unit_test(exact_bytes), cmocka_unit_test(delayed_bytes),
        cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
