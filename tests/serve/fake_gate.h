/* Models of the double that are opened on demand, when a test's folder says so. */
#ifndef TESTS_SERVE_FAKE_GATE_H
#define TESTS_SERVE_FAKE_GATE_H

#include "cairn/server.h"

enum { FAKE_MAX_MODELS = 4 };

typedef struct fake_gate {
    const char *folder;
    int32_t seqs, queue, ctx; /* of each engine: fake_engine_new */
    const char *pinned;       /* the id of the model that is never closed; NULL: none */
} fake_gate;

/* Of the n (at most FAKE_MAX_MODELS) models in `list` none is open at first: o opens and closes them, and says that
   each takes a million bytes.  Once in a process, before other threads start; g and list stay as long as the server. */
void fake_gate_set(const fake_gate *g, cairn_server_model *list, size_t n, cairn_server_opts *o);

#endif
