/* From the events of a reply to what the protocols know: thoughts, content, calls.  A call that begins is told at once, as
   its arguments are; one that breaks can then not be taken back from a stream, so what was written
   follows as content, which is all that a whole answer has of it.  Invariant: content, thoughts and
   finished calls are the same whether the deltas are sent or collected. */
#include "serve/reply_reader.h"

#include "base/buf.h"
#include "base/diag.h"
#include "base/hash.h"

typedef struct reader {
    readers *of;
    cairn_reply *reply;
    uint32_t choice;
    int32_t n_done; /* calls */
    bool in_call, cut, ended;
    buf markup; /* the last event, if it was markup: a call's own comes right before it */
    buf call;   /* the bytes of the call under way */
} reader;

struct readers {
    uint32_t n;
    bool one_call;
    reply_delta_fn fn;
    void *ctx;
    reader each[];
};

static void tell(reader *r, delta_kind kind, const cairn_reply_event *ev, cairn_str text)
{
    const reply_delta d = {.kind = kind,
                           .call = ev->call,
                           .text = text,
                           .id = ev->id,
                           .name = ev->name,
                           .cut = ev->end == CAIRN_CALL_CUT};
    r->of->fn(r->of->ctx, r->choice, &d);
}

static void call_begins(reader *r, const cairn_reply_event *ev)
{
    if (r->of->one_call && r->n_done) {
        r->ended = true;
        return;
    }
    r->in_call = true;
    buf_cut(&r->call, 0);
    buf_str(&r->call, buf_view(&r->markup));
    tell(r, DELTA_CALL, ev, (cairn_str){0});
}

static void call_ends(reader *r, const cairn_reply_event *ev)
{
    const bool done = ev->end == CAIRN_CALL_DONE;
    r->in_call = false;
    r->n_done += done;
    if (done || (ev->end == CAIRN_CALL_CUT && r->cut))
        tell(r, DELTA_CALL_END, ev, (cairn_str){0});
    else
        tell(r, DELTA_NO_CALL, ev, buf_view(&r->call));
}

static void on_event(void *ctx, const cairn_reply_event *ev)
{
    reader *r = ctx;

    if (r->ended) return;
    if (r->in_call) buf_str(&r->call, ev->raw);
    switch (ev->kind) {
    case CAIRN_REPLY_THOUGHT:
        if (ev->text.len) tell(r, DELTA_THOUGHT, ev, ev->text);
        break;
    case CAIRN_REPLY_ANSWER:
        if (ev->text.len) tell(r, DELTA_CONTENT, ev, ev->text);
        break;
    case CAIRN_REPLY_CALL_BEGIN:
        call_begins(r, ev);
        break;
    case CAIRN_REPLY_CALL_ARGS:
        if (ev->text.len) tell(r, DELTA_ARGS, ev, ev->text);
        break;
    case CAIRN_REPLY_CALL_END:
        call_ends(r, ev);
        break;
    case CAIRN_REPLY_SYNTAX:
        break;
    }
    buf_cut(&r->markup, 0);
    if (ev->kind == CAIRN_REPLY_SYNTAX) buf_str(&r->markup, ev->raw);
}

cairn_status readers_new(const cairn_reply_opts *o, uint32_t n, bool one_call, readers **out,
                         cairn_diag *dg)
{
    cairn_reply_opts opts = *o;
    cairn_status st = CAIRN_OK;
    readers *r;

    if (o->tools.len > READERS_MAX_BYTES / n)
        return diag_set(dg, CAIRN_E_LIMIT, "%zu bytes of tools for each of %u choices; at most %d",
                        o->tools.len, n, READERS_MAX_BYTES);
    r = mem_calloc(1, sizeof *r + n * sizeof r->each[0], MEM_SERVE);
    if (!r) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the request");
    r->one_call = one_call;
    for (; r->n < n && st == CAIRN_OK; r->n++) {
        reader *one = &r->each[r->n];

        one->of = r;
        one->choice = r->n;
        buf_init(&one->markup, MEM_SERVE);
        buf_init(&one->call, MEM_SERVE);
        opts.id_seed = hash64(&r->n, sizeof r->n, o->id_seed);
        st = cairn_reply_new(&opts, on_event, one, &one->reply, dg);
    }
    if (st == CAIRN_OK)
        *out = r;
    else
        readers_free(r);
    return st;
}

void readers_free(readers *r)
{
    if (!r) return;
    for (uint32_t i = 0; i < r->n; i++) {
        cairn_reply_free(r->each[i].reply);
        buf_deinit(&r->each[i].markup);
        buf_deinit(&r->each[i].call);
    }
    mem_free(r);
}

bool readers_keep_special(const readers *r)
{
    cairn_reply_look look;

    cairn_reply_look_init(&look);
    cairn_reply_get_look(r->each[0].reply, &look);
    return look.keep_special;
}

void readers_bind(readers *r, reply_delta_fn fn, void *ctx)
{
    r->fn = fn;
    r->ctx = ctx;
}

static cairn_status status_of(const reader *r, cairn_status st)
{
    if (st == CAIRN_OK) st = buf_status(&r->markup);
    return st == CAIRN_OK ? buf_status(&r->call) : st;
}

cairn_status readers_feed(readers *r, uint32_t choice, cairn_str text)
{
    reader *one = &r->each[choice];

    if (text.len == 0 || one->ended) return CAIRN_OK;
    return status_of(one, cairn_reply_feed(one->reply, text));
}

cairn_status readers_finish(readers *r, uint32_t choice, bool cut)
{
    reader *one = &r->each[choice];

    if (one->ended) return CAIRN_OK;
    one->cut = cut;
    return status_of(one, cairn_reply_finish(one->reply));
}

bool readers_may_end(const readers *r)
{
    return r->one_call;
}

bool readers_ended(const readers *r, uint32_t choice)
{
    return r->each[choice].ended;
}

bool readers_called(const readers *r, uint32_t choice)
{
    return r->each[choice].n_done > 0;
}
