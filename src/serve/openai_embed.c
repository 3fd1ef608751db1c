/* OpenAI's embeddings, and Ollama's in its words: texts or lists of tokens to vectors, as numbers or as base64 of
   their bytes.  All of it runs as a job (jobs.h), in the lane of long ones whatever the body's size: steps take
   seconds, and no short prompt waits for them.  A client that leaves drops the job, and a request may have a time
   (--timeout): the step under way then is the last. */
#include "serve/openai_embed.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cairn/embed.h"
#include "serve/ollama_format.h"
#include "serve/ollama_read.h"
#include "serve/openai_input.h"
#include "serve/openai_wire.h"

enum { MOST_DIMENSIONS = 1 << 20 };

typedef struct embed_job embed_job;

/* How an API words this. */
typedef struct embed_shape {
    const char *input; /* the field */
    void (*refuse)(http_req *rq, int status, const char *param, const char *code,
                   const char *message);
    bool (*options)(embed_job *e, json_val root);
    void (*begin)(embed_job *e); /* the reply's object, up to the vectors; and after them */
    void (*vector)(embed_job *e, size_t index, cairn_str values);
    void (*end)(embed_job *e);
} embed_shape;

struct embed_job {
    job j;
    const embed_shape *shape;
    uint64_t begun_ns;
    cairn_server *s;
    http_req *rq;               /* I/O thread; good until the job is dropped */
    buf body;                   /* the worker's, like what follows, until it is done */
    const served_model *model;  /* held; NULL: none was found */
    const served_model *awaits; /* it has to be loaded first */
    bool waited;                /* for that, in vain unless it was given */
    cairn_embed_opts o;
    bool base64;
    int32_t n_vocab;
    input_list in;
    char (*name)[INPUT_NAME]; /* [in.n]: input, or input[0], … */
    const char **names;       /* [in.n] */
    int64_t n_tokens;
    buf reply;
    json_writer w;
    int status; /* 200, or of the error */
    int32_t retry_s;
    const char *param, *code;
    char at[sizeof((chat_fault *)0)->param]; /* param, where it is one of several texts */
    char message[600];
};

static const embed_shape openai_shape;

static bool refuse_with(embed_job *e, int status, const char *param, const char *code,
                        const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static bool refuse_with(embed_job *e, int status, const char *param, const char *code,
                        const char *fmt, ...)
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
    return refuse_with(e, f.status, f.param, f.code, "%s", f.message);
}

static bool find_model(embed_job *e, json_val root)
{
    const json_val asked = json_get(root, "model");
    const cairn_str name =
        e->shape == &openai_shape ? json_str(asked) : ollama_model_name(json_str(asked));
    cairn_embed_info info;
    cairn_model_info shape;
    if (json_typeof(asked) > JSON_NULL && json_typeof(asked) != JSON_STR)
        return refuse_with(e, 400, "model", "invalid_value", "`model` must be a string");
    if (!take_model(e, name)) return false;
    cairn_embed_info_init(&info);
    cairn_embed_get_info(e->model->model, &info);
    cairn_model_info_init(&shape);
    cairn_model_get_info(e->model->model, &shape);
    e->n_vocab = shape.vocab;
    if (info.embeds) return true;
    return refuse_with(e, 400, "model", "invalid_value", "the model `%s` is no embedding model",
                       e->model->id);
}

static bool option(embed_job *e, const char *param, cairn_status st, const cairn_diag *dg)
{
    return st == CAIRN_OK || refuse_with(e, openai_status(st), st == CAIRN_E_ARG ? param : NULL,
                                         "invalid_value", "%s", dg->message);
}

static bool read_options(embed_job *e, json_val root)
{
    cairn_diag dg = {0};
    cairn_str format = STR_LIT("float");
    int64_t dimensions = 0;
    cairn_embed_opts *o = &e->o;
    cairn_embed_opts_init(o);
    if (!option(e, "encoding_format", json_want_str(root, "encoding_format", &format, &dg), &dg) ||
        !option(e, "dimensions",
                json_want_int(root, "dimensions", 1, MOST_DIMENSIONS, &dimensions, &dg), &dg) ||
        !option(e, "prompt_name", json_want_str(root, "prompt_name", &o->prompt_name, &dg), &dg) ||
        !option(e, "prompt", json_want_str(root, "prompt", &o->prompt, &dg), &dg) ||
        !option(e, "truncate", json_want_bool(root, "truncate", &o->truncate, &dg), &dg))
        return false;
    o->dimensions = (int32_t)dimensions;
    if (o->prompt.ptr && o->prompt_name.len)
        return refuse_with(e, 400, "prompt", "invalid_value",
                           "`prompt` stands beside `prompt_name`; expected one of them");
    e->base64 = str_is(format, "base64");
    return e->base64 || str_is(format, "float") ||
           refuse_with(e, 400, "encoding_format", "invalid_value",
                       "`encoding_format` is \"%.*s\"; expected float or base64", STR_ARG(format));
}

