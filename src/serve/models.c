/* The table of models: their names, and what is said of each.  models_load.c says when one is opened and closed. */
#include "serve/models.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/str.h"
#include "cairn/embed.h"
#include "serve/models_priv.h"

enum { RETRY_MS = 10000 }; /* a file that was being written is whole then, perhaps */

static model_slot *slot_of(const model_table *t, cairn_str name)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_is(name, t->slot[i].view.id)) return &t->slot[i];
    for (size_t i = 0; i < t->n_alias; i++)
        if (str_is(name, t->alias[i].name)) return t->alias[i].of;
    return NULL;
}

static model_slot *slot_or_default(const model_table *t, cairn_str name)
{
    if (name.len) return slot_of(t, name);
    return t->n == 1 ? &t->slot[0] : t->by_default;
}

static cairn_status copy_name(const char *from, char **out, cairn_diag *dg)
{
    const size_t size = strlen(from) + 1;

    *out = mem_alloc(size, MEM_SERVE);
    if (!*out) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a model's name");
    memcpy(*out, from, size);
    return CAIRN_OK;
}

static void describe(model_slot *s)
{
    const struct cairn_text *t = cairn_model_text(s->view.model);
    cairn_server_about *a = &s->own;
    cairn_embed_info e;

    cairn_embed_info_init(&e);
    cairn_embed_get_info(s->view.model, &e);
    cairn_model_info_init(&a->info);
    cairn_model_get_info(s->view.model, &a->info);
    a->embeds = e.embeds;
    a->only_embeds = !s->view.engine;
    if (t) a->chat_template = cairn_text_template(t, false);
    if (t) a->tools_template = cairn_text_template(t, true);
    a->ctx_len = served_model_ctx(&s->view);
    s->view.about = a;
}

static cairn_status add(model_table *t, const cairn_server_model *from, cairn_diag *dg)
{
    model_slot *s = &t->slot[t->n];

    if (!from->id || !from->id[0] || (!from->engine && !from->model && !from->about))
        return diag_set(dg, CAIRN_E_ARG,
                        "model %zu has no id, or neither engine nor model; expected both",
                        t->n + 1);
    if (slot_of(t, str_of(from->id)))
        return diag_set(dg, CAIRN_E_ARG, "two models are called %s; expected a name for each",
                        from->id);
    TRY(copy_name(from->id, &s->view.id, dg));
    t->n++;
    s->table = t;
    s->view.slot = s;
    s->view.engine = from->engine;
    s->view.model = from->engine ? cairn_engine_model(from->engine) : from->model;
    s->view.about = from->about;
    s->stays = !from->about;
    s->bytes = from->bytes;
    s->pinned = s->stays || from->pinned;
    s->keep_ms = t->keep_ms;
    model_used(s, models_now_ms());
    if (s->view.model) s->state = MODEL_LOADED;
    if (s->stays) describe(s);
    if (s->view.model) s->ctx_len = served_model_ctx(&s->view);
    return CAIRN_OK;
}

static cairn_status add_alias(model_table *t, const cairn_server_alias *from, cairn_diag *dg)
{
    model_alias *a = &t->alias[t->n_alias];

    if (!from->name || !from->name[0] || !from->id)
        return diag_set(dg, CAIRN_E_ARG, "an alias has no name or no id; expected both");
    if (slot_of(t, str_of(from->name)))
        return diag_set(dg, CAIRN_E_ARG,
                        "alias %s: a model or an alias has that name; expected another",
                        from->name);
    a->of = slot_of(t, str_of(from->id));
    if (!a->of)
        return diag_set(dg, CAIRN_E_ARG, "alias %s: no model is called %s", from->name, from->id);
    TRY(copy_name(from->name, &a->name, dg));
    t->n_alias++;
    return CAIRN_OK;
}

static cairn_status fill(model_table *t, const cairn_server_opts *o, cairn_diag *dg)
{
    t->slot = mem_calloc(o->n_models, sizeof *t->slot, MEM_SERVE);
    t->alias = mem_calloc(o->n_aliases, sizeof *t->alias, MEM_SERVE);
    if (!t->slot || !t->alias)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for %zu models", o->n_models);
    for (size_t i = 0; i < o->n_models; i++) TRY(add(t, &o->models[i], dg));
    for (size_t i = 0; i < o->n_aliases; i++) TRY(add_alias(t, &o->aliases[i], dg));
    if (o->default_model > t->n)
        return diag_set(dg, CAIRN_E_ARG, "model %zu of %zu is the default", o->default_model, t->n);
    if (o->default_model) t->by_default = &t->slot[o->default_model - 1];
    return model_loader_start(t, dg);
}

