/* Kept responses: found by id and owner, gone by age, bytes and on demand, their past held as long as needed. */
#include "test.h"

#include <stdio.h>

#include "base/str.h"
#include "serve/responses_store.h"

enum { BODY = 1000 };

static const owner nobody = {.n = 0};

static kept_response *made(const char *id, const owner *by, kept_response *past)
{
    kept_response *k = kept_response_new();

    assert_non_null(k);
    (void)snprintf(k->id, sizeof k->id, "%s", id);
    k->by = *by;
    k->past = past;
    assert_non_null(buf_grow(&k->body, BODY));
    return k;
}

static bool has(responses_store *s, const char *id, const owner *by, uint64_t now)
{
    kept_response *k = responses_store_get(s, str_of(id), by, now);

    responses_store_let_go(s, k);
    return k != NULL;
}

static void test_owners(void **state)
{
    const owner one = {{1}, 32}, two = {{2}, 32};
    responses_store s;

    (void)state;
    responses_store_init(&s);
    responses_store_put(&s, made("a", &one, NULL), 0);
    responses_store_put(&s, made("b", &nobody, NULL), 0);
    assert_true(has(&s, "a", &one, 0));
    assert_false(has(&s, "a", &two, 0));
    assert_false(has(&s, "a", &nobody, 0));
    assert_false(has(&s, "b", &one, 0));
    assert_true(has(&s, "b", &nobody, 0));
    assert_false(responses_store_delete(&s, STR_LIT("a"), &two, 0));
    assert_true(responses_store_delete(&s, STR_LIT("a"), &one, 0));
    assert_false(has(&s, "a", &one, 0));
    responses_store_deinit(&s);
}

static void test_age(void **state)
{
    responses_store s;

    (void)state;
    responses_store_init(&s);
    responses_store_put(&s, made("a", &nobody, NULL), 1000);
    responses_store_put(&s, made("b", &nobody, NULL), 1000);
    assert_true(has(&s, "a", &nobody, 1000 + RESPONSES_TTL_MS - 1)); /* used again */
    assert_false(has(&s, "b", &nobody, 1000 + RESPONSES_TTL_MS));
    assert_true(has(&s, "a", &nobody, 1000 + RESPONSES_TTL_MS));
    assert_false(has(&s, "a", &nobody, 1000 + 2 * (uint64_t)RESPONSES_TTL_MS));
    assert_int_equal(s.n, 0);
    assert_int_equal(s.bytes, 0);
    responses_store_deinit(&s);
}

/* Clocks are read before the lock is held. */
static void test_a_clock_read_earlier(void **state)
{
    responses_store s;

    (void)state;
    responses_store_init(&s);
    responses_store_put(&s, made("a", &nobody, NULL), 1001);
    assert_true(has(&s, "a", &nobody, 1000));
    responses_store_put(&s, made("b", &nobody, NULL), 999);
    assert_true(has(&s, "a", &nobody, 999));
    assert_true(has(&s, "b", &nobody, 998));
    responses_store_deinit(&s);
}

static void test_bytes(void **state)
{
    char id[8];
    responses_store s;

    (void)state;
    responses_store_init(&s);
    s.max_bytes =
        10 * (BODY + sizeof(kept_response) + 64); /* 64: the room of a buf behind its bytes */
    for (int i = 0; i < 50; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        responses_store_put(&s, made(id, &nobody, NULL), 0);
        assert_true(s.bytes <= s.max_bytes);
        assert_true(has(&s, id, &nobody, 0));
        if (i == 0) continue;
        assert_true(has(&s, "0", &nobody, 0)); /* used each time: others go before it */
    }
    assert_in_range(s.n, 9, 11);
    assert_false(has(&s, "1", &nobody, 0));
    s.max_bytes = 100;
    responses_store_put(&s, made("big", &nobody, NULL), 0); /* alone too long */
    assert_int_equal(s.n, 0);
    assert_int_equal(s.bytes, 0);
    responses_store_deinit(&s);
}