static bool no_memory(embed_job *e)
{
    return refuse_with(e, 503, NULL, "out_of_memory", "no memory for the request");
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
    return refuse_with(e, 400, asked, "invalid_value",
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
        return refuse_with(e, 400, e->at, "invalid_value", "%s", f.dg.message);
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
        (void)refuse_with(e, 503, NULL, "out_of_memory", "no memory for the answer");
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
    if (!option(e, "dimensions", st, &dg)) return false;
    if (e->o.prompt_name.len == 0) return true;
    st = cairn_embed(m, &text, 0, &e->o, put_vector, e, &dg);
    return option(e, "prompt_name", st, &dg);
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
    return refuse_with(e, 503, NULL, "deadline_exceeded",
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
        (void)refuse_with(e, 400, e->shape->input, "reply_too_large",
                          "the vectors take more than the %zu bytes that a reply may have here; "
                          "expected fewer texts or `dimensions`, or `encoding_format` base64",
                          e->reply.max);
    else if (st != CAIRN_OK)
        (void)refuse_with(e, openai_status(st),
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
        (void)refuse_with(e, openai_status(dg.status), NULL, "invalid_json",
                          "invalid JSON body: %s", dg.message);
    else if (json_typeof(json_root(doc)) != JSON_OBJ)
        (void)refuse_with(e, 400, NULL, "invalid_json", "the body must be a JSON object, found %s",
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

static void serve(cairn_server *s, http_req *rq, const embed_shape *shape)
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

static void openai_begin(embed_job *e)
{
    json_w_obj(&e->w);
    json_w_kstr(&e->w, "object", STR_LIT("list"));
    json_w_kstr(&e->w, "model", str_of(e->model->id));
    json_w_key(&e->w, "data");
    json_w_arr(&e->w);
}

static void openai_vector(embed_job *e, size_t index, cairn_str values)
{
    json_w_obj(&e->w);
    json_w_kstr(&e->w, "object", STR_LIT("embedding"));
    json_w_kint(&e->w, "index", (int64_t)index);
    json_w_key(&e->w, "embedding");
    json_w_raw(&e->w, values);
    json_w_end_obj(&e->w);
}

static void openai_end(embed_job *e)
{
    json_w_end_arr(&e->w);
    json_w_key(&e->w, "usage");
    json_w_obj(&e->w);
    json_w_kint(&e->w, "prompt_tokens", e->n_tokens);
    json_w_kint(&e->w, "total_tokens", e->n_tokens);
    json_w_end_obj(&e->w);
    json_w_end_obj(&e->w);
}

static const embed_shape openai_shape = {"input",      openai_refuse, read_options,
                                         openai_begin, openai_vector, openai_end};

/* Ollama cuts what is too long unless told otherwise. */
static bool ollama_options(embed_job *e, json_val root)
{
    cairn_diag dg = {0};
    int64_t dimensions = 0;
    bool has_keep = false;
    int64_t keep_ms = 0;
    cairn_embed_opts_init(&e->o);
    e->o.truncate = true;
    if (!option(e, "keep_alive", ollama_keep_read(root, &has_keep, &keep_ms, &dg), &dg) ||
        !option(e, "dimensions",
                json_want_int(root, "dimensions", 0, MOST_DIMENSIONS, &dimensions, &dg), &dg) ||
        !option(e, "truncate", json_want_bool(root, "truncate", &e->o.truncate, &dg), &dg))
        return false;
    if (has_keep) served_model_keep(e->model, keep_ms);
    e->o.dimensions = (int32_t)dimensions;
    return true;
}

static void ollama_begin(embed_job *e)
{
    json_w_obj(&e->w);
    json_w_kstr(&e->w, "model", str_of(e->model->id));
    json_w_key(&e->w, "embeddings");
    json_w_arr(&e->w);
}

static void ollama_vector(embed_job *e, size_t index, cairn_str values)
{
    (void)index;
    json_w_raw(&e->w, values);
}

static void ollama_end(embed_job *e)
{
    json_w_end_arr(&e->w);
    json_w_kuint(&e->w, "total_duration", clock_ns() - e->begun_ns);
    json_w_kuint(&e->w, "load_duration", 0);
    json_w_kint(&e->w, "prompt_eval_count", e->n_tokens);
    json_w_end_obj(&e->w);
}

/* Its older route has one text and one vector. */
static void ollama_old_begin(embed_job *e)
{
    json_w_obj(&e->w);
    json_w_key(&e->w, "embedding");
}

static void ollama_old_end(embed_job *e)
{
    json_w_end_obj(&e->w);
}

static bool ollama_old_options(embed_job *e, json_val root)
{
    if (json_typeof(json_get(root, "prompt")) != JSON_STR)
        return refuse_with(e, 400, "prompt", NULL, "`prompt` must be a string");
    return ollama_options(e, root);
}

static const embed_shape ollama_shape = {"input",      ollama_refuse, ollama_options,
                                         ollama_begin, ollama_vector, ollama_end};
static const embed_shape ollama_old_shape = {"prompt",         ollama_refuse, ollama_old_options,
                                             ollama_old_begin, ollama_vector, ollama_old_end};

void openai_embed_serve(cairn_server *s, http_req *rq)
{
    serve(s, rq, &openai_shape);
}

void ollama_embed_serve(cairn_server *s, http_req *rq)
{
    serve(s, rq, &ollama_shape);
}

void ollama_embeddings_serve(cairn_server *s, http_req *rq)
{
    serve(s, rq, &ollama_old_shape);
}
