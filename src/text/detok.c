/* Owns the way from ids to text, streamed: each id adds its bytes, and what is certainly text goes
   out.  Held back are the start of a character, a run of byte pieces whose decoder judges it whole,
   and what a Strip may still take from the end.  tok_decode is the same machine over all ids, so
   the two cannot differ. */
#include "text/detok.h"

#include <string.h>

#include "base/utf8.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

struct detok {
    const tok *t;
    bool keep_special;
    bool any;         /* an id was shown */
    bool begun;       /* SentencePiece: no more spaces to take from the start */
    int32_t last;     /* CTC: the id before */
    uint32_t to_drop; /* characters that may still be stripped at the start */
    buf run;          /* byte pieces, or the start of a character */
    buf tail;         /* what strip_right may take */
    cairn_str held;   /* BPEDecoder: the last piece from its first word_end on */
    size_t own;       /* where in the text the last piece begins, if what was held came before it */
    buf text;         /* the answer of the last call */
};

static void detok_init(detok *d, const tok *t, bool keep_special)
{
    *d = (detok){.t = t, .keep_special = keep_special, .to_drop = t->dec.strip_left};
    buf_init(&d->run, MEM_TEXT);
    buf_init(&d->tail, MEM_TEXT);
    buf_init(&d->text, MEM_TEXT);
}

static void detok_deinit(detok *d)
{
    buf_deinit(&d->run);
    buf_deinit(&d->tail);
    buf_deinit(&d->text);
}

cairn_status detok_new(const tok *t, bool keep_special, detok **out)
{
    detok *d = mem_alloc(sizeof *d, MEM_TEXT);

    if (!d) return CAIRN_E_NOMEM;
    detok_init(d, t, keep_special);
    cairn_status st = detok_reserve(d, 64);
    if (st != CAIRN_OK) {
        detok_free(d);
        return st;
    }
    *out = d;
    return CAIRN_OK;
}

void detok_free(detok *d)
{
    if (!d) return;
    detok_deinit(d);
    mem_free(d);
}

cairn_status detok_reserve(detok *d, size_t n)
{
    const tok *t = d->t;

    if (n > TOK_MAX_TEXT) return CAIRN_E_LIMIT;
    /* A held byte becomes at most the three of U+FFFD; a piece comes with at most a space. */
    TRY(buf_reserve(&d->run, n + t->max_out + 8));
    TRY(buf_reserve(&d->tail, (size_t)t->dec.strip_right * 4 + 8));
    return buf_reserve(&d->text, 3 * (d->run.len + n + t->max_out + 8) + d->tail.len);
}

size_t detok_bytes(const detok *d)
{
    return sizeof *d + d->run.cap + d->tail.cap + d->text.cap;
}

/* What detok_reserve asks for, n ids behind an empty run. */
uint64_t detok_worst_bytes(const tok *t, uint64_t n)
{
    const uint64_t run = n + t->max_out + 8, tail = (uint64_t)t->dec.strip_right * 4 + 8;
    return sizeof(detok) + 2 * (run + tail + 3 * run + tail);
}

/* Certain text, but for what the strips take. */
static void emit(detok *d, const char *p, size_t n)
{
    const tok_decoder *dec = &d->t->dec;
    cairn_str s = {p, n};

    while (d->to_drop && s.len && str_starts(s, dec->strip)) {
        s = str_sub(s, dec->strip.len, s.len - dec->strip.len);
        d->to_drop--;
    }
    if (s.len) d->to_drop = 0;
    if (!dec->strip_right) {
        buf_str(&d->text, s);
        return;
    }
    for (size_t at = 0, len; at < s.len; at += len) {
        uint32_t cp;
        cairn_str c = {s.ptr + at, len = uc_next(s.ptr + at, &cp)};
        if (!str_eq(c, dec->strip)) {
            buf_str(&d->text, buf_view(&d->tail));
            buf_clear(&d->tail);
            buf_str(&d->text, c);
            continue;
        }
        buf_str(&d->tail, c);
        if (d->tail.len <= dec->strip_right * dec->strip.len) continue;
        buf_str(&d->text, c); /* the oldest, which is equal */
        buf_cut(&d->tail, d->tail.len - c.len);
    }
}

static void emit_replacement(detok *d)
{
    emit(d, "\xEF\xBF\xBD", 3);
}

/* Bytes in d->run: characters go out, malformed parts as U+FFFD, an unfinished one stays unless
   `all`. */
