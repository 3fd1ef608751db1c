/* How tokens are drawn: the fields that every API's body has for it. */
#ifndef SERVE_CHAT_SAMPLING_H
#define SERVE_CHAT_SAMPLING_H

#include "serve/openai_read.h"

/* Into a->rq.sampling and a->has_seed, over what stands there: the caller's defaults.  Lists go to a->mem.  A wrong
   type or range is E_ARG with the field's name, as is what asks for a sampler that is not there. */
cairn_status chat_sampling_read(json_val root, chat_ask *a, chat_fault *f);
/* `seed` alone: any 64 bits, below 0 in two's complement. */
cairn_status chat_seed_read(json_val root, chat_ask *a, chat_fault *f);

#endif
