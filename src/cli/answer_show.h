/* A reply on a terminal: thoughts dim, the answer plain, the markup around them not at all. */
#ifndef CLI_ANSWER_SHOW_H
#define CLI_ANSWER_SHOW_H

#include "base/buf.h"
#include "cairn/engine.h"
#include "cairn/reply.h"

typedef struct answer_show { /* zeroed is fine to deinit */
    cairn_reply *reply;
    buf out;              /* to be written next; the caller empties it */
    buf content, thought; /* of the whole reply */
    bool dim;
} answer_show;

/* How the engine's model writes its reply to `prompt`; valid as long as both. */
void answer_show_opts(cairn_reply_opts *o, const cairn_engine *e, cairn_str prompt);
/* For one reply to `prompt`, the rendered one, by the engine's model.  `s` must not move afterwards. */
cairn_status answer_show_init(answer_show *s, const cairn_engine *e, cairn_str prompt,
                              cairn_diag *dg);
void answer_show_deinit(answer_show *s);
bool answer_show_special(const answer_show *s); /* the request needs keep_special */
/* A failure is that of memory. */
cairn_status answer_show_feed(answer_show *s, cairn_str text);
cairn_status answer_show_end(answer_show *s);
/* After a failure half-way: what sets the terminal back; empty if nothing need be. */
cairn_str answer_show_reset(answer_show *s);

#endif
