/* API keys: exact ones only. */
#include "test.h"

#include "serve/auth.h"

static void test_keys(void **state)
{
    const char *const keys[] = {"alpha", "beta"};
    const uint64_t before = mem_used_all();
    auth a;

    (void)state;
    assert_ok(auth_init(&a, keys, 2, NULL));
    assert_true(auth_key_ok(&a, STR_LIT("alpha")));
    assert_true(auth_key_ok(&a, STR_LIT("beta")));
    assert_false(auth_key_ok(&a, STR_LIT("alph")));
    assert_false(auth_key_ok(&a, STR_LIT("alphaa")));
    assert_false(auth_key_ok(&a, STR_LIT("ALPHA")));
    assert_false(auth_key_ok(&a, (cairn_str){0}));
    auth_deinit(&a);
    assert_int_equal(mem_used_all(), before);
}

static void test_empty_key(void **state)
{
    const char *const keys[] = {"alpha", ""};
    cairn_diag dg = {0};
    auth a;

    (void)state;
    assert_int_equal(auth_init(&a, keys, 2, &dg), CAIRN_E_ARG);
    assert_says(&dg, "API key 2");
    auth_deinit(&a);
}

/* A key that stays keeps its count, one that goes opens nothing, and what is wrong changes nothing. */
static void test_replace(void **state)
{
    const char *const old[] = {"alpha", "beta"}, *const next[] = {"beta", "gamma", "delta"};
    const char *const wrong[] = {"x", ""};
    auth a;

    (void)state;
    assert_ok(auth_init(&a, old, 2, NULL));
    a.key[1].rate.used = 5;
    assert_int_equal(auth_replace(&a, wrong, 2, NULL), CAIRN_E_ARG);
    assert_true(auth_key_ok(&a, STR_LIT("alpha")));
    assert_ok(auth_replace(&a, next, 3, NULL));
    assert_false(auth_key_ok(&a, STR_LIT("alpha")));
    assert_true(auth_key_ok(&a, STR_LIT("beta")));
    assert_true(auth_key_ok(&a, STR_LIT("delta")));
    assert_true(a.key[0].rate.used == 5 && a.key[1].rate.used == 0);
    auth_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_empty_key),
        cmocka_unit_test(test_replace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
