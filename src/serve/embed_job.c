/* Embeddings, whichever API asks: texts or lists of tokens to vectors, as numbers or as base64 of
   their bytes.  All of it runs as a job (jobs.h), in the lane of long ones whatever the body's size: steps take
   seconds, and no short prompt waits for them.  A client that leaves drops the job, and a request may have a time
   (--timeout): the step under way then is the last.  How each API words it: openai_embed.c, ollama_embed.c. */
#include "serve/embed_job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cairn/embed.h"
#include "serve/openai_wire.h"

bool embed_refuse(embed_job *e, int status, const char *param, const char *code, const char *fmt,
                  ...)
{
    va_list ap;
    e->status = status;
    e->param = param;
    e->code = code;
    va_start(ap, fmt);
    (void)vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    return false;
}

static bool take_model(embed_job *e, cairn_str name)
{
    const models *m = &e->s->models;
    const served_model *found = NULL;
    const model_found got = models_take(m, name, e->j.given, &found);
    model_fault f;
    if (got == MODEL_TAKEN) {
        e->model = found;
        e->retry_s = 0; /* as the first time left it, before the wait */
        return true;
    }
    if (got == MODEL_AWAY && !e->waited) e->awaits = found;
    models_fault(m, got, e->waited, name, found, &f);
    e->retry_s = f.retry_s;
    return embed_refuse(e, f.status, f.param, f.code, "%s", f.message);
}

static bool find_model(embed_job *e, json_val root)
{
    const json_val asked = json_get(root, "model");
    const cairn_str name = e->shape->model ? e->shape->model(json_str(asked)) : json_str(asked);
    cairn_embed_info info;
    cairn_model_info shape;
    if (json_typeof(asked) > JSON_NULL && json_typeof(asked) != JSON_STR)
        return embed_refuse(e, 400, "model", "invalid_value", "`model` must be a string");
    if (!take_model(e, name)) return false;
    cairn_embed_info_init(&info);
    cairn_embed_get_info(e->model->model, &info);
    cairn_model_info_init(&shape);
    cairn_model_get_info(e->model->model, &shape);
    e->n_vocab = shape.vocab;
    if (info.embeds) return true;
    return embed_refuse(e, 400, "model", "invalid_value", "the model `%s` is no embedding model",
                        e->model->id);
}

bool embed_option(embed_job *e, const char *param, cairn_status st, const cairn_diag *dg)
{
    return st == CAIRN_OK || embed_refuse(e, openai_status(st), st == CAIRN_E_ARG ? param : NULL,
                                          "invalid_value", "%s", dg->message);
}

static bool no_memory(embed_job *e)
{
    return embed_refuse(e, 503, NULL, "out_of_memory", "no memory for the request");
}

/* Each text by its place, for messages. */
static bool name_all(embed_job *e)
{
    e->name = mem_calloc(e->in.n, sizeof *e->name, MEM_SERVE);
    e->names = mem_calloc(e->in.n, sizeof *e->names, MEM_SERVE);
    if (!e->name || !e->names) return no_memory(e);
    for (size_t i = 0; i < e->in.n; i++) {
        input_name(&e->in, e->shape->input, i, e->name[i]);
        e->names[i] = e->name[i];
    }
    e->o.names = e->names;
    return true;
}

/* A prompt is text before text: what it would be before tokens is not for us to say. */
static bool check_prompt(embed_job *e)
{
    const char *asked = e->o.prompt.len ? "prompt" : e->o.prompt_name.len ? "prompt_name" : NULL;
    if (!e->in.lists || !asked) return true;
    return embed_refuse(
        e, 400, asked, "invalid_value",
        "`%s` goes before texts, and `input` holds token ids; expected texts, or no "
        "`%s`",
        asked, asked);
}

static bool read_input(embed_job *e, json_val v)
{
    chat_fault f = {0};
    const cairn_status st =
        input_read(&e->in, v, e->shape->input, e->n_vocab, CAIRN_MAX_EMBED_TEXTS, &f);
    if (st == CAIRN_E_NOMEM) return no_memory(e);
    if (st != CAIRN_OK) {
        (void)snprintf(e->at, sizeof e->at, "%s", f.param);
        return embed_refuse(e, 400, e->at, "invalid_value", "%s", f.dg.message);
    }
    return name_all(e) && check_prompt(e);
}

