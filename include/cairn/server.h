/* The HTTP server, for embedding it in a program.  open, run and close belong to one thread; stop and reload
   may come from any, or from a signal handler. */
#ifndef CAIRN_SERVER_H
#define CAIRN_SERVER_H

#include "cairn/engine.h"
#include "cairn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_server cairn_server;

/* What is told of a model while it is not open.  Every pointer is borrowed and must outlive the server. */
typedef struct cairn_server_about {
    cairn_model_info info;
    int32_t ctx_len; /* positions that a request may use */
    bool embeds, only_embeds;
    cairn_str chat_template, tools_template; /* cairn_text_template; empty: none */
} cairn_server_about;

typedef struct cairn_server_model {
    const char *id;       /* what requests name; copied */
    cairn_engine *engine; /* borrowed: must outlive the server, or its turn of close_model */
    /* Likewise, where there is no engine: a model that only embeds. */
    const cairn_model *model;
    /* Given: open_model opens it when it is asked for, unless an engine or a model says that it is open, and
       close_model closes it.  NULL: it is open, and stays so.  Borrowed: must outlive the server. */
    const cairn_server_about *about;
    uint64_t bytes; /* of model_bytes, from before open_model until after close_model */
    bool pinned;    /* is not closed once it is open */
} cairn_server_model;

typedef struct cairn_server_alias {
    const char *name, *id; /* another name of a model; copied */
} cairn_server_alias;

typedef struct cairn_server_opts {
    uint32_t struct_size;             /* set by cairn_server_opts_init */
    const char *host;                 /* NULL: 127.0.0.1 */
    int32_t port;                     /* 0: any free port */
    const cairn_server_model *models; /* at least one; copied */
    size_t n_models;
    const char *const *api_keys; /* copied; none: no authentication */
    size_t n_api_keys;
    int32_t max_connections;   /* 0: 2048 */
    int32_t header_timeout_ms; /* 0: 10,000; total time for a request's headers */
    int32_t body_timeout_ms;   /* 0: 30,000 */
    uint64_t max_body_bytes;   /* 0: 32 MiB */
    bool
        keep_volatile; /* system prompts stay as sent: text at their front that changes with every request and
                           hides known prefixes is not taken away */
    /* Names that a request's Host may give beside addresses, localhost and this machine's own; "*": any.  Copied,
       like the next. */
    const char *const *allow_hosts;
    size_t n_allow_hosts;
    const char *const *cors_origins; /* web pages that may use it; "*": all.  None: its own only */
    size_t n_cors_origins;
    const char *tls_cert, *tls_key; /* PEM files, both or none: HTTPS; read at open and at reload */
    int32_t rate;      /* requests a minute of each key (without keys: of all); 0: any number */
    bool open_to_all;  /* it may listen beyond loopback without a key */
    bool log_requests; /* bodies go to the log, which holds no prompts otherwise */
    /* Called by the thread of run, soon after cairn_server_reload: may call cairn_server_set_keys.  NULL is
       fine. */
    void (*on_reload)(void *ctx, cairn_server *s);
    void *reload_ctx;
    /* Bytes that connections, bodies, prompts, answers and replies may take together: a body has a fortieth of it at
       most, and so many connections are kept as have room in a sixteenth, at 5 KiB or, with TLS, 53.  0: as the other
       limits say, about 500 MiB. */
    uint64_t host_bytes;
    /* A Unix socket to make (mode 0600) and to answer on too, the routes below /admin/ there alone, for this
       process's user and root; removed at the end.  NULL: none. */
    const char *admin_socket;
    const cairn_server_alias *aliases; /* copied */
    size_t n_aliases;
    /* Of requests that name none: its index + 1; 0: of several, one has to be named. */
    size_t default_model;
    /* Both are called by one thread of the server's, for one model at a time, while others answer; i is the model's
       index.  open_model sets engine or model of *out, which stay the caller's, until close_model or, of those that are
       open then, past cairn_server_close.  It fails with a reason in dg, which who asked for the model is told, and
       then has left nothing open; it is asked again when retry_ms have passed. */
    cairn_status (*open_model)(void *ctx, size_t i, cairn_server_model *out, cairn_diag *dg);
    void (*close_model)(void *ctx, size_t i);
    /* Any thread, at the end: an open_model that runs, or comes yet, fails soon. */
    void (*stop_opening)(void *ctx);
    void *models_ctx;
    uint64_t model_bytes; /* that models with `about` take together at most; 0: any */
    /* A model with `about` that nobody used for so long is closed; 0: none is for that. */
    int64_t keep_ms;
    int32_t retry_ms; /* 0: 10,000; a model that could not be opened is not tried again before */
    /* 0: any; a request whose model is not there so long after it came ends, and the engine is told of the others what
       is left of that time. */
    int64_t timeout_ms;
} cairn_server_opts;

/* Tokens that POST /signal takes at most, the score_len of a server's engines: nothing stops a score half-way. */
enum { CAIRN_SIGNAL_LEN = 2048 };

CAIRN_API void cairn_server_opts_init(cairn_server_opts *o);
/* Binds and listens; nothing is answered before cairn_server_run. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_server_open(const cairn_server_opts *o,
                                                        cairn_server **out, cairn_diag *dg);
CAIRN_API int32_t cairn_server_port(const cairn_server *s);
/* Serves until cairn_server_stop, then drains: running requests may finish for `drain_ms`. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_server_run(cairn_server *s, int32_t drain_ms,
                                                       cairn_diag *dg);
CAIRN_API void cairn_server_stop(cairn_server *s);
/* Reads the TLS files again for connections to come, where there are any, and calls on_reload.  What cannot be
   read changes nothing and is logged. */
CAIRN_API void cairn_server_reload(cairn_server *s);
/* Other keys, copied, for requests to come; at least one where there were some.  The thread of run. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_server_set_keys(cairn_server *s,
                                                            const char *const *keys, size_t n,
                                                            cairn_diag *dg);
/* After run has returned, or without a run; before the engines are closed, those that open_model opened too, which
   are the caller's to close then.  NULL is fine. */
CAIRN_API void cairn_server_close(cairn_server *s);

#ifdef __cplusplus
}
#endif
#endif
