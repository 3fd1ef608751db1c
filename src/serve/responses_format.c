/* Writes a response: its items as events while they come, or one object.  An item is open from the first delta of
   its kind to the first of another; a call's is open until the call ends.  What is done is collected either way, as
   the last event has it again, and as it is kept (responses_store.h) before that event is sent.

   A call that turns out to be none cannot be taken back from a stream: its item ends as incomplete, and what was
   written follows as a message; a whole response has only the message. */
#include "serve/responses_format.h"

#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "serve/buf_members.h"
#include "serve/openai_wire.h"
#include "serve/responses_wire.h"
#include "serve/sse.h"
#include "serve/text_of.h"

static const size_t bufs[] = {
    offsetof(response_out, said),         offsetof(response_out, call_id),
    offsetof(response_out, call_name),    offsetof(response_out, call.args),
    offsetof(response_out, new_logprobs), offsetof(response_out, logprobs_of_item),
    offsetof(response_out, output),
};
enum { N_BUFS = sizeof bufs / sizeof bufs[0] };

static void response_close(void *out)
{
    response_out *o = out;

    buf_members_deinit(o, bufs, N_BUFS);
    responses_ask_let_go(o->ask);
    mem_free(o);
}

static cairn_status response_status(const void *out)
{
    return buf_members_status(out, bufs, N_BUFS);
}

static void *response_open(const prompt *p)
{
    response_out *o = mem_calloc(1, sizeof *o, MEM_SERVE);

    if (!o) return NULL;
    o->ask = p->ask.more;
    o->ask->refs++;
    (void)snprintf(o->id, sizeof o->id, "resp_%s", o->ask->digits);
    o->model = p->model->id;
    o->created = clock_unix_s();
    o->text = served_model_text(p->model);
    o->logprobs = p->ask.rq.n_logprobs >= 0;
    o->n_top = p->ask.n_top;
    buf_members_init(o, bufs, N_BUFS);
    return o;
}

static void put_in_progress(response_out *o, bool created, buf *frames)
{
    json_writer w;
    buf b;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    responses_write(&w, o, "in_progress", NULL, (cairn_str){0});
    frames->no_memory |= buf_status(&b) != CAIRN_OK;
    if (created) responses_put(o, "response.created", text_of(&b), frames);
    responses_put(o, "response.in_progress", text_of(&b), frames);
    buf_deinit(&b);
}

static void response_start(void *out, buf *frames)
{
    put_in_progress(out, true, frames);
}

/* Codex and others give up a stream that is silent for minutes, and count events, not comments.  So while nothing has
   been said yet it is said again that the response is on its way. */
static void response_pulse(void *out, buf *frames)
{
    response_out *o = out;

    if (o->index == 0 && o->open == ITEM_NONE)
        put_in_progress(o, false, frames);
    else
        buf_puts(frames, SSE_WAITING);
}

static void close_item(response_out *o, const char *status, buf *frames)
{
    json_writer w;

    if (o->open == ITEM_NONE) return;
    if (frames) responses_put_done(o, status, frames);
    if (o->output.len) buf_byte(&o->output, ',');
    w = json_write(&o->output);
    responses_write_item(&w, o, status, true);
    o->open = ITEM_NONE;
    o->index++;
}

static void open_item(response_out *o, item_kind kind, buf *frames)
{
    const bool call = kind == ITEM_FUNCTION || kind == ITEM_CUSTOM;

    if (o->open == kind && !call) return;
    close_item(o, "completed", frames);
    o->open = kind;
    (void)snprintf(o->item, sizeof o->item, "%s_%s%04x", responses_words[kind].id, o->ask->digits,
                   (unsigned)o->index);
    buf_cut(&o->said, 0);
    buf_cut(&o->logprobs_of_item, 0);
    if (frames) responses_put_added(o, frames);
}

static void add(response_out *o, cairn_str text, buf *frames)
{
    buf_str(&o->said, text);
    if (frames) responses_put_delta(o, text, frames);
}

