/* The models that a server knows by their ids: who uses them, and when they are loaded and let go. */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "cairn/model.h"
#include "cairn/server.h"
#include "serve/jobs.h"

struct model_slot;
struct model_table;

/* A model as those see it who hold a reference; without one, engine and model are the I/O thread's to look at. */
typedef struct served_model {
    char *id;
    cairn_engine *engine;     /* borrowed; NULL: the model only embeds, or is not loaded */
    const cairn_model *model; /* borrowed; NULL: it is not loaded */
    const cairn_server_about *about;
    struct model_slot *slot;
} served_model;

typedef struct models {
    struct model_table *table;
    size_t n;
    bool keep_volatile;  /* as cairn_server_opts says */
    uint64_t timeout_ms; /* of a request, waiting for its model included; 0: any */
    uint64_t host_bytes; /* in each engine's budget; 0: several share one, less these */
} models;

typedef enum model_found {
    MODEL_TAKEN, /* the caller has a reference */
    MODEL_AWAY,  /* it has to be loaded first: jobs_park on it, then models_want */
    MODEL_FAILED,
    MODEL_UNKNOWN,
    MODEL_UNNAMED /* the name is empty, and there are several */
} model_found;

/* What is said of a model; words for clients. */
typedef enum model_state {
    MODEL_UNLOADED,
    MODEL_LOADING,
    MODEL_LOADED,
    MODEL_DRAINING, /* its room is wanted: it takes no new requests, and is closed with the last it has */
    MODEL_UNLOADING,
    MODEL_BROKEN /* could not be loaded; is not tried again for a while */
} model_state;

/* `notify` is called on any thread when models_turn has work.  Followed by models_deinit, also after a failure. */
cairn_status models_init(models *m, const cairn_server_opts *o, void (*notify)(void *ctx),
                         void *ctx, cairn_diag *dg);
void models_stop(
    models *m); /* waits for what is being opened; nothing is opened or closed after it */
void models_deinit(models *m);

/* Any thread.  By id or alias; an empty name means the only model, or the default one.  *out is the model, but of
   UNKNOWN and UNNAMED.  Who holds a reference (`held`, or NULL) gets another one in any state. */
model_found models_take(const models *m, cairn_str name, const served_model *held,
                        const served_model **out);
/* Any thread: a reference to the i-th, where it is open; else NULL, and *leaves (if any) says whether it is being
   closed.  It is looked at, which is no use of it: the reference ends in served_model_look_away. */
const served_model *models_hold_nth(const models *m, size_t i, bool *leaves);
void served_model_look_away(const served_model *m); /* any thread; NULL is fine */
void served_model_hold(const served_model *m); /* any thread; the caller has a reference already */
void served_model_let_go(const served_model *m); /* any thread; NULL is fine */
/* Any thread: how long it stays without a use from now on, until it is loaded again; below 0: for good. */
void served_model_keep(const served_model *m, int64_t keep_ms);
/* What a client is told who asked for a model and has none. */
typedef struct model_fault {
    int status;
    const char *param, *code; /* static; param NULL: none */
    int32_t retry_s;          /* when it may be otherwise; 0: that is not said */
    char message[sizeof((cairn_diag *)0)->message + 64];
} model_fault;
/* Any thread.  `got` is what models_take answered of `name`, but TAKEN; AWAY is told as FAILED to who `waited`. */
void models_fault(const models *m, model_found got, bool waited, cairn_str name,
                  const served_model *of, model_fault *out);
const served_model *models_find(const models *m, cairn_str name); /* any thread; NULL: none */
/* The one that answers where none is named; where none does, the first. */
const served_model *models_unnamed(const models *m);
/* Any thread: why it is BROKEN, and the seconds until it is tried again. */
int32_t served_model_why(const served_model *m, char *out, size_t size);
/* Any thread: "the model `x` does not exist; expected one of: …", as far as there is room. */
void models_unknown(const models *m, cairn_str name, char *out, size_t size);

/* The rest is for the I/O thread. */

/* A job was parked on it. */
void models_want(const models *m, const served_model *of, uint64_t now_ms);
/* Loads and closes what is to be, and gives parked jobs their lanes and references, or ends those that are late.  The time when it wants to be called
   again, unless it is notified; UINT64_MAX: any. */
uint64_t models_turn(const models *m, jobs *q, uint64_t now_ms);
const served_model *models_nth(const models *m, size_t i); /* i < n */
model_state served_model_state(const served_model *m);
const char *served_model_state_word(const served_model *m);
bool served_about_thinks(const cairn_server_about *a);      /* its template knows of thoughts */
bool served_about_takes_tools(const cairn_server_about *a); /* likewise of tools */

typedef struct model_use {
    size_t refs;
    uint64_t bytes, n_loads, n_failed;
    bool pinned;
    int64_t keep_ms; /* below 0: for good */
    uint64_t
        closes_ms; /* of the clock of http_now_ms, if it is not used before; UINT64_MAX: never */
} model_use;
model_use served_model_use(const served_model *m);
/* The k-th alias of a model; NULL: it has no more. */
const char *models_alias(const models *m, const served_model *of, size_t k);

const struct cairn_text *served_model_text(const served_model *m); /* NULL if its files hold none */
int32_t served_model_ctx(const served_model *m); /* positions a request may use; loaded or not */

#endif
