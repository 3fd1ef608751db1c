/* Owns the reading of SentencePiece's .model files: a protobuf of pieces with scores, the trainer's and
   the normalizer's settings.  BPE and Unigram models are encoded as the library encodes them; its
   other two kinds (words, characters) are refused by name.  Every length is checked; unknown fields
   are skipped, as protobuf wants it. */
#include "text/pb.h"
#include "text/tok_config.h"

enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE };
enum { UNIGRAM = 1, BPE };

typedef struct loader {
    tok *t;
    const char *where;
    cairn_diag *dg;
    int32_t n;
    int64_t model; /* UNIGRAM … */
    bool bytes, suffix;
    bool prefix, squeeze, escape;
    cairn_str map, unk_surface;
    int64_t unk, bos, eos, pad;
} loader;

static cairn_status corrupt(loader *l)
{
    return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: found other bytes; expected a SentencePiece model",
                    l->where);
}

static cairn_status no_memory(loader *l)
{
    return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static cairn_status read_trainer(loader *l, cairn_str s)
{
    pb_field f;

    for (pb_reader r = {s}; pb_next(&r, &f);) {
        if (f.number == 3) l->model = f.value;
        if (f.number == 24) l->suffix = f.value != 0;
        if (f.number == 35) l->bytes = f.value != 0;
        if (f.number == 40) l->unk = (int32_t)f.value;
        if (f.number == 41) l->bos = (int32_t)f.value;
        if (f.number == 42) l->eos = (int32_t)f.value;
        if (f.number == 43) l->pad = (int32_t)f.value;
        if (f.number == 44) l->unk_surface = f.bytes;
        if (f.bad) return corrupt(l);
    }
    return CAIRN_OK;
}

static cairn_status read_normalizer(loader *l, cairn_str s)
{
    pb_field f;

    for (pb_reader r = {s}; pb_next(&r, &f);) {
        if (f.number == 2) l->map = f.bytes;
        if (f.number == 3) l->prefix = f.value != 0;
        if (f.number == 4) l->squeeze = f.value != 0;
        if (f.number == 5) l->escape = f.value != 0;
        if (f.bad) return corrupt(l);
    }
    return CAIRN_OK;
}

/* Settings and the number of pieces. */
static cairn_status read_settings(loader *l, cairn_str s)
{
    pb_field f, g;

    for (pb_reader r = {s}; pb_next(&r, &f);) {
        if (f.bad) return corrupt(l);
        if (f.number == 1 && ++l->n > TOK_MAX_VOCAB) return corrupt(l);
        if (f.number == 2) TRY(read_trainer(l, f.bytes));
        if (f.number == 3) TRY(read_normalizer(l, f.bytes));
        if (f.number != 5) continue;
        for (pb_reader q = {f.bytes}; pb_next(&q, &g);)
            if (g.bad || (g.number == 2 && g.bytes.len))
                return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                                "%s: found a denormalizer; expected none", l->where);
    }
    if (l->n == 0) return corrupt(l);
    if (l->model != UNIGRAM && l->model != BPE)
        return diag_set(l->dg, CAIRN_E_UNSUPPORTED, "%s: model_type %lld, expected UNIGRAM or BPE",
                        l->where, (long long)l->model);
    return CAIRN_OK;
}

/* U+2581 → space */
static cairn_status set_out(loader *l, int32_t id)
{
    tok *t = l->t;
    cairn_str s = t->text[id];
    char *p = arena_alloc(&t->mem, s.len + 1);
    size_t n = 0;

    if (!p) return no_memory(l);
    for (size_t i = 0; i < s.len; i++) {
        if (str_starts(str_sub(s, i, s.len - i), STR_LIT("\xE2\x96\x81"))) {
            p[n++] = ' ';
            i += 2;
        } else {
            p[n++] = s.ptr[i];
        }
    }
    t->out[id] = (cairn_str){p, n};
    return CAIRN_OK;
}

static cairn_status set_type(loader *l, int32_t id, int64_t type)
{
    tok *t = l->t;
    uint8_t byte;

    if (type != NORMAL) t->flag[id] |= TOK_F_UNSCORED;
    if (type == UNUSED) t->flag[id] |= l->model == UNIGRAM ? TOK_F_UNREACHABLE : 0;
    if (type == CONTROL || type == UNKNOWN || type == BYTE) t->flag[id] |= TOK_F_UNREACHABLE;
    if (type == CONTROL) {
        t->flag[id] |= TOK_F_SPECIAL;
        t->out[id] = t->text[id];
        return CAIRN_OK;
    }
    if (type == UNKNOWN) {
        t->out[id] = tok_copy(t, l->unk_surface);
        return t->out[id].ptr ? CAIRN_OK : no_memory(l);
    }
    if (type == USER && t->text[id].len && trie_add(&t->keep, t->text[id], (uint32_t)id))
        return no_memory(l);
    if (type != BYTE || !tok_byte_piece(t->text[id], &byte)) return set_out(l, id);
    t->flag[id] |= TOK_F_BYTE;
    t->out[id] = tok_copy(t, (cairn_str){(const char *)&byte, 1});
    return t->out[id].ptr ? CAIRN_OK : no_memory(l);
}

