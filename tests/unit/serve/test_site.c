/* Whose requests are answered: names, origins, and how often. */
#include "test.h"

#include "serve/rate.h"
#include "serve/site.h"

static const char *const hosts[] = {"box.lan"};
static const char *const origins[] = {"https://chat.example", "vscode-webview://*", "null"};

static void test_hosts(void **state)
{
    static const struct {
        const char *host;
        bool ok;
    } cases[] = {
        {NULL, true},
        {"", true},
        {"localhost", true},
        {"LocalHost:8080", true},
        {"a.localhost:1", true},
        {"localhost.:80", true},
        {"127.0.0.1:8080", true},
        {"10.1.2.3", true},
        {"[::1]:8080", true},
        {"[fe80::1]", true},
        {"box.lan", true},
        {"BOX.lan.:9", true},
        {"evil.example", false},
        {"evil.example:8080", false},
        {"127.0.0.1.evil.example", false},
        {"localhost.evil.example", false},
        {"evillocalhost", false},
        {".localhost", false},
        {"127.0.0.1:80:80", false},
        {"1.2.3", false},
        {"0x7f.1", false},
        {"[", false},
        {"[]", false},
        {"[127.0.0.1]", false},
        {"::1", false},
        {":", false},
        {"box.lan.evil", false},
        {"*", false},
    };
    site s;

    (void)state;
    assert_ok(site_init(&s, hosts, 1, NULL, 0, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (site_host_ok(&s, cases[i].host) != cases[i].ok)
            fail_msg("host %s", cases[i].host ? cases[i].host : "NULL");
    if (s.own[0]) assert_true(site_host_ok(&s, s.own));
    site_deinit(&s);
    assert_ok(site_init(&s, (const char *const[]){"*"}, 1, NULL, 0, NULL));
    assert_true(site_host_ok(&s, "evil.example"));
    site_deinit(&s);
}

static void test_origins(void **state)
{
    const uint64_t before = mem_used_all();
    site s;

    (void)state;
    assert_ok(site_init(&s, NULL, 0, origins, 3, NULL));
    assert_true(site_origin_listed(&s, "https://chat.example"));
    assert_true(site_origin_listed(&s, "HTTPS://Chat.Example"));
    assert_true(site_origin_listed(&s, "vscode-webview://abc"));
    assert_true(site_origin_listed(&s, "null"));
    assert_false(site_origin_listed(&s, "http://chat.example"));
    assert_false(site_origin_listed(&s, "https://chat.example.evil"));
    assert_false(site_origin_listed(&s, "https://chat.example:8443"));
    assert_false(site_origin_listed(&s, ""));
    site_deinit(&s);
    assert_int_equal(mem_used_all(), before);
    assert_true(site_same_origin("http://h:1", "h:1"));
    assert_true(site_same_origin("https://H", "h"));
    assert_false(site_same_origin("http://h:1", "h"));
    assert_false(site_same_origin("http://h", NULL));
    assert_false(site_same_origin("http://", ""));
    assert_false(site_same_origin("null", "null"));
}

static void test_wrong_lists(void **state)
{
    static const char *const wrong[] = {"chat.example", "https://", "https://a/", "https://a*",
                                        "://a",         "",         "**",         "https://a b"};
    const uint64_t before = mem_used_all();

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cairn_diag dg = {0};
        site s;
        if (site_init(&s, NULL, 0, &wrong[i], 1, &dg) != CAIRN_E_ARG) fail_msg("%s", wrong[i]);
        assert_says(&dg, "expected SCHEME://HOST");
        site_deinit(&s);
    }
    site s;
    assert_int_equal(site_init(&s, (const char *const[]){""}, 1, NULL, 0, NULL), CAIRN_E_ARG);
    site_deinit(&s);
    assert_int_equal(mem_used_all(), before);
}

static cairn_status init_both(void *ctx)
{
    site s;

    (void)ctx;
    const cairn_status st = site_init(&s, hosts, 1, origins, 3, NULL);
    site_deinit(&s);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(init_both, NULL), 2);
}

static void test_rate(void **state)
{
    rate r = {0};
    int32_t wait = 0;

    (void)state;
    for (int i = 0; i < 6; i++) assert_true(rate_take(&r, 6, 1000, &wait));
    assert_false(rate_take(&r, 6, 1000, &wait));
    assert_int_equal(wait, 10);
    assert_false(rate_take(&r, 6, 10999, &wait));
    assert_int_equal(wait, 1);
    assert_true(rate_take(&r, 6, 11000, &wait)); /* a tenth of a minute gives one back */
    assert_false(rate_take(&r, 6, 11000, &wait));
    for (int i = 0; i < 6; i++) assert_true(rate_take(&r, 6, 200000, &wait));
    assert_false(rate_take(&r, 6, 200000, &wait)); /* however long it was quiet */
    assert_true(rate_take(&r, 7, 200000, &wait));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),       cmocka_unit_test(test_origins),
        cmocka_unit_test(test_wrong_lists), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
