/* Writes an answer of Ollama's: lines of JSON, or one object.  A call is told when it is whole, as its arguments are
   an object here; of a call that is cut stay the members that were complete, and one that is none is content. */
#include "serve/ollama_format.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "serve/json_cut.h"
#include "serve/openai_wire.h"

enum { BEAT_MS = 9000 }; /* as server-sent events have it */

typedef struct ollama_out {
    const char *model;
    bool chat;            /* else: generate */
    buf content, thought; /* whole answers only, like calls */
    buf calls;            /* JSON: the elements of tool_calls */
    buf id, name, args;   /* of the call under way */
    int32_t n_calls;
    cairn_finish finish;
    uint64_t begun_ns, first_ns; /* monotonic; 0: no token yet */
} ollama_out;

static size_t all_bufs(ollama_out *o, buf *list[6])
{
    buf *const all[] = {&o->content, &o->thought, &o->calls, &o->id, &o->name, &o->args};

    memcpy(list, all, sizeof all);
    return sizeof all / sizeof all[0];
}

static void *open_out(const prompt *p, bool chat)
{
    ollama_out *o = mem_calloc(1, sizeof *o, MEM_SERVE);
    buf *list[6];

    if (!o) return NULL;
    for (size_t i = 0, n = all_bufs(o, list); i < n; i++) buf_init(list[i], MEM_SERVE);
    o->model = p->model->id;
    o->chat = chat;
    o->begun_ns = clock_ns();
    return o;
}

static void *chat_open(const prompt *p)
{
    return open_out(p, true);
}

static void *generate_open(const prompt *p)
{
    return open_out(p, false);
}

static void out_close(void *out)
{
    buf *list[6];

    for (size_t i = 0, n = all_bufs(out, list); i < n; i++) buf_deinit(list[i]);
    mem_free(out);
}

static cairn_status out_status(const void *out)
{
    const ollama_out *o = out;
    const buf *const all[] = {&o->content, &o->thought, &o->calls, &o->id, &o->name, &o->args};
    cairn_status st = CAIRN_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && st == CAIRN_OK; i++)
        st = buf_status(all[i]);
    return st;
}

void ollama_write_time(json_writer *w, const char *key, int64_t unix_s)
{
    const time_t t = (time_t)unix_s;
    char text[40];
    struct tm tm;

    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    json_w_kstr(w, key, str_of(text));
}

/* What is said, in a line or all of it; the object stays open. */
static void write_said(json_writer *w, const ollama_out *o, cairn_str content, cairn_str thought,
                       cairn_str calls)
{
    const cairn_str none = STR_LIT("");

    json_w_obj(w);
    json_w_kstr(w, "model", str_of(o->model));
    ollama_write_time(w, "created_at", clock_unix_s());
    if (o->chat) {
        json_w_key(w, "message");
        json_w_obj(w);
        json_w_kstr(w, "role", STR_LIT("assistant"));
    }
    json_w_kstr(w, o->chat ? "content" : "response", content.len ? content : none);
    if (thought.len) json_w_kstr(w, "thinking", thought);
    if (calls.len) {
        json_w_key(w, "tool_calls");
        json_w_arr(w);
        json_w_raw(w, calls);
        json_w_end_arr(w);
    }
    if (o->chat) json_w_end_obj(w);
}

static void put_line(const ollama_out *o, cairn_str content, cairn_str thought, cairn_str calls,
                     buf *frames)
{
    json_writer w = json_write(frames);

    write_said(&w, o, content, thought, calls);
    json_w_kbool(&w, "done", false);
    json_w_end_obj(&w);
    buf_byte(frames, '\n');
}

static void on_begin(void *out, uint32_t i, buf *frames)
{
    (void)out;
    (void)i;
    (void)frames; /* a first line says nothing that the others do not */
}

static void on_progress(void *out, uint32_t i, const gen_progress *p, buf *frames)
{
    const cairn_str none = {0};
    json_writer w = json_write(frames);

    (void)i;
    write_said(&w, out, none, none, none);
    json_w_kbool(&w, "done", false);
    json_w_kint(&w, "prompt_eval_count", p->n_done);
    json_w_key(&w, "prompt_progress");
    gen_progress_write(&w, p);
    json_w_end_obj(&w);
    buf_byte(frames, '\n');
}

static void on_token(void *out, uint32_t i, const gen_token *t)
{
    ollama_out *o = out;

    (void)i;
    if (!o->first_ns) o->first_ns = t->first_ns;
}

static void set(buf *b, cairn_str s)
{
    buf_cut(b, 0);
    buf_str(b, s);
}

static void put_call(ollama_out *o, buf *to)
{
    json_writer w = json_write(to);

    json_cut_close(&o->args);
    if (to->len) buf_byte(to, ',');
    json_w_obj(&w);
    json_w_kstr(&w, "id", buf_view(&o->id));
    json_w_key(&w, "function");
    json_w_obj(&w);
    json_w_kint(&w, "index", o->n_calls++);
    json_w_kstr(&w, "name", buf_view(&o->name));
    json_w_key(&w, "arguments");
    json_w_raw(&w, o->args.len ? buf_view(&o->args) : STR_LIT("{}"));
    json_w_end_obj(&w);
    json_w_end_obj(&w);
}

