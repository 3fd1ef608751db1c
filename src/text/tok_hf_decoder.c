/* Owns the reading of tokenizer.json's decoder.  What decoders do to each piece alone is done here,
   once for the whole vocabulary; what needs neighbours becomes a few switches that detok.c obeys.  A
   chain whose order cannot be had so is refused by name. */
#include <string.h>

#include "text/ascii.h"
#include "text/tok_hf.h"
#include "text/tok_priv.h"

typedef struct strip_op {
    cairn_str content;
    int64_t start, stop;
} strip_op;

typedef struct loader {
    tok *t;
    const char *where;
    cairn_diag *dg;
    norm_step op[TOK_MAX_STEPS]; /* Replace, or Strip when from.ptr is NULL: strip[i] */
    strip_op strip[TOK_MAX_STEPS];
    size_t n_op;
    size_t n_out;      /* bytes of what pieces became */
    char *room;        /* where the next of them goes; NULL: to be copied */
    bool bytes, fused; /* a ByteFallback, a Fuse came before */
    cairn_str word_prefix;
    bool cleanup;
} loader;

static cairn_status misplaced(loader *l, cairn_str type)
{
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: decoder \"%.*s\" at this place of the chain; expected another order",
                    l->where, STR_ARG(type));
}

static cairn_status add_replace(loader *l, cairn_str from, cairn_str to, regex *re)
{
    if (l->n_op == TOK_MAX_STEPS) {
        regex_free(re);
        return diag_set(l->dg, CAIRN_E_LIMIT, "%s: found more decoders than expected, %d", l->where,
                        TOK_MAX_STEPS);
    }
    l->op[l->n_op++] = (norm_step){.kind = NORM_REPLACE, .from = from, .to = to, .re = re};
    return CAIRN_OK;
}

static cairn_status dec_replace(loader *l, json_val v, cairn_str type)
{
    cairn_str lit, pattern, to;
    regex *re;

    if (l->bytes || l->fused) return misplaced(l, type);
    TRY(hf_content(l->t, v, "content", l->where, &to, l->dg));
    TRY(hf_pattern(l->t, v, l->where, &lit, &re, &pattern, l->dg));
    return add_replace(l, lit, to, re);
}

static cairn_status dec_strip(loader *l, json_val v, cairn_str type)
{
    strip_op s = {.content = json_str(json_get(v, "content"))};
    tok_decoder *d = &l->t->dec;

    TRY(json_want_int(v, "start", 0, 1 << 20, &s.start, l->dg));
    TRY(json_want_int(v, "stop", 0, 1 << 20, &s.stop, l->dg));
    s.content = tok_copy(l->t, s.content);
    if (!s.content.ptr || s.content.len == 0 || s.content.len > 4) return misplaced(l, type);
    if (l->fused) {
        if (d->strip.ptr) return misplaced(l, type);
        d->strip = s.content;
        d->strip_left = (uint32_t)s.start;
        d->strip_right = (uint32_t)s.stop;
        return CAIRN_OK;
    }
    if (l->bytes || l->n_op == TOK_MAX_STEPS) return misplaced(l, type);
    l->strip[l->n_op] = s;
    l->op[l->n_op++] = (norm_step){.kind = NORM_STRIP};
    return CAIRN_OK;
}

static cairn_status dec_metaspace(loader *l, json_val v, cairn_str type)
{
    tok_decoder *d = &l->t->dec;

    if (l->n_op || l->bytes || l->fused) return misplaced(l, type);
    d->space = tok_copy(l->t, json_str(json_get(v, "replacement")));
    d->drop_first = !str_is(json_str(json_get(v, "prepend_scheme")), "never");
    return add_replace(l, d->space, STR_LIT(" "), NULL);
}

/* The reference's table, in its order. */
static const char *const tidy[][2] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

/* Equal neighbours are one; the padding is nothing, the delimiter a space. */
static cairn_status dec_ctc(loader *l, json_val v)
{
    tok *t = l->t;
    const cairn_str pad = tok_copy(t, json_str(json_get(v, "pad_token")));
    const cairn_str word = tok_copy(t, json_str(json_get(v, "word_delimiter_token")));

    if (!pad.ptr || !word.ptr) return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a decoder");
    t->dec.dedup = true;
    TRY(add_replace(l, pad, STR_LIT(""), NULL));
    if (!json_bool(json_get(v, "cleanup"), true)) return CAIRN_OK;
    for (size_t i = 0; i < sizeof tidy / sizeof tidy[0]; i++)
        TRY(add_replace(l, str_of(tidy[i][0]), str_of(tidy[i][1]), NULL));
    return add_replace(l, word, STR_LIT(" "), NULL);
}

