/* What the files that bind weights share. */
#ifndef NN_WEIGHTS_PRIV_H
#define NN_WEIGHTS_PRIV_H

#include "nn/weights.h"

cairn_status weights_keep(weights *w, weight *item, cairn_diag *dg);
cairn_status weights_misshapen(const tensor_desc *t, const char *expected, cairn_diag *dg);
weight_class weights_class(uint32_t flags);

#endif
