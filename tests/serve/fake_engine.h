/* The test double of the engine: how to make one.  The rest of its face is include/cairn/. */
#ifndef TESTS_SERVE_FAKE_ENGINE_H
#define TESTS_SERVE_FAKE_ENGINE_H

#include "cairn/engine.h"

cairn_status fake_engine_new(int32_t max_seqs, int32_t max_queue, int32_t ctx, cairn_engine **out);
void fake_engine_template(
    const char *text); /* what cairn_text_template answers; kept, not copied */

#endif
