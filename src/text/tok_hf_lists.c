/* Owns the quick reading of tokenizer.json's two long values, model.vocab and model.merges: straight from
   the text, where most of a large file's bytes are.  It takes just the shapes that files have, {"piece": id}
   and ["a b"] or [["a", "b"]], and is strict there; what is left, with {} and [] in their places, is the
   parser's.  A file that it does not take is wholly the parser's, which knows what to say of a bad one.
   Bytes that are not UTF-8 pass: tok_index refuses such a piece, and no merge finds one. */
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "base/utf8.h"
#include "text/ascii.h"
#include "text/tok_hf.h"

enum {
    ID_DIGITS = 7,    /* of TOK_MAX_VOCAB */
    PIECE_BYTES = 64, /* about what files spend on a piece and its merges, */
    MERGE_BYTES = 16, /* and on a merge, where they are not indented */
};

typedef struct reader {
    const char *p, *end; /* what is next */
    hf_lists *l;
} reader;

/* Indented files are mostly blanks. */
static inline void skip_space(reader *r)
{
    const char *p = r->p, *end = r->end;
    byte16 x;

    if (p < end && (uint8_t)*p > ' ') return;
    for (; (size_t)(end - p) >= sizeof x; p += sizeof x) {
        memcpy(&x, p, sizeof x);
        const lane16 blank =
            (lane16)(x == ' ') | (lane16)(x == '\n') | (lane16)(x == '\r') | (lane16)(x == '\t');
        const uint64_t stop = ascii_bits(~blank);
        if (!stop) continue;
        r->p = p + __builtin_ctzll(stop);
        return;
    }
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    r->p = p;
}

/* The character c and the blanks behind it. */
static inline bool take(reader *r, char c)
{
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    skip_space(r);
    return true;
}

static inline bool next_is(const reader *r, char c)
{
    return r->p < r->end && *r->p == c;
}

/* What stood between two texts or numbers the last time: in a list it is the same from one end to the
   other, but at its ends and where a text has escapes.  Longer ones are read anew each time. */
enum { GAP_MOST = 32 };
typedef struct gap {
    byte16 half[2];
    uint64_t
        want; /* a bit for each byte that counts; not known yet: more bits than there are bytes */
    size_t len;
} gap;
#define GAP_NONE                                                                                   \
    (gap)                                                                                          \
    {                                                                                              \
        .want = UINT64_MAX                                                                         \
    }

static inline bool same_gap(reader *r, const gap *g)
{
    byte16 x, y;

    if (r->end - r->p < GAP_MOST) return false;
    memcpy(&x, r->p, sizeof x);
    memcpy(&y, r->p + sizeof x, sizeof y);
    const uint64_t same =
        ascii_bits((lane16)(x == g->half[0])) | ascii_bits((lane16)(y == g->half[1])) << sizeof x;
    if ((same & g->want) != g->want) return false;
    r->p += g->len;
    return true;
}

/* The characters `what` with blanks around each of them, but not behind a quote.  Where other ones stand
   nothing is taken. */
static bool new_gap(reader *r, gap *g, const char *what)
{
    const char *from = r->p;

    skip_space(r);
    for (; *what; what++) {
        if (!next_is(r, *what)) {
            r->p = from;
            return false;
        }
        r->p++;
        if (*what != '"') skip_space(r);
    }
    *g = GAP_NONE;
    if (r->p - from > GAP_MOST || r->end - from < GAP_MOST) return true;
    g->len = (size_t)(r->p - from);
    g->want = ((uint64_t)1 << g->len) - 1;
    memcpy(g->half, from, sizeof g->half);
    return true;
}

static inline bool take_gap(reader *r, gap *g, const char *what)
{
    return same_gap(r, g) || new_gap(r, g, what);
}

