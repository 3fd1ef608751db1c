/* Owns hand-written scanners for the split rules of well-known model families; they match what the
   regular expression in the table below matches, several times faster.  Everything else goes to
   regex.c.  The test runs both over random text.  Text is valid UTF-8. */
#include "base/str.h"
#include "text/rules.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

#define BLANK (UC_SPACE | UC_NEWLINE)

/* Class of the character at `at` and its length; class 0 at the end. */
static inline uint32_t peek(cairn_str s, size_t at, size_t *len)
{
    uint32_t cp;

    if (at >= s.len) {
        *len = 0;
        return 0;
    }
    *len = uc_next(s.ptr + at, &cp);
    return uc_class(cp);
}

static inline size_t skip(cairn_str s, size_t at, uint32_t classes)
{
    size_t len;

    while (peek(s, at, &len) & classes) at += len;
    return at;
}

static size_t skip_not(cairn_str s, size_t at, uint32_t classes)
{
    size_t len;

    while (at < s.len && !(peek(s, at, &len) & classes)) at += len;
    return at;
}

static size_t skip_n(cairn_str s, size_t at, uint32_t classes, int most)
{
    size_t len;

    for (int i = 0; i < most && (peek(s, at, &len) & classes); i++) at += len;
    return at;
}

/* 's 't 're 've 'm 'll 'd after the apostrophe at `at`; `fold`: any case, and U+017F, the long s
   that folds to s.  `at` if none. */
static size_t contraction(cairn_str s, size_t at, bool fold)
{
    static const char two[3][2] = {{'r', 'e'}, {'v', 'e'}, {'l', 'l'}};
    const char *p = s.ptr + at;
    size_t n = s.len - at;

    if (n < 2 || p[0] != '\'') return at;
    char a = p[1], b = n > 2 ? p[2] : 0;
    if (fold && n > 2 && (unsigned char)a == 0xC5 && (unsigned char)b == 0xBF) return at + 3;
    if (fold && a >= 'A' && a <= 'Z') a = (char)(a + 32);
    if (fold && b >= 'A' && b <= 'Z') b = (char)(b + 32);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    for (int i = 0; i < 3; i++)
        if (a == two[i][0] && b == two[i][1]) return at + 3;
    return at;
}

