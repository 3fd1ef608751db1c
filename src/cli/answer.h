/* One request at a time, its text written to standard output as it comes; Ctrl-C ends the answer and
   not the program. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "cairn/engine.h"
#include "cli/answer_show.h"

typedef struct answer_result {
    cairn_finish finish;
    int32_t n_prompt, n_cached, n_generated;
    double prefill_seconds, decode_seconds;
} answer_result;

/* The answer ended as the context holds no more, not by the max_tokens of its request. */
bool answer_filled_context(const answer_result *r, int32_t max_tokens);

void answer_catch_interrupt(void); /* Ctrl-C sets a flag from here on */
bool answer_interrupted(void);     /* and this reads and clears it */

/* Submits `r`, writes its text: as `show` has it, which reads all of it, or for NULL as it comes. */
cairn_status answer_stream(cairn_engine *e, const cairn_request *r, answer_show *show,
                           answer_result *out, cairn_diag *dg);

#endif
