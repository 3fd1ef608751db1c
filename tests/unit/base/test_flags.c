/* Command lines: every form that is allowed, and every mistake named. */
#include "test.h"

#include "base/flags.h"

static struct {
    bool verbose, given;
    int64_t n;
    double temp;
    const char *host, *mode;
    uint64_t memory;
    flag_list files;
} opt;

static const flag table[] = {
    {"--verbose", "-v", FLAG_BOOL, &opt.verbose, "say more", 0, 0, NULL},
    {"-n", NULL, FLAG_INT, &opt.n, "N: tokens at most", -1, 100, &opt.given},
    {"--temp", "-t", FLAG_NUM, &opt.temp, "T: temperature", 0, 2, NULL},
    {"--host", NULL, FLAG_STR, &opt.host, "H: address", 0, 0, NULL},
    {"--file", "-f", FLAG_LIST, &opt.files, "FILE: one of several", 0, 0, NULL},
    {"--memory", NULL, FLAG_SIZE, &opt.memory, "BYTES: limit", 0, 0, NULL},
    {"--mode", NULL, FLAG_WORD, &opt.mode, "fast|f32: arithmetic", 0, 0, NULL},
};
enum { N_FLAGS = sizeof table / sizeof *table, MAX_WORDS = 12 };

static const char *rest[MAX_WORDS];
static size_t n_rest;
static cairn_diag dg;

