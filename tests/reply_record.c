/* See reply_record.h.  Also checks the order of events as they come. */
#include "reply_record.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"

static void each_buf(record *r, void (*fn)(buf *))
{
    buf *const all[] = {&r->raw, &r->log, &r->thought, &r->answer};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) fn(all[i]);
    for (int i = 0; i < RECORD_MAX_CALLS; i++) fn(&r->call[i].args);
}

static void start(buf *b)
{
    buf_init(b, MEM_TEXT);
}

void record_init(record *r)
{
    memset(r, 0, sizeof *r);
    r->last = -1;
    each_buf(r, start);
}

void record_deinit(record *r)
{
    each_buf(r, buf_deinit);
}

static void check_order(record *r, const cairn_reply_event *ev)
{
    const bool open = r->n_calls > 0 && r->call[r->n_calls - 1].end < 0;
    const bool of_call = ev->kind == CAIRN_REPLY_CALL_ARGS || ev->kind == CAIRN_REPLY_CALL_END;
    if (of_call && !open) r->wrong = "arguments or an end outside a call";
    if (of_call && ev->call != r->n_calls - 1) r->wrong = "another call's index";
    if (ev->kind == CAIRN_REPLY_CALL_BEGIN && open) r->wrong = "a call inside a call";
    if (ev->kind == CAIRN_REPLY_CALL_BEGIN && (!ev->name.len || !ev->id.len))
        r->wrong = "no name or id";
    if (open && (ev->kind == CAIRN_REPLY_ANSWER || ev->kind == CAIRN_REPLY_THOUGHT))
        r->wrong = "text inside a call";
}

static void begin(record *r, const cairn_reply_event *ev)
{
    if (r->n_calls == RECORD_MAX_CALLS) return;
    struct record_call *c = &r->call[r->n_calls++];
    c->end = -1;
    snprintf(c->name, sizeof c->name, "%.*s", STR_ARG(ev->name));
    snprintf(c->id, sizeof c->id, "%.*s", STR_ARG(ev->id));
}

void record_event(void *ctx, const cairn_reply_event *ev)
{
    record *r = ctx;
    check_order(r, ev);
    buf_str(&r->raw, ev->raw);
    if (ev->kind == CAIRN_REPLY_SYNTAX || r->n_calls == RECORD_MAX_CALLS) return;
    const bool marks = ev->kind == CAIRN_REPLY_CALL_BEGIN || ev->kind == CAIRN_REPLY_CALL_END;
    if (!marks && !ev->text.len) return;
    if (marks || (int)ev->kind != r->last) buf_printf(&r->log, "\n%d:", (int)ev->kind);
    r->last = (int)ev->kind;
    buf_str(&r->log, ev->text);
    if (marks) {
        buf_str(&r->log, ev->name);
        buf_printf(&r->log, "#%.*s %d", STR_ARG(ev->id), (int)ev->end);
    }
    if (ev->kind == CAIRN_REPLY_THOUGHT) buf_str(&r->thought, ev->text);
    if (ev->kind == CAIRN_REPLY_ANSWER) buf_str(&r->answer, ev->text);
    if (ev->kind == CAIRN_REPLY_CALL_BEGIN) begin(r, ev);
    if (ev->kind == CAIRN_REPLY_CALL_ARGS) buf_str(&r->call[r->n_calls - 1].args, ev->text);
    if (ev->kind != CAIRN_REPLY_CALL_END || !r->n_calls) return;
    r->call[r->n_calls - 1].end = (int)ev->end;
    snprintf(r->call[r->n_calls - 1].id, sizeof r->call[0].id, "%.*s", STR_ARG(ev->id));
}

void record_run(record *r, const cairn_reply_opts *o, cairn_str text, int piece)
{
    enum { RANDOM_PIECE = 12 };
    cairn_diag dg = {0};
    reply *p = NULL;
    cairn_status st = reply_new(o, record_event, r, &p, &dg);
    assert(st == CAIRN_OK);
    for (size_t at = 0, i = 0; at < text.len; i++) {
        size_t n = piece > 0 ? (size_t)piece : text.len;
        if (piece < 0) n = (size_t)(rng_u64((uint64_t)-piece, 0, i) % RANDOM_PIECE);
        if (n > text.len - at) n = text.len - at;
        st = reply_feed(p, str_sub(text, at, n), false);
        assert(st == CAIRN_OK);
        at += n;
    }
    st = reply_finish(p);
    assert(st == CAIRN_OK);
    (void)st;
    reply_free(p);
}

bool record_same(const record *a, const record *b)
{
    return str_eq(buf_view(&a->log), buf_view(&b->log)) &&
           str_eq(buf_view(&a->raw), buf_view(&b->raw));
}

bool record_twice(record *r, const cairn_reply_opts *o, cairn_str text)
{
    record bytes;
    record_init(r);
    record_init(&bytes);
    record_run(r, o, text, 0);
    record_run(&bytes, o, text, 1);
    const bool same = record_same(r, &bytes) && str_eq(buf_view(&r->raw), text) && !r->wrong;
    record_deinit(&bytes);
    return same;
}
