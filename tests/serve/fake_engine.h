/* The test double of the engine and its model: how to make them.  The rest of their face is include/cairn/. */
#ifndef TESTS_SERVE_FAKE_ENGINE_H
#define TESTS_SERVE_FAKE_ENGINE_H

#include "cairn/engine.h"

enum { FAKE_VOCAB = 256 }; /* ids are bytes */

cairn_status fake_engine_new(int32_t max_seqs, int32_t max_queue, int32_t ctx, cairn_engine **out);
const cairn_model *fake_model(void); /* of every engine */
/* What cairn_text_template answers; kept, not copied.  takes_tools: and {{tools}}, of the one for tools.  Once, before
   any engine is made. */
void fake_model_template(const char *text, bool takes_tools);

#endif
