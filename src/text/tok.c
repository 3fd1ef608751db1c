/* Owns the tokenizer's pipeline from text to ids and what can be asked of a vocabulary.  Reading the
   files is tok_hf.c's and tok_gguf.c's, the way back detok.c's.  Text that is not UTF-8 is encoded
   as if U+FFFD stood for each malformed part (Unicode's maximal subparts), which is what the
   references do after a lossy decode. */
#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"
#include "text/ascii.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

cairn_status tok_new(int32_t n, tok **out, cairn_diag *dg)
{
    tok *t = mem_calloc(1, sizeof *t, MEM_TEXT);

    if (!t) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
    uc_prepare();
    arena_init(&t->mem, MEM_TEXT);
    map_init(&t->by_key, MEM_TEXT);
    map_init(&t->by_spelling, MEM_TEXT);
    t->n = n;
    t->unk = -1;
    t->special = (tok_special){-1, -1, -1, -1, false, false};
    t->text =
        arena_calloc(&t->mem, (size_t)n + 1, 2 * sizeof *t->text); /* one block: fewer pages */
    t->out = t->text ? t->text + n + 1 : NULL;
    t->flag = arena_calloc(&t->mem, (size_t)n + 1, 1);
    if (!t->text || !t->flag || pool_new(&t->pool) != CAIRN_OK) {
        tok_close(t);
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for %d pieces", n);
    }
    *out = t;
    return CAIRN_OK;
}

void tok_close(tok *t)
{
    if (!t) return;
    pool_free(t->pool);
    for (size_t i = 0; i < t->n_norm; i++) regex_free(t->norm[i].re);
    for (size_t i = 0; i < t->n_pre; i++) regex_free(t->pre[i].re);
    trie_deinit(&t->early);
    trie_deinit(&t->late);
    trie_deinit(&t->keep);
    trie_deinit(&t->pieces);
    map_deinit(&t->by_key);
    map_deinit(&t->by_spelling);
    buf_deinit(&t->bpe.tmp);
    buf_deinit(&t->bpe.list);
    mem_free(t->bpe.left);
    mem_free(t->texts);
    arena_deinit(&t->mem);
    mem_free(t);
}

cairn_str tok_copy(tok *t, cairn_str s)
{
    char *p = arena_alloc(&t->mem, s.len + 1);

    if (!p) return (cairn_str){0};
    if (s.len) memcpy(p, s.ptr, s.len);
    p[s.len] = '\0';
    return (cairn_str){p, s.len};
}

bool tok_byte_piece(cairn_str s, uint8_t *byte)
{
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    const size_t n = sizeof digits - 1;

    if (s.len != 6 || memcmp(s.ptr, "<0x", 3) != 0 || s.ptr[5] != '>') return false;
    const char *a = memchr(digits, s.ptr[3], n), *b = memchr(digits, s.ptr[4], n);
    if (!a || !b) return false;
    *byte = (uint8_t)((a - digits) % 16 * 16 + (b - digits) % 16);
    return true;
}

/* The bytes that a piece of the byte-level alphabet stands for; ptr NULL if it is not one. */
static cairn_status raw_bytes(tok *t, cairn_str s, cairn_str *raw)
{
    *raw = s;
    if (ascii_printed(s)) return CAIRN_OK; /* stands for itself */
    char *into = arena_alloc(&t->mem, s.len + 1);
    if (!into) return CAIRN_E_NOMEM;
    const char *end = bytelevel_bytes(s, into);
    *raw = end ? (cairn_str){into, (size_t)(end - into)} : (cairn_str){0};
    return CAIRN_OK;
}

/* Keys on their way into by_key. */
typedef struct keys {
    cairn_str key[MAP_BATCH];
    uint32_t id[MAP_BATCH];
    size_t n;
    bool known; /* they are all there */
} keys;

static cairn_status put_keys(tok *t, keys *k)
{
    const size_t n = k->n;

    k->n = 0;
    return map_put_many(&t->by_key, k->key, k->id, n);
}

