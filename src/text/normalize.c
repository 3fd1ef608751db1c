/* Owns normalizers: text to text before it is split.  Normal forms are utf8proc's, run only over
   the stretches that may change: from the last character that no form touches to the next one.
   Text is valid UTF-8 throughout. */
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

enum {
    CODE_POINTS = 0x110000,
    MAX_RUN = 1 << 24,
    /* How much longer the steps of one tokenizer may make a text: NFKC's longest form is 11 times its
       character, bytes as characters double that.  Beyond is a file that wants our memory. */
    MAX_GROWTH = 32,
    GROWTH_BASE = 16 << 10,
};

static utf8proc_option_t form_of(norm_kind k)
{
    const utf8proc_option_t base = UTF8PROC_STABLE;

    if (k == NORM_NFC) return base | UTF8PROC_COMPOSE;
    if (k == NORM_NFKC) return base | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    if (k == NORM_NFKD) return base | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    return base | UTF8PROC_DECOMPOSE;
}

static bool is_form(norm_kind k)
{
    return k == NORM_NFC || k == NORM_NFD || k == NORM_NFKC || k == NORM_NFKD;
}

/* Appends the normal form of n bytes. */
static cairn_status put_form(utf8proc_option_t form, const char *p, size_t n, buf *out)
{
    const utf8proc_uint8_t *u = (const utf8proc_uint8_t *)p;
    utf8proc_int32_t small[64], *cps = small;
    utf8proc_ssize_t len = utf8proc_decompose(u, (utf8proc_ssize_t)n, small, 64, form);

    if (len > 64) {
        cps = mem_alloc(((size_t)len + 1) * sizeof *cps, MEM_TEXT);
        if (!cps) return CAIRN_E_NOMEM;
        len = utf8proc_decompose(u, (utf8proc_ssize_t)n, cps, len, form);
    }
    if (len > 0) len = utf8proc_normalize_utf32(cps, len, form);
    for (utf8proc_ssize_t i = 0; i < len; i++) {
        char c[4];
        buf_put(out, c, (size_t)utf8_encode((uint32_t)cps[i], c));
    }
    if (cps != small) mem_free(cps);
    return len < 0 ? CAIRN_E_LIMIT : CAIRN_OK;
}

/* The same, but what the form does not know divides it. */
static cairn_status put_stretch(utf8proc_option_t form, const char *p, size_t n, buf *out)
{
    size_t done = 0, len;
    uint32_t cp;

    for (size_t at = 0; at < n; at += len) {
        len = uc_next(p + at, &cp);
        if (!uc_is_unformed(cp)) continue;
        TRY(put_form(form, p + done, at - done, out));
        buf_put(out, p + at, len);
        done = at + len;
    }
    return put_form(form, p + done, n - done, out);
}

/* Does the form leave this character as it is, and what stands before and after it too? */
static bool untouched(utf8proc_option_t form, utf8proc_int32_t cp)
{
    const utf8proc_property_t *p = utf8proc_get_property(cp);
    utf8proc_int32_t d[32];

    if (p->combining_class != 0) return false;
    /* Second halves of compositions that are starters: Hangul vowels and finals, some vowel signs. */
    if ((cp >= 0x1161 && cp <= 0x1175) || (cp >= 0x11A8 && cp <= 0x11C2)) return false;
    if (p->comb_index != UINT16_MAX && p->comb_index >= 0x8000) return false;
    if (p->decomp_seqindex == UINT16_MAX && !(cp >= 0xAC00 && cp <= 0xD7A3)) return true;
    utf8proc_ssize_t n = utf8proc_decompose_char(cp, d, 32, form, NULL);
    if (n <= 0 || n > 32) return false;
    n = utf8proc_normalize_utf32(d, n, form);
    return n == 1 && d[0] == cp;
}

cairn_status norm_prepare(norm_step *s, arena *a)
{
    if (!is_form(s->kind)) return CAIRN_OK;
    s->safe = arena_calloc(a, CODE_POINTS / 64, sizeof *s->safe);
    if (!s->safe) return CAIRN_E_NOMEM;
    for (int32_t cp = 0; cp < CODE_POINTS; cp++) {
        if (cp == 0x30000) cp = 0xE0000; /* nothing there is assigned; and private use after: */
        if (cp == 0xE1000) break;
        if (untouched(form_of(s->kind), cp)) s->safe[cp / 64] |= (uint64_t)1 << (cp % 64);
    }
    memset(s->safe + 0xE1000 / 64, 0xFF, (CODE_POINTS - 0xE1000) / 8);
    return CAIRN_OK;
}

static bool is_safe(const norm_step *s, uint32_t cp)
{
    return s->safe[cp / 64] >> (cp % 64) & 1;
}

