/* Writes a message: its blocks as events while they come, or one object.  A block is open from the first
   delta of its kind to the first of another; a call's is open until the call ends.

   A call that turns out to be none cannot be taken back from a stream: its block ends, and what was
   written follows as text; a whole message has only the text.  Of a call that is cut a whole message has
   the members that were complete.  Usage is exact where it is first told, as message_start waits for the
   prompt to be looked up in the caches. */
#include "serve/anthropic_format.h"

#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "serve/anthropic_error.h"
#include "serve/buf_members.h"
#include "serve/json_cut.h"
#include "serve/openai_wire.h"
#include "serve/random.h"
#include "serve/sse.h"
#include "serve/text_of.h"

typedef enum block { BLOCK_NONE, BLOCK_THOUGHT, BLOCK_TEXT, BLOCK_CALL } block;

typedef struct message_out {
    char id[32];
    const char *model;
    int32_t max_tokens;
    bool omit_thoughts;
    block open;
    int32_t index; /* of the open block, or of the next */
    answer_end end;
    buf stop;    /* the stop sequences, each with its NUL */
    buf content; /* whole: JSON, the blocks that are done, like the next */
    buf text;    /* of the open block: its text, or the call's arguments */
    buf call_id, call_name;
} message_out;

static const size_t bufs[] = {
    offsetof(message_out, stop),    offsetof(message_out, content),   offsetof(message_out, text),
    offsetof(message_out, call_id), offsetof(message_out, call_name),
};
enum { N_BUFS = sizeof bufs / sizeof bufs[0] };

static cairn_status message_status(const void *out)
{
    return buf_members_status(out, bufs, N_BUFS);
}

static void message_close(void *out)
{
    buf_members_deinit(out, bufs, N_BUFS);
    mem_free(out);
}

static void *message_open(const prompt *p)
{
    const cairn_request *rq = &p->ask.rq;
    message_out *o = mem_calloc(1, sizeof *o, MEM_SERVE);

    if (!o) return NULL;
    buf_members_init(o, bufs, N_BUFS);
    random_name(o->id, sizeof o->id, "msg_", 24);
    o->model = p->model->id;
    o->max_tokens = rq->max_tokens;
    o->omit_thoughts = p->ask.omit_thoughts;
    for (size_t i = 0; i < rq->n_stop; i++) {
        buf_str(&o->stop, rq->stop[i]);
        buf_byte(&o->stop, '\0');
    }
    if (message_status(o) == CAIRN_OK) return o;
    message_close(o);
    return NULL;
}

static void message_headers(http_req *rq)
{
    char id[32];

    random_name(id, sizeof id, "req_", 24);
    http_set_header(rq, "request-id", id);
}

static void write_usage(json_writer *w, const answer_usage *u)
{
    json_w_key(w, "usage");
    json_w_obj(w);
    json_w_kint(w, "input_tokens", u->n_prompt - u->n_cached);
    json_w_kint(w, "cache_creation_input_tokens", 0);
    json_w_kint(w, "cache_read_input_tokens", u->n_cached);
    json_w_kint(w, "output_tokens", u->n_generated);
    json_w_end_obj(w);
}

/* stop_reason and stop_sequence. */
static void write_stop(json_writer *w, const message_out *o)
{
    const answer_end *e = &o->end;
    const char *reason = e->called ? "tool_use" : "end_turn", *sequence = NULL;

    if (e->finish == CAIRN_FINISH_LENGTH)
        reason = e->n_generated < o->max_tokens ? "model_context_window_exceeded" : "max_tokens";
    if (e->stop >= 0) {
        reason = "stop_sequence";
        sequence = o->stop.ptr;
        for (int32_t i = 0; i < e->stop; i++) sequence += strlen(sequence) + 1;
    }
    json_w_kstr(w, "stop_reason", str_of(reason));
    json_w_key(w, "stop_sequence");
    if (sequence)
        json_w_str(w, str_of(sequence));
    else
        json_w_null(w);
}

