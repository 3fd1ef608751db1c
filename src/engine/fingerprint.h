/* What tells a model from all others: its files' bytes. */
#ifndef ENGINE_FINGERPRINT_H
#define ENGINE_FINGERPRINT_H

#include "base/hash.h"
#include "model/model.h"

/* Reads all files of weights, and config.json beside them: some seconds for large ones. */
cairn_status fingerprint_of(const model *m, hash128 *out, cairn_diag *dg);

#endif
