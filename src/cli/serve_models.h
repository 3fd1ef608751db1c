/* The models of a server: which there are, what each may take, and how one is opened. */
#ifndef CLI_SERVE_MODELS_H
#define CLI_SERVE_MODELS_H

#include "base/thread.h"
#include "cairn/server.h"
#include "cli/serve_flags.h"

typedef struct serve_models serve_models;

/* E_ARG: what its flags say of models cannot be, whatever the files hold. */
cairn_status serve_models_usage(const serve_flags *f, cairn_diag *dg);
/* Looks at each model that the command line names and at those below --models-dir, shares the budget, and opens the
   former, and those of --pin, as far as they fit; the others are opened when they are asked for.  `f` and `ssd` (the
   folder of --ssd-cache from the root on, or NULL) are borrowed.  *out ends in serve_models_close.  `ending`, also
   borrowed: not 0 once nothing is to be opened any more, which ends it with E_CANCELLED. */
cairn_status serve_models_open(const serve_flags *f, const char *ssd, const atomic_i64 *ending,
                               serve_models **out, cairn_diag *dg);
void serve_models_fill(serve_models *s, cairn_server_opts *o);
void serve_models_flush(
    const serve_models *s); /* to the disk, of those that are open: 2 minutes in all */
void serve_models_close(serve_models *s); /* after the server; NULL is fine */

#endif
