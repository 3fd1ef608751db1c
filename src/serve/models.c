/* The models that a server offers: names for engines, and models that only embed, that the program
   opened.  Loading, swapping and unloading are not here yet. */
#include "serve/models.h"

#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/str.h"
#include "cairn/embed.h"

cairn_status models_init(models *m, const cairn_server_model *list, size_t n, cairn_diag *dg)
{
    *m = (models){0};
    if (n == 0) return diag_set(dg, CAIRN_E_ARG, "a server needs at least one model");
    m->list = mem_calloc(n, sizeof *m->list, MEM_SERVE);
    if (!m->list) return diag_set(dg, CAIRN_E_NOMEM, "no memory for %zu models", n);
    for (size_t i = 0; i < n; i++) {
        size_t size;

        if (!list[i].id || !list[i].id[0] || (!list[i].engine && !list[i].model))
            return diag_set(dg, CAIRN_E_ARG,
                            "model %zu has no id, or neither engine nor model; expected both",
                            i + 1);
        if (models_find(m, str_of(list[i].id)))
            return diag_set(dg, CAIRN_E_ARG, "two models are called %s; expected a name for each",
                            list[i].id);
        size = strlen(list[i].id) + 1;
        m->list[i].id = mem_alloc(size, MEM_SERVE);
        if (!m->list[i].id) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a model's name");
        memcpy(m->list[i].id, list[i].id, size);
        m->list[i].engine = list[i].engine;
        m->list[i].model = list[i].engine ? cairn_engine_model(list[i].engine) : list[i].model;
        m->n = i + 1;
    }
    return CAIRN_OK;
}

void models_deinit(models *m)
{
    for (size_t i = 0; i < m->n; i++) mem_free(m->list[i].id);
    mem_free(m->list);
    *m = (models){0};
}

const served_model *models_find(const models *m, cairn_str id)
{
    if (id.len == 0) return m->n == 1 ? &m->list[0] : NULL;
    for (size_t i = 0; i < m->n; i++)
        if (str_is(id, m->list[i].id)) return &m->list[i];
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

    cairn_embed_info_init(&info);
    if (!m->engine) {
        cairn_embed_get_info(m->model, &info);
        return info.max_tokens;
    }
    cairn_engine_stats_init(&st);
    cairn_engine_get_stats(m->engine, &st);
    return st.ctx_len;
}
