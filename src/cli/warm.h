/* Prompts that a server computes before it listens, and keeps. */
#ifndef CLI_WARM_H
#define CLI_WARM_H

#include "cairn/engine.h"

/* `path`: a JSON array of chat messages, or an object with `messages` and perhaps `tools`, as a request has
   them.  Its prompt, up to where a user's turn may follow, is pinned.  Messages of errors begin with the
   path.  `go_on` is asked meanwhile, four times a second; false: E_CANCELLED. */
cairn_status warm_prefix(cairn_engine *e, const cairn_text *t, const char *path,
                         bool (*go_on)(void *ctx), void *ctx, cairn_diag *dg);

#endif
