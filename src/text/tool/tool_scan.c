/* A pushdown recogniser for JSON: one state, one bit a level.  It accepts what RFC 8259 does, and
   control characters in strings; numbers are checked as whole words. */
#include "text/tool/tool_scan.h"

#include <stddef.h>
#include <string.h>

#include "cairn/reply.h"

enum {
    S_VALUE,       /* a value must come */
    S_FIRST_VALUE, /* or the array's end */
    S_KEY,
    S_FIRST_KEY, /* or the object's end */
    S_COLON,
    S_COMMA, /* or the container's end */
    S_STR,
    S_STR_ESC,
    S_STR_HEX, /* and the next three */
    S_KEY_STR = S_STR_HEX + 4,
    S_KEY_ESC,
    S_KEY_HEX,
    S_WORD = S_KEY_HEX + 4,
    S_START
};

void scan_init(scan *s)
{
    *s = (scan){.state = S_START};
}

bool scan_fresh(const scan *s)
{
    return s->state == S_START;
}

bool scan_in_string(const scan *s)
{
    return s->state >= S_STR && s->state < S_WORD;
}

bool scan_in_plain(const scan *s)
{
    return s->state == S_STR || s->state == S_KEY_STR;
}

bool scan_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t digits(const char *p, size_t n, size_t at)
{
    const size_t from = at;
    while (at < n && p[at] >= '0' && p[at] <= '9') at++;
    return at - from;
}

bool scan_is_number(const char *p, size_t n)
{
    size_t at = n > 0 && p[0] == '-', d = digits(p, n, at);
    if (d == 0 || (d > 1 && p[at] == '0')) return false;
    at += d;
    if (at < n && p[at] == '.') {
        d = digits(p, n, at + 1);
        if (d == 0) return false;
        at += 1 + d;
    }
    if (at < n && (p[at] == 'e' || p[at] == 'E')) {
        at++;
        if (at < n && (p[at] == '+' || p[at] == '-')) at++;
        d = digits(p, n, at);
        if (d == 0) return false;
        at += d;
    }
    return at == n;
}

size_t scan_escape(char c, char out[6])
{
    static const char hex[] = "0123456789abcdef";
    static const char short_of[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    const unsigned char u = (unsigned char)c;
    if (u >= 32 && c != '"' && c != '\\') {
        out[0] = c;
        return 1;
    }
    out[0] = '\\';
    out[1] = u >= 32 ? c : short_of[u];
    if (out[1]) return 2;
    memcpy(out + 1, "u00", 3);
    out[4] = hex[u >> 4];
    out[5] = hex[u & 15];
    return 6;
}

static scan_result ended(scan *s, scan_result how)
{
    s->state = S_COMMA;
    return s->depth == 0 ? how : SCAN_MORE;
}

static bool in_object(const scan *s)
{
    const unsigned level = s->depth - 1u;
    return s->depth > 0 && (s->is_object[level / 64] >> (level % 64) & 1);
}

static scan_result open_level(scan *s, bool object)
{
    const unsigned level = s->depth;
    const uint64_t bit = (uint64_t)1 << (level % 64);
    if (level >= CAIRN_REPLY_MAX_DEPTH) return SCAN_BAD;
    if (object)
        s->is_object[level / 64] |= bit;
    else
        s->is_object[level / 64] &= ~bit;
    s->depth++;
    s->state = object ? S_FIRST_KEY : S_FIRST_VALUE;
    return SCAN_MORE;
}

static scan_result close_level(scan *s, char c)
{
    if (s->depth == 0 || c != (in_object(s) ? '}' : ']')) return SCAN_BAD;
    s->depth--;
    return ended(s, SCAN_DONE);
}

static scan_result value_begins(scan *s, char c)
{
    if (scan_is_space(c)) return SCAN_MORE;
    if (c == ']' && s->state == S_FIRST_VALUE) return close_level(s, c);
    if (c == '{' || c == '[') return open_level(s, c == '{');
    if (c == '"') {
        s->state = S_STR;
        return SCAN_MORE;
    }
    if (c != '-' && !(c >= '0' && c <= '9') && c != 't' && c != 'f' && c != 'n') return SCAN_BAD;
    s->state = S_WORD;
    s->word[0] = c;
    s->n_word = 1;
    return SCAN_MORE;
}

static bool word_ok(const scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (s->n_word == strlen(words[i]) && memcmp(s->word, words[i], s->n_word) == 0) return true;
    return scan_is_number(s->word, s->n_word);
}

static scan_result word(scan *s, char c)
{
    if (scan_is_space(c) || c == ',' || c == ']' || c == '}') {
        if (!word_ok(s)) return SCAN_BAD;
        if (ended(s, SCAN_AFTER) == SCAN_AFTER) return SCAN_AFTER;
        return scan_feed(s, c);
    }
    /* A number of more digits than this has no reader; a word is never so long. */
    if (s->n_word == sizeof s->word) return SCAN_BAD;
    s->word[s->n_word++] = c;
    return SCAN_MORE;
}

static scan_result string(scan *s, char c)
{
    const uint8_t base = s->state >= S_KEY_STR ? S_KEY_STR : S_STR;
    const uint8_t at = (uint8_t)(s->state - base);
    if (at == 0) {
        if (c == '\\')
            s->state = (uint8_t)(base + 1);
        else if (c == '"' && base == S_KEY_STR)
            s->state = S_COLON;
        else if (c == '"')
            return ended(s, SCAN_DONE);
        return SCAN_MORE;
    }
    if (at == 1) {
        if (!c || !strchr("\"\\/bfnrtu", c)) return SCAN_BAD;
        s->state = (uint8_t)(c == 'u' ? base + 2 : base);
        return SCAN_MORE;
    }
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    s->state = (uint8_t)(at == 5 ? base : s->state + 1);
    return hex ? SCAN_MORE : SCAN_BAD;
}

static scan_result between(scan *s, char c)
{
    if (scan_is_space(c)) return SCAN_MORE;
    if (s->state == S_COLON) {
        s->state = S_VALUE;
        return c == ':' ? SCAN_MORE : SCAN_BAD;
    }
    if (s->state == S_COMMA) {
        if (c != ',') return close_level(s, c);
        s->state = in_object(s) ? S_KEY : S_VALUE;
        return SCAN_MORE;
    }
    if (c == '}' && s->state == S_FIRST_KEY) return close_level(s, c);
    s->state = S_KEY_STR;
    return c == '"' ? SCAN_MORE : SCAN_BAD;
}

scan_result scan_feed(scan *s, char c)
{
    if (scan_in_string(s)) return string(s, c);
    if (s->state == S_WORD) return word(s, c);
    if (s->state == S_VALUE || s->state == S_FIRST_VALUE || s->state == S_START)
        return value_begins(s, c);
    return between(s, c);
}
