/* serve: models behind HTTP until SIGTERM or SIGINT, then a drain, which a second one cuts short. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/warm.h"

enum {
    MAX_MODELS = 8, /* each has a pool of threads and caches of its own */
    MAX_KEYS = 256, /* compared with every request's, all of them */
    KEY_FILE_MAX = 1 << 20,
    ID_MAX = 256, /* a file's name */
    MAX_WARM = CAIRN_MAX_PINS,
    FLUSH_MS = 120000 /* who stops a server waits for it: 8 GiB of prefixes at 70 MB/s */
};

#define BY_DEFAULT UINT64_MAX

typedef struct serve_flags {
    const char *host, *key_file, *kv;
    int64_t port, ctx, parallel, threads, queue, drain_s, checkpoint, timeout_s;
    double max_gap;
    uint64_t memory, prompt_cache, ssd_max;
    const char *ssd;
    const char *warm_file[MAX_WARM];
    flag_list warm;
    bool verbose, keep_volatile;
} serve_flags;

typedef struct served {
    cairn_model *model[MAX_MODELS];
    cairn_server_model entry[MAX_MODELS];
    char id[MAX_MODELS][ID_MAX];
    size_t n;
    buf keys; /* the key file, lines cut by NULs */
    buf ssd;  /* the folder of --ssd-cache, from the root on */
    const char *key[MAX_KEYS];
    size_t n_keys;
} served;

static void on_event(void *ctx, log_level level, const char *event, const char *line)
{
    (void)ctx;
    (void)level;
    (void)fprintf(stderr, "cairn: %s %s\n", event, line);
}

static cairn_server *running; /* for the signal handler; set before the handler is */

/* The first asks for a drain; whoever asks again does not want to wait for it. */
static void on_stop(int sig)
{
    static volatile sig_atomic_t asked;
    if (asked || !running) _exit(128 + sig);
    asked = 1;
    cairn_server_stop(running);
}

static cairn_status read_keys(const char *path, served *s, cairn_diag *dg)
{
    if (!path) return CAIRN_OK;
    TRY(file_read_input(path, KEY_FILE_MAX, &s->keys, dg));
    for (char *p = s->keys.ptr; p && *p;) {
        char *end = strchr(p, '\n');
        if (end) *end = '\0';
        const size_t n = strlen(p);
        if (n && p[n - 1] == '\r') p[n - 1] = '\0';
        if (*p && *p != '#') {
            if (s->n_keys == MAX_KEYS)
                return diag_set(dg, CAIRN_E_LIMIT,
                                "%s: more than %d keys; expected at most so many", path, MAX_KEYS);
            s->key[s->n_keys++] = p;
        }
        p = end ? end + 1 : NULL;
    }
    if (s->n_keys) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG, "%s: no key; expected one a line", path);
}

/* The id that requests name: the word of the command line without folders and ".gguf". */
static void name_model(const char *word, char out[ID_MAX])
{
    const char *slash = strrchr(word, '/'), *name = slash && slash[1] ? slash + 1 : word;
    const size_t n = strlen(name), end = sizeof ".gguf" - 1;
    const size_t keep = n > end && strcmp(name + n - end, ".gguf") == 0 ? n - end : n;
    (void)snprintf(out, ID_MAX, "%.*s", (int)keep, name);
}

/* A model that completes texts only is served, as other programs may mean to; a chat with it is a 400.  Of one
   whose use is to embed nobody expects a chat. */
static void warn_of_text(const char *word, const cairn_model *m)
{
    cairn_diag dg = {0};
    const cairn_text *t = cairn_model_text(m);
    const cairn_status st = cairn_text_check_template(t, &dg);
    if (st != CAIRN_OK)
        log_event(LOG_WARN, t ? "no_chat_template" : "no_tokenizer",
                  "model=%s why=\"%s\" chats=refused", word, dg.message);
}

/* An id that two of the words give. */
static bool same_name(const cli_words *words, char id[ID_MAX])
{
    char other[ID_MAX];
    for (size_t i = 1; i < words->n; i++) {
        name_model(words->word[i], id);
        for (size_t k = 0; k < i; k++) {
            name_model(words->word[k], other);
            if (strcmp(id, other) == 0) return true;
        }
    }
    return false;
}

