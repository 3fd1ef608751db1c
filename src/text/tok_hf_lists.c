/* Owns the quick reading of tokenizer.json's two long values, model.vocab and model.merges: straight from
   the text, where most of a large file's bytes are.  It takes just the shapes that files have, {"piece": id}
   and then ["a b"] or [["a", "b"]], and is strict there; what is left, with {} and [] in their places, is
   the parser's.  A file that it does not take is wholly the parser's, which knows what to say of a bad one.
   Each byte of the file is looked at once: a merge becomes ids while its text is at hand.  Opening Gemma's file
   (33 MB, 262,144 pieces, 514,906 merges) is misses of caches and new pages as much as steps, so that
   tables are small and lists are handed on, not copied.
   Bytes that are not UTF-8 pass: tok_index refuses such a piece, and no merge finds one. */
#include <string.h>

#include "text/tok_hf.h"
#include "text/tok_hf_scan.h"
#include "text/tok_priv.h"

enum {
    PIECE_BYTES = 64,          /* about what files spend on a piece and its merges */
    TEXTS_MORE = 2 * MAP_WIDE, /* bytes behind the texts that are read or written over */
    FILE_MOST = INT32_MAX,     /* bytes, so that places in it have 32 bits */
};

typedef struct reader {
    hf_scan s;
    hf_lists *l;
} reader;

static bool no_memory(hf_lists *l)
{
    l->no_memory = true;
    return false;
}

/* Of seven digits at most, as those of TOK_MAX_VOCAB. */
static inline bool read_id(hf_scan *s, uint32_t *id)
{
    const uint64_t one = 0x0101010101010101u;
    const char *from = s->p;
    const size_t left = (size_t)(s->end - from);
    uint64_t x = 0;

    if (left >= sizeof x)
        memcpy(&x, from, sizeof x);
    else
        memcpy(&x, from, left);
    x -= '0' * one; /* a byte below borrows from the next, which is behind the end then */
    const uint64_t other = (x | (x + 0x76 * one)) & 0x80 * one;
    if (!other) return false; /* over seven */
    const int n = __builtin_ctzll(other) / 8;
    if (n == 0 || (*from == '0' && n > 1)) return false;
    x <<= 64 - 8 * n; /* zeros before; then pairs, fours, eights */
    x = (x * 10 + (x >> 8)) & 0x00FF00FF00FF00FFu;
    x = (x * 100 + (x >> 16)) & 0x0000FFFF0000FFFFu;
    *id = (uint32_t)(x * 10000 + (x >> 32));
    s->p += n;
    return true;
}

/* Mostly the piece of the next id. */
static inline bool put_piece(hf_lists *l, cairn_str s, uint32_t id)
{
    char *to = l->texts + l->n_texts;
    const hf_piece p = {(uint32_t)l->n_texts, (uint16_t)s.len, 0};
    size_t n = l->piece.len / sizeof p;

    if (s.len > UINT16_MAX || id >= TOK_MAX_VOCAB) return false;
    if (s.len <= MAP_WIDE)
        memcpy(to, s.ptr, MAP_WIDE);
    else
        memcpy(to, s.ptr, s.len);
    to[s.len] = '\0';
    l->n_texts += s.len + 1;
    if (id >= n) {
        for (; n < id; n++) buf_add(&l->piece, &(hf_piece){0}, sizeof p);
        buf_add(&l->piece, &p, sizeof p);
        return true;
    }
    hf_piece *const at = (hf_piece *)(void *)l->piece.ptr + id;
    if (at->at) return false; /* two of one id */
    *at = p;
    return true;
}

/* The texts are all there: in no more memory than they take. */
static bool index_pieces(hf_lists *l)
{
    cairn_str key[MAP_BATCH];
    uint32_t id[MAP_BATCH];
    size_t k = 0, n = 0;
    char *fit = mem_realloc(l->texts, l->n_texts + TEXTS_MORE, MEM_TEXT);

    if (fit) l->texts = fit;
    l->n_piece = (uint32_t)(l->piece.len / sizeof(hf_piece));
    buf_add(&l->piece, &(hf_piece){0}, sizeof(hf_piece));
    if (!fit || buf_status(&l->piece) != CAIRN_OK) return no_memory(l);
    const hf_piece *p = (const hf_piece *)(const void *)l->piece.ptr;
    for (uint32_t i = 0; i < l->n_piece; i++) n += p[i].at != 0;
    if (map_reserve(&l->by_text, n) != CAIRN_OK) return no_memory(l);
    for (uint32_t i = 0; i < l->n_piece; i++) {
        if (!p[i].at) continue;
        key[k] = hf_lists_text(l, &p[i]);
        id[k++] = i;
        if (k < MAP_BATCH) continue;
        if (map_put_wide(&l->by_text, key, id, k) != CAIRN_OK) return no_memory(l);
        k = 0;
    }
    if (map_put_wide(&l->by_text, key, id, k) != CAIRN_OK) return no_memory(l);
    return true;
}