/* Where the first character that may change begins; s.len if none. */
static size_t first_unsafe(const norm_step *step, cairn_str s, size_t at, size_t *prev)
{
    size_t len;
    uint32_t cp;

    for (; at < s.len; at += len) {
        size_t plain = uc_ascii_run(s, at); /* no form touches ASCII */
        if (plain) {
            at += plain;
            *prev = at - 1;
            if (at == s.len) break;
        }
        len = uc_next(s.ptr + at, &cp);
        if (!is_safe(step, cp)) return at;
        *prev = at;
    }
    return s.len;
}

/* End of the stretch of characters that may change and begins at `at`. */
static size_t end_of_unsafe(const norm_step *step, cairn_str s, size_t at)
{
    uint32_t cp;

    while (at < s.len) {
        size_t len = uc_next(s.ptr + at, &cp);
        if (is_safe(step, cp)) break;
        at += len;
    }
    return at;
}

static cairn_status run_form(const norm_step *step, cairn_str s, buf *out, bool *same)
{
    const utf8proc_option_t form = form_of(step->kind);
    size_t done = 0, at = 0, prev = 0;

    while ((at = first_unsafe(step, s, at, &prev)) < s.len) {
        size_t from = prev > done ? prev : done, to = end_of_unsafe(step, s, at);
        if (to - from > MAX_RUN) return CAIRN_E_LIMIT;
        buf_put(out, s.ptr + done, from - done);
        TRY(put_stretch(form, s.ptr + from, to - from, out));
        done = prev = at = to;
        *same = false;
    }
    if (!*same) buf_put(out, s.ptr + done, s.len - done);
    return CAIRN_OK;
}

/* The same for one byte, which mostly is a space: room is made once. */
static void run_replace_byte(cairn_str s, char from, size_t n, cairn_str to, buf *out)
{
    size_t at = out->len;

    if (!buf_grow(out, s.len + n * to.len)) return;
    char *p = out->ptr + at;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != from) {
            *p++ = s.ptr[i];
            continue;
        }
        memcpy(p, to.ptr, to.len);
        p += to.len;
    }
    buf_cut(out, (size_t)(p - out->ptr));
}

static void run_replace(cairn_str s, cairn_str from, cairn_str to, buf *out, bool *same)
{
    size_t done = 0, at;

    if (from.len == 1) {
        size_t n = 0;
        for (size_t i = 0; i < s.len; i++) n += s.ptr[i] == from.ptr[0];
        if (n && to.len <= TOK_MAX_TEXT / n) {
            run_replace_byte(s, from.ptr[0], n, to, out);
            *same = false;
            return;
        }
    }
    while (from.len && !out->over_limit && (at = str_find(s, from, done)) != SIZE_MAX) {
        buf_put(out, s.ptr + done, at - done);
        buf_str(out, to);
        done = at + from.len;
        *same = false;
    }
    if (!*same) buf_put(out, s.ptr + done, s.len - done);
}

static cairn_status run_regex(const norm_step *step, cairn_str s, buf *out, bool *same,
                              cairn_diag *dg)
{
    regex_iter it;
    bool found = false;
    size_t done = 0, from = 0, to = 0;
    cairn_status st = regex_begin(&it, step->re, s);

    while (st == CAIRN_OK) {
        st = regex_next(&it, &found, &from, &to, dg);
        if (st != CAIRN_OK || !found) break;
        buf_put(out, s.ptr + done, from - done);
        buf_str(out, step->to);
        done = to;
        *same = false;
        st = buf_status(out);
    }
    if (!*same) buf_put(out, s.ptr + done, s.len - done);
    regex_end(&it);
    return st;
}

static void put_cp(buf *out, uint32_t cp)
{
    char c[4];

    buf_put(out, c, (size_t)utf8_encode(cp, c));
}

/* Full lower case of one character: only U+0130 becomes two. */
static void put_lower(buf *out, uint32_t cp)
{
    put_cp(out, uc_lower(cp == 0x130 ? 'I' : cp));
    if (cp == 0x130) put_cp(out, 0x307);
}

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/* BERT's cleaning: controls go, white space becomes spaces, ideographs stand alone. */
static void put_bert(const norm_step *step, buf *out, uint32_t cp)
{
    uint32_t c = uc_class(cp);

    bool control = c & UC_CONTROL || cp == 0x0B || cp == 0x0C || cp == 0x85;

    if (step->clean && (cp == 0xFFFD || control)) return;
    if (step->clean && c & (UC_SPACE | UC_NEWLINE)) cp = ' ';
    bool apart = step->chinese && is_chinese(cp);
    if (apart) buf_byte(out, ' ');
    put_cp(out, cp);
    if (apart) buf_byte(out, ' ');
}

