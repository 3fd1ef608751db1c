/* UTF-8: the Unicode standard's own examples of maximal subparts (tables 3-8 to 3-11), every code
   point there and back, and every two-byte and many three-byte strings against a decoder that is
   written from the bit patterns alone. */
#include "test.h"

#include "base/utf8.h"

/* Decodes all of s; writes the code points, one U+FFFD a maximal subpart. */
static size_t decode_all(const char *s, size_t n, uint32_t *out)
{
    size_t k = 0;
    for (size_t i = 0; i < n; k++) {
        const int len = utf8_decode(s + i, n - i, &out[k]);
        assert_int_not_equal(len, 0);
        if (len < 0) assert_int_equal(out[k], 0xFFFD);
        i += (size_t)(len < 0 ? -len : len);
        assert_true(i <= n);
    }
    return k;
}

static void maximal_subparts(void **state)
{
    (void)state;
    enum { R = 0xFFFD };
    static const struct {
        const char *bytes;
        uint32_t want[12];
    } cases[] = {
        {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", {R, R, R, R, R, R, R, R, 0x41}},
        {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", {R, R, R, R, R, R, R, R, 0x41}},
        {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", {R, R, R, R, R, 0x41, R, R, 0x42}},
        {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", {R, R, R, R, 0x41}},
        {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
         {0x61, R, R, R, 0x62, R, 0x63, R, R, 0x64}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t got[16] = {0};
        size_t n = 0;
        while (cases[i].want[n]) n++;
        assert_int_equal(decode_all(cases[i].bytes, strlen(cases[i].bytes), got), n);
        assert_memory_equal(got, cases[i].want, n * sizeof *got);
        assert_false(utf8_valid(str_of(cases[i].bytes)));
    }
}

static void every_code_point(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x110010; cp++) {
        const bool scalar = cp <= 0x10FFFF && !(cp >= 0xD800 && cp <= 0xDFFF);
        char s[4];
        uint32_t back = 1;
        const int n = utf8_encode(cp, s);
        const int want = !scalar ? 3 : cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        assert_int_equal(n, want);
        assert_int_equal(utf8_decode(s, (size_t)n, &back), n);
        assert_int_equal(back, scalar ? cp : 0xFFFD);
        for (int cut = 1; cut < n; cut++) {
            assert_int_equal(utf8_decode(s, (size_t)cut, &back), -cut);
            assert_int_equal(utf8_tail((cairn_str){s, (size_t)cut}), cut);
        }
        assert_int_equal(utf8_tail((cairn_str){s, (size_t)n}), 0);
    }
}

/* Whether s is one whole character, from the patterns of RFC 3629 alone. */
static bool is_one(const uint8_t *s, size_t n)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t want = s[0] < 0x80       ? 1
                        : s[0] >> 5 == 6  ? 2
                        : s[0] >> 4 == 14 ? 3
                        : s[0] >> 3 == 30 ? 4
                                          : 0;
    if (want != n) return false;
    uint32_t cp = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return false;
        cp = cp << 6 | (s[i] & 0x3Fu);
    }
    return cp >= least[n] && cp <= 0x10FFFF && (cp < 0xD800 || cp > 0xDFFF);
}

static void agrees_with_the_patterns(void **state)
{
    (void)state;
    static const uint8_t edge[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0,
                                   0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF};
    enum { N = sizeof edge };
    for (unsigned v = 0; v < 0x10000; v++) {
        const uint8_t s[2] = {(uint8_t)(v >> 8), (uint8_t)v};
        uint32_t cp;
        assert_int_equal(utf8_decode((const char *)s, 1, &cp) == 1, is_one(s, 1));
        assert_int_equal(utf8_decode((const char *)s, 2, &cp) == 2, is_one(s, 2));
    }
    for (unsigned v = 0; v < N * N * N * N; v++) {
        const uint8_t s[4] = {edge[v % N], edge[v / N % N], edge[v / N / N % N],
                              edge[v / N / N / N]};
        uint32_t cp;
        for (size_t n = 3; n <= 4; n++)
            assert_int_equal(utf8_decode((const char *)s, n, &cp) == (int)n, is_one(s, n));
    }
}

static void tails(void **state)
{
    (void)state;
    static const struct {
        const char *s;
        size_t want;
    } cases[] = {
        {"", 0},
        {"abc", 0},
        {"a\xC3", 1},
        {"a\xE2\x82", 2},
        {"a\xF0\x9F", 2},
        {"\xF0\x9F\x99", 3},
        {"\xF0\x9F\x99\x82", 0},
        {"\x80\x80", 0},
        {"\xE0\x80", 0}, /* overlong: never a character */
        {"\xED\xA0", 0}, /* a surrogate: likewise */
        {"\xF5", 0},
        {"\xC3\xC3", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(utf8_tail(str_of(cases[i].s)), cases[i].want);
}

static void validates(void **state)
{
    (void)state;
    assert_true(utf8_valid((cairn_str){NULL, 0}));
    assert_true(utf8_valid(STR_LIT("a\0\xC3\xA9\xF0\x9F\x99\x82")));
    assert_false(utf8_valid(STR_LIT("a\xC3")));
    assert_false(utf8_valid(STR_LIT("\xF4\x90\x80\x80")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maximal_subparts),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(agrees_with_the_patterns),
        cmocka_unit_test(tails),
        cmocka_unit_test(validates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
