/* The models that a server offers. */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "cairn/server.h"

typedef struct served_model {
    char *id;
    cairn_engine *engine;     /* borrowed; NULL: the model only embeds */
    const cairn_model *model; /* borrowed */
} served_model;

typedef struct models {
    served_model *list;
    size_t n;
    bool keep_volatile; /* as cairn_server_opts says, like the next */
    uint64_t host_bytes;
} models;

cairn_status models_init(models *m, const cairn_server_model *list, size_t n, cairn_diag *dg);
void models_deinit(models *m);
/* By exact id; an empty id means the only model.  NULL if there is none such. */
const served_model *models_find(const models *m, cairn_str id);
const struct cairn_text *served_model_text(const served_model *m); /* NULL if its files hold none */
int32_t served_model_ctx(const served_model *m);                   /* positions a request may use */

#endif
