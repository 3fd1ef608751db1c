/* A buf grows, always ends in NUL, keeps its first error and what it held before it. */
#include "test.h"

#include "base/buf.h"

static void grows_and_ends_in_nul(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_TEXT);
    assert_int_equal(mem_used_all(), 0); /* empty costs nothing */
    for (int i = 0; i < 5000; i++) {
        buf_byte(&b, (char)('a' + i % 26));
        assert_int_equal(b.ptr[b.len], '\0');
    }
    assert_int_equal(b.len, 5000);
    for (int i = 0; i < 5000; i++) assert_int_equal(b.ptr[i], 'a' + i % 26);
    buf_cut(&b, 3);
    assert_string_equal(b.ptr, "abc");
    buf_cut(&b, 10); /* never longer */
    assert_int_equal(b.len, 3);
    buf_put(&b, "\0x", 2);
    assert_memory_equal(b.ptr, "abc\0x", 6);
    buf_put(&b, NULL, 0);
    buf_str(&b, (cairn_str){NULL, 0});
    buf_puts(&b, "");
    assert_int_equal(buf_view(&b).len, 5);
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.ptr, "");
    assert_ok(buf_status(&b));
    buf_deinit(&b);
    assert_int_equal(mem_used_all(), 0);
    buf zero = {0};
    buf_deinit(&zero);
}

static void prints(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_TEXT);
    buf_printf(&b, "%s=%d", "k", -7);
    buf_printf(&b, "%s", "");
    assert_string_equal(b.ptr, "k=-7");
    buf_printf(&b, "%2000d|", 5);
    assert_int_equal(b.len, 4 + 2001);
    assert_string_equal(b.ptr + 4 + 1998, " 5|");
    buf_deinit(&b);
}

static void grow_is_counted(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_TEXT);
    char *p = buf_grow(&b, 4);
    memcpy(p, "wxyz", 4);
    assert_string_equal(b.ptr, "wxyz");
    assert_non_null(buf_grow(&b, 0));
    assert_int_equal(b.len, 4);
    buf_deinit(&b);
}

static void limit_sticks(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_TEXT);
    b.max = 10;
    buf_puts(&b, "12345");
    buf_puts(&b, "67890"); /* exactly the limit */
    assert_ok(buf_status(&b));
    buf_byte(&b, 'x');
    assert_int_equal(buf_status(&b), CAIRN_E_LIMIT);
    assert_string_equal(b.ptr, "1234567890");
    buf_cut(&b, 2);
    buf_byte(&b, 'y'); /* no room is made by cutting: the text already lacks something */
    assert_string_equal(b.ptr, "12");
    assert_null(buf_grow(&b, 1));
    cairn_bytes out = {NULL, 99};
    assert_int_equal(buf_take(&b, &out), CAIRN_E_LIMIT);
    assert_int_equal(out.len, 99);
    buf_clear(&b);
    assert_ok(buf_status(&b));
    buf_printf(&b, "%d", 12);
    assert_string_equal(b.ptr, "12");
    buf_deinit(&b);
    assert_int_equal(b.max, 10);
    assert_null(buf_grow(&b, SIZE_MAX));
    assert_int_equal(buf_status(&b), CAIRN_E_LIMIT);
    buf_deinit(&b);
    b.max = 0;
    assert_non_null(buf_grow(&b, 1));
    assert_null(buf_grow(&b, SIZE_MAX)); /* len + n overflows */
    assert_int_equal(buf_status(&b), CAIRN_E_LIMIT);
    buf_deinit(&b);
}

static void no_memory_sticks(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_TEXT);
    buf_puts(&b, "kept");
    mem_fail_nth(1);
    assert_null(buf_grow(&b, 1000));
    mem_fail_nth(0);
    buf_puts(&b, "lost");
    assert_int_equal(buf_status(&b), CAIRN_E_NOMEM);
    assert_string_equal(b.ptr, "kept");
    buf_deinit(&b);
}

static void take_moves(void **state)
{
    (void)state;
    buf b;
    cairn_bytes out;
    buf_init(&b, MEM_TEXT);
    assert_ok(buf_take(&b, &out)); /* empty is a string too */
    assert_int_equal(out.len, 0);
    assert_string_equal(out.ptr, "");
    cairn_bytes_free(&out);
    assert_null(out.ptr);
    buf_puts(&b, "mine");
    assert_ok(buf_take(&b, &out));
    assert_null(b.ptr);
    assert_int_equal(b.len + b.cap, 0);
    buf_puts(&b, "next");
    assert_string_equal(out.ptr, "mine");
    assert_string_equal(b.ptr, "next");
    cairn_bytes_free(&out);
    buf_deinit(&b);
    assert_int_equal(mem_used_all(), 0);
}

static cairn_status fill(void *ctx)
{
    (void)ctx;
    buf b;
    cairn_bytes out = {NULL, 0};
    buf_init(&b, MEM_TEXT);
    for (int i = 0; i < 300; i++) buf_printf(&b, "line %d\n", i);
    const cairn_status st = buf_take(&b, &out);
    if (st == CAIRN_OK) assert_int_equal(out.len, 10 * 7 + 90 * 8 + 200 * 9);
    cairn_bytes_free(&out);
    buf_deinit(&b);
    return st;
}

static void fits(void **state)
{
    const uint64_t before = mem_used_all();
    buf b;

    (void)state;
    buf_init(&b, MEM_MISC);
    buf_fit(&b);
    assert_ok(buf_reserve(&b, (size_t)9 << 20)); /* a mapping of its own, then none */
    buf_puts(&b, "what stays");
    buf_fit(&b);
    assert_string_equal(b.ptr, "what stays");
    assert_true(mem_used_all() - before < 100);
    buf_puts(&b, " and grows");
    assert_string_equal(b.ptr, "what stays and grows");
    mem_fail_nth(1);
    buf_fit(&b);
    mem_fail_nth(0);
    assert_int_equal(buf_status(&b), CAIRN_E_NOMEM);
    buf_deinit(&b);
}

static void memory_may_fail(void **state)
{
    (void)state;
    assert_true(fault_loop(fill, NULL) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_ends_in_nul), cmocka_unit_test(prints),
        cmocka_unit_test(grow_is_counted),       cmocka_unit_test(limit_sticks),
        cmocka_unit_test(no_memory_sticks),      cmocka_unit_test(take_moves),
        cmocka_unit_test(memory_may_fail),       cmocka_unit_test(fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