/* Who holds most lets go: another key's flood takes nothing from who keeps little. */
static void test_shares(void **state)
{
    enum { ROOM = 20 };
    const owner one = {{1}, 32}, two = {{2}, 32};
    char id[8];
    responses_store s;

    (void)state;
    responses_store_init(&s);
    s.max_bytes = ROOM * (BODY + sizeof(kept_response) + 64);
    responses_store_put(&s, made("a0", &one, NULL), 0);
    responses_store_put(&s, made("a1", &one, NULL), 0);
    for (int i = 0; i < 3 * ROOM; i++) {
        (void)snprintf(id, sizeof id, "b%d", i);
        responses_store_put(&s, made(id, &two, NULL), 0);
        assert_true(s.bytes <= s.max_bytes);
        assert_true(has(&s, id, &two, 0));
    }
    assert_true(has(&s, "a0", &one, 0) && has(&s, "a1", &one, 0));
    assert_false(has(&s, "b0", &two, 0));
    /* And the other way: as much for each in the end. */
    for (int i = 2; i < 3 * ROOM; i++) {
        (void)snprintf(id, sizeof id, "a%d", i);
        responses_store_put(&s, made(id, &one, NULL), 0);
        assert_true(s.bytes <= s.max_bytes);
    }
    assert_false(has(&s, "a0", &one, 0));
    assert_true(has(&s, "a59", &one, 0) && has(&s, "b59", &two, 0));
    assert_true(has(&s, "b52", &two, 0) && has(&s, "a52", &one, 0));
    /* What nobody can find but a request holds is nobody's to let go. */
    kept_response *k = responses_store_get(&s, STR_LIT("b59"), &two, 0);
    for (int i = 0; i < 3 * ROOM; i++) {
        (void)snprintf(id, sizeof id, "b%d", i);
        (void)responses_store_delete(&s, str_of(id), &two, 0);
    }
    assert_true(s.shares && s.shares->next);
    s.max_bytes = 100;
    responses_store_put(&s, made("big", &one, NULL), 0);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.bytes, k->counted);
    responses_store_let_go(&s, k);
    assert_int_equal(s.bytes, 0);
    assert_null(s.shares);
    responses_store_deinit(&s);
}

/* A conversation whose beginnings were deleted or are in use. */
static void test_past(void **state)
{
    kept_response *a, *b;
    responses_store s;

    (void)state;
    responses_store_init(&s);
    responses_store_put(&s, made("a", &nobody, NULL), 0);
    a = responses_store_get(&s, STR_LIT("a"), &nobody, 0);
    responses_store_put(&s, made("b", &nobody, a), 0);
    assert_true(responses_store_delete(&s, STR_LIT("a"), &nobody, 0));
    b = responses_store_get(&s, STR_LIT("b"), &nobody, 0);
    assert_non_null(b);
    assert_string_equal(b->past->id, "a");
    assert_int_equal(s.n, 1);
    assert_true(s.bytes > 2 * (size_t)BODY);
    assert_true(responses_store_delete(&s, STR_LIT("b"), &nobody, 0));
    assert_string_equal(b->past->id, "a"); /* as long as it is held */
    responses_store_let_go(&s, b);
    assert_int_equal(s.bytes, 0);
    b = made("c", &nobody, NULL); /* never put */
    responses_store_let_go(&s, b);
    assert_int_equal(s.bytes, 0);
    responses_store_deinit(&s);
}

/* A long chain goes without a long stack. */
static void test_chain(void **state)
{
    char id[16];
    kept_response *last = NULL;
    responses_store s;

    (void)state;
    responses_store_init(&s);
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        kept_response *k = kept_response_new();
        assert_non_null(k);
        (void)snprintf(k->id, sizeof k->id, "%s", id);
        k->past = last;
        responses_store_put(&s, k, 0);
        last = responses_store_get(&s, str_of(id), &nobody, 0);
    }
    responses_store_let_go(&s, last);
    responses_store_deinit(&s);
    assert_int_equal(s.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_a_clock_read_earlier),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_past),
        cmocka_unit_test(test_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
