/* How far ahead the calling thread fetches what it reads: for code that fetches lines unrolled and deep down, where no
   argument reaches.  Any value will do, since fetching is advice. */
#ifndef BASE_FAR_H
#define BASE_FAR_H

#include <stdint.h>

enum { FAR_AHEAD = 6144 }; /* bytes: docs/kernels.md, "What can be read" */

/* What is fetched into the second cache lies so many bytes after what is read, modulo 2^64.  Whoever sets it for a call
   sets it back to FAR_AHEAD. */
extern _Thread_local uintptr_t far_ahead __attribute__((tls_model("initial-exec")));

#endif