/* SentencePiece's own for user-defined pieces: above what any other pieces of the same bytes have, since those
   score below zero. */
static double user_score(size_t n_bytes)
{
    return (double)(float)(0.1 * (double)((int64_t)n_bytes - 1));
}

static cairn_status read_piece(loader *l, int32_t id, cairn_str s)
{
    tok *t = l->t;
    int64_t type = NORMAL;
    cairn_str text = {0};
    pb_field f;

    for (pb_reader r = {s}; pb_next(&r, &f);) {
        if (f.number == 1) text = f.bytes;
        if (f.number == 2) t->score[id] = (double)pb_float(&f);
        if (f.number == 3) type = f.value;
        if (f.bad) return corrupt(l);
    }
    if (!(t->score[id] > -1e30 && t->score[id] < 1e30))
        return diag_set(l->dg, CAIRN_E_CORRUPT,
                        "%s: the score of piece %d is no number; expected a finite one", l->where,
                        id);
    t->text[id] = tok_copy(t, text);
    if (!t->text[id].ptr) return no_memory(l);
    t->flag[id] |= TOK_F_USED;
    if (type == USER && l->model == UNIGRAM) t->score[id] = user_score(text.len);
    return set_type(l, id, type);
}

static cairn_status read_pieces(loader *l, cairn_str s)
{
    tok *t = l->t;
    int32_t id = 0;
    pb_field f;

    t->score = arena_calloc(&t->mem, (size_t)t->n, sizeof *t->score);
    if (!t->score) return no_memory(l);
    for (pb_reader r = {s}; pb_next(&r, &f);)
        if (f.number == 1) TRY(read_piece(l, id++, f.bytes));
    return CAIRN_OK;
}

static cairn_status set_steps(loader *l)
{
    tok *t = l->t;
    norm_step s = {.kind = NORM_SPM,
                   .left = l->prefix && !l->suffix,
                   .right = l->prefix && l->suffix,
                   .squeeze = l->squeeze,
                   .escape = l->escape,
                   .keep = &t->keep};

    TRY(charsmap_init(&s.map, l->map, &t->mem, l->where, l->dg));
    t->norm = arena_calloc(&t->mem, 1, sizeof *t->norm);
    if (!t->norm) return no_memory(l);
    t->norm[t->n_norm++] = s;
    t->dec.bos_space = l->squeeze ? TOK_BOS_EACH : l->prefix ? TOK_BOS_ONCE : TOK_BOS_KEEP;
    t->dec.each_byte = true;
    return CAIRN_OK;
}

static int32_t in_vocab(const loader *l, int64_t id)
{
    return id >= 0 && id < l->n ? (int32_t)id : -1;
}

static cairn_status build(loader *l, cairn_str s, json_val config)
{
    TRY(read_settings(l, s));
    TRY(tok_new(l->n, &l->t, l->dg));
    tok *t = l->t;
    TRY(read_pieces(l, s));
    TRY(set_steps(l));
    TRY(tok_index(t, l->where, "pieces", l->dg));
    t->unk = t->special.unk = in_vocab(l, l->unk);
    t->special.bos = in_vocab(l, l->bos);
    t->special.eos = in_vocab(l, l->eos);
    t->special.pad = in_vocab(l, l->pad);
    t->bpe.byte_fallback = l->bytes;
    t->bpe.fuse_unk = true;
    t->short_sums = true;
    TRY(config_added(t, config, l->where, l->dg));
    t->word = l->model == BPE ? spm_word : unigram_word;
    TRY(l->model == BPE ? bpe_finish(t, l->dg) : unigram_finish(t, l->where, l->dg));
    /* What the families do that ship such files: Llama's begin texts, T5's end them. */
    return config_specials(t, config, l->model == BPE, l->model == UNIGRAM, l->dg);
}

cairn_status tok_open_sentencepiece(cairn_str model, cairn_str config, const char *where, tok **out,
                                    cairn_diag *dg)
{
    loader l = {.where = where,
                .dg = dg,
                .model = UNIGRAM,
                .prefix = true,
                .squeeze = true,
                .escape = true,
                .bos = 1,
                .eos = 2,
                .pad = -1,
                .unk_surface = STR_LIT(" \xE2\x81\x87 ")};
    json_doc *doc = NULL;
    cairn_status st = config_parse(config, where, &doc, dg);

    if (st == CAIRN_OK) st = build(&l, model, doc ? json_root(doc) : (json_val){0});
    json_free(doc);
    if (st == CAIRN_OK)
        *out = l.t;
    else
        tok_close(l.t);
    return st;
}
