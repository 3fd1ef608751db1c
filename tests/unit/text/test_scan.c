/* Each hand-written scanner against the regular expression it stands for, over random text in which
   the cases that rules look at are frequent; characters that only newer Unicode versions assign are
   left out.  With `--bench`, times of both. */
#include "test.h"

#include <stdio.h>
#include <utf8proc.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "text/rules.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

static const char *const rules[] = {RULE_GPT2,     RULE_LLAMA3,    RULE_QWEN2,    RULE_QWEN35,
                                    RULE_O200K,    RULE_DEEPSEEK3, RULE_HAN_KANA, "\\p{N}",
                                    "\\p{N}{1,3}", "\\p{N}+"};
enum { N_RULES = sizeof rules / sizeof rules[0] };

static const char *const bits[] = {
    " ",      "  ",      "\n",     "\r\n",    "\t",         "'s",     "'S",     "'ll",
    "'RE",    "'\u017f", "'",      "a",       "Bc",         "don",    "1",      "23",
    "\u0664", "\u00b2",  "\u0301", "e\u0301", "\u01c5",     "\u02b0", "\u4e2d", "\u3042",
    "!",      "?!",      "/",      "_",       "$",          "\u2014", "\u00a0", "\u3000",
    "\u2028", "\u200d",  "\ufeff", "\x01",    "\U0001f600", "\ufe0f", "(x",     "#A",
    "\u309b", "\u30fb",  "\u3099", "\u30a2",  "\u3097",     "\u3040"};

static uint64_t state64 = 88172645463325252u;

static uint32_t below(uint32_t n)
{
    state64 ^= state64 << 13;
    state64 ^= state64 >> 7;
    state64 ^= state64 << 17;
    return (uint32_t)(state64 >> 33) % n;
}

/* Assigned since long: the library and the tables know it alike. */
static bool old_enough(uint32_t cp)
{
    static const uint32_t range[][2] = {
        {0x20, 0x24F},      {0x300, 0x36F},     {0x391, 0x3A1},    {0x400, 0x481},
        {0x5D0, 0x5EA},     {0x905, 0x939},     {0xE01, 0xE3A},    {0x10D0, 0x10F0},
        {0x1100, 0x11A2},   {0x2010, 0x2027},   {0x2190, 0x21FF},  {0x2460, 0x24FF},
        {0x3041, 0x3096},   {0x4E00, 0x9FA5},   {0xAC00, 0xD7A3},  {0xFF01, 0xFF5E},
        {0x10400, 0x1044F}, {0x1D400, 0x1D454}, {0x1F300, 0x1F320}};

    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++)
        if (cp >= range[i][0] && cp <= range[i][1]) return true;
    return false;
}

static void put_random(buf *b)
{
    uint32_t n = 1 + below(below(8) ? 12 : 120), plain = below(4);

    buf_clear(b);
    for (uint32_t i = 0; i < n; i++) {
        if (plain == 0 && below(16)) { /* ASCII for long, with words of all lengths */
            for (uint32_t k = below(20); k > 0; k--) buf_byte(b, (char)('A' + below(6) * 11));
            buf_byte(b, (char)(below(4) ? ' ' : 1 + below(127)));
        } else if (below(4)) {
            buf_puts(b, bits[below(sizeof bits / sizeof bits[0])]);
        } else {
            uint32_t cp = 0;
            char c[4];
            while (!old_enough(cp)) cp = below(8) ? below(0x2600) : below(0x20000);
            buf_put(b, c, (size_t)utf8_encode(cp, c));
        }
    }
}

/* The words of the rule as a list of ends, by scanner or by regex. */
static void words(const pre_step *step, cairn_str s, work *w, buf *out)
{
    cairn_str text;

    buf_clear(out);
    assert_ok(pretok_run(step, 1, s, true, w, &text, NULL));
    buf_str(out, buf_view(&w->span_x));
}

/* The same as the scanner lists them, `most` at once. */
static void listed(const scanner *scan, cairn_str s, uint32_t most, buf *out)
{
    uint32_t end[64], n;
    size_t at = 0;

    buf_clear(out);
    while ((n = scan->words(s, at, end, most)) > 0) {
        assert_in_range(n, 1, most);
        for (uint32_t i = 0; i < n; at = end[i++]) {
            const span w = {(uint32_t)at, end[i] - (uint32_t)at};
            buf_put(out, &w, sizeof w);
        }
    }
    assert_int_equal(at, s.len);
}

