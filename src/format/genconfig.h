/* What config.json and generation_config.json say of generating.  Private to format/ and its tests. */
#ifndef FORMAT_GENCONFIG_H
#define FORMAT_GENCONFIG_H

#include "format/hfconfig.h"
#include "text/tok.h"

enum { GENCONFIG_MAX_EOS = 256 }; /* new ids in one file; the longest real list has 9 */

/* Reads dir/name, if it is there: checks the ids and the sampling numbers, gives the ids that end
   generation to t.  A wrong value is E_CORRUPT (E_LIMIT: too many ids) "FILE: FIELD: found …;
   expected …". */
cairn_status genconfig_read(const char *dir, const char *name, tok *t, cairn_diag *dg);
/* The ids of c, which was read from `path`, alone: for a model without its tokenizer. */
cairn_status genconfig_check_ids(const char *path, const hfconfig *c, cairn_diag *dg);

#endif
