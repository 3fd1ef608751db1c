/* What Qwen's families with experts share: the names of the router and of the shared expert. */
#ifndef MODEL_QWEN_MOE_H
#define MODEL_QWEN_MOE_H

#include "model/decoder.h" /* IWYU pragma: export */

enum { QWEN_ROUTER_ROWS = 1, QWEN_SHARED_ROWS = 4 };
extern const weight_row qwen_router_rows[QWEN_ROUTER_ROWS];
extern const weight_row qwen_shared_rows[QWEN_SHARED_ROWS];

#endif