static cairn_status open_one(const char *word, const serve_flags *f, served *s, cairn_diag *dg)
{
    cairn_model_opts o;
    cairn_engine_opts eo;
    cairn_embed_info info;
    cairn_model_opts_init(&o);
    cairn_engine_opts_init(&eo);
    o.n_threads = (int32_t)f->threads;
    o.memory_limit = f->memory;
    eo.memory_limit = f->memory;
    eo.ctx_len = (int32_t)f->ctx;
    eo.max_seqs = (int32_t)f->parallel;
    eo.max_queue = (int32_t)f->queue;
    eo.kv_codec = f->kv;
    eo.max_gap = (float)f->max_gap;
    eo.deadline_ms = (uint32_t)f->timeout_s * 1000;
    eo.prefix_limit = f->prompt_cache ? f->prompt_cache : CAIRN_NO_PREFIX;
    if (f->prompt_cache == BY_DEFAULT) eo.prefix_limit = 0;
    eo.disk_dir = s->ssd.len ? s->ssd.ptr : NULL;
    eo.disk_limit = f->ssd_max;
    eo.checkpoint_every = (int32_t)f->checkpoint;
    TRY(cli_open_model(word, &o, &s->model[s->n], dg));
    cairn_embed_info_init(&info);
    cairn_embed_get_info(s->model[s->n], &info);
    s->entry[s->n].model = s->model[s->n];
    cairn_status st = info.only_embeds ? CAIRN_OK : cli_check_ctx(s->model[s->n], word, f->ctx, dg);
    if (st == CAIRN_OK && !info.only_embeds)
        st = cairn_engine_open(s->model[s->n], &eo, &s->entry[s->n].engine, dg);
    if (st != CAIRN_OK) {
        cairn_model_close(s->model[s->n]);
        return st;
    }
    if (!info.embeds) warn_of_text(word, s->model[s->n]);
    name_model(word, s->id[s->n]);
    s->entry[s->n].id = s->id[s->n];
    s->n++;
    return CAIRN_OK;
}

/* The engine wants a whole path, as a server may change its folder. */
static cairn_status name_folder(const char *dir, buf *out, cairn_diag *dg)
{
    char here[PATH_MAX];
    if (!dir) return CAIRN_OK;
    if (!dir[0])
        return diag_set(dg, CAIRN_E_ARG, "--ssd-cache has an empty name; expected a folder");
    if (dir[0] != '/' && !getcwd(here, sizeof here))
        return diag_set(dg, CAIRN_E_IO, "%s: the current folder has no name: %s", dir,
                        strerrordesc_np(errno));
    if (dir[0] != '/') (void)path_join(out, here, dir);
    if (dir[0] == '/') buf_puts(out, dir);
    return buf_status(out) == CAIRN_OK
               ? CAIRN_OK
               : diag_set(dg, CAIRN_E_NOMEM, "%s: no memory for a path", dir);
}

/* What was computed outlives the process, if the disk is fast enough. */
static void flush_all(const served *s)
{
    for (size_t i = 0; i < s->n; i++) {
        cairn_flush f;
        cairn_flush_init(&f);
        if (!s->entry[i].engine || !s->ssd.len) continue;
        cairn_engine_flush(s->entry[i].engine, FLUSH_MS, &f);
        if (f.checkpoints_pending || f.checkpoints_failed || f.cleanups_failed)
            log_event(LOG_WARN, "checkpoints_lost", "model=%s pending=%u failed=%u cleanups=%u",
                      s->id[i], f.checkpoints_pending, f.checkpoints_failed, f.cleanups_failed);
        if (f.pending || f.dropped || f.failed)
            log_event(LOG_WARN, "prefixes_lost", "model=%s pending=%u dropped=%u failed=%u",
                      s->id[i], f.pending, f.dropped, f.failed);
    }
}

static cairn_status warm_all(const serve_flags *f, const served *s, cairn_diag *dg)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < f->warm.n; k++)
            if (s->entry[i].engine)
                TRY(warm_prefix(s->entry[i].engine, cairn_model_text(s->model[i]), f->warm_file[k],
                                dg));
    return CAIRN_OK;
}

static cairn_status listen_and_serve(const serve_flags *f, const served *s, cairn_diag *dg)
{
    cairn_server_opts o;
    struct sigaction stop = {.sa_handler = on_stop};
    cairn_server_opts_init(&o);
    o.host = f->host;
    o.port = (int32_t)f->port;
    o.models = s->entry;
    o.n_models = s->n;
    o.keep_volatile = f->keep_volatile;
    o.api_keys = s->n_keys ? s->key : NULL;
    o.n_api_keys = s->n_keys;
    TRY(cairn_server_open(&o, &running, dg));
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGINT, &stop, NULL);
    struct sigaction hup;
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) /* nohup's wish */
        (void)sigaction(SIGHUP, &stop, NULL);
    buf line;
    buf_init(&line, MEM_SERVE);
    buf_printf(&line, "listening on http://%s:%d\n", f->host, (int)cairn_server_port(running));
    cairn_status st = cli_print(&line, dg);
    if (st == CAIRN_OK) st = cairn_server_run(running, (int32_t)f->drain_s * 1000, dg);
    cairn_server *closed = running;
    running = NULL;
    cairn_server_close(closed);
    return st;
}