static void equal_to_regex(void **state)
{
    work w = {0};
    buf text = {.tag = MEM_TEXT}, a = {.tag = MEM_TEXT}, b = {.tag = MEM_TEXT};

    (void)state;
    for (size_t r = 0; r < N_RULES; r++) {
        pre_step scan = {.kind = PRE_SCAN, .behavior = PRE_ISOLATED},
                 re = {.kind = PRE_REGEX, .behavior = PRE_ISOLATED};
        scan.scan = scan_find(str_of(rules[r]));
        assert_non_null(scan.scan);
        assert_ok(regex_new(str_of(rules[r]), "test", &re.re, NULL));
        for (int i = 0; i < 20000; i++) {
            put_random(&text);
            words(&scan, buf_view(&text), &w, &a);
            words(&re, buf_view(&text), &w, &b);
            if (!str_eq(buf_view(&a), buf_view(&b)))
                fail_msg("rule %zu differs on \"%.*s\"", r, STR_ARG(buf_view(&text)));
            listed(scan.scan, buf_view(&text), 1 + below(64), &b);
            if (!str_eq(buf_view(&a), buf_view(&b)))
                fail_msg("rule %zu lists other words of \"%.*s\"", r, STR_ARG(buf_view(&text)));
        }
        regex_free(re.re);
    }
    buf *all[] = {&text, &a, &b, &w.span_x, &w.span_y, &w.text_x, &w.text_y};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_deinit(all[i]);
    assert_int_equal(mem_used_all(), 0);
}

/* The three steps of the DeepSeek family, and the one that stands for them. */
static void joined_equals_its_steps(void **state)
{
    static const char *const parts[] = {"\\p{N}{1,3}", RULE_HAN_KANA, RULE_DEEPSEEK3};
    work w = {0};
    buf text = {.tag = MEM_TEXT}, a = {.tag = MEM_TEXT}, b = {.tag = MEM_TEXT};
    pre_step apart[3] = {{.kind = PRE_SCAN}}, joined[4] = {{.kind = PRE_SCAN}};
    size_t n = 4;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        apart[i] = (pre_step){.kind = PRE_SCAN, .behavior = PRE_ISOLATED};
        apart[i].scan = scan_find(str_of(parts[i]));
        joined[i] = apart[i];
    }
    joined[3] = (pre_step){.kind = PRE_BYTES};
    pre_join(joined, &n);
    assert_int_equal(n, 2);
    assert_int_equal(joined[1].kind, PRE_BYTES);
    for (int i = 0; i < 40000; i++) {
        cairn_str out;
        put_random(&text);
        assert_ok(pretok_run(apart, 3, buf_view(&text), true, &w, &out, NULL));
        buf_clear(&a);
        buf_str(&a, buf_view(&w.span_x));
        words(&joined[0], buf_view(&text), &w, &b);
        if (!str_eq(buf_view(&a), buf_view(&b)))
            fail_msg("other words of \"%.*s\"", STR_ARG(buf_view(&text)));
        listed(joined[0].scan, buf_view(&text), 1 + below(64), &b);
        if (!str_eq(buf_view(&a), buf_view(&b)))
            fail_msg("lists other words of \"%.*s\"", STR_ARG(buf_view(&text)));
    }
    n = 2; /* not all of them: nothing is joined */
    pre_join(apart, &n);
    assert_int_equal(n, 2);
    buf *all[] = {&text, &a, &b, &w.span_x, &w.span_y, &w.text_x, &w.text_y};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_deinit(all[i]);
}

static void unknown_patterns_have_no_scanner(void **state)
{
    (void)state;
    assert_null(scan_find(STR_LIT("\\p{L}+")));
    assert_null(scan_find(STR_LIT("")));
}

