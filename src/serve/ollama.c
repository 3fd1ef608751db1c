/* Ollama's routes: chat and generate by the same way as the other APIs', and what its clients look up first.  To look
   at a model loads none. */
#include "serve/ollama.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "serve/endpoint.h"
#include "serve/ollama_format.h"
#include "serve/ollama_read.h"
#include "serve/openai_wire.h"
#include "serve/prompt.h"
#include "serve/random.h"

enum { SHOW_MAX_BODY = 64 << 10 }; /* a name; it is read on the I/O thread */

/* Clients compare it to know which fields they may send: the one whose routes these are. */
#define PROTOCOL_VERSION "0.12.0"

/* What is asked for and this model, or this server, lacks. */
static bool check_able(prompt *p)
{
    const cairn_server_about *about = p->model->about;
    const int32_t ctx = served_model_ctx(p->model);

    if (p->ask.want_ctx > ctx)
        return prompt_refuse(p, 400, "options.num_ctx", NULL,
                             "`options.num_ctx` is %d; expected at most %d, the context of the "
                             "model `%s` here",
                             (int)p->ask.want_ctx, (int)ctx, p->model->id);
    if (p->ask.think == 1 && !served_about_thinks(about))
        return prompt_refuse(p, 400, "think", NULL,
                             "`think` is set, and the model `%s` does not support thinking",
                             p->model->id);
    return true;
}

static bool fault_is(const prompt *p, const char *message)
{
    return p->fault.status && strcmp(p->fault.message, message) == 0;
}

/* Clients load a model so before they need it, and let it go. */
static void make_loaded(prompt *p, const models *m, bool chat, cairn_str body)
{
    *p = (prompt){.client = p->client};
    if (!prompt_read(p, ollama_load_read, body)) return;
    const bool goes = p->ask.has_keep && p->ask.keep_ms == 0;
    const served_model *found = models_find(m, p->ask.model);
    if (goes && found)
        served_model_keep(found, 0);
    else if (prompt_find_model(p, m, p->ask.model))
        found = p->model;
    else
        return;
    buf_init(&p->text, MEM_SERVE);
    ollama_put_loaded(found->id, chat, goes ? "unload" : "load", &p->text);
}

static void check_made(prompt *p)
{
    if (!p->fault.status && !p->text.len) (void)check_able(p);
    if (p->fault.status) prompt_deinit(p);
}

/* Workers. */
static void make_chat(prompt *p, const models *m, cairn_str body)
{
    prompt_make(p, m, ollama_chat_read, body);
    if (fault_is(p, OLLAMA_NOTHING)) make_loaded(p, m, true, body);
    check_made(p);
}

/* The text as it is, with BOS where the model has one. */
static bool make_raw(prompt *p, const models *m, cairn_str body)
{
    cairn_diag dg = {0};

    *p = (prompt){.client = p->client};
    if (!prompt_read(p, ollama_raw_read, body) || !prompt_find_engine(p, m) ||
        !prompt_check_bias(p))
        return false;
    const struct cairn_text *t = served_model_text(p->model);
    const cairn_str text = json_str(json_get(json_root(p->ask.doc), "prompt"));
    if (!t) return prompt_refuse_as(p, CAIRN_E_ARG, "prompt", "the model has no tokenizer");
    if (!prompt_fits(p, "prompt", "at least ", cairn_text_least_ids(t, text))) return false;
    p->ids = mem_calloc(1, sizeof *p->ids, MEM_SERVE);
    if (!p->ids) return prompt_no_memory(p);
    p->n_ids = 1;
    const cairn_status st = cairn_text_encode_prompt(t, text, &p->ids[0], &dg);
    if (st != CAIRN_OK) return prompt_refuse_as(p, st, "prompt", dg.message);
    if (!p->ask.has_seed) p->ask.rq.sampling.seed = random_seed();
    p->ask.rq.any_seed = !p->ask.has_seed;
    return prompt_fits(p, "prompt", "", p->ids[0].len);
}

/* A model without a chat template completes texts. */
static void make_generate(prompt *p, const models *m, cairn_str body)
{
    prompt_make(p, m, ollama_generate_read, body);
    if (fault_is(p, OLLAMA_NOTHING))
        make_loaded(p, m, false, body);
    else if (fault_is(p, OLLAMA_RAW) ||
             (p->fault.status && p->fault.code && strcmp(p->fault.code, "no_chat_template") == 0))
        (void)make_raw(p, m, body);
    check_made(p);
}

