/* What the environment says about Hugging Face repositories; read nowhere else. */
#ifndef HUB_HUB_ENV_H
#define HUB_HUB_ENV_H

#include "base/buf.h"
#include "cairn/status.h"

/* $HF_ENDPOINT or the public one, without a slash at its end; replaces b, NUL-terminated. */
cairn_status hub_env_endpoint(buf *b, cairn_diag *dg);
/* $HF_TOKEN; NULL when unset or empty. */
const char *hub_env_token(void);
/* The shared cache: $HF_HUB_CACHE, $HF_HOME/hub, or huggingface/hub in the user's cache folder.
   Nothing is created; replaces b, NUL-terminated. */
cairn_status hub_env_cache(buf *b, cairn_diag *dg);

#endif