/* Time grows with the length of a text, whatever it is made of. */
static void long_runs(void **state)
{
    static const char *const run[] = {" ",      "\n", "a",  "A",      "1",
                                      "\u0301", "!",  "' ", "\u4e2d", "\x01"};
    buf b = {.tag = MEM_TEXT};
    double start = clock_s();

    (void)state;
    for (size_t k = 0; k < sizeof run / sizeof run[0]; k++) {
        buf_clear(&b);
        for (int i = 0; i < 100000; i++) buf_puts(&b, run[k]);
        buf_puts(&b, "x");
        for (size_t r = 0; r < N_RULES; r++) {
            scan_fn f = scan_find(str_of(rules[r]))->match;
            cairn_str s = buf_view(&b);
            for (size_t at = 0, end; at < s.len; at = end) {
                uint32_t cp;
                end = f(s, at);
                assert_true(end >= at && end <= s.len);
                if (end == at) end += uc_next(s.ptr + at, &cp);
            }
        }
    }
    buf_deinit(&b);
    assert_true(clock_s() - start < 20); /* quadratic would take hours */
}

static void ascii_table_is_unicodes(void **state)
{
    static const struct {
        const char *chars;
        uint32_t class;
    } some[] = {{"$+<=>^`|~", UC_SYMBOL},
                {"!\"#%&'()*,-./:;?@[\\]{}", UC_PUNCT},
                {"_", UC_PUNCT | UC_CONNECT},
                {"\t\v\f ", UC_SPACE},
                {"\r\n", UC_SPACE | UC_NEWLINE}};
    int n = 0;

    (void)state;
    for (size_t k = 0; k < sizeof some / sizeof some[0]; k++)
        for (const char *p = some[k].chars; *p; p++, n++)
            assert_int_equal(uc_class((uint32_t)*p), some[k].class);
    for (uint32_t c = 0; c < 128; c++) {
        utf8proc_category_t u = utf8proc_category((utf8proc_int32_t)c);
        assert_int_equal(!!(uc_class(c) & UC_UPPER), u == UTF8PROC_CATEGORY_LU);
        assert_int_equal(!!(uc_class(c) & UC_LOWER), u == UTF8PROC_CATEGORY_LL);
        assert_int_equal(!!(uc_class(c) & UC_NUMBER), u == UTF8PROC_CATEGORY_ND);
        assert_int_equal(!!(uc_class(c) & UC_SYMBOL),
                         u >= UTF8PROC_CATEGORY_SM && u <= UTF8PROC_CATEGORY_SO);
        n += !!(uc_class(c) & (UC_LETTER | UC_NUMBER | UC_CONTROL));
    }
    assert_int_equal(n, 128);
}

static void byte_alphabet_is_a_bijection(void **state)
{
    (void)state;
    for (int i = 0; i < 256; i++) assert_int_equal(bytelevel_byte(bytelevel_char((uint8_t)i)), i);
    assert_int_equal(bytelevel_char(' '), 0x120);
    assert_int_equal(bytelevel_char('\n'), 0x10A);
    assert_int_equal(bytelevel_byte(0x144), -1);
    assert_int_equal(bytelevel_byte(' '), -1);
}

static int bench(void)
{
    work w = {0};
    buf text = {.tag = MEM_TEXT};
    cairn_str out;

    for (int i = 0; i < 20000; i++)
        buf_puts(&text,
                 i % 7 ? " The keeper's lamp-oil ran low" : "; x[12] = 1945;\n    \u6e2f\u306e");
    for (size_t r = 0; r < N_RULES; r++) {
        pre_step s[2] = {{.kind = PRE_SCAN, .behavior = PRE_ISOLATED},
                         {.kind = PRE_REGEX, .behavior = PRE_ISOLATED}};
        double took[2];
        s[0].scan = scan_find(str_of(rules[r]));
        assert_ok(regex_new(str_of(rules[r]), "bench", &s[1].re, NULL));
        for (int k = 0; k < 2; k++) {
            double start = clock_s();
            assert_ok(pretok_run(&s[k], 1, buf_view(&text), true, &w, &out, NULL));
            took[k] = clock_s() - start;
        }
        printf("rule %zu: scanner %.0f MB/s, regex %.0f MB/s, %.1f times\n", r,
               (double)text.len / took[0] / 1e6, (double)text.len / took[1] / 1e6,
               took[1] / took[0]);
        regex_free(s[1].re);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_regex),
        cmocka_unit_test(joined_equals_its_steps),
        cmocka_unit_test(unknown_patterns_have_no_scanner),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(ascii_table_is_unicodes),
        cmocka_unit_test(byte_alphabet_is_a_bijection),
    };
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) return bench();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