static cairn_status one_decoder(void *ctx, json_val v, cairn_str type)
{
    loader *l = ctx;
    tok_decoder *d = &l->t->dec;
    bool fresh = !l->n_op && !l->bytes && !l->fused && !d->byte_level && !d->word_piece;

    if (str_is(type, "Fuse")) {
        l->fused = true;
        return CAIRN_OK;
    }
    if (d->byte_level || d->word_piece) return misplaced(l, type);
    if (str_is(type, "Replace")) return dec_replace(l, v, type);
    if (str_is(type, "Strip")) return dec_strip(l, v, type);
    if (str_is(type, "Metaspace")) return dec_metaspace(l, v, type);
    if (str_is(type, "ByteFallback")) {
        if (l->bytes || l->fused) return misplaced(l, type);
        l->bytes = d->byte_runs = true;
        return CAIRN_OK;
    }
    if (str_is(type, "ByteLevel")) {
        d->byte_level = true;
        return fresh ? CAIRN_OK : misplaced(l, type);
    }
    if (str_is(type, "WordPiece")) {
        d->word_piece = true;
        l->word_prefix = json_str(json_get(v, "prefix"));
        l->cleanup = json_bool(json_get(v, "cleanup"), true);
        return fresh ? CAIRN_OK : misplaced(l, type);
    }
    if (str_is(type, "CTC") && fresh) return dec_ctc(l, v);
    if (str_is(type, "BPEDecoder") && fresh) {
        d->word_end = tok_copy(l->t, json_str(json_get(v, "suffix")));
        return d->word_end.ptr ? CAIRN_OK : CAIRN_E_NOMEM;
    }
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: decoder of type \"%.*s\"; expected one that is known", l->where,
                    STR_ARG(type));
}

static cairn_str apply_strip(const strip_op *op, cairn_str s)
{
    cairn_str c = op->content;

    for (int64_t i = 0; i < op->start && str_starts(s, c); i++)
        s = str_sub(s, c.len, s.len - c.len);
    for (int64_t i = 0; i < op->stop && str_ends(s, c); i++) s.len -= c.len;
    return s;
}

/* A WordPiece piece that is not the first: glued on, or after a space. */
static cairn_status word_piece(loader *l, cairn_str s, buf *x, buf *y, cairn_str *out)
{
    norm_step step[sizeof tidy / sizeof tidy[0]];
    buf with_space;
    size_t n = sizeof tidy / sizeof tidy[0];
    cairn_status st = CAIRN_OK;

    if (str_starts(s, l->word_prefix) && l->word_prefix.len) {
        *out = str_sub(s, l->word_prefix.len, s.len - l->word_prefix.len);
        return CAIRN_OK;
    }
    buf_init(&with_space, MEM_TEXT);
    buf_byte(&with_space, ' ');
    buf_str(&with_space, s);
    for (size_t i = 0; i < n; i++)
        step[i] =
            (norm_step){.kind = NORM_REPLACE, .from = str_of(tidy[i][0]), .to = str_of(tidy[i][1])};
    TRY_GOTO(buf_status(&with_space), out);
    TRY_GOTO(norm_run(step, l->cleanup ? n : 0, buf_view(&with_space), x, y, out, l->dg), out);
    *out = tok_copy(l->t, *out);
out:
    buf_deinit(&with_space);
    return st;
}

/* Most decoders replace one text by another that is not longer: then what the pieces become is written
   where it stays, with SLACK bytes more, so that a few bytes are copied as SLACK. */
enum { SLACK = 16, BYTE_PIECE = 6 /* of <0x0A> */ };

static cairn_status make_room(loader *l)
{
    const norm_step *op = &l->op[0];
    const tok *t = l->t;
    size_t n = 0;

    if (l->n_op != 1 || op->kind != NORM_REPLACE || op->re || t->dec.word_piece) return CAIRN_OK;
    if (!op->from.len || op->to.len > op->from.len) return CAIRN_OK;
    for (int32_t id = 0; id < t->n; id++) n += t->text[id].len;
    l->room = arena_alloc(&l->t->mem, n + SLACK);
    return l->room ? CAIRN_OK : CAIRN_E_NOMEM;
}

/* The first place in s, whose end is given, where the text to be replaced may begin. */
static inline const char *find_start(const loader *l, const char *p, const char *end)
{
    byte16 x;

    if (!l->t->texts || end - p > SLACK) {
        const char *at = p < end ? memchr(p, l->op[0].from.ptr[0], (size_t)(end - p)) : NULL;
        return at ? at : end;
    }
    memcpy(&x, p, sizeof x);
    const uint64_t hits =
        ascii_bits((lane16)(x == (uint8_t)l->op[0].from.ptr[0])) | 1u << (end - p);
    return p + __builtin_ctzll(hits);
}

/* n bytes of a piece, or more where they are few. */
static inline void copy_part(const loader *l, char *to, const char *from, size_t n)
{
    if (l->t->texts && n <= SLACK)
        memcpy(to, from, SLACK);
    else
        memcpy(to, from, n);
}

