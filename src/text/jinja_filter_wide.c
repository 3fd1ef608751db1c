/* wordwrap: lines of at most so many characters, as Python's textwrap cuts them.  A line is always one
   piece of the text: white space falls away at its ends alone. */
#include "text/jinja_run.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "cairn/status.h"
#include "text/jinja_value.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t next_at(cairn_str s, size_t i)
{
    for (i++; i < s.len && ((unsigned char)s.ptr[i] & 0xc0) == 0x80;) i++;
    return i;
}

static size_t before(cairn_str s, size_t i) /* i > 0 */
{
    for (i--; i > 0 && ((unsigned char)s.ptr[i] & 0xc0) == 0x80;) i--;
    return i;
}

/* Letters and word characters are Python's classes. */
static bool word_at(cairn_str s, size_t i)
{
    return i < s.len && jtext_word(s.ptr + i, s.len - i) > 0;
}

static bool letter_at(cairn_str s, size_t i)
{
    return word_at(s, i) && !jtext_is(str_sub(s, i, next_at(s, i) - i), IS_DECIMAL);
}

static bool hyphen_at(cairn_str s, size_t i)
{
    return i < s.len && s.ptr[i] == '-';
}

static bool letter_before(cairn_str s, size_t i)
{
    return i > 0 && letter_at(s, before(s, i));
}

/* The hyphen at i ends a chunk: two letters, or letter-hyphen-letter, before it and a letter behind it
   that does not stand alone. */
static bool hyphen_cuts(cairn_str s, size_t i)
{
    if (!letter_before(s, i)) return false;
    size_t k = before(s, i);
    if (!letter_before(s, k) && !(k && s.ptr[k - 1] == '-' && letter_before(s, k - 1)))
        return false;
    if (!letter_at(s, i + 1)) return false;
    k = next_at(s, i + 1);
    return letter_at(s, k) || (hyphen_at(s, k) && letter_at(s, k + 1));
}

/* The end of two or more hyphens at i that stand between words; 0: none do. */
static size_t dash_end(cairn_str s, size_t i)
{
    size_t end = i;
    if (!i) return 0;
    const char c = s.ptr[i - 1];
    if (!(c && strchr("!\"'&.,?", c)) && !word_at(s, before(s, i))) return 0;
    while (hyphen_at(s, end)) end++;
    return end - i >= 2 && word_at(s, end) ? end : 0;
}

/* A line may break where the chunk at i ends. */
static size_t chunk_end(cairn_str s, size_t i, bool hyphens)
{
    size_t end = i;
    if (is_blank(s.ptr[i])) {
        while (end < s.len && is_blank(s.ptr[end])) end++;
        return end;
    }
    if (hyphens && hyphen_at(s, i) && (end = dash_end(s, i)) > 0) return end;
    for (end = next_at(s, i); end < s.len && !is_blank(s.ptr[end]); end = next_at(s, end)) {
        if (!hyphens || s.ptr[end] != '-') continue;
        if (hyphen_cuts(s, end)) return end + 1;
        if (dash_end(s, end)) break;
    }
    return end;
}

typedef struct wrap {
    cairn_str s, newline;
    double width; /* in characters */
    bool whole;   /* the width is an integer: a word can be cut at it */
    bool cut_words, cut_at_hyphens;
    bool hyphens;          /* chunks end at hyphens */
    size_t at, end, chars; /* the chunk that comes next */
    size_t n_lines;
} wrap;

static void next_chunk(wrap *w)
{
    w->at = w->end;
    if (w->at == w->s.len) return;
    w->end = chunk_end(w->s, w->at, w->hyphens);
    w->chars = jtext_count(str_sub(w->s, w->at, w->end - w->at));
}

static bool all_space(cairn_str s, size_t from, size_t to)
{
    return jtext_strip(str_sub(s, from, to - from), NULL, true, false).len == 0;
}

/* How many of the next chunk's first `room` characters stay on the line: up to the last hyphen among
   them, if anything else is before it. */
static size_t cut_chars(const wrap *w, size_t room)
{
    const cairn_str chunk = str_sub(w->s, w->at, w->end - w->at);
    size_t k = jtext_offset(chunk, room), other = 0;
    if (!w->cut_at_hyphens || w->chars <= room) return room;
    while (k > 0 && chunk.ptr[k - 1] != '-') k--;
    while (other < k && chunk.ptr[other] == '-') other++;
    return k < 2 || other >= k - 1 ? room : jtext_count(str_sub(chunk, 0, k));
}