/* Four digits of \u. */
static bool read_unit(reader *r, uint32_t *unit)
{
    *unit = 0;
    if (r->end - r->p < 4) return false;
    for (int i = 0; i < 4; i++) {
        const int digit = str_hex_digit(*r->p++);
        if (digit < 0) return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

/* What stands behind a backslash. */
static bool read_escape(reader *r, buf *out)
{
    static const char name[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
    uint32_t cp, low;
    char utf8[4];

    if (r->p == r->end) return false;
    const char c = *r->p++;
    if (c != 'u') {
        const char *at = c ? strchr(name, c) : NULL;
        if (at) buf_byte(out, value[at - name]);
        return at != NULL;
    }
    if (!read_unit(r, &cp) || (cp >= 0xDC00 && cp <= 0xDFFF)) return false;
    if (cp >= 0xD800 && cp < 0xDC00) {
        if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u') return false;
        r->p += 2;
        if (!read_unit(r, &low) || low < 0xDC00 || low > 0xDFFF) return false;
        cp = 0x10000 + ((cp - 0xD800) << 10 | (low - 0xDC00));
    }
    buf_put(out, utf8, (size_t)utf8_encode(cp, utf8));
    return true;
}

/* The rest of a string with escapes, of which `from` is the beginning. */
static bool read_escaped(reader *r, const char *from, hf_slice *out)
{
    buf *plain = &r->l->plain;
    const size_t at = plain->len;

    buf_put(plain, from, (size_t)(r->p - from));
    while (r->p < r->end && *r->p != '"') {
        const char c = *r->p++;
        if ((uint8_t)c < 0x20) return false;
        if (c != '\\')
            buf_byte(plain, c);
        else if (!read_escape(r, plain))
            return false;
    }
    if (r->p++ == r->end || buf_status(plain) != CAIRN_OK) return false;
    *out = (hf_slice){(uint32_t)HF_SLICE_MAX + 1 + (uint32_t)at, (uint32_t)(plain->len - at)};
    return true;
}

/* The end of the plain bytes of a string: its quote, a backslash, or what may not be there. */
static inline const char *plain_end(const char *p, const char *end)
{
    byte16 x;

    for (; (size_t)(end - p) >= sizeof x; p += sizeof x) {
        memcpy(&x, p, sizeof x);
        const lane16 special =
            (lane16)(x == '"') | (lane16)(x == '\\') | ascii_range(x, 0, ' ' - 1);
        const uint64_t stop = ascii_bits(special);
        if (stop) return p + __builtin_ctzll(stop);
    }
    while (p < end && (uint8_t)*p >= ' ' && *p != '"' && *p != '\\') p++;
    return p;
}

/* A string behind its first quote, with the last one. */
static inline bool read_rest(reader *r, hf_slice *out)
{
    const char *from = r->p;

    r->p = plain_end(from, r->end);
    if (!next_is(r, '"')) return next_is(r, '\\') && read_escaped(r, from, out);
    *out = (hf_slice){(uint32_t)(from - r->l->file.ptr), (uint32_t)(r->p++ - from)};
    return true;
}

/* A string and the blanks behind it. */
static bool read_text(reader *r, hf_slice *out)
{
    if (!next_is(r, '"')) return false;
    r->p++;
    if (!read_rest(r, out)) return false;
    skip_space(r);
    return true;
}

/* One block for nearly all records of a list that goes on for what is left of the file at most. */
static void reserve(const reader *r, buf *b, size_t record, size_t text_bytes)
{
    if (buf_grow(b, (size_t)(r->end - r->p) / text_bytes * record)) buf_clear(b);
}

static inline bool read_id(reader *r, uint32_t *id)
{
    const char *from = r->p;

    for (*id = 0; r->p < r->end && str_is_digit(*r->p) && r->p - from < ID_DIGITS; r->p++)
        *id = *id * 10 + (uint32_t)(*r->p - '0');
    return r->p > from && (*from != '0' || r->p - from == 1);
}

/* {"piece": id, …} */
static bool read_pieces(reader *r)
{
    hf_piece p;
    gap first = GAP_NONE, colon = GAP_NONE, comma = GAP_NONE;

    if (!take(r, '{')) return false;
    if (take(r, '}')) return true;
    reserve(r, &r->l->piece, sizeof p, PIECE_BYTES);
    if (!take_gap(r, &first, "\"")) return false;
    do {
        if (!read_rest(r, &p.text) || !take_gap(r, &colon, ":") || !read_id(r, &p.id)) return false;
        buf_add(&r->l->piece, &p, sizeof p);
    } while (take_gap(r, &comma, ",\""));
    skip_space(r);
    return take(r, '}');
}

/* "a b" */
static bool split_merge(const hf_lists *l, hf_slice both, hf_merge *m)
{
    const cairn_str s = hf_lists_text(l, both);
    const size_t cut = str_find(s, STR_LIT(" "), 0);

    if (cut == SIZE_MAX || str_find(s, STR_LIT(" "), cut + 1) != SIZE_MAX) return false;
    const uint32_t n = (uint32_t)cut;
    *m = (hf_merge){{both.at, n}, {both.at + n + 1, both.len - n - 1}};
    return true;
}

/* "a b", … */
static bool read_joined(reader *r)
{
    hf_slice both;
    hf_merge m;
    gap first = GAP_NONE, comma = GAP_NONE;

    if (!take_gap(r, &first, "\"")) return false;
    do {
        if (!read_rest(r, &both) || !split_merge(r->l, both, &m)) return false;
        buf_add(&r->l->merge, &m, sizeof m);
    } while (take_gap(r, &comma, ",\""));
    skip_space(r);
    return true;
}

/* ["a", "b"], … */
static bool read_pairs(reader *r)
{
    hf_merge m;
    gap first = GAP_NONE, comma = GAP_NONE, next = GAP_NONE;

    if (!take_gap(r, &first, "[\"")) return false;
    do {
        if (!read_rest(r, &m.l) || !take_gap(r, &comma, ",\"") || !read_rest(r, &m.r)) return false;
        buf_add(&r->l->merge, &m, sizeof m);
    } while (take_gap(r, &next, "],[\""));
    skip_space(r);
    return take(r, ']');
}

static bool read_merges(reader *r)
{
    if (!take(r, '[')) return false;
    if (take(r, ']')) return true;
    reserve(r, &r->l->merge, sizeof(hf_merge), MERGE_BYTES);
    return (next_is(r, '[') ? read_pairs(r) : read_joined(r)) && take(r, ']');
}

/* Any value: the parser will see whether it is one. */
static bool skip_value(reader *r)
{
    hf_slice ignored;
    size_t depth = 0;

    while (r->p < r->end) {
        const char c = *r->p;
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) return true;
        if (c == '"') {
            if (!read_text(r, &ignored)) return false;
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        r->p++;
        skip_space(r);
    }
    return false;
}

/* The file goes on in `rest` behind the value that began at `from`. */
static void leave_out(reader *r, const char *from, const char *instead)
{
    hf_lists *l = r->l;

    buf_put(&l->rest, l->file.ptr + l->done, (size_t)(from - l->file.ptr) - l->done);
    buf_puts(&l->rest, instead);
    l->done = (size_t)(r->p - l->file.ptr);
}

typedef bool (*member_fn)(reader *r, cairn_str key);

/* An object whose members are `member`'s to read; a key that is not as it reads is not for us. */
static bool read_object(reader *r, member_fn member)
{
    hf_slice key;

    if (!take(r, '{')) return false;
    do {
        if (!read_text(r, &key) || key.at > HF_SLICE_MAX || !take(r, ':')) return false;
        if (!member(r, hf_lists_text(r->l, key))) return false;
    } while (take(r, ','));
    return take(r, '}');
}

/* Of equal keys the last counts: such files are left to the parser. */
static bool once(bool *seen)
{
    const bool first = !*seen;

    *seen = true;
    return first;
}

static bool model_member(reader *r, cairn_str key)
{
    const char *from = r->p;

    if (str_is(key, "vocab")) {
        if (!once(&r->l->has_vocab) || !read_pieces(r)) return false;
        leave_out(r, from, "{}");
        return true;
    }
    if (!str_is(key, "merges")) return skip_value(r);
    if (!once(&r->l->has_merges) || !read_merges(r)) return false;
    leave_out(r, from, "[]");
    return true;
}

static bool root_member(reader *r, cairn_str key)
{
    if (!str_is(key, "model")) return skip_value(r);
    return once(&r->l->has_model) && read_object(r, model_member);
}

cairn_status hf_lists_read(cairn_str file, hf_lists *l)
{
    reader r = {file.ptr, file.ptr + file.len, l};

    *l = (hf_lists){.file = file};
    buf *all[] = HF_LISTS_BUFS(l);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_init(all[i], MEM_TEXT);
    skip_space(&r);
    const bool fine =
        file.len && file.len <= HF_SLICE_MAX && read_object(&r, root_member) && l->has_vocab;
    if (fine) leave_out(&r, r.end, "");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) TRY(buf_status(all[i]));
    return fine ? CAIRN_OK : CAIRN_E_UNSUPPORTED;
}

void hf_lists_free(hf_lists *l)
{
    buf *all[] = HF_LISTS_BUFS(l);

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_deinit(all[i]);
}