static void end_call(ollama_out *o, buf *frames)
{
    const cairn_str none = {0};

    put_call(o, &o->calls);
    if (!frames) return;
    put_line(o, none, none, buf_view(&o->calls), frames);
    buf_cut(&o->calls, 0);
}

static void on_delta(void *out, uint32_t i, const reply_delta *d, buf *frames)
{
    const cairn_str none = {0};
    ollama_out *o = out;

    (void)i;
    switch (d->kind) {
    case DELTA_THOUGHT:
        if (frames)
            put_line(o, none, d->text, none, frames);
        else
            buf_str(&o->thought, d->text);
        break;
    case DELTA_CONTENT:
    case DELTA_NO_CALL:
        if (frames)
            put_line(o, d->text, none, none, frames);
        else
            buf_str(&o->content, d->text);
        break;
    case DELTA_CALL:
        set(&o->id, d->id);
        set(&o->name, d->name);
        buf_cut(&o->args, 0);
        break;
    case DELTA_ARGS:
        buf_str(&o->args, d->text);
        break;
    case DELTA_CALL_END:
        end_call(o, frames);
        break;
    }
}

static void on_end(void *out, uint32_t i, const answer_end *e, buf *frames)
{
    ollama_out *o = out;

    (void)i;
    (void)frames;
    o->finish = e->finish;
}

/* Closes the object: why it ended, tokens, and times in nanoseconds.  Loading is not this request's. */
static void write_end(json_writer *w, const ollama_out *o, const answer_usage *u)
{
    const uint64_t now = clock_ns(), first = o->first_ns ? o->first_ns : now;

    json_w_kbool(w, "done", true);
    json_w_kstr(w, "done_reason",
                o->finish == CAIRN_FINISH_LENGTH ? STR_LIT("length") : STR_LIT("stop"));
    json_w_kuint(w, "total_duration", now - o->begun_ns);
    json_w_kuint(w, "load_duration", 0);
    json_w_kint(w, "prompt_eval_count", u->n_prompt);
    json_w_kuint(w, "prompt_eval_duration", first - o->begun_ns);
    json_w_kint(w, "eval_count", u->n_generated);
    json_w_kuint(w, "eval_duration", now - first);
    json_w_end_obj(w);
}

static void on_finish(void *out, const answer_usage *u, buf *frames)
{
    const cairn_str none = {0};
    json_writer w = json_write(frames);

    write_said(&w, out, none, none, none);
    write_end(&w, out, u);
    buf_byte(frames, '\n');
}

static bool on_whole(void *out, const answer_usage *u, buf *body)
{
    const ollama_out *o = out;
    json_writer w = json_write(body);

    write_said(&w, o, buf_view(&o->content), buf_view(&o->thought), buf_view(&o->calls));
    write_end(&w, o, u);
    return false;
}

static void put_error(cairn_str message, buf *to)
{
    json_writer w = json_write(to);

    json_w_obj(&w);
    json_w_kstr(&w, "error", message);
    json_w_end_obj(&w);
}

static void put_fail(void *out, int status, const char *code, cairn_str message, buf *frames)
{
    (void)out;
    (void)status;
    (void)code; /* the shape has no place for them */
    put_error(message, frames);
    buf_byte(frames, '\n');
}

void ollama_refuse(http_req *rq, int status, const char *param, const char *code,
                   const char *message)
{
    const bool named = !param || strstr(message, param);
    char text[700];
    buf b;

    (void)code;
    if (status == 429) http_set_header(rq, "Retry-After", "1");
    (void)snprintf(text, sizeof text, "%s%s%s", named ? "" : param, named ? "" : ": ", message);
    buf_init(&b, MEM_SERVE);
    put_error(str_of(text), &b);
    http_reply(rq, status, "application/json",
               buf_status(&b) == CAIRN_OK ? buf_view(&b) : STR_LIT("{}"));
    buf_deinit(&b);
}

void ollama_put_loaded(const char *model, bool chat, const char *why, buf *body)
{
    const ollama_out o = {.model = model, .chat = chat};
    const cairn_str none = {0};
    json_writer w = json_write(body);

    write_said(&w, &o, none, none, none);
    json_w_kbool(&w, "done", true);
    json_w_kstr(&w, "done_reason", str_of(why));
    json_w_end_obj(&w);
}

/* Until there is an answer, whose model is named in each line, a blank: JSON may begin with some. */
static void begin_lines(http_req *rq)
{
    http_stream(rq, "application/x-ndjson", " ", BEAT_MS);
}

static void on_pulse(void *out, buf *frames)
{
    const cairn_str none = {0};

    put_line(out, none, none, none, frames);
}

/* The two differ in the member that has the text. */
#define FORMAT(kind)                                                                               \
    {                                                                                              \
        .refuse = ollama_refuse, .held = 3, .held_calls = 3, .begin_stream = begin_lines,          \
        .pulse = on_pulse, .open = kind##_open, .close = out_close, .begin = on_begin,             \
        .progress = on_progress, .token = on_token, .delta = on_delta, .end = on_end,              \
        .finish = on_finish, .whole = on_whole, .status = out_status, .fail = put_fail,            \
    }
const answer_format ollama_chat_format = FORMAT(chat);
const answer_format ollama_generate_format = FORMAT(generate);
