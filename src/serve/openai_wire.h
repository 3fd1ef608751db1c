/* OpenAI's shapes: errors, chat completions and their chunks. */
#ifndef SERVE_OPENAI_WIRE_H
#define SERVE_OPENAI_WIRE_H

#include "base/json.h"
#include "cairn/engine.h"
#include "serve/served_answer.h"

/* An error reply.  `param` (the field at fault) and `code` may be NULL. */
void openai_error(http_req *rq, int status, const char *param, const char *code, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));
/* The same with a message that is none of ours to format. */
void openai_refuse(http_req *rq, int status, const char *param, const char *code,
                   const char *message);
/* The HTTP status, and so the error's type, for a failure of the engine or the template. */
int openai_status(cairn_status st);
/* 200 with `body`, or 503 if building it ran out of memory. */
void openai_reply(http_req *rq, const buf *body);

/* Frames of streams: an error, the usage, and the end. */
void openai_put_fail(void *out, int status, const char *code, cairn_str message, buf *frames);
void openai_put_done(buf *frames);

/* What every chunk of an answer repeats. */
typedef struct openai_head {
    char id[48];
    int64_t created;
    const char *model;
    const char *tier;  /* service_tier; NULL: the API has none */
    usage_place usage; /* APART: chunks say "usage": null, as the last one will have it */
} openai_head;

void openai_put_usage_chunk(const openai_head *h, const char *object, const answer_usage *u,
                            buf *frames);
/* {"total": …}: where the prefill is, in llama-server's words. */
void gen_progress_write(json_writer *w, const gen_progress *p);
/* A chunk that says nothing but where the prefill is, in llama-server's form.  `key` and `said`: the
   member of its choice that says nothing, in JSON. */
void openai_put_progress(const openai_head *h, const char *object, uint32_t index, const char *key,
                         const char *said, const gen_progress *p, buf *frames);
/* `prefix`: of the id. */
void openai_head_init(openai_head *h, const char *prefix, const char *model);
/* Opens the object: id, object, created, model, system_fingerprint, service_tier. */
void openai_write_head(json_writer *w, const openai_head *h, const char *object);
void openai_write_usage(json_writer *w, const answer_usage *u); /* "usage": {…} */
/* What a chunk has of it: `u` is NULL but in the last one of the last choice. */
void openai_write_chunk_usage(json_writer *w, const openai_head *h, const answer_usage *u);
/* How far a whole answer is written, which may be done in parts of a few KiB (answer_format). */
typedef struct openai_part {
    json_writer w;
    bool begun;
    uint32_t choice; /* the one under way, */
    int32_t step;    /* of which so much is done, */
    size_t at;       /* and of what it is at so much: the caller's, zeroed for each choice */
} openai_part;
bool openai_part_full(const openai_part *p);
/* Writes more of choice p->choice until it is done, or the part is full: false. */
typedef bool openai_choice_fn(openai_part *p, const void *out);
/* A whole answer: the head, n choices of `out`, the usage.  True: there is more of it. */
bool openai_put_whole(openai_part *p, const openai_head *h, const char *object,
                      openai_choice_fn *choice, const void *out, uint32_t n, const answer_usage *u,
                      buf *body);
const char *openai_finish(cairn_finish f, bool called); /* `called`: tool calls were read */

/* One chunk of choice `index`.  `role`: the first of its choice, without a delta.  `d`: NULL for an
   empty one.  `logprob`: a JSON array's elements, or empty for null.  `finish`: NULL until the last.  `u`: as
   openai_write_chunk_usage has it. */
void openai_write_chunk(json_writer *w, const openai_head *h, uint32_t index, bool role,
                        const reply_delta *d, cairn_str logprob, const char *finish,
                        const answer_usage *u);
/* JSON has no infinity, which a token that the sampler excluded has: a large number instead. */
double openai_logprob(float logprob);
/* The element of logprobs.content for one token. */
void openai_write_logprob(json_writer *w, const struct cairn_text *text, const gen_token *t,
                          int32_t n_top);

#endif