static void add_text(response_out *o, cairn_str text, buf *frames)
{
    open_item(o, ITEM_MESSAGE, frames);
    add(o, text, frames);
    if (o->new_logprobs.len && o->logprobs_of_item.len) buf_byte(&o->logprobs_of_item, ',');
    buf_str(&o->logprobs_of_item, buf_view(&o->new_logprobs));
}

static const responses_tool *tool_of(const response_out *o, cairn_str called)
{
    for (size_t i = 0; i < o->ask->n_tools; i++)
        if (str_eq(o->ask->tools[i].called, called)) return &o->ask->tools[i];
    return NULL;
}

static void begin_call(response_out *o, const reply_delta *d, buf *frames)
{
    close_item(o, "completed", frames);
    o->tool = tool_of(o, d->name);
    buf_cut(&o->call_id, 0);
    buf_str(&o->call_id, d->id);
    buf_cut(&o->call_name, 0);
    buf_str(&o->call_name, d->name);
    custom_call_begin(&o->call, o->tool && o->tool->custom);
    open_item(o, o->call.on ? ITEM_CUSTOM : ITEM_FUNCTION, frames);
}

/* More of its text, which its end may bring. */
static void add_custom(response_out *o, const reply_delta *d, buf *frames)
{
    buf piece;

    buf_init(&piece, MEM_SERVE);
    custom_call_text(&o->call, d, &piece);
    if (piece.len) add(o, buf_view(&piece), frames);
    buf_deinit(&piece);
}

static void add_args(response_out *o, const reply_delta *d, buf *frames)
{
    if (o->open == ITEM_CUSTOM)
        add_custom(o, d, frames);
    else
        add(o, d->text, frames);
}

static void end_call(response_out *o, const reply_delta *d, buf *frames)
{
    if (o->open == ITEM_CUSTOM) add_custom(o, d, frames);
    close_item(o, d->cut ? "incomplete" : "completed", frames);
}

/* As it was written, as text. */
static void no_call(response_out *o, const reply_delta *d, buf *frames)
{
    if (frames) close_item(o, "incomplete", frames);
    o->open = ITEM_NONE; /* a whole response never had it */
    add_text(o, d->text, frames);
}

static void response_token(void *out, uint32_t i, const gen_token *t)
{
    response_out *o = out;
    json_writer w = json_write(&o->new_logprobs);

    (void)i;
    if (!o->logprobs) return;
    if (o->new_logprobs.len) buf_byte(&o->new_logprobs, ',');
    openai_write_logprob(&w, o->text, t, o->n_top);
}

static void response_delta(void *out, uint32_t i, const reply_delta *d, buf *frames)
{
    response_out *o = out;

    (void)i;
    switch (d->kind) {
    case DELTA_THOUGHT:
        open_item(o, o->ask->summary ? ITEM_SUMMARY : ITEM_THOUGHT, frames);
        add(o, d->text, frames);
        break;
    case DELTA_CONTENT:
        add_text(o, d->text, frames);
        break;
    case DELTA_CALL:
        begin_call(o, d, frames);
        break;
    case DELTA_ARGS:
        add_args(o, d, frames);
        break;
    case DELTA_CALL_END:
        end_call(o, d, frames);
        break;
    case DELTA_NO_CALL:
        no_call(o, d, frames);
        break;
    }
    buf_cut(&o->new_logprobs, 0); /* told, or of what has none */
}

/* A comment: the schema's events have no place for it. */
static void response_progress(void *out, uint32_t i, const gen_progress *p, buf *frames)
{
    json_writer w = json_write(frames);

    (void)out;
    (void)i;
    buf_puts(frames, ": prompt_progress ");
    gen_progress_write(&w, p);
    buf_puts(frames, "\n\n");
}

static void response_begin(void *out, uint32_t i, buf *frames)
{
    (void)out;
    (void)i;
    (void)frames; /* response.created was it */
}