void ollama_chat_serve(cairn_server *s, http_req *rq)
{
    static const endpoint chat = {.format = &ollama_chat_format, .make = make_chat, .direct = true};

    endpoint_serve(s, rq, &chat);
}

void ollama_generate_serve(cairn_server *s, http_req *rq)
{
    static const endpoint generate = {
        .format = &ollama_generate_format, .make = make_generate, .direct = true};

    endpoint_serve(s, rq, &generate);
}

static void write_details(json_writer *w, const cairn_model_info *info)
{
    const cairn_str family = str_of(info->family ? info->family : "");
    char size[32];

    (void)snprintf(size, sizeof size, info->n_params >= 1000000000U ? "%.1fB" : "%.2fM",
                   (double)info->n_params / (info->n_params >= 1000000000U ? 1e9 : 1e6));
    json_w_key(w, "details");
    json_w_obj(w);
    json_w_kstr(w, "parent_model", STR_LIT(""));
    json_w_kstr(w, "format", str_of(info->format ? info->format : ""));
    json_w_kstr(w, "family", family);
    json_w_key(w, "families");
    json_w_arr(w);
    json_w_str(w, family);
    json_w_end_arr(w);
    json_w_kstr(w, "parameter_size", str_of(size));
    json_w_kstr(w, "quantization_level", str_of(info->quant ? info->quant : ""));
    json_w_end_obj(w);
}

/* What stands for the model's files, which are not read again for it: the same for the same shape and name. */
static void write_digest(json_writer *w, const char *id, const cairn_model_info *info)
{
    uint8_t d[32];
    char text[2 * sizeof d + 1];
    sha256 h;

    sha256_init(&h);
    sha256_add(&h, id, strlen(id));
    sha256_add(&h, &info->file_bytes, sizeof info->file_bytes);
    sha256_add(&h, &info->n_params, sizeof info->n_params);
    sha256_end(&h, d);
    for (size_t i = 0; i < sizeof d; i++) (void)snprintf(text + 2 * i, 3, "%02x", d[i]);
    json_w_kstr(w, "digest", str_of(text));
}

/* In wall time. */
static int64_t expires_s(const cairn_server *s, const served_model *m)
{
    const int64_t far_s = INT64_C(100) * 365 * 86400; /* it stays until the server ends */
    const model_use u = served_model_use(m);
    const uint64_t now = http_now_ms(), from = u.refs ? now : u.closes_ms;
    const uint64_t until = u.refs && u.keep_ms > 0 ? now + (uint64_t)u.keep_ms : from;
    const bool stays = u.pinned || u.keep_ms < 0 || until > now + (uint64_t)far_s * 1000;

    if (stays) return s->started_unix_s + far_s;
    return clock_unix_s() + (until > now ? (int64_t)((until - now) / 1000) : 0);
}

static void write_model(json_writer *w, const cairn_server *s, const served_model *m, bool running)
{
    const cairn_model_info *info = &m->about->info;

    json_w_obj(w);
    json_w_kstr(w, "name", str_of(m->id));
    json_w_kstr(w, "model", str_of(m->id));
    if (!running) ollama_write_time(w, "modified_at", s->started_unix_s);
    json_w_kuint(w, "size", info->file_bytes);
    write_digest(w, m->id, info);
    write_details(w, info);
    if (running) {
        ollama_write_time(w, "expires_at", expires_s(s, m));
        json_w_kuint(w, "size_vram", 0);
        json_w_kint(w, "context_length", served_model_ctx(m));
    }
    json_w_end_obj(w);
}

