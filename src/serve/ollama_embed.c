/* Ollama's words for embeddings: POST /api/embed, and /api/embeddings, which it had before.  embed_job.c does the work. */
#include "serve/ollama_embed.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/embed_job.h"
#include "serve/json_member.h"
#include "serve/ollama_format.h"
#include "serve/ollama_read.h"

/* Ollama cuts what is too long unless told otherwise. */
static bool ollama_options(embed_job *e, json_val root)
{
    cairn_diag dg = {0};
    int64_t dimensions = 0;
    bool has_keep = false;
    int64_t keep_ms = 0;
    const json_val options = json_get(root, "options");
    cairn_embed_opts_init(&e->o);
    e->o.truncate = true;
    if (!embed_option(e, "keep_alive", ollama_keep_read(root, &has_keep, &keep_ms, &dg), &dg) ||
        !embed_option(e, "dimensions",
                      json_want_int(root, "dimensions", 0, EMBED_MOST_DIMENSIONS, &dimensions, &dg),
                      &dg) ||
        !embed_option(e, "truncate", json_want_bool(root, "truncate", &e->o.truncate, &dg), &dg))
        return false;
    if (json_typeof(options) > JSON_NULL &&
        json_typeof(options) != JSON_OBJ) /* of machines: none matters here */
        return embed_refuse(e, 400, "options", NULL, "`options` must be an object");
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
        return embed_refuse(e, 400, "prompt", NULL, "`prompt` must be a string");
    return ollama_options(e, root);
}

static const embed_shape ollama_shape = {"input",        ollama_model_name, ollama_refuse,
                                         ollama_options, ollama_begin,      ollama_vector,
                                         ollama_end};
static const embed_shape ollama_old_shape = {"prompt",           ollama_model_name, ollama_refuse,
                                             ollama_old_options, ollama_old_begin,  ollama_vector,
                                             ollama_old_end};

void ollama_embed_serve(cairn_server *s, http_req *rq)
{
    embed_serve(s, rq, &ollama_shape);
}

void ollama_embeddings_serve(cairn_server *s, http_req *rq)
{
    embed_serve(s, rq, &ollama_old_shape);
}