cairn_status models_init(models *m, const cairn_server_opts *o, void (*notify)(void *ctx),
                         void *ctx, cairn_diag *dg)
{
    model_table *t;

    *m = (models){.keep_volatile = o->keep_volatile,
                  .timeout_ms = o->timeout_ms > 0 ? (uint64_t)o->timeout_ms : 0,
                  .host_bytes = o->model_bytes ? 0 : o->host_bytes};
    if (o->n_models == 0) return diag_set(dg, CAIRN_E_ARG, "a server needs at least one model");
    t = mem_calloc(1, sizeof *t, MEM_SERVE);
    if (!t) return diag_set(dg, CAIRN_E_NOMEM, "no memory for %zu models", o->n_models);
    mutex_init(&t->mu);
    cond_init(&t->news);
    t->bytes = o->model_bytes;
    t->keep_ms = o->keep_ms > 0 ? o->keep_ms : -1;
    t->retry_ms = o->retry_ms > 0 ? (uint64_t)o->retry_ms : RETRY_MS;
    t->notify = notify;
    t->ctx = ctx;
    t->open = o->open_model;
    t->close = o->close_model;
    t->stop = o->stop_opening;
    t->open_ctx = o->models_ctx;
    m->table = t;
    m->n = o->n_models;
    return fill(t, o, dg);
}

void models_deinit(models *m)
{
    model_table *t = m->table;

    if (!t) return;
    models_stop(m);
    for (size_t i = 0; i < t->n; i++) {
        assert(t->slot[i].refs == 0);
        mem_free(t->slot[i].view.id);
    }
    for (size_t i = 0; i < t->n_alias; i++) mem_free(t->alias[i].name);
    mem_free(t->slot);
    mem_free(t->alias);
    cond_deinit(&t->news);
    mutex_deinit(&t->mu);
    mem_free(t);
    *m = (models){0};
}

model_found models_take(const models *m, cairn_str name, const served_model *held,
                        const served_model **out)
{
    model_table *t = m->table;
    model_slot *s = slot_or_default(t, name);
    const uint64_t now = models_now_ms();
    model_found found = MODEL_AWAY;

    if (!s) return name.len ? MODEL_UNKNOWN : MODEL_UNNAMED;
    *out = &s->view;
    mutex_lock(&t->mu);
    if (s->state == MODEL_LOADED || held == &s->view) {
        s->refs++;
        model_used(s, now);
        found = MODEL_TAKEN;
    } else if (s->state == MODEL_BROKEN && now < s->retry_ms) {
        found = MODEL_FAILED;
    }
    mutex_unlock(&t->mu);
    return found;
}

const served_model *models_hold_nth(const models *m, size_t i, bool *leaves)
{
    model_slot *s = &m->table->slot[i];

    mutex_lock(&s->table->mu);
    const bool there = s->state == MODEL_LOADED || s->state == MODEL_DRAINING;
    if (leaves) *leaves = s->state == MODEL_UNLOADING;
    s->refs += there;
    mutex_unlock(&s->table->mu);
    return there ? &s->view : NULL;
}

void served_model_keep(const served_model *m, int64_t keep_ms)
{
    model_slot *s = m->slot;
    model_table *t = s->table;

    mutex_lock(&t->mu);
    s->keep_ms = keep_ms;
    if (!s->stays && !t->closing) t->notify(t->ctx);
    mutex_unlock(&t->mu);
}

int32_t served_model_why(const served_model *m, char *out, size_t size)
{
    model_slot *s = m->slot;
    const uint64_t now = models_now_ms();

    mutex_lock(&s->table->mu);
    (void)snprintf(out, size, "%s", s->why);
    const uint64_t left = s->retry_ms > now ? s->retry_ms - now : 0;
    mutex_unlock(&s->table->mu);
    return left > 1000 ? (int32_t)((left + 999) / 1000) : 1;
}

