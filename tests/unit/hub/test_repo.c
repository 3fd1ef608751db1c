/* Names that come from outside: which may become paths, which files belong together. */
#include "test.h"

#include "hub/hub_repo.h"

static void references(void **state)
{
    (void)state;
    hub_ref r;
    assert_ok(hub_ref_parse("org/na.me_1", &r, NULL));
    assert_string_equal(r.repo, "org/na.me_1");
    assert_string_equal(r.rev, "main");
    assert_string_equal(r.file, "");
    assert_ok(hub_ref_parse("o/n@v1.0:dir/x@y.gguf", &r, NULL));
    assert_string_equal(r.repo, "o/n");
    assert_string_equal(r.rev, "v1.0");
    assert_string_equal(r.file, "dir/x@y.gguf");
}

static void references_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "/",
        "a/",
        "/a",
        "a",
        "a/b/c",
        "../b",
        "a/..",
        "a/.b",
        "-a/b",
        "a/-b",
        "a/b c",
        "a/b\n",
        "a/b%2e",
        "a--b/c",
        "a/b--c",
        "a/b..c",
        "a/b@",
        "a/b@../x",
        "a/b@x/y",
        "a/b@.x",
        "a/b:",
        "a/b:x.bin",
        "a/b:/x.gguf",
        "a/b:../x.gguf",
        "a/b:x/../y.gguf",
        "a/b:.x.gguf",
        "a/b:x//y.gguf",
        "a/b:x\\y.gguf",
        "a\xc3\xa9/b",
        "a/b?c",
        "a/b#c",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hub_ref r = {"kept", "", ""};
        cairn_diag dg = {0};
        assert_int_equal(hub_ref_parse(bad[i], &r, &dg), CAIRN_E_ARG);
        assert_says(&dg, "expected");
        assert_string_equal(r.repo, "kept");
    }
    char longest[2 * 97 + 2];
    memset(longest, 'a', sizeof longest);
    longest[96] = '/';
    longest[96 + 1 + 96] = '\0';
    hub_ref r;
    assert_ok(hub_ref_parse(longest, &r, NULL));
    longest[96 + 1 + 96] = 'a';
    longest[96 + 1 + 97] = '\0';
    assert_int_equal(hub_ref_parse(longest, &r, NULL), CAIRN_E_ARG);
}

static void file_names(void **state)
{
    (void)state;
    char deep[] = "1/2/3/4/5/6/7/8/9";
    char big[HUB_FILE_LEN + 1];
    assert_true(hub_file_name_ok(STR_LIT("config.json")));
    assert_true(hub_file_name_ok(STR_LIT("a/b c/d..e")));
    assert_false(hub_file_name_ok(STR_LIT("")));
    assert_false(hub_file_name_ok(STR_LIT("/a")));
    assert_false(hub_file_name_ok(STR_LIT("a/")));
    assert_false(hub_file_name_ok(STR_LIT("a//b")));
    assert_false(hub_file_name_ok(STR_LIT(".")));
    assert_false(hub_file_name_ok(STR_LIT("a/../b")));
    assert_false(hub_file_name_ok(STR_LIT("a/.git/b")));
    assert_false(hub_file_name_ok(STR_LIT("a\\b")));
    assert_false(hub_file_name_ok(STR_LIT("a\0b")));
    assert_false(hub_file_name_ok(str_of(deep)));
    deep[15] = '\0';
    assert_true(hub_file_name_ok(str_of(deep)));
    memset(big, 'a', sizeof big);
    assert_true(hub_file_name_ok((cairn_str){big, 255}));
    assert_false(hub_file_name_ok((cairn_str){big, 256}));
    big[200] = big[400] = '/';
    assert_true(hub_file_name_ok((cairn_str){big, HUB_FILE_LEN - 1}));
    assert_false(hub_file_name_ok((cairn_str){big, HUB_FILE_LEN}));
}

static void split_sets(void **state)
{
    (void)state;
    const cairn_str a = STR_LIT("x-00001-of-00003.gguf"), b = STR_LIT("x-00003-of-00003.gguf");
    assert_true(hub_same_split(a, b));
    assert_true(hub_same_split(STR_LIT("x.gguf"), STR_LIT("x.gguf")));
    assert_false(hub_same_split(a, STR_LIT("x-00001-of-00002.gguf")));
    assert_false(hub_same_split(a, STR_LIT("y-00002-of-00003.gguf")));
    assert_false(hub_same_split(a, STR_LIT("x-0000a-of-00003.gguf")));
    assert_false(hub_same_split(STR_LIT("x.gguf"), STR_LIT("y.gguf")));
    assert_false(hub_same_split(STR_LIT("-00001-of-00003.gguf"), STR_LIT("-00002-of-00003.gguf")));
}

static void hex(void **state)
{
    (void)state;
    assert_true(hub_is_hex(STR_LIT("09af"), 4));
    assert_false(hub_is_hex(STR_LIT("09af"), 5));
    assert_false(hub_is_hex(STR_LIT("09aF"), 4));
    assert_false(hub_is_hex(STR_LIT("../a"), 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references), cmocka_unit_test(references_that_are_none),
        cmocka_unit_test(file_names), cmocka_unit_test(split_sets),
        cmocka_unit_test(hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
