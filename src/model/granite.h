/* What Granite's families share. */
#ifndef MODEL_GRANITE_H
#define MODEL_GRANITE_H

#include "model/decoder.h" /* IWYU pragma: export */

/* Of the embedding, the scores, what a sublayer adds and the logits. */
void granite_multipliers(config *c, decoder *d);

#endif
