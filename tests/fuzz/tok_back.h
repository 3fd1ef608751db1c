#ifndef TESTS_FUZZ_TOK_BACK_H
#define TESTS_FUZZ_TOK_BACK_H

#include "base/buf.h"
#include "text/tok.h"

/* Aborts unless the text of all ids at once is that of a stream of them.  `keep`: special tokens appear. */
void tok_back(const tok *t, const buf *ids, bool keep);

#endif
