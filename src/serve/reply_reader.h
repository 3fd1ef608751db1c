/* What a generation writes, told apart while it comes (cairn/reply.h): thoughts, content, calls. */
#ifndef SERVE_REPLY_READER_H
#define SERVE_REPLY_READER_H

#include "cairn/reply.h"

typedef enum delta_kind {
    DELTA_THOUGHT,
    DELTA_CONTENT,
    DELTA_CALL,     /* one begins: id, name */
    DELTA_ARGS,     /* more of its arguments' JSON */
    DELTA_CALL_END, /* it stays a call */
    DELTA_NO_CALL   /* it was none after all: `text` is what was written */
} delta_kind;

typedef struct reply_delta { /* valid during the callback */
    delta_kind kind;
    int32_t call; /* index; of DELTA_CALL and after */
    cairn_str text, id, name;
    bool cut;    /* of DELTA_CALL_END: by the limit, so that the arguments are a beginning */
    bool custom; /* of a call: text is told in place of its arguments (custom_call.h) */
} reply_delta;
typedef void (*reply_delta_fn)(void *ctx, uint32_t choice, const reply_delta *d);

typedef struct readers readers; /* one for each choice of an answer; one thread at a time */

enum { READERS_MAX_BYTES = 64 << 20 }; /* of tools, each choice with its copy */

/* o->id_seed is mixed with the choice's index.  `one_call`: a second call ends the choice.  E_LIMIT:
   n copies of the tools are too much. */
cairn_status readers_new(const cairn_reply_opts *o, uint32_t n, bool one_call, readers **out,
                         cairn_diag *dg);
void readers_free(readers *r); /* NULL is fine */
/* The request must be made with keep_special. */
bool readers_keep_special(const readers *r);
void readers_bind(readers *r, reply_delta_fn fn, void *ctx); /* before the first feed */

/* A failure is that of memory, and stays. */
cairn_status readers_feed(readers *r, uint32_t choice, cairn_str text);
/* The end of the text.  `cut`: by a limit on its length, so that a call that it ends in is one. */
cairn_status readers_finish(readers *r, uint32_t choice, bool cut);
bool readers_may_end(const readers *r);                 /* before their texts do */
bool readers_ended(const readers *r, uint32_t choice);  /* nothing that follows is told */
bool readers_called(const readers *r, uint32_t choice); /* a whole call was read */

#endif