/* A chunk longer than any line: some of it on this one.  Answers whether any was taken. */
static bool take_long(wrap *w, size_t used, bool empty)
{
    if (!w->cut_words && !empty) return false;
    if (!w->cut_words) {
        next_chunk(w);
        return true;
    }
    size_t n = cut_chars(w, w->width < 1 ? 1 : (size_t)w->width - used);
    if (n > w->chars) n = w->chars;
    w->at += jtext_offset(str_sub(w->s, w->at, w->end - w->at), n);
    w->chars -= n; /* none is left where the width is below 1: an empty chunk, that counts as one */
    return true;
}

/* One line of the text that is left. */
static bool put_line(jrun *r, wrap *w, buf *b)
{
    size_t used = 0, n = 0;

    if (w->n_lines && all_space(w->s, w->at, w->end)) next_chunk(w);
    const size_t from = w->at;
    size_t last = from; /* where the line's last chunk begins */
    for (; w->at < w->s.len && (double)(used + w->chars) <= w->width; n++) {
        last = w->at;
        used += w->chars;
        next_chunk(w);
    }
    if (w->at < w->s.len && (double)w->chars > w->width) {
        const size_t at = w->at;
        if (w->cut_words && !w->whole && w->width >= 1)
            return jfail(r, "wordwrap: a word is cut at integer widths only");
        if (take_long(w, used, !n)) {
            last = at;
            n++;
        }
    }
    size_t to = w->at;
    if (n && all_space(w->s, last, to)) {
        to = last;
        n--;
    }
    if (n && w->n_lines++) buf_str(b, w->newline);
    if (n) buf_put(b, w->s.ptr + from, to - from);
    if (b->len > JINJA_MAX_OUTPUT) return jfail_long(r, "wordwrap");
    return jsteps(r, 1 + w->newline.len / 16);
}

static bool wrap_arguments(jrun *r, const jv *arg, wrap *w)
{
    const jv width = arg[0].t == J_MISSING ? jv_int(79) : arg[0];

    w->newline = STR_LIT("\n");
    if (arg[2].t != J_MISSING && arg[2].t != J_NONE) {
        if (arg[2].t != J_STR) return jfail(r, "wordwrap: wrapstring must be a string");
        w->newline = jv_text(arg[2]);
    }
    if (!jv_is_num(width)) return jfail(r, "wordwrap: width must be a number");
    w->whole = jv_is_whole(width);
    w->width = jv_as_num(width);
    if (!(w->width > 0)) return jfail(r, "wordwrap: width must be above 0");
    w->cut_words = arg[1].t == J_MISSING || jv_truth(arg[1]);
    w->cut_at_hyphens = arg[3].t == J_MISSING || jv_truth(arg[3]);
    w->hyphens = w->cut_at_hyphens && (arg[3].t == J_MISSING || arg[3].t == J_BOOL);
    return true;
}

static bool f_wordwrap(jrun *r, jv in, const jv *arg, jv *out)
{
    wrap w = {0};
    size_t pos = 0, n = 0;
    bool ok = true;
    cairn_str line;
    buf b;

    if (in.t == J_UNDEF) return jfail_undef(r, in);
    if (in.t != J_STR) return jfail(r, "wordwrap: expected a string, got %s", jv_type_name(in));
    if (!jsteps(r, in.len) || (in.len && !wrap_arguments(r, arg, &w))) return false;
    buf_init(&b, MEM_TEXT);
    for (; ok && jtext_line(jv_text(in), &pos, false, &line); n++) {
        if (n) buf_str(&b, w.newline);
        w.s = line;
        w.end = w.n_lines = 0;
        next_chunk(&w);
        while (ok && w.at < line.len) ok = put_line(r, &w, &b);
    }
    return jv_give(r, &b, ok, out);
}

const jfn jfilters_wide[] = {
    {"wordwrap", f_wordwrap, NULL, "width? break_long_words? wrapstring? break_on_hyphens?"},
    {"pprint", jv_pprint, NULL, ""},
    {0}};