static void emit_run_lossy(detok *d, bool all)
{
    const char *p = d->run.ptr;
    size_t n = d->run.len, at = 0;
    size_t keep = all || !n ? 0 : utf8_tail(buf_view(&d->run));

    while (at < n - keep) {
        uint32_t cp;
        int len = utf8_decode(p + at, n - keep - at, &cp);
        if (len > 0)
            emit(d, p + at, (size_t)len);
        else
            for (int i = d->t->dec.each_byte ? len : -1; i < 0; i++) emit_replacement(d);
        at += (size_t)(len > 0 ? len : -len);
    }
    if (at && n > at) memmove(d->run.ptr, d->run.ptr + at, n - at);
    buf_cut(&d->run, n - at);
}

/* A whole run of byte pieces: text, or one U+FFFD a byte. */
static void emit_run_strict(detok *d)
{
    size_t n = d->run.len;

    if (n && utf8_valid(buf_view(&d->run)))
        emit(d, d->run.ptr, n);
    else
        for (size_t i = 0; i < n; i++) emit_replacement(d);
    buf_clear(&d->run);
}

/* The first piece without its spaces, as Metaspace decodes it. */
static void emit_first(detok *d, int32_t id)
{
    cairn_str s = d->t->text[id], space = d->t->dec.space;

    for (size_t at = 0, len; at < s.len; at += len) {
        uint32_t cp;
        len = uc_next(s.ptr + at, &cp);
        if (!str_eq(str_sub(s, at, len), space)) emit(d, s.ptr + at, len);
    }
}

/* The held piece, each word_end as a space or, at the end of the text, as nothing. */
static void emit_held(detok *d, bool last)
{
    const cairn_str end = d->t->dec.word_end;
    size_t at = 0, next;

    if (!d->held.len) return;
    while ((next = str_find(d->held, end, at)) != SIZE_MAX) {
        emit(d, d->held.ptr + at, next - at);
        if (!last) emit(d, " ", 1);
        at = next + end.len;
    }
    emit(d, d->held.ptr + at, d->held.len - at);
    d->held = (cairn_str){0};
}

static void feed_words(detok *d, cairn_str s)
{
    size_t cut = str_find(s, d->t->dec.word_end, 0);

    emit_held(d, false);
    d->own = d->text.len + d->tail.len;
    if (cut == SIZE_MAX) cut = s.len;
    emit(d, s.ptr, cut);
    d->held = str_sub(s, cut, s.len - cut);
}

/* The models' vocabularies are padded: an id that no piece has is left out before any decoder sees it,
   as `tokenizers` does. */
static void feed(detok *d, int32_t id)
{
    const tok *t = d->t;
    const tok_decoder *dec = &t->dec;

    if (id >= t->n || !(t->flag[id] & TOK_F_USED)) return;
    cairn_str s = t->out[id];
    bool first = !d->any;

    if (t->flag[id] & TOK_F_SPECIAL && !d->keep_special) {
        if (dec->each_byte) emit_run_lossy(d, true); /* no text, but between two bytes */
        return;
    }
    if (dec->word_end.len) {
        d->any = true;
        feed_words(d, t->out[id]);
        return;
    }
    if (dec->dedup) { /* equal spellings count, not ids */
        bool again = d->any && str_eq(t->text[id], t->text[d->last]);
        d->last = id;
        d->any = true;
        if (!again) emit(d, s.ptr, s.len);
        return;
    }
    d->any = true;
    if (dec->byte_level) {
        buf_str(&d->run, s);
        emit_run_lossy(d, false);
        return;
    }
    if (t->flag[id] & TOK_F_BYTE) {
        d->begun = true;
        buf_str(&d->run, s);
        if (!dec->byte_runs) emit_run_lossy(d, false);
        return;
    }
    if (dec->byte_runs)
        emit_run_strict(d);
    else
        emit_run_lossy(d, true);
    d->own = d->text.len + d->tail.len;
    if (first && dec->drop_first) {
        emit_first(d, id);
        return;
    }
    if (!first && dec->spaced) emit(d, " ", 1);
    if (first && dec->word_piece) s = t->text[id];
    if (dec->bos_space != TOK_BOS_KEEP && !d->begun) {
        bool space = str_starts(t->text[id], STR_LIT("\xE2\x96\x81"));
        if (space) s = str_sub(s, 1, s.len - 1);
        d->begun = s.len || (space && dec->bos_space == TOK_BOS_ONCE);
    }
    emit(d, s.ptr, s.len);
}

static void finish(detok *d)
{
    emit_held(d, true);
    if (d->t->dec.byte_runs)
        emit_run_strict(d);
    else
        emit_run_lossy(d, true);
    buf_clear(&d->tail);
}