/* Parses the words of a NULL-ended list, at most two left over. */
static cairn_status parse(const char *const *words)
{
    char *argv[MAX_WORDS];
    int argc = 0;
    static const char *files[2];
    memset(&opt, 0, sizeof opt);
    opt.files = (flag_list){files, 0, 2};
    memset(&dg, 0, sizeof dg);
    for (; words[argc]; argc++) argv[argc] = (char *)(uintptr_t)words[argc];
    return flags_parse(table, N_FLAGS, argc, argv, rest, 2, &n_rest, &dg);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void every_form(void **state)
{
    (void)state;
    assert_ok(
        PARSE("model", "-v", "-n", "-1", "--temp=0.5", "--host", "::1", "--memory", "2G", "x"));
    assert_true(opt.verbose && opt.given);
    assert_int_equal(opt.n, -1);
    assert_true(opt.temp == 0.5);
    assert_string_equal(opt.host, "::1");
    assert_true(opt.memory == (uint64_t)2 << 30);
    assert_int_equal(n_rest, 2);
    assert_string_equal(rest[0], "model");
    assert_string_equal(rest[1], "x");
    assert_ok(PARSE("-t", "2", "--verbose", "--host=", "-n", "5", "-n", "7"));
    assert_true(opt.temp == 2);
    assert_string_equal(opt.host, "");
    assert_int_equal(opt.n, 7); /* the last one counts */
    assert_ok(PARSE("-f", "a", "x", "--file=b"));
    assert_int_equal(opt.files.n, 2);
    assert_string_equal(opt.files.item[0], "a");
    assert_string_equal(opt.files.item[1], "b");
    assert_int_equal(PARSE("-f", "a", "-f", "b", "-f", "c"), CAIRN_E_ARG);
    assert_says(&dg, "--file: given more than 2 times");
    assert_ok(PARSE("--host=a=b", "--mode", "fast", "--mode=f32"));
    assert_string_equal(opt.mode, "f32");
    assert_string_equal(opt.host, "a=b");
    assert_ok(PARSE("--host", "--verbose")); /* a value may look like a flag */
    assert_string_equal(opt.host, "--verbose");
    assert_false(opt.verbose || opt.given);
}

static void words(void **state)
{
    (void)state;
    assert_ok(PARSE("-", "--", "-v"));
    assert_false(opt.verbose);
    assert_int_equal(n_rest, 2);
    assert_string_equal(rest[0], "-");
    assert_string_equal(rest[1], "-v");
    assert_ok(PARSE("--", "--"));
    assert_string_equal(rest[0], "--");
    assert_ok(parse((const char *const[]){NULL}));
    assert_int_equal(n_rest, 0);
    assert_ok(PARSE(""));
    assert_string_equal(rest[0], "");
    n_rest = 99;
    assert_int_equal(PARSE("a", "b", "c"), CAIRN_E_ARG);
    assert_says(&dg, "\"c\"");
    assert_int_equal(n_rest, 99);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *word, *value, *says;
    } cases[] = {
        {"--tmep", NULL, "--tmep: unknown"},
        {"--tmep=1", NULL, "--tmep: unknown"},
        {"-x", NULL, "-x: unknown"},
        {"-nv", NULL, "-nv: unknown"},
        {"--verbos", NULL, "--verbos: unknown"},
        {"-n", NULL, "-n: needs a value"},
        {"--verbose=1", NULL, "--verbose: found a value; expected none"},
        {"--mode", "f3", "--mode: found \"f3\"; expected one of fast|f32"},
        {"--mode", "f32:", "--mode: found"},
        {"--mode", "arithmetic", "--mode: found"},
        {"--mode", "fast|f32", "--mode: found"},
        {"--mode", "", "--mode: found"},
        {"-n", "", "-n: found \"\"; expected an integer"},
        {"-n", " 5", "expected an integer"},
        {"-n", "0x5", "expected an integer"},
        {"-n", "1e99", "found \"1e99\"; expected an integer"},
        {"--temp", " 1", "expected a number"},
        {"--temp", "0x1", "expected a number"},
        {"--temp", "1x", "expected a number"},
        {"--temp", "1e99", "expected 0 to 2"},
        {"--temp", "-", "expected a number"},
        {"--memory", "0x10", "expected a size"},
        {"-n", "1.5", "found \"1.5\""},
        {"-n", "12x", "found \"12x\""},
        {"-n", "99999999999999999999", "999\"; expected -1 to 100"},
        {"-n", "101", "expected -1 to 100"},
        {"-n", "-2", "expected -1 to 100"},
        {"--temp", "hot", "--temp: found \"hot\"; expected a number"},
        {"--temp", "nan", "expected a number"},
        {"--temp", "inf", "expected a number"},
        {"-t", "2.01", "--temp: found \"2.01\"; expected 0 to 2"},
        {"--temp=", NULL, "expected a number"},
        {"--memory", "-1", "--memory: found \"-1\"; expected a size"},
        {"--memory", "G", "expected a size"},
        {"--memory", "1X", "expected a size"},
        {"--memory", "1GG", "expected a size"},
        {"--memory", "9000000T", "expected a size"},
        {"--memory", "inf", "expected a size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(PARSE(cases[i].word, cases[i].value), CAIRN_E_ARG);
        assert_int_equal(dg.status, CAIRN_E_ARG);
        assert_says(&dg, cases[i].says);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t want;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"1k", 1024},
        {"512M", 512u << 20},
        {"1.5G", 3u << 29},
        {"8GiB", (uint64_t)8 << 30},
        {"1T", (uint64_t)1 << 40},
        {"3B", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(PARSE("--memory", cases[i].text));
        assert_true(opt.memory == cases[i].want);
    }
}

static void help_names_all(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_MISC);
    flags_help(table, N_FLAGS, &b);
    assert_ok(buf_status(&b));
    size_t lines = 0;
    for (size_t i = 0; i < b.len; i++) lines += b.ptr[i] == '\n';
    assert_int_equal(lines, N_FLAGS);
    assert_non_null(strstr(b.ptr, "  --verbose, -v"));
    assert_non_null(strstr(b.ptr, "--temp, -t T"));
    assert_non_null(strstr(b.ptr, " temperature\n"));
    assert_null(strstr(b.ptr, "T: "));
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form),         cmocka_unit_test(words),
        cmocka_unit_test(mistakes_are_named), cmocka_unit_test(sizes),
        cmocka_unit_test(help_names_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