/* Opens the object, up to its content. */
static void write_head(json_writer *w, const message_out *o)
{
    json_w_obj(w);
    json_w_kstr(w, "id", str_of(o->id));
    json_w_kstr(w, "type", STR_LIT("message"));
    json_w_kstr(w, "role", STR_LIT("assistant"));
    json_w_kstr(w, "model", str_of(o->model));
    json_w_key(w, "content");
    json_w_arr(w);
}

static json_writer open_event(buf *frames, const char *type)
{
    json_writer w = sse_open(frames, type);

    json_w_obj(&w);
    json_w_kstr(&w, "type", str_of(type));
    return w;
}

static void close_event(json_writer *w, buf *frames)
{
    json_w_end_obj(w);
    sse_close(frames);
}

#define PING "event: ping\ndata: {\"type\":\"ping\"}\n\n"

static void message_known(void *out, const answer_usage *u, buf *frames)
{
    const message_out *o = out;
    json_writer w = open_event(frames, "message_start");

    json_w_key(&w, "message");
    write_head(&w, o);
    json_w_end_arr(&w);
    json_w_key(&w, "stop_reason");
    json_w_null(&w);
    json_w_key(&w, "stop_sequence");
    json_w_null(&w);
    write_usage(&w, u);
    json_w_end_obj(&w);
    close_event(&w, frames);
    buf_puts(frames, PING);
}

/* Clients pass over pings whatever is in them. */
static void message_progress(void *out, uint32_t i, const gen_progress *p, buf *frames)
{
    json_writer w = open_event(frames, "ping");

    (void)out;
    (void)i;
    json_w_key(&w, "prompt_progress");
    gen_progress_write(&w, p);
    close_event(&w, frames);
}

static void message_begin(void *out, uint32_t i, buf *frames)
{
    (void)out;
    (void)i;
    (void)frames; /* message_start was it */
}

static void put_delta(const message_out *o, const char *type, const char *key, cairn_str text,
                      buf *frames)
{
    json_writer w = open_event(frames, "content_block_delta");

    json_w_kint(&w, "index", o->index);
    json_w_key(&w, "delta");
    json_w_obj(&w);
    json_w_kstr(&w, "type", str_of(type));
    json_w_kstr(&w, key, text);
    json_w_end_obj(&w);
    close_event(&w, frames);
}

/* The block as it is known: when it begins, or with its `text` when it is done. */
static void write_block(json_writer *w, const message_out *o, cairn_str text)
{
    json_w_obj(w);
    switch (o->open) {
    case BLOCK_NONE:
        break;
    case BLOCK_THOUGHT:
        json_w_kstr(w, "type", STR_LIT("thinking"));
        json_w_kstr(w, "thinking", text);
        json_w_kstr(w, "signature", STR_LIT(""));
        break;
    case BLOCK_TEXT:
        json_w_kstr(w, "type", STR_LIT("text"));
        json_w_kstr(w, "text", text);
        break;
    case BLOCK_CALL:
        json_w_kstr(w, "type", STR_LIT("tool_use"));
        json_w_kstr(w, "id", buf_view(&o->call_id));
        json_w_kstr(w, "name", buf_view(&o->call_name));
        json_w_key(w, "input");
        json_w_raw(w, text.len ? text : STR_LIT("{}"));
        break;
    }
    json_w_end_obj(w);
}

static void close_block(message_out *o, buf *frames)
{
    json_writer w;

    if (o->open == BLOCK_NONE) return;
    if (frames) {
        if (o->open == BLOCK_THOUGHT)
            put_delta(o, "signature_delta", "signature", STR_LIT(""), frames);
        w = open_event(frames, "content_block_stop");
        json_w_kint(&w, "index", o->index);
        close_event(&w, frames);
    } else {
        if (o->content.len) buf_byte(&o->content, ',');
        w = json_write(&o->content);
        write_block(&w, o, text_of(&o->text));
    }
    o->open = BLOCK_NONE;
    o->index++;
    buf_cut(&o->text, 0);
}

