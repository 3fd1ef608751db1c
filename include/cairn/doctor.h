/* Looks at a model's text files for what is wrong or old: tokenizer, special tokens, chat template, the
   ids that end an answer.  No weights are read. */
#ifndef CAIRN_DOCTOR_H
#define CAIRN_DOCTOR_H

#include "cairn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_doctor cairn_doctor;

typedef struct cairn_finding {
    bool bad;            /* known to give wrong answers; else worth knowing */
    const char *code;    /* stable, for scripts: docs/chat.md lists them */
    const char *message; /* one line */
} cairn_finding;

/* `path`: a directory or a GGUF.  A model that cannot be read at all is a finding too; only a path that
   does not exist, or lack of memory, is a failure. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_doctor_run(const char *path, cairn_doctor **out,
                                                       cairn_diag *dg);
CAIRN_API size_t cairn_doctor_count(const cairn_doctor *d);
/* Valid as long as `d`. */
CAIRN_API cairn_finding cairn_doctor_at(const cairn_doctor *d, size_t i);
CAIRN_API void cairn_doctor_free(cairn_doctor *d); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
