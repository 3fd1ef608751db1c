/* Writing JSON: commas, escapes, numbers that read back, values copied from a document. */
#include "test.h"

#include <math.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/utf8.h"

static void commas(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_JSON);
    json_writer w = json_write(&b);
    json_w_obj(&w);
    json_w_kint(&w, "i", INT64_MIN);
    json_w_key(&w, "a");
    json_w_arr(&w);
    json_w_arr(&w);
    json_w_end_arr(&w);
    json_w_obj(&w);
    json_w_end_obj(&w);
    json_w_uint(&w, UINT64_MAX);
    json_w_raw(&w, STR_LIT("{\"raw\":1}"));
    json_w_null(&w);
    json_w_bool(&w, false);
    json_w_end_arr(&w);
    json_w_kstr(&w, "s", STR_LIT("x"));
    json_w_kbool(&w, "b", true);
    json_w_knum(&w, "n", 0.5);
    json_w_kuint(&w, "u", UINT64_MAX);
    json_w_key(&w, "last");
    json_w_null(&w);
    json_w_end_obj(&w);
    assert_int_equal(w.depth, 0);
    assert_ok(buf_status(&b));
    assert_string_equal(b.ptr, "{\"i\":-9223372036854775808,\"a\":[[],{},18446744073709551615,"
                               "{\"raw\":1},null,false],\"s\":\"x\",\"b\":true,\"n\":0.5,"
                               "\"u\":18446744073709551615,\"last\":null}");
    buf_deinit(&b);
}

static void string_is(cairn_str s, const char *want)
{
    buf b;
    buf_init(&b, MEM_JSON);
    json_writer w = json_write(&b);
    json_w_str(&w, s);
    assert_string_equal(b.ptr, want);
    buf_deinit(&b);
}

static void escapes(void **state)
{
    (void)state;
    string_is((cairn_str){NULL, 0}, "\"\"");
    string_is(STR_LIT("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
    string_is(STR_LIT("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
    string_is(STR_LIT("\0\x01\x1f"), "\"\\u0000\\u0001\\u001f\"");
    string_is(STR_LIT("\xc3\xa9\xf0\x9f\x99\x82"), "\"\xc3\xa9\xf0\x9f\x99\x82\"");
    string_is(STR_LIT("a\xff\xc3z"), "\"a\xef\xbf\xbd\xef\xbf\xbdz\"");
    string_is(STR_LIT("\xf0\x9f\x99"), "\"\xef\xbf\xbd\""); /* one maximal subpart, one mark */
}

/* Any bytes become a string that parses; valid text comes back as it was. */
static void any_bytes_read_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        char text[24];
        for (uint64_t i = 0; i < sizeof text; i++) {
            const uint64_t r = rng_u64(seed, 1, i);
            text[i] = (char)(seed % 3 ? r & 0x7f : r);
        }
        const cairn_str s = {text, seed % sizeof text};
        buf b;
        json_doc *d;
        buf_init(&b, MEM_JSON);
        json_writer w = json_write(&b);
        json_w_str(&w, s);
        assert_true(utf8_valid(buf_view(&b)));
        assert_ok(json_parse(buf_view(&b), &d, NULL));
        const cairn_str back = json_str(json_root(d));
        assert_true(utf8_valid(back));
        if (utf8_valid(s)) assert_true(str_eq(back, s));
        json_free(d);
        buf_deinit(&b);
    }
}

static double read_back(double x, buf *b)
{
    json_doc *d;
    buf_clear(b);
    json_writer w = json_write(b);
    json_w_num(&w, x);
    assert_ok(json_parse(buf_view(b), &d, NULL));
    assert_int_equal(json_typeof(json_root(d)), JSON_FLOAT);
    const double y = json_num(json_root(d), 99);
    json_free(d);
    return y;
}

static void doubles_read_back(void **state)
{
    (void)state;
    static const double edge[] = {0,       -0.0,      1,      0.1,
                                  1.0 / 3, 1e21,      1e22,   123456789,
                                  5e-324,  0x1p-1022, 0x1p53, 0x1.fffffffffffffp1023,
                                  -1e-7,   100,       1e5};
    buf b;
    buf_init(&b, MEM_JSON);
    for (size_t i = 0; i < sizeof edge / sizeof *edge; i++) {
        const double y = read_back(edge[i], &b);
        assert_memory_equal(&y, &edge[i], sizeof y); /* the sign of zero too */
    }
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t bits = rng_u64(9, 9, i);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) continue;
        const double y = read_back(x, &b);
        assert_memory_equal(&y, &x, sizeof y);
    }
    (void)read_back(0.1, &b);
    assert_string_equal(b.ptr, "0.1"); /* the shortest */
    (void)read_back(3, &b);
    assert_string_equal(b.ptr, "3.0");
    buf_deinit(&b);
}

