/* config.json by dotted path: types, nesting, text_config, what Python writes beyond JSON, and damage. */
#include "test.h"

#include <math.h>

#include "format/hfconfig.h"
#include "format/pyjson.h"

static meta need(const meta_view *v, const char *key, meta_type t)
{
    meta m;
    if (!meta_get(v, key, &m)) fail_msg("no %s", key);
    if (m.type != t) fail_msg("%s has type %d", key, m.type);
    return m;
}

static void dotted_paths(void **state)
{
    cairn_diag dg = {0};
    hfconfig *c = NULL;
    meta m, e;

    (void)state;
    assert_ok(hfconfig_open("tests/fuzz/corpus/hfconfig/multi.json", &c, &dg));
    const meta_view v = hfconfig_meta(c);
    assert_str(need(&v, "model_type", META_STR).u.s, "gemma3");
    assert_true(need(&v, "flag", META_BOOL).u.b);
    assert_true(need(&v, "eps", META_FLOAT).u.f == 1e-6);
    assert_true(need(&v, "big", META_FLOAT).u.f == 18446744073709551615.0);
    assert_true(need(&v, "huge", META_FLOAT).u.f == 1e30);
    assert_false(meta_get(&v, "none", &m));
    assert_false(meta_get(&v, "absent", &m));
    assert_false(meta_get(&v, "", &m));
    /* under text_config, plainly and by the whole path */
    assert_int_equal(need(&v, "hidden_size", META_INT).u.i, 640);
    assert_int_equal(need(&v, "text_config.hidden_size", META_INT).u.i, 640);
    assert_true(need(&v, "rope.theta", META_FLOAT).u.f == 1e6);
    need(&v, "rope", META_OBJ);
    /* arrays */
    m = need(&v, "eos_token_id", META_ARR);
    assert_int_equal(m.u.n, 2);
    assert_true(meta_at(&v, &m, 1, &e));
    assert_int_equal(e.u.i, 106);
    assert_false(meta_at(&v, &m, 2, &e));
    assert_int_equal(need(&v, "eos_token_id.1", META_INT).u.i, 106);
    assert_str(need(&v, "layer_types.0", META_STR).u.s, "sliding_attention");
    assert_false(meta_get(&v, "layer_types.2", &m));
    assert_false(meta_get(&v, "layer_types.x", &m));
    /* what is not finite stays what it is; strings stay */
    assert_true(isnan(need(&v, "nan", META_FLOAT).u.f));
    assert_true(need(&v, "time_step_limit.0", META_FLOAT).u.f == 0.0);
    assert_true(need(&v, "time_step_limit.1", META_FLOAT).u.f == (double)INFINITY);
    double number = 7;
    assert_int_equal(meta_want_num(&v, "nan", false, &number, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "nan: found NaN; expected a finite number");
    int64_t whole = 7;
    assert_int_equal(meta_want_int(&v, "time_step_limit.1", false, 0, 9, &whole, &dg),
                     CAIRN_E_CORRUPT);
    assert_says(&dg, "time_step_limit.1: found Infinity; expected an integer from 0 to 9");
    assert_str(need(&v, "note", META_STR).u.s, "NaN, -Infinity and \"1234567890123456789012\"");
    /* names with dots of their own */
    assert_int_equal(need(&v, "quantization.bits", META_INT).u.i, 4);
    assert_int_equal(need(&v, "quantization.model.layers.0.mlp.bits", META_INT).u.i, 8);
    assert_false(need(&v, "quantization.model.layers.1.mlp", META_BOOL).u.b);
    hfconfig_close(c);
}

static void bad_text(void **state)
{
    cairn_diag dg = {0};
    hfconfig *c = NULL;

    (void)state;
    assert_int_equal(hfconfig_parse("c.json", STR_LIT("[]"), &c, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "c.json: expected an object, found");
    assert_int_equal(hfconfig_parse("c.json", STR_LIT("{\"a\":}"), &c, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "c.json: JSON");
    assert_int_equal(hfconfig_parse("c.json", (cairn_str){NULL, 0}, &c, &dg), CAIRN_E_CORRUPT);
    assert_int_equal(hfconfig_open("/nonexistent/c.json", &c, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "/nonexistent/c.json");
    assert_null(c);
}

static void python_dialect(void **state)
{
    static const struct {
        const char *in, *want;
    } c[] = {
        {"[NaN, Infinity,-Infinity]", "[\"\\u0000NaN\", \"\\u0000Infinity\",\"\\u0000-Infinity\"]"},
        {"{NaN: 1}", "{NaN: 1}"},
        {"[1000000000000000019884624838656]", "[1000000000000000019884624838656.0]"},
        {"[1234567890123456789, -1.5e300, 12345678901234567890123e2]",
         "[1234567890123456789, -1.5e300, 12345678901234567890123e2]"},
        {"[-12345678901234567890]", "[-12345678901234567890.0]"},
        {"{\"NaN\\\\\":\"-Infinity \\\" NaN\"}", "{\"NaN\\\\\":\"-Infinity \\\" NaN\"}"},
        {"\"open \\", "\"open \\"},
        {"Nan", "Nan"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        buf b;
        buf_init(&b, MEM_MISC);
        pyjson_to_json(str_of(c[i].in), &b);
        assert_ok(buf_status(&b));
        assert_string_equal(b.ptr, c[i].want);
        buf_deinit(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dotted_paths),
        cmocka_unit_test(bad_text),
        cmocka_unit_test(python_dialect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
