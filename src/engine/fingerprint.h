/* What tells a model from all others: its files' bytes. */
#ifndef ENGINE_FINGERPRINT_H
#define ENGINE_FINGERPRINT_H

#include "base/hash.h"
#include "cairn/status.h"
#include "model/model.h"

/* Whether to go on with what takes long; fn NULL: it does. */
typedef struct fingerprint_ask {
    bool (*fn)(void *ctx);
    void *ctx;
} fingerprint_ask;

/* Reads all files of weights, and config.json beside them: some seconds for large ones, so it asks now and then;
   E_CANCELLED when the answer is no. */
cairn_status fingerprint_of(const model *m, fingerprint_ask ask, hash128 *out, cairn_diag *dg);
/* What decides besides where an answer ends and how it reads: tokenizer and generation files in its folder. */
cairn_status fingerprint_of_text(const model *m, hash128 *out, cairn_diag *dg);

#endif
