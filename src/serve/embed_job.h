/* A request for embeddings as a job, and what an API says to word it its own way. */
#ifndef SERVE_EMBED_JOB_H
#define SERVE_EMBED_JOB_H

#include "base/json.h"
#include "cairn/embed.h"
#include "serve/openai_input.h"
#include "serve/server_priv.h"

enum { EMBED_MOST_DIMENSIONS = 1 << 20 };

typedef struct embed_job embed_job;

/* How an API words this. */
typedef struct embed_shape {
    const char *input;                   /* the field */
    cairn_str (*model)(cairn_str asked); /* the id that a name stands for; NULL: itself */
    void (*refuse)(http_req *rq, int status, const char *param, const char *code,
                   const char *message);
    bool (*options)(embed_job *e, json_val root);
    void (*begin)(embed_job *e); /* the reply's object, up to the vectors; and after them */
    void (*vector)(embed_job *e, size_t index, cairn_str values);
    void (*end)(embed_job *e);
} embed_shape;

struct embed_job {
    job j;
    const embed_shape *shape;
    uint64_t begun_ns;
    cairn_server *s;
    http_req *rq;               /* I/O thread; good until the job is dropped */
    buf body;                   /* the worker's, like what follows, until it is done */
    const served_model *model;  /* held; NULL: none was found */
    const served_model *awaits; /* it has to be loaded first */
    bool waited;                /* for that, in vain unless it was given */
    cairn_embed_opts o;
    bool base64;
    int32_t n_vocab;
    input_list in;
    char (*name)[INPUT_NAME]; /* [in.n]: input, or input[0], … */
    const char **names;       /* [in.n] */
    int64_t n_tokens;
    buf reply;
    json_writer w;
    int status; /* 200, or of the error */
    int32_t retry_s;
    const char *param, *code;
    char at[sizeof((chat_fault *)0)->param]; /* param, where it is one of several texts */
    char message[600];
};

/* I/O thread.  Takes the request's body; `shape` lives as long as the program. */
void embed_serve(cairn_server *s, http_req *rq, const embed_shape *shape);

/* For shapes, on the worker.  Says what the client is told instead of vectors; false. */
bool embed_refuse(embed_job *e, int status, const char *param, const char *code, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));
/* Whether it was read; else the same, by the diagnosis, of the field `param`. */
bool embed_option(embed_job *e, const char *param, cairn_status st, const cairn_diag *dg);

#endif
