/* What a server knows of each of its models: for who opens them and who shares the budget among them. */
#ifndef CLI_SERVE_MODELS_PRIV_H
#define CLI_SERVE_MODELS_PRIV_H

#include "base/arena.h"
#include "base/thread.h"
#include "cairn/model.h"
#include "cairn/server.h"
#include "cli/serve_flags.h"
#include "cli/serve_models.h"
#include "cli/serve_scan.h"

typedef struct one {
    cairn_server_about about;
    uint64_t least, other; /* bytes; other: vocabulary and tables */
    uint64_t fixed;        /* of the least, what grows with no context */
    bool given;            /* by a word: what is wrong with it ends the program */
    cairn_model *model;    /* the loader's, once the server runs; like the next */
    cairn_engine *engine;
} one;

struct serve_models {
    const serve_flags *f;
    const char *ssd;
    arena mem;
    serve_list list;
    one one[SERVE_MAX_KNOWN];
    cairn_server_model entry[SERVE_MAX_KNOWN];
    cairn_server_alias alias[SERVE_MAX_ALIASES];
    uint64_t total;           /* of all models; 0: there is one, and it has what there is */
    atomic_i64 stopped;       /* by the server */
    const atomic_i64 *ending; /* by who opens it */
};

/* Any thread; ctx is the serve_models: false once nothing is to be opened any more. */
bool serve_models_go_on(void *ctx);
cairn_model_opts serve_models_opts(serve_models *s);
/* What is told of m: its strings are kept in s->mem, as those of the model's files go with it. */
void serve_models_describe(serve_models *s, const cairn_model *m, cairn_server_about *a);
/* At the start: looks at each of the list, leaves out those that cannot be opened and were not given, and sets s->total
   and each one's least and bytes.  E_NOTFOUND: none is left; E_CANCELLED. */
cairn_status serve_models_share(serve_models *s, cairn_diag *dg);

#endif