static cairn_status index_one(tok *t, int32_t id, keys *k)
{
    cairn_str text = t->text[id], raw = {0};

    if (t->byte_level || t->dec.byte_level) TRY(raw_bytes(t, text, &raw));
    if (!t->out[id].ptr) t->out[id] = t->dec.byte_level && raw.ptr ? raw : text;
    if (t->out[id].len > t->max_out) t->max_out = t->out[id].len;
    if (t->flag[id] & TOK_F_ADDED) return CAIRN_OK; /* the model does not know it */
    if (t->byte_level && !raw.ptr) {
        t->flag[id] |= TOK_F_UNREACHABLE;
        return map_put(&t->by_spelling, text, (uint32_t)id);
    }
    const cairn_str key = t->byte_level ? raw : text;
    if (key.len > t->max_text) t->max_text = key.len;
    if (k->known) return CAIRN_OK;
    k->key[k->n] = key;
    k->id[k->n++] = (uint32_t)id;
    return k->n == MAP_BATCH ? put_keys(t, k) : CAIRN_OK;
}

cairn_status tok_index(tok *t, const char *where, const char *field, cairn_diag *dg)
{
    keys k = {.n = 0, .known = t->by_key.n > 0};
    cairn_status st = k.known ? CAIRN_OK : map_reserve(&t->by_key, (size_t)t->n);

    for (int32_t id = 0; id < t->n && st == CAIRN_OK; id++) {
        if (!(t->flag[id] & TOK_F_USED)) continue;
        const cairn_str s = t->text[id];
        if (s.len > TOK_MAX_PIECE)
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: %s: found piece %d of %zu bytes; expected at most %d", where,
                            field, id, s.len, TOK_MAX_PIECE);
        if (!t->are_utf8 && !utf8_valid(s))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: %s: found piece %d that is no UTF-8; expected text", where, field,
                            id);
        st = index_one(t, id, &k);
    }
    if (st == CAIRN_OK) st = put_keys(t, &k);
    return st == CAIRN_OK ? st : diag_set(dg, CAIRN_E_NOMEM, "no memory for a vocabulary");
}

cairn_status tok_index_added(tok *t, cairn_diag *dg)
{
    buf x, y;
    cairn_status st = CAIRN_OK;

    buf_init(&x, MEM_TEXT);
    buf_init(&y, MEM_TEXT);
    TRY_GOTO(map_reserve(&t->by_spelling, t->by_spelling.n + t->n_added), out);
    for (uint32_t i = t->n_added; i-- > 0;) { /* of equal normalised texts the last counts */
        const added *a = &t->added[i];
        cairn_str s = a->text;
        TRY_GOTO(map_put(&t->by_spelling, s, (uint32_t)a->id), out);
        if (a->normalized) TRY_GOTO(norm_run(t->norm, t->n_norm, s, &x, &y, &s, dg), out);
        st = trie_add(a->normalized ? &t->late : &t->early, s, i);
        if (st == CAIRN_E_LIMIT)
            (void)diag_set(dg, st, "added_tokens: found texts of over %d bytes; expected fewer",
                           TOK_MAX_ADDED);
        if (st != CAIRN_OK) goto out;
        if (s.len > t->max_added) t->max_added = s.len;
    }
out:
    buf_deinit(&x);
    buf_deinit(&y);
    return st != CAIRN_E_NOMEM ? st
                               : diag_set(dg, st, "no memory to index %u added tokens", t->n_added);
}

cairn_status tok_opened(cairn_status st, const char *where, cairn_diag *dg)
{
    if (st == CAIRN_OK || !dg || strncmp(dg->message, where, strlen(where)) == 0) return st;
    return diag_prefix(dg, st, "%s", where);
}

/* One encoding: what the steps below share. */
typedef struct call {
    const tok *t;
    uint32_t flags;
    size_t enough; /* bytes of *ids, with which it may stop */
    work *w;
    buf *ids;
    cairn_diag *dg;
} call;