static void open_block(message_out *o, block kind, buf *frames)
{
    json_writer w;

    if (o->open == kind && kind != BLOCK_CALL) return;
    close_block(o, frames);
    o->open = kind;
    if (!frames) return;
    w = open_event(frames, "content_block_start");
    json_w_kint(&w, "index", o->index);
    json_w_key(&w, "content_block");
    write_block(&w, o, (cairn_str){"", 0});
    close_event(&w, frames);
}

static void add(message_out *o, const char *type, const char *key, cairn_str text, buf *frames)
{
    if (frames)
        put_delta(o, type, key, text, frames);
    else
        buf_str(&o->text, text);
}

static void add_text(message_out *o, cairn_str text, buf *frames)
{
    open_block(o, BLOCK_TEXT, frames);
    add(o, "text_delta", "text", text, frames);
}

static void begin_call(message_out *o, const reply_delta *d, buf *frames)
{
    close_block(o, frames);
    buf_cut(&o->call_id, 0);
    buf_str(&o->call_id, d->id);
    buf_cut(&o->call_name, 0);
    buf_str(&o->call_name, d->name);
    open_block(o, BLOCK_CALL, frames);
}

/* As it was written, as text. */
static void no_call(message_out *o, const reply_delta *d, buf *frames)
{
    if (!frames) { /* its block was never there */
        o->open = BLOCK_NONE;
        buf_cut(&o->text, 0);
    }
    add_text(o, d->text, frames);
}

static void message_delta(void *out, uint32_t i, const reply_delta *d, buf *frames)
{
    message_out *o = out;

    (void)i;
    switch (d->kind) {
    case DELTA_THOUGHT:
        open_block(o, BLOCK_THOUGHT, frames);
        if (!o->omit_thoughts) add(o, "thinking_delta", "thinking", d->text, frames);
        break;
    case DELTA_CONTENT:
        add_text(o, d->text, frames);
        break;
    case DELTA_CALL:
        begin_call(o, d, frames);
        break;
    case DELTA_ARGS:
        add(o, "input_json_delta", "partial_json", d->text, frames);
        break;
    case DELTA_CALL_END:
        if (!frames) json_cut_close(&o->text);
        close_block(o, frames);
        break;
    case DELTA_NO_CALL:
        no_call(o, d, frames);
        break;
    }
}

static void message_end(void *out, uint32_t i, const answer_end *e, buf *frames)
{
    message_out *o = out;

    (void)i;
    o->end = *e;
    if (o->index == 0 && o->open == BLOCK_NONE) open_block(o, BLOCK_TEXT, frames);
    close_block(o, frames);
}

static void message_finish(void *out, const answer_usage *u, buf *frames)
{
    json_writer w = open_event(frames, "message_delta");

    json_w_key(&w, "delta");
    json_w_obj(&w);
    write_stop(&w, out);
    json_w_end_obj(&w);
    write_usage(&w, u);
    close_event(&w, frames);
    w = open_event(frames, "message_stop");
    close_event(&w, frames);
}

static bool message_whole(void *out, const answer_usage *u, buf *body)
{
    const message_out *o = out;
    json_writer w = json_write(body);

    write_head(&w, o);
    json_w_raw(&w, buf_view(&o->content));
    json_w_end_arr(&w);
    write_stop(&w, o);
    write_usage(&w, u);
    json_w_end_obj(&w);
    return false;
}

const answer_format anthropic_format = {
    .refuse = anthropic_refuse,
    .held = 3,
    .held_calls = 1,
    .headers = message_headers,
    .beat = PING,
    .open = message_open,
    .close = message_close,
    .known = message_known,
    .begin = message_begin,
    .progress = message_progress,
    .delta = message_delta,
    .end = message_end,
    .finish = message_finish,
    .whole = message_whole,
    .status = message_status,
    .fail = anthropic_put_fail,
};