int cmd_serve(const command *c, int argc, char **argv)
{
    serve_flags f = {.host = "127.0.0.1",
                     .port = 8080,
                     .drain_s = 20,
                     .prompt_cache = BY_DEFAULT,
                     .warm = {.room = MAX_WARM}};
    f.warm.item = f.warm_file;
    const flag table[] = {
        {"--host", NULL, FLAG_STR, &f.host, "H: address (127.0.0.1)", 0, 0, NULL},
        {"--port", NULL, FLAG_INT, &f.port, "P: port, 0: any free one (8080)", 0, 65535, NULL},
        {"--api-key-file", NULL, FLAG_STR, &f.key_file,
         "F: accepted keys, one a line; # begins a comment line", 0, 0, NULL},
        {"--ctx", NULL, FLAG_INT, &f.ctx, "N: context of a request (default: what fits)", 1,
         CAIRN_MAX_CTX, NULL},
        {"--memory", NULL, FLAG_SIZE, &f.memory, "BYTES: for weights and caches", 1, 0x1p62, NULL},
        CLI_KV(&f.kv),
        {"--prompt-cache", NULL, FLAG_SIZE, &f.prompt_cache,
         "BYTES: prefixes kept for later prompts, 0: none (half of what is left, at most 8 GiB)", 0,
         0x1p62, NULL},
        {"--ssd-cache", NULL, FLAG_STR, &f.ssd, "DIR: keep prefixes on disk too (off)", 0, 0, NULL},
        {"--ssd-cache-max", NULL, FLAG_SIZE, &f.ssd_max, "BYTES: of a model's files there (32G)", 1,
         0x1p62, NULL},
        {"--generation-checkpoint", NULL, FLAG_INT, &f.checkpoint,
         "N: every N tokens an answer goes to --ssd-cache too, to go on from after a crash (off)",
         1, CAIRN_MAX_CTX, NULL},
        {"--keep-volatile", NULL, FLAG_BOOL, &f.keep_volatile,
         "leave headers that some clients change with every request in system prompts", 0, 0, NULL},
        {"--warm-prefix", NULL, FLAG_LIST, &f.warm,
         "FILE: messages (JSON) whose prompt is computed at start and kept; may be given again", 0,
         0, NULL},
        {"--parallel", NULL, FLAG_INT, &f.parallel, "N: requests decoded at once (4)", 1,
         CAIRN_MAX_SEQS, NULL},
        {"--queue", NULL, FLAG_INT, &f.queue, "N: requests waiting beyond those (64)", 1,
         CAIRN_MAX_QUEUE, NULL},
        {"--max-gap", NULL, FLAG_NUM, &f.max_gap,
         "X: while others' prompts are computed, a stream's tokens come at most about X times "
         "slower (3)",
         1.01, 1000, NULL},
        {"--timeout", NULL, FLAG_INT, &f.timeout_s,
         "S: seconds for a request, waiting included, 0: any (0)", 0, 86400, NULL},
        {"--drain", NULL, FLAG_INT, &f.drain_s,
         "S: seconds for running requests after SIGTERM, SIGINT or SIGHUP (20)", 0, 86400, NULL},
        {"--verbose", "-v", FLAG_BOOL, &f.verbose,
         "events too, not only warnings, on standard error", 0, 0, NULL},
        CLI_THREADS(&f.threads),
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 0, MAX_MODELS, &words,
                   &code))
        return code;
    if (!words.n) words.word[words.n++] = CLI_DEFAULT_MODEL;
    char twice[ID_MAX];
    if (same_name(&words, twice))
        return cli_usage(c, "serve: two models are called %s; expected a name for each", twice);
    if (f.checkpoint && !f.ssd)
        return cli_usage(c, "serve: --generation-checkpoint without --ssd-cache; expected both");
    if (f.ssd_max && !f.ssd)
        return cli_usage(c, "serve: --ssd-cache-max without --ssd-cache; expected both");

    cairn_diag dg = {0};
    cairn_status st;
    served s = {0};
    buf_init(&s.keys, MEM_SERVE);
    buf_init(&s.ssd, MEM_SERVE);
    log_set(f.verbose ? LOG_INFO : LOG_WARN, on_event, NULL);
    TRY_GOTO(read_keys(f.key_file, &s, &dg), out);
    TRY_GOTO(name_folder(f.ssd, &s.ssd, &dg), out);
    for (size_t i = 0; i < words.n; i++) TRY_GOTO(open_one(words.word[i], &f, &s, &dg), out);
    TRY_GOTO(warm_all(&f, &s, &dg), out);
    st = listen_and_serve(&f, &s, &dg);
    flush_all(&s);
out:
    for (size_t i = s.n; i-- > 0;) {
        cairn_engine_close(s.entry[i].engine);
        cairn_model_close(s.model[i]);
    }
    buf_deinit(&s.ssd);
    buf_deinit(&s.keys);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
