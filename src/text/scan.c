/* Owns hand-written scanners for the split rules of well-known model families; they match what the
   regular expression in the table below matches, several times faster.  Everything else goes to
   regex.c.  The test runs both over random text.  Text is valid UTF-8.
   Each rule is there twice: in full, and quick (scan_quick.h), which knows ASCII alone and leaves to the
   former every match that a character beyond it may be a part of. */
#include "base/str.h"
#include "text/rules.h"
#include "text/scan_quick.h"
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

static inline bool is_han_kana(uint32_t cp)
{
    return (cp >= 0x4E00 && cp <= 0x9FA5) || (cp >= 0x3040 && cp <= 0x30FF);
}

/* With `split` the text ends at a number, or at Han or kana. */
static inline uint32_t peek_in(cairn_str s, size_t at, size_t *len, bool split)
{
    uint32_t c = peek(s, at, len), cp;

    if (!split || !c) return c;
    uc_next(s.ptr + at, &cp);
    if (!(c & UC_NUMBER) && !is_han_kana(cp)) return c;
    *len = 0;
    return 0;
}

static inline size_t skip_in(cairn_str s, size_t at, uint32_t classes, bool split)
{
    size_t len;

    while (peek_in(s, at, &len, split) & classes) at += len;
    return at;
}

static inline size_t skip(cairn_str s, size_t at, uint32_t classes)
{
    return skip_in(s, at, classes, false);
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

/* \s+(?!\S)|\s+ : a blank run, less its last character if something follows (and it is not alone). */
static inline size_t blanks(cairn_str s, size_t at, bool split)
{
    size_t end = skip(s, at, BLANK), len;

    if (end == at || !peek_in(s, end, &len, split)) return end;
    size_t last = uc_prev(s.ptr, end);
    return last > at ? last : end;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ : up to the run's last line end, if it has one. */
static inline size_t lines_or_blanks(cairn_str s, size_t at, bool split)
{
    size_t end = skip(s, at, BLANK);

    for (size_t i = end; i > at; i--)
        if (s.ptr[i - 1] == '\n' || s.ptr[i - 1] == '\r') return i;
    return blanks(s, at, split);
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
    return blanks(s, at, false);
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
    return lines_or_blanks(s, at, false);
}

/* [\r\n]* or, with a slash, [\r\n/]* */
static inline size_t line_ends(cairn_str s, size_t at, bool slash)
{
    while (at < s.len && (s.ptr[at] == '\r' || s.ptr[at] == '\n' || (slash && s.ptr[at] == '/')))
        at++;
    return at;
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
    if (end > from) return line_ends(s, end, true);
    return lines_or_blanks(s, at, false);
}

static bool ascii_letter(cairn_str s, size_t at)
{
    return at < s.len && ((s.ptr[at] | 32) >= 'a' && (s.ptr[at] | 32) <= 'z');
}

/* Han up to U+9FA5, Hiragana, Katakana. */
static size_t han_kana(cairn_str s, size_t at)
{
    while (at < s.len) {
        uint32_t cp;
        size_t len = uc_next(s.ptr + at, &cp);
        if (!is_han_kana(cp)) break;
        at += len;
    }
    return at;
}

/* With `split`, as if each text ended where a number, or Han or kana, begins. */
static inline size_t deepseek3_in(cairn_str s, size_t at, bool split)
{
    const uint32_t word = UC_LETTER | UC_MARK, marks = UC_PUNCT | UC_SYMBOL;
    size_t len, len2, end;
    uint32_t c = peek_in(s, at, &len, split);

    if ((unsigned char)s.ptr[at] < 128 && c & marks && ascii_letter(s, at + 1)) {
        for (end = at + 1; ascii_letter(s, end);) end++;
        return end;
    }
    if (!(c & (UC_NEWLINE | UC_LETTER | marks)) && peek_in(s, at + len, &len2, split) & word)
        return skip_in(s, at + len, word, split);
    if (c & word) return skip_in(s, at, word, split);
    size_t from = s.ptr[at] == ' ' ? at + 1 : at;
    end = skip_in(s, from, marks, split);
    if (end > from) return skip(s, end, UC_NEWLINE);
    return lines_or_blanks(s, at, split);
}

static size_t deepseek3(cairn_str s, size_t at)
{
    return deepseek3_in(s, at, false);
}

/* The class of the next character if it is Han or kana, else 0. */
static inline uint32_t peek_kana(cairn_str s, size_t at, size_t *len)
{
    uint32_t c = peek(s, at, len), cp;

    if (!c) return 0;
    uc_next(s.ptr + at, &cp);
    return is_han_kana(cp) ? c : 0;
}

static inline size_t skip_kana(cairn_str s, size_t at, uint32_t classes)
{
    size_t len;

    while (peek_kana(s, at, &len) & classes) at += len;
    return at;
}

/* The third rule inside a text of Han and kana: letters, which one of the unassigned characters may lead; or
   the voiced marks, the middle dot and the like, which are symbols and punctuation; or what matches nothing. */
static size_t deepseek3_kana(cairn_str s, size_t at)
{
    const uint32_t word = UC_LETTER | UC_MARK, marks = UC_PUNCT | UC_SYMBOL;
    size_t len;
    uint32_t c = peek_kana(s, at, &len);

    if (c & word) return skip_kana(s, at, word);
    if (c & marks) return skip_kana(s, at, marks);
    size_t last = at, end = at;
    for (; c && !(c & (word | marks)); c = peek_kana(s, end, &len)) last = end, end += len;
    if (!(c & word)) return end;
    return last > at ? last : skip_kana(s, end, word);
}

/* The three rules of the family in one: numbers in threes, then Han and kana, then the rest of each text. */
static size_t deepseek3_all(cairn_str s, size_t at)
{
    size_t end = skip_n(s, at, UC_NUMBER, 3);

    if (end == at) end = deepseek3_kana(s, at);
    return end > at ? end : deepseek3_in(s, at, true);
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

static size_t scan_words(cairn_str s, size_t at)
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

/* The first place where a number may begin: a digit, or anything beyond ASCII. */
static size_t next_number(cairn_str s, size_t at)
{
    byte16 x;

    for (; at + sizeof x <= s.len; at += sizeof x) {
        memcpy(&x, s.ptr + at, sizeof x);
        const uint64_t found = ascii_bits(ascii_range(x, '0', '9') | (lane16)x);
        if (found) return at + (size_t)__builtin_ctzll(found);
    }
    while (at < s.len && !(s.ptr[at] & 0x80) && !(s.ptr[at] >= '0' && s.ptr[at] <= '9')) at++;
    return at;
}

/* The first character beyond ASCII. */
static size_t next_wide(cairn_str s, size_t at)
{
    at += uc_ascii_run(s, at);
    while (at < s.len && !(s.ptr[at] & 0x80)) at++;
    return at;
}

/* The end of the match at `at` in the block that begins at *base, or in the next one: a match may be
   unknown just because its block ends. */
QUICK size_t in_block(ascii_block *b, cairn_str s, size_t at, size_t *base, quick_fn quick)
{
    uint32_t i = (uint32_t)(at - *base), end = UNKNOWN;

    if (at - *base < b->n) {
        if (!(b->stop >> i & 1)) end = quick(b, i);
        if (end != UNKNOWN) return *base + end;
        if (i == 0 || b->wide >> i) return SIZE_MAX;
    }
    ascii_load(b, s, at);
    *base = at;
    end = b->stop & 1 ? UNKNOWN : quick(b, 0);
    return end == UNKNOWN ? SIZE_MAX : at + end;
}

/* The words of scanner.words: each is a match, or all that lies before the next one. */
QUICK uint32_t fill(cairn_str s, size_t at, uint32_t *end, uint32_t most, quick_fn quick,
                    scan_fn full)
{
    uint32_t n = 0, cp;
    size_t base = at;
    ascii_block b;

    b.n = 0; /* nothing is loaded */
    while (at < s.len && n < most) {
        size_t to = quick ? in_block(&b, s, at, &base, quick) : SIZE_MAX;
        if (to == SIZE_MAX) to = full(s, at);
        if (to == at) /* no rule */
            do to += uc_next(s.ptr + to, &cp);
            while (to < s.len && full(s, to) == to);
        end[n++] = (uint32_t)to;
        at = to;
    }
    return n;
}

static uint32_t gpt2_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, gpt2_quick, gpt2);
}
static uint32_t llama3_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, llama3_quick, llama3);
}
static uint32_t qwen2_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, qwen_quick, qwen2);
}
static uint32_t qwen35_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, qwen_quick, qwen35);
}
static uint32_t o200k_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, o200k_quick, o200k);
}
static uint32_t deepseek3_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, deepseek3_quick, deepseek3);
}
static uint32_t deepseek3_all_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, deepseek3_all_quick, deepseek3_all);
}
static uint32_t han_kana_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, NULL, han_kana);
}
static uint32_t number_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, NULL, number);
}
static uint32_t numbers3_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, NULL, numbers3);
}
static uint32_t numbers_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, NULL, numbers);
}
static uint32_t plain_words(cairn_str s, size_t at, uint32_t *end, uint32_t most)
{
    return fill(s, at, end, most, NULL, scan_words);
}