static const char *status_of(const response_out *o)
{
    return o->end.finish == CAIRN_FINISH_LENGTH ? "incomplete" : "completed";
}

static void response_end(void *out, uint32_t i, const answer_end *e, buf *frames)
{
    response_out *o = out;

    (void)i;
    o->end = *e;
    if (o->index == 0 && o->open == ITEM_NONE) open_item(o, ITEM_MESSAGE, frames);
    close_item(o, status_of(o), frames);
}

/* For later requests, where that is wished; without memory it is as if it had grown old already. */
static void keep(response_out *o, const buf *body)
{
    responses_ask *r = o->ask;
    kept_response *k;

    if (!r->keep || !r->store || response_status(o) != CAIRN_OK || buf_status(body) != CAIRN_OK)
        return;
    k = kept_response_new();
    if (!k) return;
    memcpy(k->id, o->id, sizeof k->id);
    k->by = r->by;
    k->past = r->past;
    r->past = NULL;
    k->items = r->items;
    r->items = (buf){0};
    buf_str(&k->body, buf_view(body));
    buf_byte(&k->output, '[');
    buf_str(&k->output, buf_view(&o->output));
    buf_byte(&k->output, ']');
    if (buf_status(&k->body) == CAIRN_OK && buf_status(&k->output) == CAIRN_OK)
        responses_store_put(r->store, k, http_now_ms());
    else
        responses_store_let_go(r->store, k);
}

static bool response_whole(void *out, const answer_usage *u, buf *body)
{
    response_out *o = out;
    json_writer w = json_write(body);

    responses_write(&w, o, status_of(o), u, (cairn_str){0});
    keep(o, body);
    return false;
}

static void response_finish(void *out, const answer_usage *u, buf *frames)
{
    response_out *o = out;
    char event[40];
    buf body;

    buf_init(&body, MEM_SERVE);
    (void)response_whole(o, u, &body);
    frames->no_memory |= buf_status(&body) != CAIRN_OK;
    (void)snprintf(event, sizeof event, "response.%s", status_of(o));
    responses_put(o, event, text_of(&body), frames);
    buf_deinit(&body);
}

static void response_fail(void *out, int status, const char *code, cairn_str message, buf *frames)
{
    response_out *o = out;
    json_writer w;
    buf body;

    (void)status;
    if (!o) {
        responses_put_error(code, message, frames);
        return;
    }
    /* the schema's codes have one for all of ours */
    buf_init(&body, MEM_SERVE);
    w = json_write(&body);
    responses_write(&w, o, "failed", NULL, message);
    frames->no_memory |= buf_status(&body) != CAIRN_OK;
    responses_put(o, "response.failed", text_of(&body), frames);
    buf_deinit(&body);
}

/* Log-probabilities, as JSON: of an item, of all items, of the body and of what is sent, each in a buffer that may have
   doubled, though not all at once; a byte of a token is itself and up to four of a list.  Streams end with all of it
   too. */
static uint64_t response_kept(const prompt *p, uint64_t n_tokens)
{
    enum { COPIES = 4, PIECE_JSON = 64, BYTE_JSON = 5 };
    const struct cairn_text *text = served_model_text(p->model);
    const uint64_t n_pieces = (uint64_t)p->ask.n_top + 1;

    if (p->ask.rq.n_logprobs < 0 || !text) return 0;
    return n_tokens * n_pieces * COPIES *
           (PIECE_JSON + BYTE_JSON * (uint64_t)cairn_text_longest_piece(text));
}

const answer_format responses_format = {
    .refuse = openai_refuse,
    .held = 5,
    .held_streaming = 6,
    .held_calls = 6,
    .open = response_open,
    .close = response_close,
    .kept = response_kept,
    .start = response_start,
    .pulse = response_pulse,
    .begin = response_begin,
    .progress = response_progress,
    .token = response_token,
    .delta = response_delta,
    .end = response_end,
    .finish = response_finish,
    .whole = response_whole,
    .status = response_status,
    .fail = response_fail,
};
