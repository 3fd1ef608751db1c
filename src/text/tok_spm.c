/* Owns SentencePiece's merging as llama.cpp does it for GGUF vocabularies with scores: neighbours
   whose joined text is a piece merge, best score first, leftmost of equals; characters that are no
   piece become bytes. */
#include <string.h>

#include "text/heap.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

/* Higher scores first: a key that falls as the score rises. */
static uint32_t order_of(float score)
{
    uint32_t u;

    memcpy(&u, &score, sizeof u);
    return u & 0x80000000u ? u : ~u & 0x7FFFFFFFu;
}

static void push_pair(const tok *t, cairn_str word, const sym *s, int32_t i, buf *heap)
{
    uint32_t id;

    if (i < 0 || s[i].next < 0) return;
    /* sym.id is the byte offset here */
    cairn_str both = str_sub(word, s[i].id, s[i].len + s[s[i].next].len);
    if (both.len > t->max_text || !map_get(&t->by_key, both, &id)) return;
    uint64_t order = order_of((float)t->score[id]);
    heap_push(heap, (heap_item){order << 32 | (uint32_t)i, (uint32_t)both.len});
}

static void put_symbol(const tok *t, cairn_str c, buf *ids)
{
    uint32_t id;

    if (map_get(&t->by_key, c, &id)) {
        ids_put(ids, (int32_t)id);
        return;
    }
    for (size_t i = 0; i < c.len; i++) {
        int32_t byte = t->bpe.byte_id[(uint8_t)c.ptr[i]];
        if (byte < 0) byte = t->unk;
        if (byte >= 0) ids_put(ids, byte);
    }
}

static cairn_status merge(const tok *t, cairn_str word, work *w, buf *ids)
{
    heap_item top;
    size_t n = 0, len;
    uint32_t cp;

    buf_clear(&w->heap);
    buf_clear(&w->sym);
    for (size_t at = 0; at < word.len; at += len) {
        len = uc_next(word.ptr + at, &cp);
        sym x = {(uint32_t)at, (uint32_t)len, (int32_t)n - 1, (int32_t)n + 1};
        if (at + len == word.len) x.next = -1;
        buf_put(&w->sym, &x, sizeof x);
        n++;
    }
    TRY(buf_status(&w->sym));
    sym *s = (sym *)(void *)w->sym.ptr;
    for (size_t i = 0; i < n; i++) push_pair(t, word, s, (int32_t)i, &w->heap);
    while (heap_pop(&w->heap, &top)) {
        int32_t i = (int32_t)(top.key & 0xFFFFFFFF), next = s[i].next;
        if (!s[i].len || next < 0 || s[i].len + s[next].len != top.size) continue; /* stale */
        s[i].len = top.size;
        s[i].next = s[next].next;
        s[next].len = 0;
        if (s[i].next >= 0) s[s[i].next].prev = i;
        push_pair(t, word, s, s[i].prev, &w->heap);
        push_pair(t, word, s, i, &w->heap);
    }
    for (int32_t i = n ? 0 : -1; i >= 0; i = s[i].next)
        put_symbol(t, str_sub(word, s[i].id, s[i].len), ids);
    return buf_status(&w->heap);
}

cairn_status spm_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    cairn_status st = merge(t, word, w, ids);

    return st == CAIRN_OK ? st : diag_set(dg, st, "encoding a word of %zu bytes", word.len);
}