/* \s+(?!\S)|\s+ : a blank run, less its last character if something follows (and it is not alone). */
static size_t blanks(cairn_str s, size_t at)
{
    size_t end = skip(s, at, BLANK);

    if (end == at || end == s.len) return end;
    size_t last = uc_prev(s.ptr, end);
    return last > at ? last : end;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ : up to the run's last line end, if it has one. */
static size_t lines_or_blanks(cairn_str s, size_t at)
{
    size_t end = skip(s, at, BLANK);

    for (size_t i = end; i > at; i--)
        if (s.ptr[i - 1] == '\n' || s.ptr[i - 1] == '\r') return i;
    return blanks(s, at);
}

static size_t gpt2(cairn_str s, size_t at)
{
    size_t end = contraction(s, at, false), len;
    size_t from = s.ptr[at] == ' ' ? at + 1 : at;
    uint32_t c = peek(s, from, &len);

    if (end > at) return end;
    if (c & UC_LETTER) return skip(s, from, UC_LETTER);
    if (c & UC_NUMBER) return skip(s, from, UC_NUMBER);
    if (c && !(c & BLANK)) return skip_not(s, from, UC_LETTER | UC_NUMBER | BLANK);
    return blanks(s, at);
}

/* The family of llama 3 and qwen 2: they differ in the length of a run of digits, and qwen 3.5
   counts marks among letters. */
static inline size_t cl100k(cairn_str s, size_t at, int digits, uint32_t letters)
{
    size_t end = contraction(s, at, true), len, len2;
    uint32_t c = peek(s, at, &len);

    if (end > at) return end;
    if (c & letters && c & UC_LETTER) return skip(s, at, letters);
    if (!(c & (UC_NEWLINE | UC_LETTER | UC_NUMBER)) && peek(s, at + len, &len2) & letters)
        return skip(s, at + len, letters);
    if (c & letters) return skip(s, at, letters);
    if (c & UC_NUMBER) return skip_n(s, at, UC_NUMBER, digits);
    size_t from = s.ptr[at] == ' ' ? at + 1 : at;
    end = skip_not(s, from, BLANK | letters | UC_NUMBER);
    if (end > from) return skip(s, end, UC_NEWLINE);
    return lines_or_blanks(s, at);
}

static size_t llama3(cairn_str s, size_t at)
{
    return cl100k(s, at, 3, UC_LETTER);
}
static size_t qwen2(cairn_str s, size_t at)
{
    return cl100k(s, at, 1, UC_LETTER);
}
static size_t qwen35(cairn_str s, size_t at)
{
    return cl100k(s, at, 1, UC_LETTER | UC_MARK);
}

/* [U]*[W]+ | [U]+[W]* from `at`, where U has upper and W lower case and both have the rest: end, or
   `at`.  When W+ finds nothing after U*, the run is cut after its last character of both. */
static size_t cased_word(cairn_str s, size_t at, bool *first_form)
{
    const uint32_t both = UC_OTHER | UC_MARK;
    size_t i = at, cut = at, len;
    uint32_t c;

    while ((c = peek(s, i, &len)) & (UC_UPPER | both)) {
        i += len;
        if (c & both) cut = i;
    }
    size_t end = skip(s, i, UC_LOWER | both);
    *first_form = end > i || cut > at;
    if (end > i) return end;
    return cut > at ? cut : i;
}

static size_t o200k_word(cairn_str s, size_t at)
{
    size_t len, end, bare;
    bool first = false, bare_first = false;
    uint32_t c = peek(s, at, &len);

    bare = cased_word(s, at, &bare_first);
    end = at;
    if (!(c & (UC_NEWLINE | UC_LETTER | UC_NUMBER))) {
        size_t e = cased_word(s, at + len, &first);
        if (e > at + len) end = e;
    }
    /* Order of trial: first form with the leading character, without, second form likewise. */
    if (end > at && first) return end;
    if (bare > at && bare_first) return bare;
    return end > at ? end : bare;
}

static size_t o200k(cairn_str s, size_t at)
{
    size_t len, end = o200k_word(s, at);

    if (end > at) return contraction(s, end, true);
    if (peek(s, at, &len) & UC_NUMBER) return skip_n(s, at, UC_NUMBER, 3);
    size_t from = s.ptr[at] == ' ' ? at + 1 : at;
    end = skip_not(s, from, BLANK | UC_LETTER | UC_NUMBER);
    if (end > from) {
        while (end < s.len && (s.ptr[end] == '\r' || s.ptr[end] == '\n' || s.ptr[end] == '/'))
            end++;
        return end;
    }
    return lines_or_blanks(s, at);
}

static bool ascii_letter(cairn_str s, size_t at)
{
    return at < s.len && ((s.ptr[at] | 32) >= 'a' && (s.ptr[at] | 32) <= 'z');
}

static size_t deepseek3(cairn_str s, size_t at)
{
    const uint32_t word = UC_LETTER | UC_MARK, marks = UC_PUNCT | UC_SYMBOL;
    size_t len, len2, end;
    uint32_t c = peek(s, at, &len);

    if ((unsigned char)s.ptr[at] < 128 && c & marks && ascii_letter(s, at + 1)) {
        for (end = at + 1; ascii_letter(s, end);) end++;
        return end;
    }
    if (!(c & (UC_NEWLINE | UC_LETTER | marks)) && peek(s, at + len, &len2) & word)
        return skip(s, at + len, word);
    if (c & word) return skip(s, at, word);
    size_t from = s.ptr[at] == ' ' ? at + 1 : at;
    end = skip(s, from, marks);
    if (end > from) return skip(s, end, UC_NEWLINE);
    return lines_or_blanks(s, at);
}

static size_t number(cairn_str s, size_t at)
{
    return skip_n(s, at, UC_NUMBER, 1);
}
static size_t numbers3(cairn_str s, size_t at)
{
    return skip_n(s, at, UC_NUMBER, 3);
}
static size_t numbers(cairn_str s, size_t at)
{
    return skip(s, at, UC_NUMBER);
}

/* Han up to U+9FA5, Hiragana, Katakana. */
static size_t han_kana(cairn_str s, size_t at)
{
    while (at < s.len) {
        uint32_t cp;
        size_t len = uc_next(s.ptr + at, &cp);
        if (!((cp >= 0x4E00 && cp <= 0x9FA5) || (cp >= 0x3040 && cp <= 0x30FF))) break;
        at += len;
    }
    return at;
}

size_t scan_words(cairn_str s, size_t at)
{
    size_t i = at;
    int kind = -1; /* of the run */

    while (i < s.len) {
        uint32_t cp;
        size_t len = uc_next(s.ptr + i, &cp);
        int k = uc_is_word(cp) ? 1 : uc_class(cp) & BLANK ? 0 : 2;
        if (kind < 0) kind = k;
        if (k == 0 || k != kind) break;
        i += len;
    }
    return i;
}

static const struct {
    const char *pattern;
    scan_fn scan;
} known[] = {
    {RULE_GPT2, gpt2},         {RULE_LLAMA3, llama3}, {RULE_QWEN2, qwen2},
    {RULE_QWEN35, qwen35},     {RULE_O200K, o200k},   {RULE_DEEPSEEK3, deepseek3},
    {RULE_HAN_KANA, han_kana}, {"\\p{N}", number},    {"\\p{N}{1,3}", numbers3},
    {"\\p{N}+", numbers},
};

scan_fn scan_find(cairn_str pattern)
{
    uc_prepare();
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(pattern, known[i].pattern)) return known[i].scan;
    return NULL;
}

cairn_status pre_of_pattern(cairn_str pattern, const char *where, pre_step *s, cairn_diag *dg)
{
    static const struct {
        const char *pattern;
        pre_groups groups;
    } groups[] = {{RULE_DIGIT_GROUPS, PRE_GROUPS},
                  {RULE_DIGIT_GROUPS_B, PRE_WORD_GROUPS},
                  {RULE_GROUP_STARTS, PRE_GROUP_STARTS}};

    s->scan = scan_find(pattern);
    s->kind = s->scan ? PRE_SCAN : PRE_REGEX;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (!str_is(pattern, groups[i].pattern)) continue;
        if (groups[i].groups == PRE_GROUP_STARTS && s->behavior != PRE_ISOLATED) continue;
        s->kind = PRE_DIGIT_GROUPS;
        s->groups = groups[i].groups;
    }
    return s->kind == PRE_REGEX ? regex_new(pattern, where, &s->re, dg) : CAIRN_OK;
}