static void list_models(const cairn_server *s, http_req *rq, bool running)
{
    buf b;
    json_writer w;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_key(&w, "models");
    json_w_arr(&w);
    for (size_t i = 0; i < s->models.n; i++) {
        const served_model *m = models_nth(&s->models, i);
        if (!running || m->model) write_model(&w, s, m, running);
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}

void ollama_tags_serve(cairn_server *s, http_req *rq)
{
    list_models(s, rq, false);
}

void ollama_running_serve(cairn_server *s, http_req *rq)
{
    list_models(s, rq, true);
}

void ollama_version_serve(cairn_server *s, http_req *rq)
{
    buf b;
    json_writer w;

    (void)s;
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_kstr(&w, "version", STR_LIT(PROTOCOL_VERSION));
    json_w_kstr(&w, "cairn", str_of(cairn_version()));
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}

static void write_of_family(json_writer *w, const char *family, const char *what, int64_t v)
{
    char key[96];

    (void)snprintf(key, sizeof key, "%.60s.%s", family, what);
    json_w_kint(w, key, v);
}

static void write_shape(json_writer *w, const served_model *m, const cairn_model_info *info)
{
    const char *family = info->family ? info->family : "";

    json_w_key(w, "model_info");
    json_w_obj(w);
    json_w_kstr(w, "general.architecture", str_of(family));
    json_w_kuint(w, "general.parameter_count", info->n_params);
    write_of_family(w, family, "context_length", served_model_ctx(m)); /* what requests may use */
    write_of_family(w, family, "embedding_length", info->hidden);
    write_of_family(w, family, "block_count", info->n_layer);
    write_of_family(w, family, "attention.head_count", info->n_head);
    write_of_family(w, family, "attention.head_count_kv", info->n_kv_head);
    write_of_family(w, family, "vocab_size", info->vocab);
    json_w_end_obj(w);
}

static void write_abilities(json_writer *w, const served_model *m)
{
    const cairn_server_about *a = m->about;
    const bool writes = !a->only_embeds;

    json_w_key(w, "capabilities");
    json_w_arr(w);
    if (writes) json_w_str(w, STR_LIT("completion"));
    if (writes && served_about_takes_tools(a)) json_w_str(w, STR_LIT("tools"));
    if (writes && served_about_thinks(a)) json_w_str(w, STR_LIT("thinking"));
    if (a->embeds) json_w_str(w, STR_LIT("embedding"));
    json_w_end_arr(w);
}

static void show_model(const cairn_server *s, http_req *rq, const served_model *m)
{
    const cairn_model_info *info = &m->about->info;
    const cairn_str template = m->about->chat_template;
    buf b;
    json_writer w;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_kstr(&w, "modelfile", STR_LIT(""));
    json_w_kstr(&w, "parameters", STR_LIT(""));
    json_w_kstr(&w, "template", template.len ? template : STR_LIT(""));
    write_details(&w, info);
    write_shape(&w, m, info);
    write_abilities(&w, m);
    ollama_write_time(&w, "modified_at", s->started_unix_s);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}

static void not_found(const cairn_server *s, http_req *rq, cairn_str name)
{
    char text[500];

    models_unknown(&s->models, name, text, sizeof text);
    ollama_refuse(rq, 404, NULL, NULL, text);
}

/* What it may be asked for beside the model: NULL, or what is wrong. */
static const char *show_fault(json_val root)
{
    const json_val name = json_get(root, "name"), verbose = json_get(root, "verbose");

    if (json_typeof(name) > JSON_NULL && json_typeof(name) != JSON_STR)
        return "`name` must be a string";
    if (json_typeof(verbose) > JSON_NULL && json_typeof(verbose) != JSON_BOOL)
        return "`verbose` must be true or false";
    return NULL;
}

void ollama_show_serve(cairn_server *s, http_req *rq)
{
    json_doc *d = NULL;
    cairn_diag dg = {0};

    if (http_body(rq).len > SHOW_MAX_BODY) {
        ollama_refuse(rq, 413, NULL, NULL,
                      "the body is longer than 64 KiB; expected a model's name");
        return;
    }
    if (json_parse_any(http_body(rq), &d, &dg) != CAIRN_OK) {
        ollama_refuse(rq, 400, NULL, NULL, dg.message);
        return;
    }
    json_val asked = json_get(json_root(d), "model");
    if (json_typeof(asked) <= JSON_NULL)
        asked = json_get(json_root(d), "name"); /* the older word */
    const cairn_str name = ollama_model_name(json_str(asked));
    const served_model *m = models_find(&s->models, name);
    const char *fault = show_fault(json_root(d));
    if (json_typeof(asked) != JSON_STR || !name.len)
        ollama_refuse(rq, 400, NULL, NULL, "`model` is needed, a string");
    else if (fault)
        ollama_refuse(rq, 400, NULL, NULL, fault);
    else if (!m)
        not_found(s, rq, name);
    else
        show_model(s, rq, m);
    json_free(d);
}
