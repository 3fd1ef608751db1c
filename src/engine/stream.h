/* Tokens → text that may be sent: whole characters, and never a byte of a stop string. */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include "base/arena.h"
#include "base/buf.h"
#include "cairn/engine.h"
#include "text/detok.h"

typedef struct stop_string {
    const char *text;
    int32_t len, matched; /* bytes of the text so far that the string's start matches */
    int32_t *fail;        /* [len] length of the longest proper border of each prefix */
} stop_string;

typedef struct stream {
    detok *detok; /* NULL: the model has no tokenizer, and no text */
    stop_string stop[CAIRN_MAX_STOP];
    int32_t n_stop;
    buf text;    /* held bytes, then what came last */
    size_t sent; /* bytes of `text` that the last call gave out */
    bool stopped;
    int32_t stopped_by; /* index of the stop string; -1 until then */
} stream;

/* Stop strings are copied into `a`.  E_ARG: an empty or too long one, or too many.  Up to `n_ids` ids
   are fed without allocating. */
cairn_status stream_init(stream *s, const tok *t, bool keep_special, const cairn_str *stop,
                         size_t n_stop, size_t n_ids, arena *a, cairn_diag *dg);
void stream_deinit(stream *s);                             /* zeroed is fine */
size_t stream_bytes(const stream *s);                      /* held, beside the arena */
uint64_t stream_worst_bytes(const tok *t, uint64_t n_ids); /* t as for init */
/* `text`: what may be sent now, valid until the next call; s->stopped afterwards tells whether a stop
   string is complete, and then nothing more may be fed. */
cairn_status stream_feed(stream *s, int32_t id, cairn_str *text);
/* The end without a stop string: what was held, unless the last bytes complete one. */
cairn_status stream_end(stream *s, cairn_str *text);

#endif