/* Four characters for each three bytes. */
static void put_base64(buf *out, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i < 3 ? n - i : 3;
        uint32_t w = 0;
        char c[4];
        for (size_t k = 0; k < 3; k++) w = w << 8 | (k < left ? p[i + k] : 0);
        for (size_t k = 0; k < 4; k++) c[k] = k > left ? '=' : digits[w >> (18 - 6 * k) & 63];
        buf_put(out, c, sizeof c);
    }
}

/* The vector's elements as JSON, or their bytes as a string of it. */
static void put_values(const cairn_embedding *v, bool base64, buf *out)
{
    if (base64) {
        buf_byte(out, '"');
        put_base64(out, v->values, (size_t)v->n_values * sizeof *v->values);
        buf_byte(out, '"');
        return;
    }
    for (int32_t i = 0; i < v->n_values; i++)
        buf_printf(out, "%s%.9g", i ? "," : "[", (double)v->values[i]);
    buf_byte(out, ']');
}

static bool put_vector(void *ctx, const cairn_embedding *v)
{
    embed_job *e = ctx;
    buf text;
    buf_init(&text, MEM_SERVE);
    put_values(v, e->base64, &text);
    e->shape->vector(e, v->index, buf_view(&text));
    e->n_tokens += v->n_tokens;
    const bool fine = buf_status(&text) == CAIRN_OK && buf_status(&e->reply) == CAIRN_OK;
    buf_deinit(&text);
    if (!fine && !e->reply.over_limit)
        (void)embed_refuse(e, 503, NULL, "out_of_memory", "no memory for the answer");
    return fine;
}

/* Whether the model takes the options: there is no text that could be at fault. */
static bool try_options(embed_job *e)
{
    const cairn_model *m = e->model->model;
    const cairn_str text = {0};
    const cairn_ids ids = {0};
    cairn_diag dg = {0};
    cairn_status st = cairn_embed_ids(m, &ids, 0, &e->o, put_vector, e, &dg);
    if (!embed_option(e, "dimensions", st, &dg)) return false;
    if (e->o.prompt_name.len == 0) return true;
    st = cairn_embed(m, &text, 0, &e->o, put_vector, e, &dg);
    return embed_option(e, "prompt_name", st, &dg);
}

/* The text that the message begins with. */
static const char *at_fault(const embed_job *e, const cairn_diag *dg)
{
    for (size_t i = 0; e->names && i < e->in.n; i++) {
        const size_t n = strlen(e->names[i]);
        if (strncmp(dg->message, e->names[i], n) == 0 && dg->message[n] == ':') return e->names[i];
    }
    return e->shape->input;
}

static bool is_late(const embed_job *e)
{
    const uint64_t ms = e->s->models.timeout_ms;
    return ms && http_now_ms() >= e->j.came_ms + ms;
}

static bool goes_on(void *ctx)
{
    const embed_job *e = ctx;
    return !is_late(e) && !jobs_is_dropped(&e->s->jobs, &e->j);
}

static bool refuse_late(embed_job *e)
{
    return embed_refuse(e, 503, NULL, "deadline_exceeded",
                        "the time of the request passed before its texts were computed");
}

static void embed(embed_job *e)
{
    cairn_diag dg = {0};
    const cairn_model *m = e->model->model;
    buf_init(&e->reply, MEM_SERVE);
    e->reply.max = e->s->most_text;
    e->w = json_write(&e->reply);
    e->shape->begin(e);
    e->o.go_on = goes_on;
    e->o.go_on_ctx = e;
    const input_list *in = &e->in;
    const cairn_status st = in->texts
                                ? cairn_embed(m, in->texts, in->n, &e->o, put_vector, e, &dg)
                                : cairn_embed_ids(m, in->lists, in->n, &e->o, put_vector, e, &dg);
    e->shape->end(e);
    if (st == CAIRN_E_CANCELLED)
        (void)refuse_late(e); /* or nobody hears it */
    else if (e->reply.over_limit)
        (void)embed_refuse(e, 400, e->shape->input, "reply_too_large",
                           "the vectors take more than the %zu bytes that a reply may have here; "
                           "expected fewer texts or `dimensions`, or `encoding_format` base64",
                           e->reply.max);
    else if (st != CAIRN_OK)
        (void)embed_refuse(e, openai_status(st),
                           st == CAIRN_E_LIMIT || st == CAIRN_E_ARG ? at_fault(e, &dg) : NULL,
                           st == CAIRN_E_LIMIT ? "context_length_exceeded" : "invalid_value", "%s",
                           dg.message);
}