static void not_finite_is_null(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_JSON);
    json_writer w = json_write(&b);
    json_w_arr(&w);
    json_w_num(&w, (double)NAN);
    json_w_num(&w, (double)INFINITY);
    json_w_num(&w, -(double)INFINITY);
    json_w_end_arr(&w);
    assert_string_equal(b.ptr, "[null,null,null]");
    buf_deinit(&b);
}

static void values_are_copied(void **state)
{
    (void)state;
    static const char text[] = "{\"a\\\"\\u0000\":[1,-2,18446744073709551615,1e+100,0.1,true,false,"
                               "null,\"\\n\xc3\xa9\"],\"o\":{\"p\":{\"q\":[]}},\"e\":{}}";
    json_doc *d;
    buf b;
    assert_ok(
        json_parse(STR_LIT(" { \"a\\\"\\u0000\" : [ 1 , -2 , 18446744073709551615 , 1e100 , 0.10 ,"
                           " true , false , null , \"\\u000a\\u00e9\" ] ,\"o\":{\"p\":{\"q\":[ ]}},"
                           "\"e\":{ } } "),
                   &d, NULL));
    buf_init(&b, MEM_JSON);
    json_writer w = json_write(&b);
    json_w_val(&w, json_root(d));
    assert_string_equal(b.ptr, text);
    json_w_val(&w, (json_val){NULL, 0}); /* a value that is absent */
    assert_string_equal(b.ptr + sizeof text - 1, ",null");
    json_free(d);
    buf_deinit(&b);
}

static void errors_stay_in_the_buf(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_JSON);
    b.max = 5;
    json_writer w = json_write(&b);
    json_w_arr(&w);
    json_w_str(&w, STR_LIT("too long"));
    json_w_end_arr(&w);
    assert_int_equal(buf_status(&b), CAIRN_E_LIMIT);
    assert_true(b.len <= 5);
    buf_deinit(&b);
}

static cairn_status write_much(void *ctx)
{
    buf b;
    buf_init(&b, MEM_JSON);
    json_writer w = json_write(&b);
    json_w_arr(&w);
    for (int i = 0; i < 50; i++) json_w_val(&w, json_root(ctx));
    json_w_end_arr(&w);
    const cairn_status st = buf_status(&b);
    buf_deinit(&b);
    return st;
}

static void memory_may_fail(void **state)
{
    (void)state;
    json_doc *d;
    assert_ok(json_parse(STR_LIT("{\"key\":[1,2.5,\"value\",{\"x\":null}]}"), &d, NULL));
    assert_true(fault_loop(write_much, d) >= 4);
    json_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas),
        cmocka_unit_test(escapes),
        cmocka_unit_test(any_bytes_read_back),
        cmocka_unit_test(doubles_read_back),
        cmocka_unit_test(not_finite_is_null),
        cmocka_unit_test(values_are_copied),
        cmocka_unit_test(errors_stay_in_the_buf),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
