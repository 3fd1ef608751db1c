/* Files of flags: every form of a line, and each mistake with its place. */
#include "test.h"

#include <stdio.h>

#include "base/flags.h"

static struct {
    bool verbose;
    int64_t port;
    const char *host;
    flag_list files;
} opt;

static const flag table[] = {
    {"--verbose", "-v", FLAG_BOOL, &opt.verbose, "say more", 0, 0, NULL},
    {"--port", NULL, FLAG_INT, &opt.port, "P: port", 0, 65535, NULL},
    {"--host", NULL, FLAG_STR, &opt.host, "H: address", 0, 0, NULL},
    {"--file", NULL, FLAG_LIST, &opt.files, "FILE: one of several", 0, 0, NULL},
};

static char text[256];
static const char *items[3], *words[2];
static flags_file file;
static cairn_diag dg;

static cairn_status parse(const char *s)
{
    memset(&opt, 0, sizeof opt);
    memset(&dg, 0, sizeof dg);
    opt.files = (flag_list){items, 0, 3};
    file =
        (flags_file){.path = "f.conf", .text = text, .word = "model", .rest = words, .max_rest = 2};
    (void)snprintf(text, sizeof text, "%s", s);
    file.len = strlen(text);
    return flags_parse_file(table, sizeof table / sizeof *table, &file, &dg);
}

static void test_lines(void **state)
{
    (void)state;
    assert_ok(
        parse("# a comment\n\n  port 80\nhost=a b\r\nfile = x\nfile y=z\n\tverbose  \nmodel m 1\n"
              "model=2"));
    assert_int_equal(opt.port, 80);
    assert_string_equal(opt.host, "a b");
    assert_int_equal(opt.files.n, 2);
    assert_string_equal(items[0], "x");
    assert_string_equal(items[1], "y=z");
    assert_true(opt.verbose);
    assert_int_equal(file.n_rest, 2);
    assert_string_equal(words[0], "m 1");
    assert_string_equal(words[1], "2");
    assert_ok(parse("port 1\nport 2"));
    assert_int_equal(opt.port, 2);
    assert_ok(parse("host --port")); /* a value, whatever it begins with */
    assert_string_equal(opt.host, "--port");
    assert_ok(parse("host ="));
    assert_string_equal(opt.host, "");
    assert_ok(parse(""));
    file.text = NULL;
    assert_ok(flags_parse_file(table, 4, &file, &dg));
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"port 1\nprot 2\n", "f.conf:2: --prot: unknown option"},
        {"\n\nport x", "f.conf:3: --port: found \"x\""},
        {"port 70000", "f.conf:1: --port: found \"70000\"; expected 0 to 65535"},
        {"port", "f.conf:1: --port: needs a value"},
        {"--port 1", "f.conf:1: --port: expected a flag's name without its dashes"},
        {"-v", "without its dashes"},
        {"v", "f.conf:1: --v: unknown option"},
        {"verbose yes", "f.conf:1: \"yes\": one word too many"},
        {"model", "f.conf:1: model: found no value"},
        {"model =", "model: found no value"},
        {"model a\nmodel b\nmodel c", "f.conf:3: model: one too many; expected at most 2"},
        {"= 3", "f.conf:1: : expected a flag's name"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1",
         "without its dashes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].text), CAIRN_E_ARG);
        if (!strstr(dg.message, cases[i].says)) fail_msg("%s: %s", cases[i].text, dg.message);
    }
}

/* What is behind a NUL is neither read nor passed over. */
static void test_nul(void **state)
{
    (void)state;
    (void)parse("");
    memcpy(text, "port 1\nhost a\0b\nport 2\n", 23);
    file.len = 23;
    assert_int_equal(flags_parse_file(table, 4, &file, &dg), CAIRN_E_ARG);
    assert_string_equal(dg.message, "f.conf:2: found a NUL byte; expected text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
