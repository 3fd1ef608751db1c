/* Cuts a JSON object at its outermost commas.  A parsed document takes some 13 times its text; a
   header of a hundred thousand tensors, or a hostile one of 100 MB, is so read in the memory of one
   piece.  Owns no grammar but strings and brackets. */
#include "format/jsonsplit.h"

#include <string.h>

#include "base/diag.h"
#include "base/str.h"

enum {
    PIECE = 256 << 10,
    MAX_MEMBER = 4 << 20, /* metadata of training tools reaches 1 MB */
};

/* Index of the string's closing quote, or the text's end. */
static size_t string_end(cairn_str s, size_t i)
{
    for (i++; i < s.len && s.ptr[i] != '"'; i++)
        if (s.ptr[i] == '\\') i++;
    return i;
}

/* Index of the comma or bracket that ends the member at i, or the text's end. */
static size_t member_end(cairn_str s, size_t i)
{
    size_t depth = 0;
    for (; i < s.len; i++) {
        const char c = s.ptr[i];
        if (c == '"') {
            i = string_end(s, i);
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) return i;
            depth--;
        } else if (c == ',' && depth == 0) {
            return i;
        }
    }
    return s.len;
}

static bool is_blank(cairn_str s)
{
    return str_trim(s).len == 0;
}

size_t jsonsplit_count(cairn_str text)
{
    size_t n = 1, i = member_end(text, 1);
    if (i >= text.len || (text.ptr[i] != ',' && is_blank(str_sub(text, 1, i - 1)))) return 0;
    for (; i < text.len && text.ptr[i] == ','; n++) i = member_end(text, i + 1);
    return n;
}

static cairn_status no_end(cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_CORRUPT,
                    "the object that begins at byte 0 does not end; expected }");
}

/* Moves past the comma or bracket at `end`, which closes a member that begins at `start`. */
static cairn_status step_over(jsonsplit *s, size_t start, size_t end, cairn_diag *dg)
{
    s->done = s->text.ptr[end] != ',';
    s->at = end + 1;
    if (s->text.ptr[end] == ']')
        return diag_set(dg, CAIRN_E_CORRUPT, "byte %zu: expected }, found ]", end);
    if (s->done && !is_blank(str_sub(s->text, s->at, s->text.len - s->at)))
        return diag_set(dg, CAIRN_E_CORRUPT, "byte %zu: expected nothing after the object", s->at);
    if (is_blank(str_sub(s->text, start, end - start)) && !(s->done && start == 1))
        return diag_set(dg, CAIRN_E_CORRUPT, "byte %zu: expected a member", start);
    return CAIRN_OK;
}

cairn_status jsonsplit_member(jsonsplit *s, cairn_str *member, cairn_diag *dg)
{
    const size_t start = s->at ? s->at : 1, end = member_end(s->text, start);
    if (end >= s->text.len) return no_end(dg);
    TRY(step_over(s, start, end, dg));
    *member = str_sub(s->text, start, end - start);
    return CAIRN_OK;
}

cairn_status jsonsplit_next(jsonsplit *s, buf *piece, cairn_diag *dg)
{
    const size_t start = s->at ? s->at : 1;
    size_t end, member = start;

    for (;; member = end + 1) {
        end = member_end(s->text, member);
        if (end >= s->text.len) return no_end(dg);
        if (end - member > MAX_MEMBER)
            return diag_set(dg, CAIRN_E_LIMIT,
                            "a member of %zu bytes at byte %zu; expected at most %d", end - member,
                            member, MAX_MEMBER);
        if (s->text.ptr[end] != ',' || end - start >= PIECE) break;
    }
    TRY(step_over(s, start, end, dg));
    buf_clear(piece);
    buf_byte(piece, '{');
    buf_str(piece, str_sub(s->text, start, end - start));
    buf_byte(piece, '}');
    return buf_status(piece) == CAIRN_OK ? CAIRN_OK
                                         : diag_set(dg, CAIRN_E_NOMEM, "a piece of JSON");
}
