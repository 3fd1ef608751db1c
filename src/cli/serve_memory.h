/* One budget for a server and all of its models. */
#ifndef CLI_SERVE_MEMORY_H
#define CLI_SERVE_MEMORY_H

#include "cli/cli.h"

/* Of a budget (0: what this machine leaves), what connections, bodies, prompts and replies may take. */
uint64_t serve_host_bytes(uint64_t budget);
/* upto[i]: what the process may hold once model i is open; 0: by default.  Each model has its weights and an equal
   share of what all weights leave.  E_LIMIT, with the sum, where they leave nothing. */
cairn_status serve_share_memory(const cli_words *words, uint64_t budget, uint64_t *upto,
                                cairn_diag *dg);

#endif
