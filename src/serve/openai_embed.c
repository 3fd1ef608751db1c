/* OpenAI's words for embeddings: POST /v1/embeddings.  embed_job.c does the work. */
#include "serve/openai_embed.h"

#include "base/json.h"
#include "base/str.h"
#include "serve/embed_job.h"
#include "serve/json_member.h"
#include "serve/openai_wire.h"

static bool read_options(embed_job *e, json_val root)
{
    cairn_diag dg = {0};
    cairn_str format = STR_LIT("float"), user;
    int64_t dimensions = 0;
    cairn_embed_opts *o = &e->o;
    cairn_embed_opts_init(o);
    if (!embed_option(e, "encoding_format", json_want_str(root, "encoding_format", &format, &dg),
                      &dg) ||
        !embed_option(e, "dimensions",
                      json_want_int(root, "dimensions", 1, EMBED_MOST_DIMENSIONS, &dimensions, &dg),
                      &dg) ||
        !embed_option(e, "prompt_name", json_want_str(root, "prompt_name", &o->prompt_name, &dg),
                      &dg) ||
        !embed_option(e, "prompt", json_want_str(root, "prompt", &o->prompt, &dg), &dg) ||
        !embed_option(e, "user", json_want_str(root, "user", &user, &dg), &dg) ||
        !embed_option(e, "truncate", json_want_bool(root, "truncate", &o->truncate, &dg), &dg))
        return false;
    o->dimensions = (int32_t)dimensions;
    if (o->prompt.ptr && o->prompt_name.len)
        return embed_refuse(e, 400, "prompt", "invalid_value",
                            "`prompt` stands beside `prompt_name`; expected one of them");
    e->base64 = str_is(format, "base64");
    return e->base64 || str_is(format, "float") ||
           embed_refuse(e, 400, "encoding_format", "invalid_value",
                        "`encoding_format` is \"%.*s\"; expected float or base64", STR_ARG(format));
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

static const embed_shape openai_shape = {"input",      NULL,          openai_refuse, read_options,
                                         openai_begin, openai_vector, openai_end};

void openai_embed_serve(cairn_server *s, http_req *rq)
{
    embed_serve(s, rq, &openai_shape);
}
