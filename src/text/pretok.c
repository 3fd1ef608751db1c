/* Owns pre-tokenization: a text becomes words, each of which the model sees alone.  A list of steps
   runs over all words of the step before, as tokenizer.json describes; words are spans of a text,
   which some steps rewrite.  Invariant: spans are in order, not empty, and lie in the text. */
#include "text/tok_priv.h"
#include "text/uchar.h"

/* How the segments of one span, matches and what lies between, become words. */
typedef struct folder {
    const pre_step *step;
    buf *out;
    size_t base;  /* of out, where this span's words begin */
    bool last;    /* kind of the segment before */
    bool apart;   /* it was empty and no part of what is before it */
    bool pending; /* MERGED_WITH_NEXT: a match waits for what follows */
    span held;
} folder;

static void put_span(buf *out, span s)
{
    if (s.len) buf_put(out, &s, sizeof s);
}

static span *last_of(folder *f)
{
    if (f->out->len <= f->base) return NULL;
    return (span *)(void *)(f->out->ptr + f->out->len) - 1;
}

static void with_previous(folder *f, span s, bool match, bool join)
{
    span *last = last_of(f);

    if (join && !f->apart && last && last->off + last->len == s.off) {
        last->len += s.len;
    } else {
        put_span(f->out, s);
        f->apart = s.len == 0;
    }
    f->last = match;
}

static void with_next(folder *f, span s, bool match)
{
    if (f->pending && !match) {
        put_span(f->out, (span){f->held.off, f->held.len + s.len});
        f->pending = false;
        return;
    }
    if (f->pending) put_span(f->out, f->held);
    f->pending = match;
    f->held = s;
    if (!match) put_span(f->out, s);
}

static void segment(folder *f, size_t from, size_t to, bool match)
{
    span s = {(uint32_t)from, (uint32_t)(to - from)};

    if (s.len == 0 && !match) return; /* an empty match counts: it divides what is around it */
    match = match != f->step->invert;
    switch (f->step->behavior) {
    case PRE_REMOVED:
        if (!match) put_span(f->out, s);
        break;
    case PRE_ISOLATED:
        put_span(f->out, s);
        break;
    case PRE_CONTIGUOUS:
        with_previous(f, s, match, match == f->last);
        break;
    case PRE_MERGED_WITH_PREVIOUS:
        with_previous(f, s, match, match && !f->last);
        break;
    case PRE_MERGED_WITH_NEXT:
        with_next(f, s, match);
        break;
    }
}

static bool char_matches(const pre_step *p, uint32_t cp)
{
    uint32_t c = uc_class(cp);

    switch (p->kind) {
    case PRE_DIGIT:
        return c & UC_NUMBER;
    case PRE_PUNCTUATION:
        return uc_is_punct(cp);
    case PRE_SPACE:
        return c & (UC_SPACE | UC_NEWLINE);
    case PRE_SCAN:
    case PRE_REGEX:
    case PRE_LITERAL:
    case PRE_METASPACE:
    case PRE_PREFIX:
    case PRE_DIGIT_GROUPS:
    case PRE_FIXED:
    case PRE_SCRIPTS:
    case PRE_BYTES:
        break;
    }
    return false;
}

static void split_scan(folder *f, cairn_str s, size_t base)
{
    const scanner *scan = f->step->scan;
    size_t done = 0, at = 0;

    while (at < s.len) {
        if (scan->next) at = scan->next(s, at);
        if (at == s.len) break;
        size_t end = scan->match(s, at);
        if (end == at) { /* no rule: part of a gap */
            uint32_t cp;
            at += uc_next(s.ptr + at, &cp);
            continue;
        }
        segment(f, base + done, base + at, false);
        segment(f, base + at, base + end, true);
        done = at = end;
    }
    segment(f, base + done, base + s.len, false);
}

static void split_chars(folder *f, cairn_str s, size_t base)
{
    size_t done = 0, len;
    uint32_t cp;

    for (size_t at = 0; at < s.len; at += len) {
        len = uc_next(s.ptr + at, &cp);
        if (!char_matches(f->step, cp)) continue;
        segment(f, base + done, base + at, false);
        segment(f, base + at, base + at + len, true);
        done = at + len;
    }
    segment(f, base + done, base + s.len, false);
}

static void split_literal(folder *f, cairn_str s, size_t base)
{
    size_t done = 0, at;

    while (f->step->lit.len && (at = str_find(s, f->step->lit, done)) != SIZE_MAX) {
        segment(f, base + done, base + at, false);
        segment(f, base + at, base + at + f->step->lit.len, true);
        done = at + f->step->lit.len;
    }
    segment(f, base + done, base + s.len, false);
}

