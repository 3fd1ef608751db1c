/* Owns the normalizers that SentencePiece's map drives: SentencePiece's own, with its rules for white
   space, and the `Precompiled` of tokenizer.json, which asks the map about whole graphemes first.
   Text is valid UTF-8 throughout; replacements from the file are made so. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

static const char space_char[] = "\xE2\x96\x81"; /* U+2581 */

/* What stands for the start of s, and how many bytes of s that is. */
static size_t next_part(const norm_step *step, cairn_str s, cairn_str *to)
{
    uint32_t value, cp;
    size_t len = trie_longest(step->keep, s, 0, &value);

    *to = s;
    if (!len) {
        len = charsmap_find(&step->map, s, false, to);
        if (len) return len;
        len = uc_next(s.ptr, &cp);
    }
    to->len = len;
    return len;
}

/* An escaped space is U+2581, a plain one itself. */
static void put_part(const norm_step *step, cairn_str s, buf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == ' ' && step->escape)
            buf_puts(out, space_char);
        else
            buf_byte(out, s.ptr[i]);
    }
}

void norm_spm(const norm_step *step, cairn_str s, buf *out)
{
    const cairn_str blank = STR_LIT(" "), space = step->escape ? STR_LIT(space_char) : blank;
    bool after_space = step->squeeze;
    cairn_str to;
    size_t at = 0, len;

    while (step->squeeze && at < s.len) {
        len = next_part(step, str_sub(s, at, s.len - at), &to);
        if (!str_eq(to, blank)) break;
        at += len;
    }
    if (at == s.len) return;
    if (step->left) buf_str(out, space);
    for (; at < s.len; at += len) {
        len = next_part(step, str_sub(s, at, s.len - at), &to);
        while (after_space && str_starts(to, blank)) to = str_sub(to, 1, to.len - 1);
        put_part(step, to, out);
        if (to.len) after_space = step->squeeze && str_ends(to, blank);
    }
    while (step->squeeze && str_ends(buf_view(out), space)) buf_cut(out, out->len - space.len);
    if (step->right) buf_str(out, space);
}

/* A grapheme of up to five bytes is looked up whole, and whatever key begins it replaces all of it;
   else its characters, each alone. */
static void put_grapheme(const norm_step *step, cairn_str g, buf *out, bool *same)
{
    cairn_str to;
    uint32_t cp;

    if (g.len < 6 && charsmap_find(&step->map, g, true, &to)) {
        buf_str(out, to);
        *same = false;
        return;
    }
    for (size_t at = 0, len; at < g.len; at += len) {
        len = uc_next(g.ptr + at, &cp);
        bool found = charsmap_find(&step->map, str_sub(g, at, len), true, &to) > 0;
        buf_str(out, found ? to : str_sub(g, at, len));
        if (found) *same = false;
    }
}

void norm_precompiled(const norm_step *step, cairn_str s, buf *out, bool *same)
{
    utf8proc_int32_t state = 0;
    uint32_t cp, next;
    size_t from = 0;

    for (size_t at = 0, len; at < s.len; at += len) {
        len = uc_next(s.ptr + at, &cp);
        if (at + len < s.len) {
            uc_next(s.ptr + at + len, &next);
            if (!utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next,
                                                  &state))
                continue;
        }
        put_grapheme(step, str_sub(s, from, at + len - from), out, same);
        from = at + len;
    }
}
