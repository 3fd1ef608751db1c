/* What tells a model from all others: its files' bytes. */
#ifndef ENGINE_FINGERPRINT_H
#define ENGINE_FINGERPRINT_H

#include "base/hash.h"
#include "cairn/status.h"
#include "model/model.h"

/* Reads all files of weights, and config.json beside them: some seconds for large ones. */
cairn_status fingerprint_of(const model *m, hash128 *out, cairn_diag *dg);
/* What decides besides where an answer ends and how it reads: tokenizer and generation files in its folder. */
cairn_status fingerprint_of_text(const model *m, hash128 *out, cairn_diag *dg);

#endif