static bool has_enough(const call *c)
{
    return c->ids->len >= c->enough;
}

/* The words of one span, as the last step's scanner finds them; `room` bytes may be read there. */
static cairn_status encode_span(call *c, const scanner *scan, cairn_str s, size_t room)
{
    word_list l;

    word_list_begin(&l, s, room);
    while ((l.n = scan->words(s, l.at, l.end, WORD_BATCH)) > 0) {
        TRY(words_ids(c->t, c->t->word, &l, c->w, c->ids, c->dg));
        l.at = l.end[l.n - 1];
        if (has_enough(c)) break;
    }
    return CAIRN_OK;
}

/* Text without added tokens. */
static cairn_status encode_plain(call *c, cairn_str s, size_t head)
{
    const tok *t = c->t;
    size_t n = t->n_pre;
    cairn_str text;

    if (n == 0) return word_ids(t, t->word, s, s.len, c->w, c->ids, c->dg);
    const scanner *scan = pre_is_scan(&t->pre[n - 1]) ? t->pre[n - 1].scan : NULL;
    if (scan && n == 1) return encode_span(c, scan, s, s.len);
    TRY(pretok_run(t->pre, scan ? n - 1 : n, s, head, c->w, &text, c->dg));
    const span *w = (const span *)(const void *)c->w->span_x.ptr;
    n = c->w->span_x.len / sizeof *w;
    for (size_t i = 0; i < n && !has_enough(c); i++) {
        cairn_str word = str_sub(text, w[i].off, w[i].len);
        const size_t room = text.len - w[i].off;
        TRY(scan ? encode_span(c, scan, word, room)
                 : word_ids(t, t->word, word, room, c->w, c->ids, c->dg));
    }
    return CAIRN_OK;
}

/* Text in which only added tokens that want normalised text may be. */
static cairn_status encode_text(call *c, cairn_str s, bool first, bool after_added)
{
    const tok *t = c->t;
    const bool parse = c->flags & TOK_PARSE_SPECIAL;
    size_t head = 0;

    if (t->space_after_special && after_added) {
        buf_clear(&c->w->text_y);
        buf_byte(&c->w->text_y, ' ');
        buf_str(&c->w->text_y, s);
        s = buf_view(&c->w->text_y);
        TRY(buf_status(&c->w->text_y));
    }
    if (first && s.len && pre_asks_first(t->pre, t->n_pre))
        TRY(norm_head(t->norm, t->n_norm, s, &head, c->dg));
    TRY(norm_run(t->norm, t->n_norm, s, &c->w->norm_x, &c->w->norm_y, &s, c->dg));
    if (s.len == 0) return CAIRN_OK;
    if (t->late.n == 0) return encode_plain(c, s, head);
    buf_clear(&c->w->late);
    TRY(added_cut(&t->late, t->added, s, parse, &c->w->late));
    const piece *p = (const piece *)(const void *)c->w->late.ptr;
    size_t n = c->w->late.len / sizeof *p;
    for (size_t i = 0; i < n && !has_enough(c); i++) {
        if (p[i].id >= 0)
            ids_put(c->ids, p[i].id);
        else
            TRY(encode_plain(c, str_sub(s, p[i].at.off, p[i].at.len),
                             head > p[i].at.off ? head - p[i].at.off : 0));
    }
    return CAIRN_OK;
}

static cairn_status encode_all(call *c, cairn_str s)
{
    const tok *t = c->t;

    TRY(added_cut(&t->early, t->added, s, c->flags & TOK_PARSE_SPECIAL, &c->w->early));
    const piece *p = (const piece *)(const void *)c->w->early.ptr;
    size_t n = c->w->early.len / sizeof *p;
    for (size_t i = 0; i < n && !has_enough(c); i++) {
        if (p[i].id >= 0)
            ids_put(c->ids, p[i].id);
        else
            TRY(encode_text(c, str_sub(s, p[i].at.off, p[i].at.len), p[i].at.off == 0,
                            i == 0 || p[i - 1].id >= 0));
    }
    return buf_status(c->ids);
}

