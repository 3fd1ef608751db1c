/* Spans are apart, aligned and zero; the last one of a slab takes it along, in any order. */
#include "test.h"

#include "backend/cpu/slab.h"

enum { N = 40 };

static void spans_are_apart(void **state)
{
    (void)state;
    slabs s = {0};
    uint8_t *span[N];
    size_t size[N];
    for (size_t i = 0; i < N; i++) {
        size[i] =
            i % 7 == 6 ? (size_t)70 << 20 : i * i * 20000 + 1; /* several slabs, some too small */
        span[i] = slabs_take(&s, size[i]);
        assert_non_null(span[i]);
        assert_int_equal((uintptr_t)span[i] % 64, 0);
        assert_int_equal(span[i][0] | span[i][size[i] - 1], 0);
        span[i][0] = span[i][size[i] - 1] = (uint8_t)(i + 1);
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(span[i][0], i + 1);
        assert_int_equal(span[i][size[i] - 1], i + 1);
    }
    for (size_t i = 0; i < N; i++) slabs_give(&s, span[i * 17 % N]);
    assert_null(s.newest);
    assert_int_equal(mem_used_all(), 0);
}

/* Of each slab, newest first, what is taken and no more. */
static void chunks_are_what_was_taken(void **state)
{
    (void)state;
    slabs s = {0};
    assert_null(slabs_chunk(&s, 4096, 0));
    uint8_t *a = slabs_take(&s, 10000), *b = slabs_take(&s, (size_t)65 << 20);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_equal(slabs_chunk(&s, (size_t)65 << 20, 0), b);
    assert_null(slabs_chunk(&s, (size_t)65 << 20, 1));
    assert_int_equal(slabs_spare(&s), ((size_t)64 << 20) - 10048); /* whole lines are taken */
    const size_t n = ((size_t)65 << 20) / 4096;
    assert_ptr_equal(slabs_chunk(&s, 4096, n - 1), b + (n - 1) * 4096);
    assert_ptr_equal(slabs_chunk(&s, 4096, n), a);
    assert_ptr_equal(slabs_chunk(&s, 4096, n + 1), a + 4096);
    assert_null(slabs_chunk(&s, 4096, n + 2));
    slabs_give(&s, a);
    slabs_give(&s, b);
    assert_int_equal(mem_used_all(), 0);
}

static cairn_status take_two(void *ctx)
{
    slabs s = {0};
    (void)ctx;
    const uint8_t *a = slabs_take(&s, 100), *b = a ? slabs_take(&s, (size_t)65 << 20) : NULL;
    if (a) slabs_give(&s, a);
    if (b) slabs_give(&s, b);
    return b ? CAIRN_OK : CAIRN_E_NOMEM;
}

static void memory_may_fail(void **state)
{
    (void)state;
    slabs s = {0};
    assert_null(slabs_take(&s, SIZE_MAX - 3));
    assert_null(slabs_take(&s, SIZE_MAX / 2));
    assert_null(s.newest);
    assert_int_equal(fault_loop(take_two, NULL), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_apart),
        cmocka_unit_test(chunks_are_what_was_taken),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
