/* The models that a server offers. */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "cairn/server.h"

typedef struct model {
    char *id;
    cairn_engine *engine; /* borrowed */
} model;

typedef struct models {
    model *list;
    size_t n;
} models;

cairn_status models_init(models *m, const cairn_server_model *list, size_t n, cairn_diag *dg);
void models_deinit(models *m);
/* By exact id; an empty id means the only model.  NULL if there is none such. */
const model *models_find(const models *m, cairn_str id);
const struct cairn_text *model_text(const model *m); /* NULL if its files hold none */
int32_t model_ctx(const model *m);                   /* positions a request may use */

#endif
