/* Short words for the tables of weight names (nn/weights.h), which are read row by row: a field of
   decoder_layer, and the names of a layer's tensor.  For .c files that hold such tables alone; fields of
   other structs, and names below a layer's, have words of their own there. */
#ifndef MODEL_ROWS_H
#define MODEL_ROWS_H

#include <stddef.h>

#define L(field) offsetof(decoder_layer, field)
#define HF(name) "model.layers.%d." name
#define GG(name) "blk.%d." name

#endif
