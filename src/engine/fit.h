/* What a model would take, and how fast it would answer, before its weights are loaded. */
#ifndef ENGINE_FIT_H
#define ENGINE_FIT_H

#include "cairn/fit.h"
#include "model/model.h"
#include "text/tok.h"

/* As cairn_fit; `tok` may be NULL. */
cairn_status fit_model(const model *m, const tok *t, const cairn_fit_opts *o, cairn_fit_fn fn,
                       void *ctx, cairn_fit_report *out, cairn_diag *dg);

#endif
