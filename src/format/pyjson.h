/* JSON as Python's json module writes it → JSON.  Private to format/. */
#ifndef FORMAT_PYJSON_H
#define FORMAT_PYJSON_H

#include "base/buf.h"

/* Appends `in` with NaN, Infinity and -Infinity as null and whole numbers beyond 64 bits as floats:
   checkpoints hold both (a time_step_limit without end, a model_max_length of 1e30).  Everything
   else passes as it is; the parser judges it. */
void pyjson_to_json(cairn_str in, buf *out);

#endif
