/* The public engine: checks arguments, hands over to engine/. */
#include "api/api_model.h"
#include "api/api_text.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/num.h"
#include "cairn/engine.h"
#include "engine/engine.h"
#include "format/textfiles.h"
#include "sample/sample.h"

struct cairn_engine {
    const cairn_model *m;
    engine *e;
};

void cairn_engine_opts_init(cairn_engine_opts *o)
{
    *o = (cairn_engine_opts){.struct_size = sizeof *o};
}

void cairn_request_init(cairn_request *r)
{
    *r = (cairn_request){.struct_size = sizeof *r,
                         .sampling = sample_neutral(),
                         .n_logprobs = -1,
                         .think_budget = -1};
}

cairn_status cairn_engine_open(cairn_model *m, const cairn_engine_opts *o, cairn_engine **out,
                               cairn_diag *dg)
{
    cairn_engine_opts opts;
    cairn_engine_opts_init(&opts);
    if (!m || !out) return diag_set(dg, CAIRN_E_ARG, "cairn_engine_open: model or out is NULL");
    if (o && o->struct_size != sizeof *o)
        return diag_set(dg, CAIRN_E_ARG, "cairn_engine_open: options not initialised");
    if (o) opts = *o;
    cairn_engine *e = mem_calloc(1, sizeof *e, MEM_ENGINE);
    if (!e) return diag_set(dg, CAIRN_E_NOMEM, "no memory for an engine");
    e->m = m;
    const cairn_status st =
        engine_open(m->m, m->text ? m->text->f.tok : NULL, &opts, NULL, &e->e, dg);
    if (st != CAIRN_OK) {
        mem_free(e);
        return st;
    }
    *out = e;
    return CAIRN_OK;
}

void cairn_engine_close(cairn_engine *e)
{
    if (!e) return;
    engine_close(e->e);
    mem_free(e);
}

cairn_status cairn_engine_submit(cairn_engine *e, const cairn_request *r, cairn_event_fn fn,
                                 void *ctx, cairn_request_id *out, cairn_diag *dg)
{
    if (!e || !r || !fn || !out)
        return diag_set(dg, CAIRN_E_ARG, "cairn_engine_submit: an argument is NULL");
    if (r->struct_size != sizeof *r)
        return diag_set(dg, CAIRN_E_ARG, "cairn_engine_submit: request not initialised");
    return engine_submit(e->e, r, fn, ctx, out, dg);
}

void cairn_engine_cancel(cairn_engine *e, cairn_request_id id)
{
    if (e) engine_cancel(e->e, id);
}

void cairn_engine_stop(cairn_engine *e, cairn_request_id id)
{
    if (e) engine_stop(e->e, id);
}

void cairn_flush_init(cairn_flush *f)
{
    *f = (cairn_flush){.struct_size = sizeof *f};
}

void cairn_engine_flush(cairn_engine *e, uint32_t wait_ms, cairn_flush *out)
{
    if (!e || !out) return;
    cairn_flush f = {.struct_size = out->struct_size};
    engine_flush(e->e, wait_ms, &f);
    memcpy(out, &f, min_size(out->struct_size, sizeof f));
}

void cairn_engine_unpin(cairn_engine *e, cairn_request_id id)
{
    if (e) engine_unpin(e->e, id);
}

void cairn_engine_stats_init(cairn_engine_stats *s)
{
    *s = (cairn_engine_stats){.struct_size = sizeof *s};
}

void cairn_engine_get_stats(cairn_engine *e, cairn_engine_stats *out)
{
    cairn_engine_stats s = {.struct_size = out->struct_size};
    engine_get_stats(e->e, &s);
    if (!s.kv_codec) s.kv_codec = e->m->kv.text.ptr;
    memcpy(out, &s, out->struct_size < sizeof s ? out->struct_size : sizeof s);
}

bool cairn_engine_wants_marks(const cairn_engine *e)
{
    return engine_wants_marks(e->e);
}

const cairn_model *cairn_engine_model(const cairn_engine *e)
{
    return e->m;
}
