/* The bytes that a model writes → thought, answer, calls, as include/cairn/reply.h says; this is
   what stands behind it.  Leaves the tables to tool/, the choice of one to reply_find.c. */
#ifndef TEXT_REPLY_H
#define TEXT_REPLY_H

#include "base/buf.h"
#include "cairn/reply.h" /* IWYU pragma: export */
#include "text/tool/tool.h"

typedef struct reply reply;

cairn_status reply_new(const cairn_reply_opts *o, cairn_reply_fn fn, void *ctx, reply **out,
                       cairn_diag *dg);
void reply_free(reply *r);
cairn_status reply_feed(reply *r, cairn_str bytes, bool special);
/* Before the first feed: room for text and for what a call holds back, `most` bytes of each.  Feeding then
   allocates nothing; it fails where more would be needed. */
cairn_status reply_reserve(reply *r, size_t most);
size_t reply_bytes(const reply *r); /* held, but for the tools */
cairn_status reply_skip(reply *r, cairn_str bytes);
cairn_status reply_finish(reply *r);
/* What closes a thought of the family, whether one is open or not; empty: it has none. */
cairn_str reply_thought_end(const reply *r);
/* Fills all of *out but struct_size. */
void reply_look(const reply *r, cairn_reply_look *out);

cairn_str reply_thought_end(const reply *r); /* what closes a thought; "": nothing does */

const tool_family *reply_find_family(cairn_str template_text, cairn_str hint); /* never NULL */
cairn_status reply_kwargs(cairn_str template_text, int think, cairn_str effort, buf *out);
cairn_status reply_message(const cairn_reply_opts *o, cairn_str text, buf *out, cairn_diag *dg);

#endif
