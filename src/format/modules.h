/* What sentence-transformers writes beside a checkpoint.  Private to format/ and its tests. */
#ifndef FORMAT_MODULES_H
#define FORMAT_MODULES_H

#include "format/format_priv.h"

/* Reads dir/modules.json and the files it names into b->src.pool, which stays NULL where there is no such
   file; tensors of dense modules join the list as FOLDER.linear.weight.  A module or a field that changes
   the vector and is not understood is an error that names it. */
cairn_status modules_read(source_build *b, const char *dir, cairn_diag *dg);

#endif
