/* Generations: engine events brought from engine threads to the I/O thread. */
#ifndef SERVE_GEN_H
#define SERVE_GEN_H

#include "base/thread.h"
#include "cairn/engine.h"

typedef struct gen gen;
struct served_model;

typedef struct gen_token { /* valid during the callback */
    int32_t id;
    int32_t
        n; /* tokens that the text is of: more than one where an earlier attempt's are told again, none of the prompt's */
    cairn_str text;
    float logprob;
    const cairn_logprob *top;
    int32_t n_top;
    uint64_t first_ns; /* by clock_ns, when the engine told its first token; 0: none yet */
} gen_token;

typedef struct gen_progress {           /* of the prefill: tokens of the prompt */
    int32_t n_prompt, n_cached, n_done; /* n_done: computed or taken from a cache */
    int64_t ms;                         /* since it left the queue */
} gen_progress;

typedef struct gen_result {
    cairn_str text; /* released at the end; valid during the callback */
    cairn_finish finish;
    cairn_status status;
    char message[200];
    int32_t n_prompt, n_cached, n_generated;
    int32_t stop; /* as cairn_event has it */
} gen_result;

/* Called on the I/O thread, in order, done last and once.  Any may call gen_drop on any. */
typedef struct gen_sink {
    /* Once, before the first token: what a cache had of the prompt.  NULL: not wanted. */
    void (*began)(void *ctx, uint32_t choice, int32_t n_cached);
    /* Before the first token: where the prefill is by now.  What came between two calls is not told.  NULL: not
       wanted. */
    void (*progress)(void *ctx, uint32_t choice, const gen_progress *p);
    void (*token)(void *ctx, uint32_t choice, const gen_token *t);
    void (*done)(void *ctx, uint32_t choice, const gen_result *r);
    void *ctx;
    bool patient;                     /* tokens may come late, with others or with the end */
    uint32_t choice;                  /* given back */
    const struct served_model *model; /* held until it is over; NULL: nothing is */
} gen_sink;

/* One for a server.  `notify` is called on engine threads when mailbox_deliver has work. */
typedef struct mailbox {
    mutex mu;
    gen *ready;    /* guarded by mu, like the next: those with news, newest first */
    bool notified; /* since it was delivered last */
    gen *live;     /* I/O thread: all that are not done */
    size_t n_live;
    /* I/O thread: what answers may keep until they are sent, at most (0: anything), and do at worst. */
    uint64_t most_kept, kept;
    void (*notify)(void *ctx);
    void *ctx;
} mailbox;

void mailbox_init(mailbox *m, void (*notify)(void *ctx), void *ctx);
void mailbox_deinit(mailbox *m);  /* nothing may be live */
void mailbox_deliver(mailbox *m); /* calls sinks */
void mailbox_cancel(mailbox *m);  /* asks the engines to end everything; sinks still hear of it */

/* Submits.  After success the sink hears until done; *out is valid until then or gen_drop. */
cairn_status gen_start(mailbox *m, cairn_engine *e, const cairn_request *r, const gen_sink *sink,
                       gen **out, cairn_diag *dg);
/* Ends it at the engine; the sink hears until done, which says CANCELLED unless it came first. */
void gen_stop(gen *g);
/* Cancels at the engine; the sink hears no more. */
void gen_drop(gen *g);

#endif
