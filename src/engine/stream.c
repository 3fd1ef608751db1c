/* Stop strings by one Knuth-Morris-Pratt automaton each, fed byte by byte, so that token boundaries
   cannot matter: the string that is complete first wins; of those complete at the same byte, the
   longest.  Held back is the longest tail that may still become a stop string: the greatest state of
   the automata. */
#include "engine/stream.h"

#include <assert.h>
#include <string.h>

#include "base/diag.h"

enum { PIECE_BYTES = 4096 }; /* room for the longest text that one token releases */

static cairn_status add_stop(stream *s, cairn_str text, arena *a, cairn_diag *dg)
{
    stop_string *p = &s->stop[s->n_stop];
    if (text.len == 0 || text.len > CAIRN_MAX_STOP_BYTES)
        return diag_set(dg, CAIRN_E_ARG, "stop string %d has %zu bytes; expected 1 to %d",
                        s->n_stop, text.len, CAIRN_MAX_STOP_BYTES);
    p->len = (int32_t)text.len;
    p->text = arena_strdup(a, text);
    p->fail = arena_calloc(a, text.len, sizeof *p->fail);
    if (!p->text || !p->fail) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a stop string");
    for (int32_t i = 1, k = 0; i < p->len; i++) {
        while (k > 0 && p->text[i] != p->text[k]) k = p->fail[k - 1];
        if (p->text[i] == p->text[k]) k++;
        p->fail[i] = k;
    }
    s->n_stop++;
    return CAIRN_OK;
}

cairn_status stream_init(stream *s, const tok *t, bool keep_special, const cairn_str *stop,
                         size_t n_stop, size_t n_ids, arena *a, cairn_diag *dg)
{
    *s = (stream){.stopped_by = -1};
    buf_init(&s->text, MEM_ENGINE);
    if (n_stop > CAIRN_MAX_STOP)
        return diag_set(dg, CAIRN_E_ARG, "%zu stop strings; expected at most %d", n_stop,
                        CAIRN_MAX_STOP);
    for (size_t i = 0; i < n_stop; i++) TRY(add_stop(s, stop[i], a, dg));
    if (buf_reserve(&s->text, CAIRN_MAX_STOP_BYTES + PIECE_BYTES) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a stream");
    if (!t) return CAIRN_OK;
    if (detok_new(t, keep_special, &s->detok) != CAIRN_OK ||
        detok_reserve(s->detok, n_ids) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a detokenizer");
    return CAIRN_OK;
}

size_t stream_bytes(const stream *s)
{
    return s->text.cap + (s->detok ? detok_bytes(s->detok) : 0);
}

uint64_t stream_worst_bytes(const tok *t, uint64_t n_ids)
{
    return 2 * (CAIRN_MAX_STOP_BYTES + PIECE_BYTES) + (t ? detok_worst_bytes(t, n_ids) : 0);
}

void stream_deinit(stream *s)
{
    detok_free(s->detok);
    buf_deinit(&s->text);
    *s = (stream){0};
}

/* Advances every automaton by one byte; answers the longest string now complete, -1 if none is. */
static int32_t advance(stream *s, char c)
{
    int32_t complete = -1;
    for (int32_t i = 0; i < s->n_stop; i++) {
        stop_string *p = &s->stop[i];
        while (p->matched > 0 && p->text[p->matched] != c) p->matched = p->fail[p->matched - 1];
        if (p->text[p->matched] == c) p->matched++;
        if (p->matched == p->len && (complete < 0 || p->len > s->stop[complete].len)) complete = i;
    }
    return complete;
}

static size_t longest_tail(const stream *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_stop; i++)
        if (s->stop[i].matched > n) n = s->stop[i].matched;
    return (size_t)n;
}

/* Drops what was sent, appends `more`, finds what may be sent. */
static cairn_status take(stream *s, cairn_str more, bool end, cairn_str *text)
{
    assert(!s->stopped);
    const size_t held = s->text.len - s->sent;
    if (held) memmove(s->text.ptr, s->text.ptr + s->sent, held);
    buf_cut(&s->text, held);
    buf_str(&s->text, more);
    TRY(buf_status(&s->text));
    s->sent = s->text.len;
    for (size_t i = held; i < s->text.len && !s->stopped; i++) {
        const int32_t complete = advance(s, s->text.ptr[i]);
        if (complete < 0) continue;
        s->stopped = true;
        s->stopped_by = complete;
        s->sent = i + 1 - (size_t)s->stop[complete].len;
        buf_cut(&s->text, s->sent);
    }
    if (!s->stopped && !end) s->sent -= longest_tail(s);
    *text = (cairn_str){s->text.ptr, s->sent};
    return CAIRN_OK;
}

cairn_status stream_feed(stream *s, int32_t id, cairn_str *text)
{
    cairn_str more = {"", 0};
    if (s->detok) TRY(detok_feed(s->detok, id, &more));
    return take(s, more, false, text);
}

cairn_status stream_end(stream *s, cairn_str *text)
{
    cairn_str more = {"", 0};
    if (s->detok) TRY(detok_end(s->detok, &more));
    return take(s, more, true, text);
}