static void put_lossy(cairn_str s, buf *out)
{
    for (size_t at = 0; at < s.len;) {
        uint32_t cp;
        int n = utf8_decode(s.ptr + at, s.len - at, &cp);
        if (n > 0)
            buf_put(out, s.ptr + at, (size_t)n);
        else
            buf_puts(out, "\xEF\xBF\xBD");
        at += (size_t)(n > 0 ? n : -n);
    }
}

cairn_status tok_encode(const tok *t, cairn_str s, uint32_t flags, buf *ids, cairn_diag *dg)
{
    return tok_encode_some(t, s, flags, SIZE_MAX, ids, dg);
}

uint32_t tok_n_after(const tok *t)
{
    return t->n_after;
}

cairn_status tok_encode_some(const tok *t, cairn_str s, uint32_t flags, size_t enough, buf *ids,
                             cairn_diag *dg)
{
    call c = {.t = t, .flags = flags, .enough = SIZE_MAX, .ids = ids, .dg = dg};
    buf lossy;
    cairn_status st = CAIRN_OK;

    if (s.len > TOK_MAX_TEXT)
        return diag_set(dg, CAIRN_E_LIMIT, "a text of %zu bytes, most is %d", s.len, TOK_MAX_TEXT);
    c.w = pool_take(t->pool);
    if (!c.w) return diag_set(dg, CAIRN_E_NOMEM, "no memory to encode %zu bytes", s.len);
    buf_init(&lossy, MEM_TEXT);
    if (!utf8_valid(s)) {
        put_lossy(s, &lossy);
        TRY_GOTO(buf_status(&lossy), out);
        s = buf_view(&lossy);
    }
    if (flags & TOK_ADD_SPECIAL) buf_put(ids, t->before, t->n_before * sizeof *t->before);
    if (enough < (SIZE_MAX - ids->len) / sizeof(int32_t))
        c.enough = ids->len + enough * sizeof(int32_t);
    TRY_GOTO(encode_all(&c, s), out);
    if (flags & TOK_ADD_SPECIAL) buf_put(ids, t->after, t->n_after * sizeof *t->after);
    st = buf_status(ids);
out:
    pool_give(t->pool, c.w);
    buf_deinit(&lossy);
    if (st == CAIRN_E_NOMEM) diag_set(dg, st, "no memory to encode %zu bytes", s.len);
    return st;
}

tok_special tok_specials(const tok *t)
{
    return t->special;
}

int32_t tok_vocab(const tok *t)
{
    return t->n;
}

int32_t tok_find(const tok *t, cairn_str spelling)
{
    char stack[256], *into = stack;
    uint32_t v;
    int32_t id = -1;

    if (map_get(&t->by_spelling, spelling, &v)) return (int32_t)v;
    if (!t->byte_level) return map_get(&t->by_key, spelling, &v) ? (int32_t)v : -1;
    if (spelling.len > TOK_MAX_PIECE || !utf8_valid(spelling)) return -1;
    if (spelling.len > sizeof stack) into = mem_alloc(spelling.len, MEM_TEXT);
    if (!into) return -1;
    const char *end = bytelevel_bytes(spelling, into);
    if (end && map_get(&t->by_key, (cairn_str){into, (size_t)(end - into)}, &v)) id = (int32_t)v;
    if (into != stack) mem_free(into);
    return id;
}

cairn_str tok_piece(const tok *t, int32_t id)
{
    return id >= 0 && id < t->n ? t->out[id] : (cairn_str){0};
}

size_t tok_longest_piece(const tok *t)
{
    return t->max_out;
}

bool tok_is_eos(const tok *t, int32_t id)
{
    return id >= 0 && id < t->n && t->flag[id] & TOK_F_EOS;
}

cairn_status tok_add_eos(tok *t, int32_t id)
{
    if (id < 0 || id >= t->n) return CAIRN_E_ARG;
    t->flag[id] |= TOK_F_EOS;
    return CAIRN_OK;
}
