/* Text at the front of a prompt that a client changes with every request and that says nothing to a model:
   with it no prefix is ever found again.  docs/cache.md lists the rules. */
#ifndef SERVE_VOLATILE_H
#define SERVE_VOLATILE_H

#include "base/buf.h"
#include "cairn/status.h"

/* A system prompt without such text at its front. */
cairn_str volatile_skip(cairn_str system);
/* Messages (a JSON array) into out, their first without it if it is the system's; nothing where there is none.
   E_NOMEM. */
cairn_status volatile_strip(cairn_str messages, buf *out);

#endif
