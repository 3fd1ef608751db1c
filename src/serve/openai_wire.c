/* Writes OpenAI's shapes.  Fields that the published schema requires are always there, with null where
   there is nothing; nothing that the schema does not know is added to chunks, unless it was asked for. */
#include "serve/openai_wire.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "serve/error_type.h"
#include "serve/random.h"
#include "serve/sse.h"

/* Of a whole answer, and a token more: below what makes a stream one that is cut when replies take too much. */
enum { PART_BYTES = 8 << 10 };

static const error_type types[] = {
    {401, "authentication_error"},
    {429, "rate_limit_error"},
    {500, "server_error"},
    {503, "server_error"},
};

static const char *type_of(int status)
{
    return error_type_of(types, sizeof types / sizeof types[0], status);
}

static void put_or_null(json_writer *w, const char *key, const char *value)
{
    json_w_key(w, key);
    if (value)
        json_w_str(w, str_of(value));
    else
        json_w_null(w);
}

static void write_error(json_writer *w, int status, const char *param, const char *code,
                        cairn_str message)
{
    json_w_obj(w);
    json_w_key(w, "error");
    json_w_obj(w);
    json_w_kstr(w, "message", message);
    json_w_kstr(w, "type", str_of(type_of(status)));
    put_or_null(w, "param", param);
    put_or_null(w, "code", code);
    json_w_end_obj(w);
    json_w_end_obj(w);
}

void openai_error(http_req *rq, int status, const char *param, const char *code, const char *fmt,
                  ...)
{
    char message[600];
    va_list ap;
    buf b;
    json_writer w;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    write_error(&w, status, param, code, str_of(message));
    if (status == 429) http_set_header(rq, "Retry-After", "1");
    http_reply(rq, status, "application/json",
               buf_status(&b) == CAIRN_OK ? buf_view(&b) : STR_LIT("{}"));
    buf_deinit(&b);
}

void openai_refuse(http_req *rq, int status, const char *param, const char *code,
                   const char *message)
{
    openai_error(rq, status, param, code, "%s", message);
}

void openai_put_fail(void *out, int status, const char *code, cairn_str message, buf *frames)
{
    json_writer w = sse_open(frames, NULL);

    (void)out;
    write_error(&w, status, NULL, code, message);
    sse_close(frames);
}

void openai_put_done(buf *frames)
{
    (void)sse_open(frames, NULL);
    buf_puts(frames, "[DONE]");
    sse_close(frames);
}

void openai_put_usage_chunk(const openai_head *h, const char *object, const answer_usage *u,
                            buf *frames)
{
    json_writer w = sse_open(frames, NULL);

    openai_write_head(&w, h, object);
    json_w_key(&w, "choices");
    json_w_arr(&w);
    json_w_end_arr(&w);
    openai_write_usage(&w, u);
    json_w_end_obj(&w);
    sse_close(frames);
}

void gen_progress_write(json_writer *w, const gen_progress *p)
{
    json_w_obj(w);
    json_w_kint(w, "total", p->n_prompt);
    json_w_kint(w, "cache", p->n_cached);
    json_w_kint(w, "processed", p->n_done);
    json_w_kint(w, "time_ms", p->ms);
    json_w_end_obj(w);
}

void openai_put_progress(const openai_head *h, const char *object, uint32_t index, const char *key,
                         const char *said, const gen_progress *p, buf *frames)
{
    json_writer w = sse_open(frames, NULL);

    openai_write_head(&w, h, object);
    json_w_key(&w, "choices");
    json_w_arr(&w);
    json_w_obj(&w);
    json_w_kint(&w, "index", index);
    json_w_key(&w, key);
    json_w_raw(&w, str_of(said));
    put_or_null(&w, "logprobs", NULL);
    put_or_null(&w, "finish_reason", NULL);
    json_w_end_obj(&w);
    json_w_end_arr(&w);
    json_w_key(&w, "prompt_progress");
    gen_progress_write(&w, p);
    openai_write_chunk_usage(&w, h, NULL);
    json_w_end_obj(&w);
    sse_close(frames);
}