static cairn_status state(const detok *d)
{
    TRY(buf_status(&d->run));
    TRY(buf_status(&d->tail));
    return buf_status(&d->text);
}

cairn_status detok_feed(detok *d, int32_t id, cairn_str *text)
{
    if (id < 0) return CAIRN_E_ARG;
    buf_clear(&d->text);
    feed(d, id);
    TRY(state(d));
    *text = buf_view(&d->text);
    return CAIRN_OK;
}

cairn_status detok_end(detok *d, cairn_str *text)
{
    buf_clear(&d->text);
    finish(d);
    TRY(state(d));
    *text = buf_view(&d->text);
    return CAIRN_OK;
}

typedef struct spanner {
    detok d;
    size_t *spans;
    size_t n_open, at; /* ids whose end is not known, and where what is held will stand */
} spanner;

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t place(const detok *d)
{
    return d->text.len + d->tail.len;
}

/* What was held by the ids before i is text now, up to `end`.  A run of byte pieces gave each its byte of a
   character, or U+FFFD; else they share all of it. */
static void close_spans(spanner *s, size_t i, size_t end)
{
    const size_t n = s->n_open, len = end - s->at;
    const bool run = s->d.t->dec.byte_runs && end <= s->d.text.len;
    const bool bytes = run && len == n, lost = run && len == 3 * n;
    const char *p = s->d.text.ptr + s->at;

    s->n_open = 0;
    for (size_t k = 0; k < n; k++) {
        size_t *pair = &s->spans[2 * (i - n + k)];
        size_t from = lost ? 3 * k : k, to = lost ? from + 3 : from + 1;
        pair[1] = end;
        if (!bytes && !lost) continue;
        while (bytes && from > 0 && continues(p[from])) from--;
        while (bytes && to < len && continues(p[to])) to++;
        pair[0] = s->at + from;
        pair[1] = s->at + to;
    }
}

static void feed_span(spanner *s, size_t i, int32_t id)
{
    detok *d = &s->d;
    const size_t before = place(d);

    d->own = SIZE_MAX;
    feed(d, id);
    const size_t own = d->own, now = place(d);
    s->spans[2 * i] = own != SIZE_MAX ? own : before;
    if (s->n_open && now > s->at) {
        uint32_t cp;
        const bool shown = s->at < d->text.len; /* else a Strip may take it */
        const size_t len = shown ? uc_next(d->text.ptr + s->at, &cp) : now - s->at;
        close_spans(s, i, own != SIZE_MAX ? own : s->at + len);
    }
    if (d->run.len || d->held.len) {
        if (!s->n_open) s->at = now;
        s->n_open++;
    } else {
        s->spans[2 * i + 1] = now;
    }
}

cairn_status tok_spans(const tok *t, const int32_t *ids, size_t n, bool keep_special, size_t *spans,
                       cairn_diag *dg)
{
    spanner s = {.spans = spans};
    cairn_status st = CAIRN_OK;

    detok_init(&s.d, t, keep_special);
    for (size_t i = 0; i < n && st == CAIRN_OK; i++) {
        if (ids[i] < 0)
            st = diag_set(dg, CAIRN_E_ARG, "id %d at place %zu; expected 0 or more", ids[i], i);
        else
            feed_span(&s, i, ids[i]);
    }
    if (st == CAIRN_OK) {
        finish(&s.d);
        st = state(&s.d);
        close_spans(&s, n, s.d.text.len);
        for (size_t i = 0; i < 2 * n; i++)
            if (spans[i] > s.d.text.len) spans[i] = s.d.text.len;
    }
    detok_deinit(&s.d);
    return st;
}

cairn_status tok_decode(const tok *t, const int32_t *ids, size_t n, bool keep_special, buf *out,
                        cairn_diag *dg)
{
    detok d;
    cairn_status st = CAIRN_OK;

    detok_init(&d, t, keep_special);
    for (size_t i = 0; i < n && st == CAIRN_OK; i++) {
        if (ids[i] < 0)
            st = diag_set(dg, CAIRN_E_ARG, "id %d at place %zu; expected 0 or more", ids[i], i);
        else
            feed(&d, ids[i]);
    }
    if (st == CAIRN_OK) {
        finish(&d);
        st = state(&d);
        if (st != CAIRN_OK) diag_set(dg, st, "decoding %zu ids", n);
    }
    if (st == CAIRN_OK) {
        buf_str(out, buf_view(&d.text));
        st = buf_status(out);
    }
    detok_deinit(&d);
    return st;
}
