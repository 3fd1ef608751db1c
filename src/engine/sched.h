/* Who runs in the next step. */
#ifndef ENGINE_SCHED_H
#define ENGINE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

/* Prefill rows of a step that also decodes: a running request waits for no more than these.  Matrix
   products reach their full rate from about 64 rows on, so a longer chunk would gain nothing. */
enum { SCHED_SHARED_ROWS = 128 };

typedef struct sched_item {
    int32_t pending; /* rows known and not computed; 0: it waits for other things */
    bool decoding;   /* then pending is 1 */
    int32_t rows;    /* out: rows of the next step */
} sched_item;

/* Items stand in order of admission, at most max_rows of them.  Every decoding item gets its row;
   what is left is shared among the prefilling ones as evenly as their needs allow, the odd rows to
   the oldest. */
void sched_plan(sched_item *item, int32_t n, int32_t max_rows);

#endif