static cairn_status split_regex(folder *f, cairn_str s, size_t base, cairn_diag *dg)
{
    regex_iter it;
    bool found;
    size_t done = 0, from = 0, to = 0;
    cairn_status st = regex_begin(&it, f->step->re, s);

    if (st != CAIRN_OK) return diag_set(dg, st, "no memory for a match");
    for (;;) {
        st = regex_next(&it, &found, &from, &to, dg);
        if (st != CAIRN_OK || !found) break;
        segment(f, base + done, base + from, false);
        segment(f, base + from, base + to, true);
        done = to;
    }
    if (st == CAIRN_OK) segment(f, base + done, base + s.len, false);
    regex_end(&it);
    return st;
}

/* The places before each three of n digits at `at`: what lies between two of them is a word, and what
   follows the last one is part of the next. */
static size_t put_starts(folder *f, cairn_str s, size_t base, size_t done, size_t at, size_t n)
{
    uint32_t cp;

    for (; n > 0; n--) {
        if (n % 3 == 0) {
            segment(f, base + done, base + at, false);
            done = at;
        }
        at += uc_next(s.ptr + at, &cp);
    }
    return done;
}

/* Digits s[at…end): threes from the right. */
static void put_groups(folder *f, cairn_str s, size_t base, size_t at, size_t end, size_t n)
{
    size_t len;
    uint32_t cp;

    for (size_t from = at; at < end; from = at) {
        for (size_t k = n % 3 ? n % 3 : 3; k > 0; k--, n--) at += uc_next(s.ptr + at, &cp);
        len = at - from;
        segment(f, base + from, base + from + len, true);
    }
}

static bool ends_word(cairn_str s, size_t at)
{
    uint32_t cp;

    if (at == s.len) return true;
    uc_next(s.ptr + at, &cp);
    return !uc_is_word(cp);
}

static void split_groups(folder *f, cairn_str s, size_t base)
{
    const pre_groups g = f->step->groups;
    size_t done = 0, at = 0, len;
    uint32_t cp;

    while (at < s.len) {
        size_t end = at, n = 0;
        for (; end < s.len; end += len, n++) {
            len = uc_next(s.ptr + end, &cp);
            if (!(g == PRE_GROUPS ? uc_class(cp) & UC_NUMBER : uc_is_digit(cp))) break;
        }
        const bool counts = g != PRE_WORD_GROUPS || ends_word(s, end);
        if (g == PRE_GROUP_STARTS) {
            done = put_starts(f, s, base, done, at, n);
        } else if (n && counts) {
            segment(f, base + done, base + at, false);
            put_groups(f, s, base, at, end, n);
            done = end;
        }
        at = end;
        if (n == 0) at += uc_next(s.ptr + at, &cp);
    }
    segment(f, base + done, base + s.len, false);
}

static void split_fixed(folder *f, cairn_str s, size_t base)
{
    size_t at = 0;
    uint32_t cp;

    while (at < s.len) {
        size_t from = at;
        for (size_t k = f->step->count; k > 0 && at < s.len; k--) at += uc_next(s.ptr + at, &cp);
        segment(f, base + from, base + at, true);
    }
}

/* Spaces and what all scripts share go with what is before; before the first script they are lost,
   as in the reference. */
static void split_scripts(folder *f, cairn_str s, size_t base)
{
    size_t from = SIZE_MAX, len;
    int last = UC_ANY_SCRIPT;
    uint32_t cp;

    for (size_t at = 0; at < s.len; at += len) {
        len = uc_next(s.ptr + at, &cp);
        int script = uc_script(cp);
        if (script == UC_ANY_SCRIPT || script == last) continue;
        if (from != SIZE_MAX) segment(f, base + from, base + at, true);
        from = at;
        last = script;
    }
    if (from != SIZE_MAX) segment(f, base + from, base + s.len, true);
}

static cairn_status split(const pre_step *p, cairn_str text, const buf *in, buf *out,
                          cairn_diag *dg)
{
    const span *w = (const span *)(const void *)in->ptr;

    for (size_t i = 0; i < in->len / sizeof *w; i++) {
        folder f = {.step = p, .out = out, .base = out->len};
        cairn_str s = str_sub(text, w[i].off, w[i].len);
        if (p->kind == PRE_SCAN)
            split_scan(&f, s, w[i].off);
        else if (p->kind == PRE_REGEX)
            TRY(split_regex(&f, s, w[i].off, dg));
        else if (p->kind == PRE_LITERAL || p->kind == PRE_METASPACE)
            split_literal(&f, s, w[i].off);
        else if (p->kind == PRE_DIGIT_GROUPS)
            split_groups(&f, s, w[i].off);
        else if (p->kind == PRE_FIXED)
            split_fixed(&f, s, w[i].off);
        else if (p->kind == PRE_SCRIPTS)
            split_scripts(&f, s, w[i].off);
        else
            split_chars(&f, s, w[i].off);
        if (f.pending) put_span(out, f.held);
    }
    return CAIRN_OK;
}

