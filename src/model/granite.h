/* What Granite's families share: granite.c, granite_moe.c and granite_h.c define it. */
#ifndef MODEL_GRANITE_H
#define MODEL_GRANITE_H

#include "model/decoder.h" /* IWYU pragma: export */

/* Of the embedding, the scores, what a sublayer adds and the logits. */
void granite_multipliers(config *c, decoder *d);
/* Fails where a GGUF file's switch of rotation is off: these layers rotate. */
void granite_rotates(config *c);

/* The mixture of experts: its numbers, and its names below block_sparse_moe. */
void granite_experts(config *c, weights *w, route_spec *out);
enum { GRANITE_EXPERT_ROWS = 3 };
extern const weight_row granite_router_row;
extern const expert_row granite_expert_rows[GRANITE_EXPERT_ROWS];
/* Layer i's expert that every token meets, into l->moe.shared; its width is w->dim[DIM_SHARED_FFN]. */
cairn_status granite_bind_shared(weights *w, decoder_layer *l, int32_t i, cairn_diag *dg);

#endif