int openai_status(cairn_status st)
{
    switch (st) {
    case CAIRN_OK:
        return 200;
    case CAIRN_E_ARG:
    case CAIRN_E_CORRUPT:
    case CAIRN_E_UNSUPPORTED:
    case CAIRN_E_LIMIT:
        return 400;
    case CAIRN_E_NOTFOUND:
        return 404;
    case CAIRN_E_BUSY:
        return 429;
    case CAIRN_E_NOMEM:
    case CAIRN_E_CANCELLED:
        return 503;
    case CAIRN_E_IO:
    case CAIRN_E_INTERNAL:
    case CAIRN_STATUS_COUNT:
        return 500;
    }
    return 500;
}

void openai_reply(http_req *rq, const buf *body)
{
    if (buf_status(body) != CAIRN_OK)
        openai_error(rq, 503, NULL, "out_of_memory", "no memory for the answer");
    else
        http_reply(rq, 200, "application/json", buf_view(body));
}

void openai_head_init(openai_head *h, const char *prefix, const char *model)
{
    random_name(h->id, sizeof h->id, prefix, 32);
    h->created = clock_unix_s();
    h->model = model;
}

void openai_write_head(json_writer *w, const openai_head *h, const char *object)
{
    char print[64];

    (void)snprintf(print, sizeof print, "cairn-%s", cairn_version());
    json_w_obj(w);
    json_w_kstr(w, "id", str_of(h->id));
    json_w_kstr(w, "object", str_of(object));
    json_w_kint(w, "created", h->created);
    json_w_kstr(w, "model", str_of(h->model));
    json_w_kstr(w, "system_fingerprint", str_of(print));
    if (h->tier) json_w_kstr(w, "service_tier", str_of(h->tier));
}

void openai_write_usage(json_writer *w, const answer_usage *u)
{
    json_w_key(w, "usage");
    json_w_obj(w);
    json_w_kint(w, "prompt_tokens", u->n_prompt);
    json_w_kint(w, "completion_tokens", u->n_generated);
    json_w_kint(w, "total_tokens", (int64_t)u->n_prompt + u->n_generated);
    json_w_key(w, "prompt_tokens_details");
    json_w_obj(w);
    json_w_kint(w, "cached_tokens", u->n_cached);
    json_w_end_obj(w);
    json_w_key(w, "completion_tokens_details");
    json_w_obj(w);
    json_w_kint(w, "reasoning_tokens", u->n_thought);
    json_w_end_obj(w);
    json_w_end_obj(w);
}

void openai_write_chunk_usage(json_writer *w, const openai_head *h, const answer_usage *u)
{
    switch (h->usage) {
    case USAGE_AT_END:
        if (u) openai_write_usage(w, u);
        break;
    case USAGE_APART:
        put_or_null(w, "usage", NULL);
        break;
    case USAGE_NONE:
        break;
    }
}

const char *openai_finish(cairn_finish f, bool called)
{
    if (f == CAIRN_FINISH_LENGTH) return "length";
    return called ? "tool_calls" : "stop";
}

static void write_call_delta(json_writer *w, const reply_delta *d)
{
    const bool begins = d->kind == DELTA_CALL;
    const char *type = d->custom ? "custom" : "function";

    json_w_key(w, "tool_calls");
    json_w_arr(w);
    json_w_obj(w);
    json_w_kint(w, "index", d->call);
    if (begins) {
        json_w_kstr(w, "id", d->id);
        json_w_kstr(w, "type", str_of(type));
    }
    json_w_key(w, type);
    json_w_obj(w);
    if (begins) json_w_kstr(w, "name", d->name);
    json_w_kstr(w, d->custom ? "input" : "arguments", begins ? STR_LIT("") : d->text);
    json_w_end_obj(w);
    json_w_end_obj(w);
    json_w_end_arr(w);
}

