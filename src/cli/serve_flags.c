/* The flags of `serve`.  A file that --config names says the same, a line each, and the command line has the
   last word: its flags replace the file's, its models those of the file. */
#include "cli/serve_flags.h"

#include "base/file.h"

enum { CONFIG_MAX = 1 << 20 };

static serve_flags flags; /* of the one command that runs */

static const flag table[] = {
    {"--config", NULL, FLAG_STR, &flags.config,
     "FILE: flags, a line each: `port 8080`, `model PATH`; the command line's go before them", 0, 0,
     NULL},
    {"--host", NULL, FLAG_STR, &flags.host, "H: address (127.0.0.1)", 0, 0, NULL},
    {"--port", NULL, FLAG_INT, &flags.port, "P: port, 0: any free one (8080)", 0, 65535, NULL},
    {"--api-key-file", NULL, FLAG_STR, &flags.key_file,
     "F: accepted keys, one a line; # begins a comment line; SIGHUP reads it again", 0, 0, NULL},
    {"--open", NULL, FLAG_BOOL, &flags.open, "a --host beyond loopback without keys", 0, 0, NULL},
    {"--allow-host", NULL, FLAG_LIST, &flags.hosts,
     "NAME: that requests may call this server by, *: any; may be given again (addresses, "
     "localhost, the machine's name)",
     0, 0, NULL},
    {"--cors-origin", NULL, FLAG_LIST, &flags.origins,
     "ORIGIN: of web pages that may use this server, *: any; may be given again (its own)", 0, 0,
     NULL},
    {"--tls-cert", NULL, FLAG_STR, &flags.tls_cert,
     "FILE: certificate chain, PEM: HTTPS; SIGHUP reads it again", 0, 0, NULL},
    {"--tls-key", NULL, FLAG_STR, &flags.tls_key, "FILE: its private key, PEM", 0, 0, NULL},
    {"--rate", NULL, FLAG_INT, &flags.rate,
     "N: requests a minute of each key, without keys of all, 0: any number (0)", 0, 1000000, NULL},
    {"--admin-socket", NULL, FLAG_STR, &flags.admin_socket,
     "PATH: Unix socket for /admin/*, for this user and root alone (none)", 0, 0, NULL},
    {"--connections", NULL, FLAG_INT, &flags.connections, "N: at once (2048)", 1, 100000, NULL},
    {"--max-body", NULL, FLAG_SIZE, &flags.max_body, "BYTES: of a request (32M)", 1024, 0x1p32,
     NULL},
    {"--models-dir", NULL, FLAG_STR, &flags.models_dir,
     "DIR: every model below it is known by its path there, and loaded when it is asked for", 0, 0,
     NULL},
    {"--model-pool", NULL, FLAG_INT, &flags.pool,
     "N: models that the memory is shared among; the one unused for longest makes room (those "
     "given, at least 2)",
     1, SERVE_MAX_MODELS, NULL},
    {"--alias", NULL, FLAG_LIST, &flags.aliases,
     "NAME=ID: another name of a model; may be given again", 0, 0, NULL},
    {"--keep", NULL, FLAG_INT, &flags.keep_s,
     "S: seconds after which a model that nobody uses is unloaded (never)", 1, 31536000, NULL},
    {"--pin", NULL, FLAG_LIST, &flags.pins,
     "ID: is loaded at start and stays loaded; may be given again", 0, 0, NULL},
    {"--ctx", NULL, FLAG_INT, &flags.ctx, "N: context of a request (default: what fits)", 1,
     CAIRN_MAX_CTX, NULL},
    {"--memory", NULL, FLAG_SIZE, &flags.memory,
     "BYTES: for all that the process holds (nine tenths of what is free)", 1, 0x1p62, NULL},
    CLI_KV(&flags.kv),
    {"--prompt-cache", NULL, FLAG_SIZE, &flags.prompt_cache,
     "BYTES: prefixes kept for later prompts, 0: none (half of what is left, at most 8 GiB)", 0,
     0x1p62, NULL},
    {"--ssd-cache", NULL, FLAG_STR, &flags.ssd, "DIR: keep prefixes on disk too (off)", 0, 0, NULL},
    {"--ssd-cache-max", NULL, FLAG_SIZE, &flags.ssd_max, "BYTES: of a model's files there (32G)", 1,
     0x1p62, NULL},
    {"--generation-checkpoint", NULL, FLAG_INT, &flags.checkpoint,
     "N: every N tokens an answer goes to --ssd-cache too, to go on from after a crash (off)", 1,
     CAIRN_MAX_CTX, NULL},
    {"--keep-volatile", NULL, FLAG_BOOL, &flags.keep_volatile,
     "leave headers that some clients change with every request in system prompts", 0, 0, NULL},
    {"--warm-prefix", NULL, FLAG_LIST, &flags.warm,
     "FILE: messages (JSON) whose prompt is computed when a model is loaded, and kept; may be "
     "given again",
     0, 0, NULL},
    {"--parallel", NULL, FLAG_INT, &flags.parallel, "N: requests decoded at once (4)", 1,
     CAIRN_MAX_SEQS, NULL},
    {"--queue", NULL, FLAG_INT, &flags.queue, "N: requests waiting beyond those (64)", 1,
     CAIRN_MAX_QUEUE, NULL},
    {"--max-gap", NULL, FLAG_NUM, &flags.max_gap,
     "X: while another's prompt is computed, a stream's tokens come at most about X times "
     "slower, while several are, that for each, for X of them at most; short prompts take for a "
     "moment what others left (3)",
     1.01, 1000, NULL},
    {"--timeout", NULL, FLAG_INT, &flags.timeout_s,
     "S: seconds for a request, waiting included, 0: any (0)", 0, 86400, NULL},
    {"--drain", NULL, FLAG_INT, &flags.drain_s,
     "S: seconds for running requests after SIGTERM or SIGINT (20)", 0, 86400, NULL},
    {"--log-level", NULL, FLAG_WORD, &flags.log_level,
     "error|warn|info|debug: what standard error gets (warn)", 0, 0, NULL},
    {"--log-json", NULL, FLAG_BOOL, &flags.log_json, "log lines are JSON objects", 0, 0, NULL},
    {"--log-prompts", NULL, FLAG_BOOL, &flags.log_prompts,
     "requests' bodies too, up to 400 bytes of each (at info)", 0, 0, NULL},
    {"--verbose", "-v", FLAG_BOOL, &flags.verbose,
     "events too, not only warnings, on standard error: --log-level info", 0, 0, NULL},
    CLI_THREADS(&flags.threads),
};

