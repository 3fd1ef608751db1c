/* Who runs in the next step. */
#ifndef ENGINE_SCHED_H
#define ENGINE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "cairn/engine.h"

enum {
    /* Of three rows two are the oldest prompt's, whatever else waits.  A quarter left prompts of 700 tokens behind all
       others for seconds at eight clients; with all of them short ones wait as long (docs/load.md). */
    SCHED_OLDEST = 2,
    SCHED_SHARES = 3,
    SCHED_LEAST = 1 /* row, however little time there is: nothing stands still */
};

typedef struct sched_item {
    int32_t
        pending;   /* rows known and not computed that may run now; 0: it waits for other things */
    int32_t left;  /* until its first token, as far as its turn is concerned */
    int32_t fresh; /* rows that it had to compute when it was admitted */
    int32_t pos;   /* where they begin */
    int32_t priority; /* a lower one goes first; at most CAIRN_MAX_PRIORITY either way */
    bool decoding;    /* then pending is 1 */
    uint64_t row_ns;  /* what a row of it costs; 0: unknown, and then it is free */
    int32_t rows;     /* out: rows of the next step */
} sched_item;

typedef struct sched_room {
    int32_t max_rows; /* of the step; those that decode at least */
    uint64_t ns;      /* for rows of prompts */
    int32_t least;    /* rows of prompts that run whatever they cost */
} sched_room;

/* Items stand in order of admission.  Every decoding item gets its row.  Of what
   is left a share is the oldest prompt's; with the rest that is finished which is finished soonest; each step
   of priority counts as twice the length. */
void sched_plan(sched_item *item, int32_t n, sched_room room);

#endif
