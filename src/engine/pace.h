/* How long steps take, as measured, and so how much of others' prompts a step may compute while somebody
   waits for his next token. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include "engine/sched.h"

enum {
    PACE_COUNTS = 49, /* decoding rows 1, 2, … 16, 17, 18-19, … 256 */
    PACE_DEPTHS = 12  /* positions below 1024, below 2048, … */
};

/* Zeroed is fine, but for the bound.  Engine thread. */
typedef struct pace {
    double bound; /* times the step without prompts, for each prompt that waits */
    uint64_t decode_ns[PACE_COUNTS]; /* 0: never measured, as below */
    uint64_t row_ns[2][PACE_DEPTHS]; /* a row of a prompt: alone, beside decoding rows */
    uint64_t saved_ns;               /* what short prompts may take beside that */
    int32_t n_mixed;                 /* steps since the last without prompts */
} pace;

/* Fills row_ns of the prefilling items; answers what the next step may take. */
sched_room pace_room(const pace *p, sched_item *item, int32_t n, int32_t max_rows);
/* The step of these items took so long. */
void pace_took(pace *p, const sched_item *item, int32_t n, uint64_t ns);
/* What a prompt of n tokens takes with nobody else, roughly; 0 before any was measured. */
uint64_t pace_prompt_ns(const pace *p, int32_t n);

#endif