void models_unknown(const models *m, cairn_str name, char *out, size_t size)
{
    enum { REST = 16 }; /* of a text that more does not fit into */
    const model_table *t = m->table;
    size_t n;

    (void)snprintf(out, size, "the model `%.*s` does not exist; expected %s`%s`",
                   (int)(name.len < size / 3 ? name.len : size / 3), name.ptr,
                   t->n > 1 ? "one of " : "", t->slot[0].view.id);
    n = strlen(out);
    for (size_t i = 1; i < t->n; i++) {
        const char *id = t->slot[i].view.id;
        if (n + strlen(id) + REST > size) {
            (void)snprintf(out + n, size - n, ", …");
            return;
        }
        n += (size_t)snprintf(out + n, size - n, ", `%s`", id);
    }
}

void models_fault(const models *m, model_found got, bool waited, cairn_str name,
                  const served_model *of, model_fault *out)
{
    enum {
        LOADING_S = 5
    }; /* who finds no place among those that wait tries again; loading takes so long */
    const size_t size = sizeof out->message;
    char why[MODEL_WHY_BYTES];

    *out = (model_fault){.status = 503, .param = "model"};
    if (got == MODEL_UNKNOWN) {
        out->status = 404;
        out->code = "model_not_found";
        models_unknown(m, name, out->message, size);
    } else if (got == MODEL_UNNAMED) {
        out->status = 400;
        out->code = "invalid_value";
        (void)snprintf(out->message, size, "`model` is needed: there are several");
    } else if (got == MODEL_AWAY && !waited) {
        out->param = NULL;
        out->code = "model_loading";
        out->retry_s = LOADING_S;
        (void)snprintf(out->message, size, "the model `%s` is not loaded yet", of->id);
    } else {
        out->code = "model_failed";
        out->retry_s = served_model_why(of, why, sizeof why);
        (void)snprintf(out->message, size, "the model `%s` is not loaded: %s", of->id, why);
    }
}

const served_model *models_find(const models *m, cairn_str name)
{
    const model_slot *s = slot_or_default(m->table, name);

    return s ? &s->view : NULL;
}

const served_model *models_unnamed(const models *m)
{
    const served_model *one = models_find(m, (cairn_str){0});

    return one ? one : models_nth(m, 0);
}

const served_model *models_nth(const models *m, size_t i)
{
    return &m->table->slot[i].view;
}

model_state served_model_state(const served_model *m)
{
    return m->slot->state;
}

bool served_about_thinks(const cairn_server_about *a)
{
    return str_find(a->chat_template, STR_LIT("think"), 0) != SIZE_MAX ||
           str_find(a->chat_template, STR_LIT("reasoning"), 0) != SIZE_MAX;
}

bool served_about_takes_tools(const cairn_server_about *a)
{
    return str_find(a->tools_template, STR_LIT("tools"), 0) != SIZE_MAX;
}

const char *served_model_state_word(const served_model *m)
{
    static const char *const words[] = {
        [MODEL_UNLOADED] = "unloaded", [MODEL_LOADING] = "loading", [MODEL_LOADED] = "loaded",
        [MODEL_DRAINING] = "draining", [MODEL_BROKEN] = "failed",   [MODEL_UNLOADING] = "unloading",
    };

    return words[m->slot->state];
}

model_use served_model_use(const served_model *m)
{
    model_slot *s = m->slot;

    mutex_lock(&s->table->mu);
    const model_use u = {s->refs,   s->bytes,   s->n_loads,        s->n_failed,
                         s->pinned, s->keep_ms, slot_idle_until(s)};
    mutex_unlock(&s->table->mu);
    return u;
}

const char *models_alias(const models *m, const served_model *of, size_t k)
{
    const model_table *t = m->table;

    for (size_t i = 0; i < t->n_alias; i++)
        if (&t->alias[i].of->view == of && k-- == 0) return t->alias[i].name;
    return NULL;
}

const struct cairn_text *served_model_text(const served_model *m)
{
    return cairn_model_text(m->model);
}

int32_t served_model_ctx(const served_model *m)
{
    cairn_engine_stats st;
    cairn_embed_info info;

    if (!m->model) return m->slot->ctx_len ? m->slot->ctx_len : m->about->ctx_len;
    cairn_embed_info_init(&info);
    if (!m->engine) {
        cairn_embed_get_info(m->model, &info);
        return info.max_tokens;
    }
    cairn_engine_stats_init(&st);
    cairn_engine_get_stats(m->engine, &st);
    return st.ctx_len;
}
