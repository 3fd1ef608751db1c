/* JSON that ends early, made whole. */
#ifndef SERVE_JSON_CUT_H
#define SERVE_JSON_CUT_H

#include "base/buf.h"

/* b holds the beginning of a JSON object, or all of one: then nothing changes.  What follows the last
   complete member or element is cut, and what is open is closed.  Nothing becomes {}. */
void json_cut_close(buf *b);
/* The quote that ends the string whose first byte is at `at`, or the end: the first quote behind an even number
   of backslashes. */
size_t json_string_end(cairn_str s, size_t at);

#endif
