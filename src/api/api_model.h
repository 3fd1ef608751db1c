/* cairn_model behind the public name. */
#ifndef API_MODEL_H
#define API_MODEL_H

#include "cairn/text.h"
#include "model/model.h"

struct cairn_model {
    model *m;
    cairn_text *text; /* NULL: no vocabulary beside the weights */
};

#endif
