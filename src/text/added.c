/* Owns the trie of added tokens and the cutting of a text at them, leftmost then longest, without
   overlap, as the tokenizers package does.  A match that may not count (a special token that is not
   to be parsed, a part of a word) still uses up its text. */
#include "text/tok_priv.h"
#include "text/uchar.h"

void trie_deinit(trie *t)
{
    mem_free(t->node);
    *t = (trie){0};
}

static cairn_status new_node(trie *t, uint8_t byte, uint32_t *out)
{
    if (t->n > TOK_MAX_ADDED) return CAIRN_E_LIMIT;
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? t->cap * 2 : 256;
        trie_node *p = mem_realloc(t->node, cap * sizeof *p, MEM_TEXT);
        if (!p) return CAIRN_E_NOMEM;
        t->node = p;
        t->cap = cap;
    }
    if (t->n == 0) t->node[t->n++] = (trie_node){0}; /* 0 means none */
    *out = t->n;
    t->node[t->n++] = (trie_node){.byte = byte};
    return CAIRN_OK;
}

uint32_t trie_child(const trie *t, uint32_t node, uint8_t byte)
{
    uint32_t c = t->node[node].child;

    while (c && t->node[c].byte != byte) c = t->node[c].sibling;
    return c;
}

cairn_status trie_add(trie *t, cairn_str text, uint32_t value)
{
    uint32_t at = 0, next;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t b = (uint8_t)text.ptr[i];
        next = i == 0 ? t->root[b] : trie_child(t, at, b);
        if (!next) {
            TRY(new_node(t, b, &next));
            if (i == 0) {
                if (t->n_first < TRIE_FIRST) t->first[t->n_first] = b;
                t->n_first++;
                t->root[b] = next;
            } else {
                t->node[next].sibling = t->node[at].child;
                t->node[at].child = next;
            }
        }
        at = next;
    }
    if (at && !t->node[at].match) t->node[at].match = value + 1;
    return CAIRN_OK;
}

size_t trie_longest(const trie *t, cairn_str s, size_t at, uint32_t *value)
{
    uint32_t node = t->root[(uint8_t)s.ptr[at]];
    size_t best = 0;

    for (size_t i = at + 1; node; i++) {
        if (t->node[node].match) {
            best = i - at;
            *value = t->node[node].match - 1;
        }
        if (i >= s.len) break;
        node = trie_child(t, node, (uint8_t)s.ptr[i]);
    }
    return best;
}

static bool inside_word(cairn_str s, size_t from, size_t to)
{
    uint32_t cp;

    if (from > 0) {
        uc_next(s.ptr + uc_prev(s.ptr, from), &cp);
        if (uc_is_word(cp)) return true;
    }
    if (to < s.len) {
        uc_next(s.ptr + to, &cp);
        if (uc_is_word(cp)) return true;
    }
    return false;
}

static bool is_blank(const char *p, size_t *len)
{
    uint32_t cp;

    *len = uc_next(p, &cp);
    return uc_class(cp) & (UC_SPACE | UC_NEWLINE);
}

/* White space around a match goes with it, but not what an earlier match took. */
static void widen(const added *a, cairn_str s, size_t floor, size_t *from, size_t *to)
{
    size_t len;

    while (a->lstrip && *from > floor && is_blank(s.ptr + uc_prev(s.ptr, *from), &len))
        *from = uc_prev(s.ptr, *from);
    while (a->rstrip && *to < s.len && is_blank(s.ptr + *to, &len)) *to += len;
}

static void put_piece(buf *out, size_t from, size_t to, int32_t id)
{
    piece p = {{(uint32_t)from, (uint32_t)(to - from)}, id};

    buf_add(out, &p, sizeof p);
}

/* Where each first byte of the trie comes next.  Mostly there are few, and none is near. */
typedef struct ahead {
    const trie *t;
    cairn_str s;
    size_t at[TRIE_FIRST];
} ahead;

/* The first place from `at` on where an entry may begin; the end if none. */
static size_t next_first(ahead *a, size_t at)
{
    const trie *t = a->t;
    size_t best = a->s.len;

    if (t->n_first > TRIE_FIRST) {
        while (at < a->s.len && !t->root[(uint8_t)a->s.ptr[at]]) at++;
        return at;
    }
    for (uint32_t i = 0; i < t->n_first; i++) {
        if (a->at[i] < at || at == 0) {
            const char *p = memchr(a->s.ptr + at, t->first[i], a->s.len - at);
            a->at[i] = p ? (size_t)(p - a->s.ptr) : a->s.len;
        }
        if (a->at[i] < best) best = a->at[i];
    }
    return best;
}

cairn_status added_cut(const trie *t, const added *list, cairn_str s, bool parse_special, buf *out)
{
    ahead next = {.t = t, .s = s};
    size_t done = 0, at = 0;

    while (t->n && at < s.len) {
        uint32_t v = 0;
        at = next_first(&next, at);
        if (at == s.len) break;
        size_t len = trie_longest(t, s, at, &v);
        if (!len) {
            at++;
            continue;
        }
        const added *a = &list[v];
        size_t from = at, to = at + len;
        at = to;
        if (a->special && !parse_special) continue;
        if (a->single_word && inside_word(s, from, to)) continue;
        widen(a, s, done, &from, &to);
        if (a->lstrip && from < done) from = done; /* what the one before took is no part of it */
        if (from == to) continue;
        if (done < from) put_piece(out, done, from, -1);
        put_piece(out, from, to, a->id);
        done = to;
    }
    if (done < s.len) put_piece(out, done, s.len, -1);
    return buf_status(out);
}