static void write_delta(json_writer *w, const reply_delta *d)
{
    switch (d->kind) {
    case DELTA_THOUGHT: /* two names are in use, and clients know one of them each */
        json_w_kstr(w, "reasoning_content", d->text);
        json_w_kstr(w, "reasoning", d->text);
        break;
    case DELTA_CONTENT:
    case DELTA_NO_CALL:
        json_w_kstr(w, "content", d->text);
        break;
    case DELTA_CALL:
    case DELTA_ARGS:
        write_call_delta(w, d);
        break;
    case DELTA_CALL_END:
        break;
    }
}

void openai_write_chunk(json_writer *w, const openai_head *h, uint32_t index, bool role,
                        const reply_delta *d, cairn_str logprob, const char *finish,
                        const answer_usage *u)
{
    openai_write_head(w, h, "chat.completion.chunk");
    json_w_key(w, "choices");
    json_w_arr(w);
    json_w_obj(w);
    json_w_kint(w, "index", index);
    json_w_key(w, "delta");
    json_w_obj(w);
    if (role) {
        json_w_kstr(w, "role", STR_LIT("assistant"));
        json_w_kstr(w, "content", STR_LIT(""));
        put_or_null(w, "refusal", NULL);
    }
    if (d) write_delta(w, d);
    json_w_end_obj(w);
    json_w_key(w, "logprobs");
    if (logprob.len) {
        json_w_obj(w);
        json_w_key(w, "content");
        json_w_arr(w);
        json_w_raw(w, logprob);
        json_w_end_arr(w);
        put_or_null(w, "refusal", NULL);
        json_w_end_obj(w);
    } else {
        json_w_null(w);
    }
    put_or_null(w, "finish_reason", finish);
    json_w_end_obj(w);
    json_w_end_arr(w);
    openai_write_chunk_usage(w, h, u);
    json_w_end_obj(w);
}

double openai_logprob(float logprob)
{
    return logprob >= -9999.0F ? (double)logprob : -9999.0;
}

/* An open object: token, logprob, bytes.  A piece that is no UTF-8 shows U+FFFD; bytes are exact. */
static void write_piece(json_writer *w, const struct cairn_text *text, int32_t id, float logprob)
{
    cairn_str piece = cairn_text_piece(text, id);

    json_w_obj(w);
    json_w_kstr(w, "token", piece);
    json_w_knum(w, "logprob", openai_logprob(logprob));
    json_w_key(w, "bytes");
    json_w_arr(w);
    for (size_t i = 0; i < piece.len; i++) json_w_int(w, (uint8_t)piece.ptr[i]);
    json_w_end_arr(w);
}

void openai_write_logprob(json_writer *w, const struct cairn_text *text, const gen_token *t,
                          int32_t n_top)
{
    write_piece(w, text, t->id, t->logprob);
    json_w_key(w, "top_logprobs");
    json_w_arr(w);
    for (int32_t i = 0; i < n_top && i < t->n_top; i++) {
        write_piece(w, text, t->top[i].id, t->top[i].logprob);
        json_w_end_obj(w);
    }
    json_w_end_arr(w);
    json_w_end_obj(w);
}

bool openai_part_full(const openai_part *p)
{
    return p->w.out->len >= PART_BYTES;
}

bool openai_put_whole(openai_part *p, const openai_head *h, const char *object,
                      openai_choice_fn *choice, const void *out, uint32_t n, const answer_usage *u,
                      buf *body)
{
    if (!p->begun) {
        p->begun = true;
        p->w = json_write(body);
        openai_write_head(&p->w, h, object);
        json_w_key(&p->w, "choices");
        json_w_arr(&p->w);
    }
    p->w.out = body;
    while (p->choice < n) {
        if (openai_part_full(p) || !choice(p, out)) return true;
        p->choice++;
        p->step = 0;
        p->at = 0;
    }
    json_w_end_arr(&p->w);
    openai_write_usage(&p->w, u);
    json_w_end_obj(&p->w);
    return false;
}