/* {"piece": id, …} */
static bool read_pieces(hf_scan *s, hf_lists *l)
{
    cairn_str text;
    uint32_t id;
    hf_gap first = HF_GAP_NONE, colon = HF_GAP_NONE, comma = HF_GAP_NONE;

    if (!hf_take(s, '{')) return false;
    /* No piece is longer than it is spelt; of what is too much the system gives nothing. */
    l->texts = mem_alloc((size_t)(s->end - s->p) + TEXTS_MORE, MEM_TEXT);
    if (!l->texts ||
        buf_reserve(&l->piece, (size_t)(s->end - s->p) / PIECE_BYTES * sizeof(hf_piece)))
        return no_memory(l);
    l->texts[l->n_texts++] = '\0';
    if (hf_take(s, '}')) return index_pieces(l);
    if (!hf_take_gap(s, &first, "\"")) return false;
    do {
        if (!hf_string(s, &text) || !hf_take_gap(s, &colon, ":") || !read_id(s, &id) ||
            !put_piece(l, text, id))
            return false;
    } while (hf_take_gap(s, &comma, ",\""));
    hf_skip_space(s);
    return hf_take(s, '}') && index_pieces(l);
}

/* Any value: the parser will see whether it is one. */
static bool skip_value(reader *r)
{
    hf_scan *s = &r->s;
    cairn_str ignored;
    size_t depth = 0;

    while (s->p < s->end) {
        const char c = *s->p;
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) return true;
        s->p++;
        if (c == '"' && !hf_string(s, &ignored)) return false;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        hf_skip_space(s);
    }
    return false;
}

/* The file goes on in `rest` behind the value that began at `from`. */
static void leave_out(reader *r, const char *from, const char *instead)
{
    hf_lists *l = r->l;

    buf_put(&l->rest, l->file.ptr + l->done, (size_t)(from - l->file.ptr) - l->done);
    buf_puts(&l->rest, instead);
    l->done = (size_t)(r->s.p - l->file.ptr);
}

typedef bool (*member_fn)(reader *r, cairn_str key);

/* An object whose members are `member`'s to read. */
static bool read_object(reader *r, member_fn member)
{
    hf_scan *s = &r->s;
    cairn_str key;

    if (!hf_take(s, '{')) return false;
    do {
        if (!hf_next_is(s, '"')) return false;
        s->p++;
        if (!hf_string(s, &key)) return false;
        hf_skip_space(s);
        if (!hf_take(s, ':') || !member(r, key)) return false;
    } while (hf_take(s, ','));
    return hf_take(s, '}');
}

/* Of equal keys the last counts: such files are left to the parser. */
static bool first_time(bool *seen)
{
    const bool first = !*seen;

    *seen = true;
    return first;
}

static bool model_member(reader *r, cairn_str key)
{
    hf_lists *l = r->l;
    const char *from = r->s.p;

    if (str_is(key, "vocab")) {
        if (!first_time(&l->has_vocab) || !read_pieces(&r->s, l)) return false;
        leave_out(r, from, "{}");
        return true;
    }
    if (!str_is(key, "merges")) return skip_value(r);
    if (!l->has_vocab || !first_time(&l->has_merges) || !hf_merges_read(&r->s, l)) return false;
    leave_out(r, from, "[]");
    return true;
}

static bool root_member(reader *r, cairn_str key)
{
    if (!str_is(key, "model")) return skip_value(r);
    return first_time(&r->l->has_model) && read_object(r, model_member);
}

cairn_status hf_lists_read(cairn_str file, hf_lists *l)
{
    *l = (hf_lists){.file = file};
    reader r = {{.p = file.ptr, .end = file.ptr + file.len}, l};

    buf_init(&r.s.plain, MEM_TEXT);
    buf_init(&l->piece, MEM_TEXT);
    buf_init(&l->merge, MEM_TEXT);
    buf_init(&l->rest, MEM_TEXT);
    map_init(&l->by_text, MEM_TEXT);
    hf_skip_space(&r.s);
    const bool fine =
        file.len && file.len <= FILE_MOST && read_object(&r, root_member) && l->has_vocab;
    if (fine) leave_out(&r, r.s.end, "");
    const buf *const all[] = {&r.s.plain, &l->piece, &l->merge, &l->rest};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        l->no_memory = l->no_memory || buf_status(all[i]) != CAIRN_OK;
    buf_deinit(&r.s.plain);
    if (l->no_memory) return CAIRN_E_NOMEM;
    return fine ? CAIRN_OK : CAIRN_E_UNSUPPORTED;
}

void hf_lists_free(hf_lists *l)
{
    mem_free(l->texts);
    map_deinit(&l->by_text);
    buf_deinit(&l->piece);
    buf_deinit(&l->merge);
    buf_deinit(&l->rest);
}
