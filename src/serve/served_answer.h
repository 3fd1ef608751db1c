/* The answer to a request, from its generations to the client, in the format of an API. */
#ifndef SERVE_SERVED_ANSWER_H
#define SERVE_SERVED_ANSWER_H

#include "serve/gen.h"
#include "serve/http.h"
#include "serve/prompt.h"

typedef struct answer_usage { /* of all choices; each prompt counts once */
    int32_t n_prompt, n_cached, n_generated;
    int32_t n_thought; /* of those generated: thoughts, with the markup before them */
} answer_usage;

typedef struct answer_end { /* of one choice */
    cairn_finish finish;
    bool called;  /* a whole call was read */
    int32_t stop; /* which stop string ended it; -1: none */
    int32_t n_generated;
    const answer_usage *usage; /* it was the last choice; else NULL */
} answer_end;

/* How an API writes an answer.  `out` is its state of one; a function is called for a stream with its
   frames, to which it appends whole ones, and for a whole answer with NULL: it collects.  I/O thread. */
typedef struct answer_format {
    /* An error reply, before anything else was said. */
    void (*refuse)(http_req *rq, int status, const char *param, const char *code,
                   const char *message);
    void (*headers)(http_req *rq);      /* of a reply that is none; may be NULL */
    void (*begin_stream)(http_req *rq); /* a stream's head and beat; NULL: of server-sent events */
    const char *beat; /* a stream's while nothing else is sent, once it has begun */
    void (*pulse)(void *out, buf *frames); /* in place of it; NULL: none */
    void *(*open)(const prompt *p);        /* NULL: no memory */
    void (*close)(void *out);
    /* Bytes that an answer keeps until it is sent at most, beside its text, where each choice has n_tokens; NULL: none. */
    uint64_t (*kept)(const prompt *p, uint64_t n_tokens);
    /* Copies of the text that are held at once, none longer than the text as JSON: of a whole answer, its body included;
       of a stream beyond what is on its way.  `held_calls`: of a stream that may have tool calls. */
    uint8_t held, held_streaming, held_calls;
    void (*start)(void *out, buf *frames); /* streams only, at once, before all else; may be NULL */
    /* Streams only, once, before the first choice begins: the prompt's part of the usage is known.
       NULL: not wanted, and nothing waits for it. */
    void (*known)(void *out, const answer_usage *u, buf *frames);
    void (*begin)(void *out, uint32_t choice, buf *frames); /* before all else of a choice */
    /* Streams that asked for it, before the first token: where the prefill of the prompt is whose first
       choice this is.  NULL: nobody can ask. */
    void (*progress)(void *out, uint32_t choice, const gen_progress *p, buf *frames);
    /* A token, before what it releases is told, and after; `frames` is of the latter.  May be NULL. */
    void (*token)(void *out, uint32_t choice, const gen_token *t);
    void (*told)(void *out, uint32_t choice, buf *frames);
    void (*delta)(void *out, uint32_t choice, const reply_delta *d, buf *frames);
    void (*end)(void *out, uint32_t choice, const answer_end *e, buf *frames);
    void (*finish)(void *out, const answer_usage *u, buf *frames); /* streams: the last frames */
    /* Adds to an empty body.  True: there is more, for which it is called when that is sent. */
    bool (*whole)(void *out, const answer_usage *u, buf *body);
    cairn_status (*status)(const void *out); /* E_NOMEM: something is missing */
    /* Ends a stream; `out` is NULL where the answer has not begun. */
    void (*fail)(void *out, int status, const char *code, cairn_str message, buf *frames);
} answer_format;

typedef struct answer answer;

/* Submits a generation for each choice of each prompt (p->ask.rq is complete but for ids and `choice`); on
   success the answer sees to rq from here on, has taken p's readers, and frees itself.  On failure nothing
   runs, and rq is the caller's.  E_ARG: it may keep more than all answers may; E_BUSY: than is left.  Its text has the
   room of usual tokens from the start; where they are longer it takes more as it grows, and ends with 429 and figures
   where there is none. */
cairn_status answer_start(http_req *rq, mailbox *mail, prompt *p, const answer_format *f,
                          cairn_diag *dg);

#endif
