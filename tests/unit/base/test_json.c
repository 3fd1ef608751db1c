#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"

static void smoke(void **state)
{
    (void)state;
    json_doc *d = NULL;
    cairn_diag dg = {0};
    const char *text = "{\"a\":[1,2.5,\"x\\n\\u00e9\",true,null,18446744073709551615],\"a "
                       "b\":{\"c\":-3},\"f\":1.0}";
    assert_int_equal(json_parse(str_of(text), &d, &dg), CAIRN_OK);
    buf b;
    buf_init(&b, MEM_JSON);
    json_writer w = json_write(&b);
    json_w_val(&w, json_root(d));
    assert_int_equal(buf_status(&b), CAIRN_OK);
    assert_string_equal(b.ptr, "{\"a\":[1,2.5,\"x\\n\xc3\xa9\",true,null,18446744073709551615],\"a "
                               "b\":{\"c\":-3},\"f\":1.0}");
    buf_deinit(&b);
    assert_int_equal(json_int(json_path(json_root(d), "a b.c"), 0), -3);
    json_free(d);
    assert_int_equal(json_parse(STR_LIT("{\"a\":\n 1e999}"), &d, &dg), CAIRN_E_CORRUPT);
    assert_string_equal(dg.message, "JSON, byte 7 (line 2, column 2): number out of range");
    assert_int_equal(mem_used_all(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(smoke)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
