/* Room in the shared model cache: what no ref leads to any more. */
#ifndef HUB_HUB_GC_H
#define HUB_HUB_GC_H

#include "base/buf.h"
#include "cairn/status.h"

typedef struct hub_gc_opts {
    bool yes;   /* delete; else only tell */
    bool force; /* snapshots that hold a file name which the kept ones lack, too */
} hub_gc_opts;

typedef struct hub_gc_result {
    size_t n;       /* snapshots and blobs deleted, or that would be */
    uint64_t bytes; /* of their files */
    size_t n_failed;
} hub_gc_result;

/* Deletes snapshots that no ref names, then blobs that no surviving snapshot links, and appends a
   line for each.  Repositories whose refs resolve to no snapshot or that are being fetched, and all
   .incomplete and .lock files, stay.  E_IO if something could not be deleted. */
cairn_status hub_gc(const hub_gc_opts *o, buf *out, hub_gc_result *r, cairn_diag *dg);

#endif
