/* The public face of the memory table: checks arguments, hands over to engine/. */
#include "api/api_model.h"
#include "api/api_text.h"

#include <string.h>

#include "base/diag.h"
#include "base/num.h"
#include "cairn/model.h"
#include "engine/fit.h"

void cairn_fit_opts_init(cairn_fit_opts *o)
{
    *o = (cairn_fit_opts){.struct_size = sizeof *o};
}

void cairn_fit_report_init(cairn_fit_report *r)
{
    *r = (cairn_fit_report){.struct_size = sizeof *r};
}

cairn_status cairn_fit(const cairn_model *m, const cairn_fit_opts *o, cairn_fit_fn fn, void *ctx,
                       cairn_fit_report *out, cairn_diag *dg)
{
    cairn_fit_opts opts;
    cairn_fit_opts_init(&opts);
    if (!m || !fn || !out) return diag_set(dg, CAIRN_E_ARG, "cairn_fit: an argument is NULL");
    if (o && o->struct_size != sizeof *o)
        return diag_set(dg, CAIRN_E_ARG, "cairn_fit: options not initialised");
    if (o) opts = *o;
    cairn_fit_report r = {.struct_size = out->struct_size};
    TRY(fit_model(m->m, m->text ? m->text->f.tok : NULL, &opts, fn, ctx, &r, dg));
    memcpy(out, &r, min_size(out->struct_size, sizeof r));
    return CAIRN_OK;
}
