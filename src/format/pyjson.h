/* JSON as Python's json module writes it → JSON.  Private to format/. */
#ifndef FORMAT_PYJSON_H
#define FORMAT_PYJSON_H

#include "base/buf.h"

/* What stands for NaN, Infinity and -Infinity: a string of the word after a byte that no text of a
   checkpoint has, so that a reader of numbers can say what it found. */
#define PYJSON_MARK '\0'

/* Appends `in` with numbers that are not finite as such strings, and whole numbers beyond 64 bits as
   floats: checkpoints hold both (a time_step_limit without end, a model_max_length of 1e30).
   Everything else passes as it is; the parser judges it. */
void pyjson_to_json(cairn_str in, buf *out);
/* Whether the string is one of those, and which number it means. */
bool pyjson_nonfinite(cairn_str s, double *out);

#endif
