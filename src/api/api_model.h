/* cairn_model behind the public name. */
#ifndef API_MODEL_H
#define API_MODEL_H

#include "cache/scheme.h"
#include "cairn/text.h"
#include "model/model.h"

struct cairn_model {
    model *m;
    scheme kv;
    cairn_text *text; /* NULL: no vocabulary beside the weights */
    bool tells_case;  /* the tokenizer, though the files of an embedding model mean lower case */
};

/* Whether a tokenizer makes something else of capitals; asked once, when a model is opened. */
cairn_status embed_tells_case(const cairn_text *t, bool *tells, cairn_diag *dg);

#endif
