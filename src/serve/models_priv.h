/* The table of models, and the thread that opens and closes them. */
#ifndef SERVE_MODELS_PRIV_H
#define SERVE_MODELS_PRIV_H

#include "base/thread.h"
#include "serve/models.h"

/* Why a model is BROKEN: the opener's message, of some 200 bytes at most; more is cut. */
enum { MODEL_WHY_BYTES = 400 };

typedef struct model_slot {
    served_model
        view; /* engine and model change under mu, by the I/O thread, while there is no reference */
    cairn_server_about own; /* of one that stays open */
    struct model_table *table;
    uint64_t bytes;
    bool stays, pinned;
    int32_t ctx_len;   /* I/O thread: when it was loaded last; 0: it was not */
    model_state state; /* guarded by mu, like the rest; written by the I/O thread alone */
    size_t refs;
    uint64_t used_ms, retry_ms;
    uint64_t used; /* rises with each use of any */
    int64_t keep_ms;
    uint64_t wanted; /* its place among those that wait to be loaded; 0: nobody waits */
    uint64_t n_loads, n_failed;
    char why[MODEL_WHY_BYTES];
} model_slot;

typedef struct model_alias {
    char *name;
    model_slot *of;
} model_alias;

typedef struct model_table {
    mutex mu;
    model_slot *slot; /* [n], like their views but for what stands there */
    size_t n;
    model_alias *alias; /* [n_alias] */
    size_t n_alias;
    model_slot *by_default; /* NULL: none */
    uint64_t bytes;         /* of all that are open; 0: any */
    int64_t keep_ms;
    uint64_t retry_ms;
    void (*notify)(void *ctx);
    void *ctx;
    cairn_status (*open)(void *ctx, size_t i, cairn_server_model *out, cairn_diag *dg);
    void (*close)(void *ctx, size_t i);
    void (*stop)(void *ctx);
    void *open_ctx;
    uint64_t n_wanted, n_used; /* guarded by mu, like the rest: places and uses so far */
    thread loader;
    cond news;
    model_slot *work; /* what the loader is told to open or to close; NULL: nothing */
    bool opens, taken, done, closing;
    cairn_status st; /* of the last work, once it is done */
    cairn_server_model result;
    cairn_diag dg;
} model_table;

/* Starts the loader, if there is a model to load. */
cairn_status model_loader_start(model_table *t, cairn_diag *dg);
uint64_t models_now_ms(void); /* any thread; the clock of http_now_ms */
/* Under the lock. */
static inline void model_used(model_slot *s, uint64_t now_ms)
{
    s->used_ms = now_ms;
    s->used = ++s->table->n_used;
}
static inline uint64_t slot_idle_until(const model_slot *s)
{
    return s->keep_ms < 0 ? UINT64_MAX : s->used_ms + (uint64_t)s->keep_ms;
}

#endif
