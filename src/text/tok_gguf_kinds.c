/* Owns the reading of the GGUF vocabularies that are neither BPE nor SentencePiece's merging: BERT's
   word pieces, T5's Unigram, RWKV's and PLaMo 2's tries.  tok_gguf.c has read the pieces. */
#include "text/tok_gguf.h"

/* Words begin with U+2581 here, where the original's other pieces begin with ##. */
cairn_status gguf_read_wpm(gguf_loader *l)
{
    tok *t = l->t;
    bool lower = meta_bool(l->v, "tokenizer.ggml.normalizer.lowercase", true);
    norm_step norm[4] = {{.kind = NORM_BERT, .clean = true, .chinese = true}};
    size_t n = 1;

    if (meta_bool(l->v, "tokenizer.ggml.normalizer.strip_accents", lower)) {
        norm[n++] = (norm_step){.kind = NORM_NFD};
        norm[n++] = (norm_step){.kind = NORM_STRIP_ACCENTS, .bert = true};
    }
    if (lower) norm[n++] = (norm_step){.kind = NORM_LOWERCASE};
    t->norm = arena_calloc(&t->mem, n, sizeof *t->norm);
    t->pre = arena_calloc(&t->mem, 3, sizeof *t->pre);
    if (!t->norm || !t->pre) return gguf_no_memory(l);
    for (; t->n_norm < n; t->n_norm++) {
        t->norm[t->n_norm] = norm[t->n_norm];
        if (norm_prepare(&t->norm[t->n_norm], &t->mem) != CAIRN_OK) return gguf_no_memory(l);
    }
    t->pre[t->n_pre++] = (pre_step){.kind = PRE_SPACE, .behavior = PRE_REMOVED};
    t->pre[t->n_pre++] = (pre_step){.kind = PRE_PUNCTUATION, .behavior = PRE_ISOLATED};
    t->pre[t->n_pre++] = (pre_step){.kind = PRE_PREFIX, .lit = STR_LIT("\xE2\x96\x81")};
    t->max_word_chars = SIZE_MAX;
    t->word = wordpiece_word;
    t->dec.strip = STR_LIT(" ");
    t->dec.strip_left = 1;
    return CAIRN_OK;
}

/* The map is an array of int8 or uint8. */
static cairn_status read_map(gguf_loader *l, charsmap *out)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    meta arr, m;
    buf bytes;
    cairn_status st = CAIRN_OK;

    if (!meta_get(l->v, key, &arr)) return CAIRN_OK;
    if (arr.type != META_ARR || arr.u.n > (size_t)64 << 20)
        return diag_set(l->dg, CAIRN_E_CORRUPT,
                        "%s: `%s` is something else; expected an array of bytes", l->where, key);
    buf_init(&bytes, MEM_TEXT);
    for (size_t i = 0; i < arr.u.n && st == CAIRN_OK; i++) {
        if (!meta_at(l->v, &arr, i, &m) || m.type != META_INT || m.u.i < -128 || m.u.i > 255)
            st = diag_set(l->dg, CAIRN_E_CORRUPT,
                          "%s: `%s`[%zu] is out of range; expected 0 to 255", l->where, key, i);
        else
            buf_byte(&bytes, (char)(uint8_t)m.u.i);
    }
    if (st == CAIRN_OK) st = buf_status(&bytes);
    if (st == CAIRN_OK) st = charsmap_init(out, buf_view(&bytes), &l->t->mem, l->where, l->dg);
    buf_deinit(&bytes);
    return st;
}

cairn_status gguf_read_ugm(gguf_loader *l)
{
    tok *t = l->t;
    norm_step s = {.kind = NORM_SPM,
                   .left = meta_bool(l->v, "tokenizer.ggml.add_space_prefix", false),
                   .squeeze = meta_bool(l->v, "tokenizer.ggml.remove_extra_whitespaces", false),
                   .escape = true,
                   .keep = &t->keep};

    TRY(gguf_read_scores(l));
    TRY(read_map(l, &s.map));
    t->norm = arena_calloc(&t->mem, 1, sizeof *t->norm);
    if (!t->norm) return gguf_no_memory(l);
    t->norm[t->n_norm++] = s;
    for (int32_t id = 0; id < t->n; id++) {
        int64_t type = gguf_type_at(l, (size_t)id);
        if (type == GGUF_USER) {
            t->score[id] = 0;
            TRY(trie_add(&t->keep, t->text[id], (uint32_t)id));
        }
        if (type != GGUF_NORMAL) t->flag[id] |= TOK_F_UNSCORED;
        if (type != GGUF_NORMAL && type != GGUF_USER && type != GGUF_UNUSED)
            t->flag[id] |= TOK_F_UNREACHABLE;
    }
    t->dec.strip = STR_LIT(" ");
    t->dec.strip_left = s.left;
    t->unk = (int32_t)meta_int(l->v, "tokenizer.ggml.unknown_token_id", 2);
    if (t->unk < 0 || t->unk >= t->n) t->unk = -1;
    t->word = unigram_word;
    return unigram_finish(t, l->where, l->dg);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \t \n \r \xNN, and a backslash before any other character. */
cairn_status gguf_rwkv_piece(gguf_loader *l, int32_t id)
{
    tok *t = l->t;
    cairn_str s = t->text[id];
    char *p = arena_alloc(&t->mem, s.len + 1);
    size_t n = 0;

    if (!p) return gguf_no_memory(l);
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '\\' && i + 1 < s.len) {
            c = s.ptr[++i];
            int a = c == 'x' && i + 2 < s.len ? hex_digit(s.ptr[i + 1]) : -1;
            int b = a >= 0 ? hex_digit(s.ptr[i + 2]) : -1;
            if (b >= 0) i += 2;
            c = b >= 0 ? (char)(uint8_t)(a * 16 + b)
                       : (char)(c == 't'   ? '\t'
                                : c == 'n' ? '\n'
                                : c == 'r' ? '\r'
                                           : c);
        }
        p[n++] = c;
    }
    t->out[id] = (cairn_str){p, n};
    if (gguf_type_at(l, (size_t)id) == GGUF_CONTROL) t->flag[id] |= TOK_F_SPECIAL;
    return CAIRN_OK;
}

/* All pieces in one trie; of equal ones the last counts. */
static cairn_status fill_trie(gguf_loader *l, const cairn_str *text)
{
    tok *t = l->t;

    for (int32_t id = t->n - 1; id >= 0; id--)
        if (text[id].len && !(t->flag[id] & TOK_F_BYTE) &&
            trie_add(&t->pieces, text[id], (uint32_t)id) != CAIRN_OK)
            return gguf_no_memory(l);
    return CAIRN_OK;
}

cairn_status gguf_read_rwkv(gguf_loader *l)
{
    l->t->dec.byte_level = true; /* bytes are joined before they are text */
    l->t->word = rwkv_word;
    return fill_trie(l, l->t->out);
}

cairn_status gguf_read_plamo2(gguf_loader *l)
{
    tok *t = l->t;

    TRY(gguf_read_scores(l));
    TRY(fill_trie(l, t->text));
    t->word = plamo2_word;
    TRY(bpe_finish(t, l->dg));
    for (int i = 0; i < 256; i++)
        if (t->bpe.byte_id[i] < 0)
            return diag_set(l->dg, CAIRN_E_CORRUPT,
                            "%s: the piece <0x%02X> is missing; expected one for each byte",
                            l->where, (unsigned)i);
    return CAIRN_OK;
}