static void put_char(buf *out, uint32_t cp)
{
    char c[4];
    int n = 0;

    if (cp < 0x80)
        c[n++] = (char)cp;
    else {
        c[n++] = (char)(0xC0 | cp >> 6);
        c[n++] = (char)(0x80 | (cp & 63));
    }
    buf_put(out, c, (size_t)n);
}

/* What a step puts before a word; `first`: the word begins with what came from the text's first character. */
static void put_before(const pre_step *p, cairn_str s, bool first, buf *out)
{
    if (p->kind == PRE_PREFIX) {
        if (p->lit.len)
            buf_str(out, p->lit);
        else if (s.ptr[0] != ' ')
            buf_byte(out, ' ');
    } else if (p->kind == PRE_METASPACE) {
        const bool add = p->scheme == PRE_ALWAYS || (p->scheme == PRE_FIRST && first);
        if (add && s.ptr[0] != ' ' && !str_starts(s, p->lit)) buf_str(out, p->lit);
    }
}

static void put_rewritten(const pre_step *p, char c, buf *out)
{
    if (p->kind == PRE_BYTES)
        put_char(out, bytelevel_char((uint8_t)c));
    else if (p->kind == PRE_METASPACE && c == ' ')
        buf_str(out, p->lit);
    else
        buf_byte(out, c);
}

/* The words of `in` rewritten into `out`; answers where the head of the text, its first `head` bytes, now ends. */
static size_t rewrite(const pre_step *p, cairn_str text, size_t head, const buf *in, buf *words,
                      buf *out)
{
    const span *w = (const span *)(const void *)in->ptr;
    size_t head_end = 0;

    for (size_t i = 0; i < in->len / sizeof *w; i++) {
        const cairn_str s = str_sub(text, w[i].off, w[i].len);
        const size_t from = out->len;
        put_before(p, s, w[i].off < head, out);
        for (size_t k = 0; k < s.len; k++) {
            put_rewritten(p, s.ptr[k], out);
            if (w[i].off + k < head) head_end = out->len;
        }
        put_span(words, (span){(uint32_t)from, (uint32_t)(out->len - from)});
    }
    return head_end;
}

static void swap_bufs(buf *a, buf *b)
{
    buf t = *a;

    *a = *b;
    *b = t;
}

static bool rewrites(const pre_step *p)
{
    return p->kind == PRE_PREFIX || p->kind == PRE_BYTES || p->kind == PRE_METASPACE;
}

bool pre_asks_first(const pre_step *step, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (step[i].kind == PRE_METASPACE && step[i].scheme == PRE_FIRST) return true;
    return false;
}

cairn_status pretok_run(const pre_step *step, size_t n, cairn_str s, size_t head, work *w,
                        cairn_str *text, cairn_diag *dg)
{
    buf_clear(&w->span_x);
    put_span(&w->span_x, (span){0, (uint32_t)s.len});
    if (buf_status(&w->span_x) != CAIRN_OK) /* a step would clear that away */
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for the words of a text");
    *text = s;
    for (size_t i = 0; i < n; i++) {
        if (rewrites(&step[i])) {
            buf_clear(&w->span_y);
            buf_clear(&w->text_y);
            head = rewrite(&step[i], *text, head, &w->span_x, &w->span_y, &w->text_y);
            TRY(buf_status(&w->span_y));
            TRY(buf_status(&w->text_y));
            if (w->text_y.len > UINT32_MAX) return diag_set(dg, CAIRN_E_LIMIT, "text too long");
            swap_bufs(&w->span_x, &w->span_y);
            swap_bufs(&w->text_x, &w->text_y);
            *text = buf_view(&w->text_x);
            if (step[i].kind != PRE_METASPACE || !step[i].split) continue;
        }
        buf_clear(&w->span_y);
        TRY(split(&step[i], *text, &w->span_x, &w->span_y, dg));
        TRY(buf_status(&w->span_y));
        swap_bufs(&w->span_x, &w->span_y);
    }
    if (buf_status(&w->span_x) != CAIRN_OK || buf_status(&w->span_y) != CAIRN_OK ||
        buf_status(&w->text_x) != CAIRN_OK || buf_status(&w->text_y) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for the words of a text");
    return CAIRN_OK;
}
