/* Rewrites of a program.  Each has a name and a switch, and is neutral to the bit. */
#ifndef TENSOR_FUSE_H
#define TENSOR_FUSE_H

#include "tensor/prog.h"

enum {
    FUSE_ROWS = 1,     /* rows that nobody reads are not computed past the last attention */
    FUSE_SIBLINGS = 2, /* LINEARs of one input become one op: q·k·v, gate·up */
    FUSE_RESIDUAL = 4, /* LINEAR then ADD */
    FUSE_ADD_NORM = 8, /* ADD then RMS_NORM */
    FUSE_ALL = 15
};
cairn_status fuse_prog(const prog *in, uint32_t which, arena *a, prog *out);

#endif
