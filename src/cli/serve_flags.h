/* What `serve` is told: flags, and the file that --config names. */
#ifndef CLI_SERVE_FLAGS_H
#define CLI_SERVE_FLAGS_H

#include "cli/cli.h"

enum {
    SERVE_MAX_MODELS = 8, /* each has a pool of threads and caches of its own */
    SERVE_MAX_WARM = CAIRN_MAX_PINS,
    SERVE_MAX_ALIASES = 64, /* each request's name is compared with all, as with all models */
    SERVE_MAX_NAMES = 64    /* hosts, or origins: each request's is compared with all */
};

#define SERVE_BY_DEFAULT UINT64_MAX

typedef struct serve_flags {
    const char *config, *host, *key_file, *kv, *ssd, *tls_cert, *tls_key, *log_level, *admin_socket;
    int64_t port, ctx, parallel, threads, queue, drain_s, checkpoint, timeout_s, rate, connections;
    double max_gap;
    uint64_t memory, prompt_cache, ssd_max, max_body;
    const char *warm_file[SERVE_MAX_WARM], *host_name[SERVE_MAX_NAMES], *origin[SERVE_MAX_NAMES];
    const char *models_dir, *alias[SERVE_MAX_ALIASES], *pin[SERVE_MAX_MODELS];
    int64_t keep_s, pool;
    flag_list warm, hosts, origins, aliases, pins;
    bool verbose, keep_volatile, open, log_json, log_prompts;
    buf text; /* of the file: what it says points into it */
    cli_words models;
} serve_flags;

/* Once in a process.  NULL: *exit_code says how to end; else followed by serve_flags_deinit. */
serve_flags *serve_flags_read(const command *c, int argc, char **argv, int *exit_code);
void serve_flags_deinit(serve_flags *f);

#endif
