/* The list of models in OpenAI's shape, with what a client must know to stay inside the limits. */
#include "serve/openai_models.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "serve/anthropic_models.h"
#include "serve/openai_wire.h"

static void write_model(json_writer *w, const cairn_server *s, const served_model *m)
{
    const cairn_model_info *info = &m->about->info;
    const char *alias;

    json_w_obj(w);
    json_w_kstr(w, "id", str_of(m->id));
    json_w_kstr(w, "object", STR_LIT("model"));
    json_w_kint(w, "created", s->started_unix_s);
    json_w_kstr(w, "owned_by", STR_LIT("cairn"));
    json_w_kint(w, "context_window", served_model_ctx(m));
    json_w_kstr(w, "family", str_of(info->family));
    json_w_kstr(w, "quantization", str_of(info->quant));
    json_w_kuint(w, "parameters", info->n_params);
    json_w_kbool(w, "reasoning", served_about_thinks(m->about));
    json_w_kbool(w, "vision", false); /* no model takes images yet */
    json_w_kbool(w, "embeds", m->about->only_embeds);
    json_w_kstr(w, "state", str_of(served_model_state_word(m)));
    json_w_key(w, "aliases");
    json_w_arr(w);
    for (size_t k = 0; (alias = models_alias(&s->models, m, k)); k++) json_w_str(w, str_of(alias));
    json_w_end_arr(w);
    json_w_end_obj(w);
}

void openai_models_list(cairn_server *s, http_req *rq)
{
    buf b;
    json_writer w;

    if (anthropic_asks(rq)) {
        anthropic_models_list(s, rq);
        return;
    }
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_kstr(&w, "object", STR_LIT("list"));
    json_w_key(&w, "data");
    json_w_arr(&w);
    for (size_t i = 0; i < s->models.n; i++) write_model(&w, s, models_nth(&s->models, i));
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}

void openai_models_one(cairn_server *s, http_req *rq)
{
    const char *id = http_path(rq) + strlen("/v1/models/");
    const served_model *m = models_find(&s->models, str_of(id));
    char why[sizeof((model_fault *)0)->message];
    buf b;
    json_writer w;

    if (anthropic_asks(rq)) {
        anthropic_models_one(s, rq, str_of(id));
        return;
    }
    if (!m) {
        models_unknown(&s->models, str_of(id), why, sizeof why);
        openai_error(rq, 404, "model", "model_not_found", "%s", why);
        return;
    }
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    write_model(&w, s, m);
    openai_reply(rq, &b);
    buf_deinit(&b);
}
