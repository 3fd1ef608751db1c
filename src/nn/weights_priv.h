/* What the files that bind weights share. */
#ifndef NN_WEIGHTS_PRIV_H
#define NN_WEIGHTS_PRIV_H

#include "nn/weights.h"

enum { WEIGHT_NAME_LEN = 256 };

/* The tensor of a table's name, tried under the prefixes of multimodal wrappers; `spelled` gets the name
   found, or without a prefix the one that is missing. */
const tensor_desc *weights_find(const weights *w, const char *name, int32_t layer, int32_t expert,
                                const char *suffix, char spelled[WEIGHT_NAME_LEN]);
cairn_status weights_keep(weights *w, weight *item, cairn_diag *dg);
cairn_status weights_misshapen(const tensor_desc *t, const char *expected, cairn_diag *dg);
weight_class weights_class(uint32_t flags);

/* A matrix that lies another way round in the file: element (r, c) of `to` is number
   c · apart + r · step + first of `from`; or, as f32, number r of row `row` + c of `rows_of`. */
typedef struct weight_turn {
    struct weight_turn *next;
    weight *to;
    const uint8_t *from; /* NULL: rows_of, quantised */
    const tensor_desc *rows_of;
    size_t apart, step, first, row;
} weight_turn;

/* Notes it; weights_settle does it. */
cairn_status weights_turn(weights *w, const weight_turn *turn, cairn_diag *dg);

#endif