/* Worker. */
static void work(job *j)
{
    embed_job *e = (embed_job *)j;
    cairn_diag dg = {0};
    json_doc *doc = NULL;
    e->status = 200;
    e->awaits = NULL;
    if (is_late(e))
        (void)refuse_late(e);
    else if (json_parse_any(buf_view(&e->body), &doc, &dg) != CAIRN_OK)
        (void)embed_refuse(e, openai_status(dg.status), NULL, "invalid_json",
                           "invalid JSON body: %s", dg.message);
    else if (json_typeof(json_root(doc)) != JSON_OBJ)
        (void)embed_refuse(e, 400, NULL, "invalid_json", "the body must be a JSON object, found %s",
                           json_type_name(json_typeof(json_root(doc))));
    else if (find_model(e, json_root(doc)) && e->shape->options(e, json_root(doc)) &&
             try_options(e) && read_input(e, json_get(json_root(doc), e->shape->input)))
        embed(e);
    json_free(doc);
}

static void refuse_for(const embed_job *e)
{
    char wait[16];
    (void)snprintf(wait, sizeof wait, "%d", (int)e->retry_s);
    if (e->retry_s) http_set_header(e->rq, "Retry-After", wait);
    e->shape->refuse(e->rq, e->status, e->param, e->code, e->message);
}

static bool done(job *j)
{
    embed_job *e = (embed_job *)j;
    if (j->late) {
        http_on_gone(e->rq, NULL, NULL);
        e->shape->refuse(e->rq, 503, NULL, "deadline_exceeded",
                         "the time of the request passed before its model was loaded");
        return true;
    }
    if (e->awaits && jobs_park(&e->s->jobs, j, e->awaits) == CAIRN_OK) {
        models_want(&e->s->models, e->awaits, http_now_ms());
        e->waited = true;
        return false;
    }
    http_on_gone(e->rq, NULL, NULL);
    if (e->status == 200)
        openai_reply(e->rq, &e->reply);
    else
        refuse_for(e);
    return true;
}

static void refuse(job *j)
{
    const embed_job *e = (embed_job *)j;
    e->shape->refuse(e->rq, 503, NULL, "server_shutdown", "the server is shutting down");
}

static void release(job *j)
{
    embed_job *e = (embed_job *)j;
    served_model_let_go(e->model);
    served_model_let_go(e->j.given);
    input_deinit(&e->in);
    mem_free(e->names);
    mem_free(e->name);
    buf_deinit(&e->body);
    buf_deinit(&e->reply);
    mem_free(e);
}

static void on_gone(void *user)
{
    embed_job *e = user;
    jobs_drop(&e->s->jobs, &e->j);
}

void embed_serve(cairn_server *s, http_req *rq, const embed_shape *shape)
{
    static const job_kind kind = {work, done, refuse, release};
    embed_job *e = mem_calloc(1, sizeof *e, MEM_SERVE);
    if (!e) {
        shape->refuse(rq, 503, NULL, "out_of_memory", "no memory for the request");
        return;
    }
    e->j.kind = &kind;
    e->shape = shape;
    e->begun_ns = clock_ns();
    e->s = s;
    e->rq = rq;
    http_take_body(rq, &e->body);
    e->j.bytes = e->body.len > JOBS_SHORT_BYTES ? e->body.len : JOBS_SHORT_BYTES + 1;
    http_on_gone(rq, on_gone, e);
    if (jobs_put(&s->jobs, &e->j) == CAIRN_OK) return;
    http_on_gone(rq, NULL, NULL);
    release(&e->j);
    http_set_header(rq, "Retry-After", "1");
    shape->refuse(rq, 503, NULL, "prompts_full", "too many requests are waiting");
}
