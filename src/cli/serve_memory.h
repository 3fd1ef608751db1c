/* One budget for a server and all of its models. */
#ifndef CLI_SERVE_MEMORY_H
#define CLI_SERVE_MEMORY_H

#include <stdint.h>

/* Of a budget (0: what this machine leaves), what connections, bodies, prompts and replies may take. */
uint64_t serve_host_bytes(uint64_t budget);
uint64_t serve_budget(uint64_t budget); /* the whole of it, given or (0) found */

#endif
