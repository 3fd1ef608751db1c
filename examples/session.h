/* What both programs begin and end with: a model by its name, an engine that owns its work, and a message
   where something failed. */
#ifndef EXAMPLES_SESSION_H
#define EXAMPLES_SESSION_H

#include <stdio.h>

#include "cairn/cairn.h"

typedef struct session {
    cairn_model *model;
    cairn_engine *engine;
} session;

/* `name`: a .gguf file, a folder with config.json, or a fetched model's.  Close it after a failure too. */
static inline cairn_status session_open(session *s, const char *name, cairn_diag *dg)
{
    cairn_bytes path = {0};

    cairn_status st = cairn_model_resolve(name, &path, dg);
    if (st == CAIRN_OK) st = cairn_model_open(path.ptr, NULL, &s->model, dg);
    if (st == CAIRN_OK) st = cairn_engine_open(s->model, NULL, &s->engine, dg);
    cairn_bytes_free(&path);
    return st;
}

/* The exit status of `program`, which ends with `st`; says why if that is a failure. */
static inline int session_close(session *s, const char *program, cairn_status st,
                                const cairn_diag *dg)
{
    if (st != CAIRN_OK)
        fprintf(stderr, "%s: %s\n", program, dg->message[0] ? dg->message : cairn_status_text(st));
    cairn_engine_close(s->engine);
    cairn_model_close(s->model);
    return st == CAIRN_OK ? 0 : 1;
}

#endif