static const scanner known[] = {
    {RULE_GPT2, gpt2, gpt2_words, NULL},
    {RULE_LLAMA3, llama3, llama3_words, NULL},
    {RULE_QWEN2, qwen2, qwen2_words, NULL},
    {RULE_QWEN35, qwen35, qwen35_words, NULL},
    {RULE_O200K, o200k, o200k_words, NULL},
    {RULE_DEEPSEEK3, deepseek3, deepseek3_words, NULL},
    {RULE_HAN_KANA, han_kana, han_kana_words, next_wide},
    {"\\p{N}", number, number_words, next_number},
    {"\\p{N}{1,3}", numbers3, numbers3_words, next_number},
    {"\\p{N}+", numbers, numbers_words, next_number},
};

const scanner scan_whitespace = {NULL, scan_words, plain_words, NULL};

static const scanner deepseek3_whole = {NULL, deepseek3_all, deepseek3_all_words, NULL};

void pre_join(pre_step *step, size_t *n)
{
    static const scan_fn parts[] = {numbers3, han_kana, deepseek3};
    const size_t n_parts = sizeof parts / sizeof parts[0];

    if (*n < n_parts) return;
    for (size_t i = 0; i < n_parts; i++)
        if (!pre_is_scan(&step[i]) || step[i].scan->match != parts[i]) return;
    step[0].scan = &deepseek3_whole;
    for (size_t i = n_parts; i < *n; i++) step[i - n_parts + 1] = step[i];
    *n -= n_parts - 1;
}

const scanner *scan_find(cairn_str pattern)
{
    uc_prepare();
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(pattern, known[i].pattern)) return &known[i];
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
