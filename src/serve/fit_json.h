/* What cairn_fit told, as JSON: one form for `cairn fit --json` and the route /fit. */
#ifndef SERVE_FIT_JSON_H
#define SERVE_FIT_JSON_H

#include "base/json.h"
#include "cairn/fit.h"

/* A row, as an object.  `speed`: with decode_tokens_per_second. */
void fit_json_row(json_writer *w, const cairn_fit_row *row, bool speed);
/* The members of the report inside an object that is open; what was not measured is left out. */
void fit_json_report(json_writer *w, const cairn_fit_report *r);

#endif