/* What the Nmt normalizer leaves out, and what it takes for a space. */
static void put_nmt(buf *out, uint32_t c)
{
    bool gone = (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
                c == 0x8F || c == 0x9F;
    bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 ||
                 (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                 c == 0xFEFF || c == 0xFFFD;

    if (!gone) put_cp(out, space ? ' ' : c);
}

/* Steps that look at one character at a time. */
static void run_chars(const norm_step *step, cairn_str s, buf *out)
{
    size_t len;
    uint32_t cp;

    for (size_t at = 0; at < s.len; at += len) {
        len = uc_next(s.ptr + at, &cp);
        if (step->kind == NORM_LOWERCASE)
            put_lower(out, cp);
        else if (step->kind == NORM_STRIP_ACCENTS) {
            if (!uc_is_accent(cp, step->bert)) buf_put(out, s.ptr + at, len);
        } else if (step->kind == NORM_BYTE_LEVEL) {
            for (size_t i = 0; i < len; i++) put_cp(out, bytelevel_char((uint8_t)s.ptr[at + i]));
        } else if (step->kind == NORM_NMT) {
            put_nmt(out, cp);
        } else {
            put_bert(step, out, cp);
        }
    }
}

static cairn_str run_strip(const norm_step *step, cairn_str s)
{
    size_t from = 0, to = s.len, len;
    uint32_t cp;

    while (step->left && from < to) {
        len = uc_next(s.ptr + from, &cp);
        if (!(uc_class(cp) & (UC_SPACE | UC_NEWLINE))) break;
        from += len;
    }
    while (step->right && to > from) {
        size_t p = uc_prev(s.ptr, to);
        uc_next(s.ptr + p, &cp);
        if (!(uc_class(cp) & (UC_SPACE | UC_NEWLINE))) break;
        to = p;
    }
    return str_sub(s, from, to - from);
}

static cairn_status run_step(const norm_step *step, cairn_str *s, buf *out, bool *same,
                             cairn_diag *dg)
{
    switch (step->kind) {
    case NORM_NFC:
    case NORM_NFD:
    case NORM_NFKC:
    case NORM_NFKD:
        return run_form(step, *s, out, same);
    case NORM_PREPEND:
        if (s->len == 0) return CAIRN_OK;
        buf_str(out, step->to);
        buf_str(out, *s);
        *same = false;
        return CAIRN_OK;
    case NORM_REPLACE:
        if (step->re) return run_regex(step, *s, out, same, dg);
        run_replace(*s, step->from, step->to, out, same);
        return CAIRN_OK;
    case NORM_STRIP:
        *s = run_strip(step, *s);
        return CAIRN_OK;
    case NORM_LOWERCASE:
    case NORM_STRIP_ACCENTS:
    case NORM_BYTE_LEVEL:
    case NORM_BERT:
    case NORM_NMT:
        run_chars(step, *s, out);
        *same = false;
        return CAIRN_OK;
    case NORM_PRECOMPILED:
        norm_precompiled(step, *s, out, same);
        return CAIRN_OK;
    case NORM_SPM:
        norm_spm(step, *s, out);
        *same = false;
        return CAIRN_OK;
    }
    return CAIRN_E_INTERNAL;
}

static cairn_status failed(cairn_status st, size_t i, size_t n_in, size_t most, cairn_diag *dg)
{
    if (st != CAIRN_E_LIMIT)
        return diag_set(dg, st, "no memory to normalise %zu bytes of text", n_in);
    return diag_set(
        dg, st,
        "found a text of %zu bytes that normalizer step %zu makes longer than %zu; expected "
        "at most %d times its length and %d bytes more",
        n_in, i, most, MAX_GROWTH, GROWTH_BASE);
}

cairn_status norm_run(const norm_step *step, size_t n, cairn_str s, buf *x, buf *y, cairn_str *out,
                      cairn_diag *dg)
{
    const size_t n_in = s.len, grown = n_in * MAX_GROWTH + GROWTH_BASE;
    const size_t most = grown < TOK_MAX_TEXT ? grown : TOK_MAX_TEXT;
    buf *into = x, *other = y;

    for (size_t i = 0; i < n; i++) {
        bool same = true;
        cairn_diag own;
        own.message[0] = '\0';
        buf_clear(into);
        into->max = most;
        cairn_status st = run_step(&step[i], &s, into, &same, &own);
        if (st == CAIRN_OK) st = buf_status(into);
        if (st != CAIRN_OK && own.message[0])
            return diag_set(dg, st, "normalizer step %zu: %s", i, own.message);
        if (st != CAIRN_OK) return failed(st, i, n_in, most, dg);
        if (same) continue;
        s = buf_view(into);
        buf *t = into;
        into = other;
        other = t;
    }
    *out = s;
    return CAIRN_OK;
}
