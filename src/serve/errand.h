/* Work for a request that becomes a text and no prompt, done by a worker (jobs.h); the reply waits for it. */
#ifndef SERVE_ERRAND_H
#define SERVE_ERRAND_H

#include "serve/http.h"
#include "serve/server_priv.h"

typedef struct errand errand;

typedef struct errand_kind {
    size_t size;             /* of what begins with an errand */
    void (*work)(errand *e); /* a worker: writes status and body */
    void (*end)(errand *e);  /* lets go of what it holds; any thread; NULL: nothing */
} errand_kind;

struct errand {
    job j;
    const errand_kind *kind;
    cairn_server *s;
    http_req *rq; /* I/O thread; good until the job is dropped */
    int status;   /* 200; the worker's until it is done, like the next */
    buf body;     /* JSON */
};

/* Zeroed but for the above.  `bytes`: what it works on, which chooses the worker.  NULL: no memory, and rq has its
   reply. */
errand *errand_new(const errand_kind *kind, cairn_server *s, http_req *rq, size_t bytes);
/* Takes `e`; the reply follows, also where no worker takes it. */
void errand_start(errand *e);

#endif