/* The step of make_room: s itself where it has nothing to replace. */
static cairn_str replace_short(const loader *l, cairn_str s)
{
    const cairn_str from = l->op[0].from, with = l->op[0].to;
    const char *done = s.ptr, *const end = s.ptr + s.len;
    char *to = l->room;

    for (const char *p = s.ptr; (p = find_start(l, p, end)) < end;) {
        if ((size_t)(end - p) < from.len || memcmp(p, from.ptr, from.len) != 0) {
            p++;
            continue;
        }
        copy_part(l, to, done, (size_t)(p - done));
        to += p - done;
        for (size_t i = 0; i < with.len; i++) *to++ = with.ptr[i];
        done = p += from.len;
    }
    if (done == s.ptr) return s;
    copy_part(l, to, done, (size_t)(end - done));
    to += end - done;
    return (cairn_str){l->room, (size_t)(to - l->room)};
}

/* Most pieces have nothing that make_room's step replaces, or have it once, at their start. */
static inline bool easy_out(loader *l, cairn_str s, cairn_str *out)
{
    const cairn_str from = l->op[0].from, with = l->op[0].to;
    const char *end = s.ptr + s.len, *p;

    if (!l->room) return false;
    p = find_start(l, s.ptr, end);
    *out = s;
    if (p == s.ptr && s.len >= from.len && memcmp(p, from.ptr, from.len) == 0) {
        const size_t n = s.len - from.len;
        p = find_start(l, s.ptr + from.len, end);
        *out = (cairn_str){l->room, with.len + n};
        for (size_t i = 0; i < with.len; i++) l->room[i] = with.ptr[i];
        copy_part(l, l->room + with.len, s.ptr + from.len, n);
    }
    if (p != end || (l->bytes && out->len == BYTE_PIECE)) return false;
    if (out->ptr == l->room) {
        l->room += out->len;
        l->n_out += out->len;
    }
    return l->n_out <= TOK_MAX_OUT;
}

static cairn_status piece_out(loader *l, int32_t id, buf *x, buf *y)
{
    tok *t = l->t;
    cairn_str s = t->text[id];
    uint8_t byte;

    if (t->dec.word_piece) {
        TRY(word_piece(l, s, x, y, &s));
    } else if (l->room) {
        s = replace_short(l, s);
    } else {
        for (size_t i = 0; i < l->n_op; i++) {
            if (l->op[i].kind == NORM_STRIP) {
                s = apply_strip(&l->strip[i], s);
                continue;
            }
            if (!l->op[i].re && str_find(s, l->op[i].from, 0) == SIZE_MAX) continue;
            /* A result may lie in x; the next step then writes y. */
            TRY(norm_run(&l->op[i], 1, s, s.ptr == x->ptr ? y : x, x, &s, l->dg));
            if (s.len > TOK_MAX_PIECE)
                return diag_set(l->dg, CAIRN_E_LIMIT,
                                "%s: decoder: found piece %d to grow to %zu bytes; expected at "
                                "most %d",
                                l->where, (int)id, s.len, TOK_MAX_PIECE);
        }
    }
    if (l->bytes && tok_byte_piece(s, &byte)) {
        t->flag[id] |= TOK_F_BYTE;
        s = (cairn_str){(const char *)&byte, 1};
    }
    if (s.ptr >= t->text[id].ptr && s.ptr <= t->text[id].ptr + t->text[id].len) {
        t->out[id] = s; /* a part of the spelling */
        return CAIRN_OK;
    }
    l->n_out += s.len;
    if (l->n_out > TOK_MAX_OUT)
        return diag_set(l->dg, CAIRN_E_LIMIT,
                        "%s: decoder: found pieces that become over %d bytes; expected fewer",
                        l->where, TOK_MAX_OUT);
    const bool in_room = l->room && s.ptr == l->room;
    if (in_room) l->room += s.len;
    t->out[id] = in_room || t->dec.word_piece ? s : tok_copy(t, s);
    return t->out[id].ptr ? CAIRN_OK : CAIRN_E_NOMEM;
}

cairn_status hf_decoder(tok *t, json_val v, const char *where, cairn_diag *dg)
{
    const hf_obj o = {v, where, "decoder", dg};
    loader *l = mem_calloc(1, sizeof *l, MEM_TEXT);
    buf x, y;
    cairn_status st = CAIRN_OK;

    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a decoder");
    buf_init(&x, MEM_TEXT);
    buf_init(&y, MEM_TEXT);
    l->t = t;
    l->where = where;
    l->dg = dg;
    if (hf_is_none(v))
        t->dec.spaced = true;
    else
        TRY_GOTO(hf_steps(&o, "decoders", one_decoder, l), out);
    TRY_GOTO(make_room(l), out);
    for (int32_t id = 0; id < t->n && !t->dec.byte_level; id++) {
        if (!(t->flag[id] & TOK_F_USED)) continue;
        if (!easy_out(l, t->text[id], &t->out[id])) TRY_GOTO(piece_out(l, id, &x, &y), out);
    }
out:
    for (size_t i = 0; i < l->n_op; i++) regex_free(l->op[i].re);
    mem_free(l);
    buf_deinit(&x);
    buf_deinit(&y);
    return st;
}