static void set_defaults(void)
{
    serve_flags *f = &flags;
    const buf text = f->text;

    *f = (serve_flags){.host = "127.0.0.1",
                       .port = 8080,
                       .drain_s = 20,
                       .prompt_cache = SERVE_BY_DEFAULT,
                       .warm = {.room = SERVE_MAX_WARM},
                       .hosts = {.room = SERVE_MAX_NAMES},
                       .origins = {.room = SERVE_MAX_NAMES},
                       .aliases = {.room = SERVE_MAX_ALIASES},
                       .pins = {.room = SERVE_MAX_MODELS},
                       .text = text};
    f->warm.item = f->warm_file;
    f->hosts.item = f->host_name;
    f->origins.item = f->origin;
    f->aliases.item = f->alias;
    f->pins.item = f->pin;
}

/* From the command line, and where a file is named from that and the command line again: it is known only
   then that there is one. */
static bool read_twice(const command *c, int argc, char **argv, int *exit_code)
{
    enum { N_FLAGS = sizeof table / sizeof table[0] };
    serve_flags *f = &flags;
    cairn_diag dg = {0};
    cli_words in_file = {0};
    flags_file file = {.word = "model", .rest = in_file.word, .max_rest = SERVE_MAX_MODELS};

    if (!cli_flags(c, table, N_FLAGS, argc, argv, 0, SERVE_MAX_MODELS, &f->models, exit_code))
        return false;
    if (!f->config) return true;
    file.path = f->config;
    set_defaults();
    if (file_read_input(file.path, CONFIG_MAX, &f->text, &dg) != CAIRN_OK) {
        *exit_code = cli_failed(&dg);
        return false;
    }
    file.text = f->text.len ? f->text.ptr : NULL;
    file.len = f->text.len;
    if (flags_parse_file(table, N_FLAGS, &file, &dg) != CAIRN_OK) {
        *exit_code = cli_usage(c, "%s", dg.message);
        return false;
    }
    in_file.n = file.n_rest;
    if (f->config) {
        *exit_code = cli_usage(c, "%s: names another --config; expected one file", file.path);
        return false;
    }
    if (!cli_flags(c, table, N_FLAGS, argc, argv, 0, SERVE_MAX_MODELS, &f->models, exit_code))
        return false;
    if (!f->models.n) f->models = in_file;
    return true;
}

/* What must hold of several flags together; NULL: it does. */
static const char *wrong_together(const serve_flags *f)
{
    if (f->checkpoint && !f->ssd) return "--generation-checkpoint without --ssd-cache";
    if (f->ssd_max && !f->ssd) return "--ssd-cache-max without --ssd-cache";
    if (!f->tls_cert != !f->tls_key) return "one of --tls-cert and --tls-key";
    return NULL;
}

serve_flags *serve_flags_read(const command *c, int argc, char **argv, int *exit_code)
{
    buf_init(&flags.text, MEM_SERVE);
    set_defaults();
    if (read_twice(c, argc, argv, exit_code)) {
        const char *wrong = wrong_together(&flags);
        if (!wrong) return &flags;
        *exit_code = cli_usage(c, "serve: %s; expected both", wrong);
    }
    serve_flags_deinit(&flags);
    return NULL;
}

void serve_flags_deinit(serve_flags *f)
{
    buf_deinit(&f->text);
}
