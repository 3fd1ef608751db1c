/* Runs another program and waits for it.  No shell: the arguments arrive as they are. */
#ifndef BASE_SPAWN_H
#define BASE_SPAWN_H

#include "base/buf.h"
#include "cairn/status.h"

enum { SPAWN_SAID_MAX = 1 << 14 }; /* last words are enough for a message */

typedef struct spawn_opts {
    const char *tmpdir;      /* the child's TMPDIR; NULL: ours */
    void (*tick)(void *ctx); /* a few times a second while it runs; NULL: never */
    void *ctx;
} spawn_opts;

/* The child is killed when the calling thread dies.
   argv ends with NULL; argv[0] is looked up in PATH.  The child reads /dev/null; of what it writes
   to its two outputs the last SPAWN_SAID_MAX bytes replace `said`.  OK once it has ended: *exit_code
   is its status, or 128 + the signal that killed it.  E_NOTFOUND: no such program. */
cairn_status spawn_run(const char *const argv[], const spawn_opts *o, int *exit_code, buf *said,
                       cairn_diag *dg);

#endif
