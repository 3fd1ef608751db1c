/* serve: models behind HTTP until SIGTERM or SIGINT, then a drain, which a second one cuts short.  SIGHUP reads
   keys and certificate again; where there are neither it ends the server too, as the terminal is gone. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/log.h"
#include "cairn/embed.h"
#include "cairn/model.h"
#include "cairn/server.h"
#include "cli/serve_flags.h"
#include "cli/serve_log.h"
#include "cli/serve_memory.h"
#include "cli/warm.h"

enum {
    MAX_KEYS = 256, /* compared with every request's, all of them */
    KEY_FILE_MAX = 1 << 20,
    ID_MAX = 256,     /* a file's name */
    FLUSH_MS = 120000 /* who stops a server waits for it: 8 GiB of prefixes at 70 MB/s */
};

/* Accepted keys. */
typedef struct key_list {
    buf text; /* the file, lines cut by NULs */
    const char *key[MAX_KEYS];
    size_t n;
} key_list;

typedef struct served {
    cairn_model *model[SERVE_MAX_MODELS];
    cairn_server_model entry[SERVE_MAX_MODELS];
    char id[SERVE_MAX_MODELS][ID_MAX];
    size_t n;
    key_list keys;
    uint64_t upto[SERVE_MAX_MODELS]; /* serve_share_memory */
    buf ssd;                         /* the folder of --ssd-cache, from the root on */
} served;

static cairn_server *running; /* for the signal handler; set before the handler is */

/* The first asks for a drain; whoever asks again does not want to wait for it. */
static void on_stop(int sig)
{
    static volatile sig_atomic_t asked;
    if (asked || !running) _exit(128 + sig);
    asked = 1;
    cairn_server_stop(running);
}

static void on_hup(int sig)
{
    (void)sig;
    if (running) cairn_server_reload(running);
}

static cairn_status read_keys(const char *path, key_list *k, cairn_diag *dg)
{
    if (!path) return CAIRN_OK;
    TRY(file_read_input(path, KEY_FILE_MAX, &k->text, dg));
    /* As UTF-16 has after each letter: the first one alone would be a key. */
    if (k->text.len && memchr(k->text.ptr, '\0', k->text.len))
        return diag_set(dg, CAIRN_E_ARG, "%s: found a NUL byte; expected text", path);
    for (char *p = k->text.ptr; p && *p;) {
        char *end = strchr(p, '\n');
        if (end) *end = '\0';
        const size_t n = strlen(p);
        if (n && p[n - 1] == '\r') p[n - 1] = '\0';
        if (*p && *p != '#') {
            if (k->n == MAX_KEYS)
                return diag_set(dg, CAIRN_E_LIMIT,
                                "%s: more than %d keys; expected at most so many", path, MAX_KEYS);
            k->key[k->n++] = p;
        }
        p = end ? end + 1 : NULL;
    }
    if (k->n) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG, "%s: no key; expected one a line", path);
}

/* After SIGHUP.  A file that cannot be read, or without a key, locks nobody out and lets nobody in. */
static void reload_keys(void *ctx, cairn_server *server)
{
    const serve_flags *f = ctx;
    cairn_diag dg = {0};
    key_list k = {0};

    if (!f->key_file) return;
    buf_init(&k.text, MEM_SERVE);
    cairn_status st = read_keys(f->key_file, &k, &dg);
    if (st == CAIRN_OK) st = cairn_server_set_keys(server, k.key, k.n, &dg);
    if (st == CAIRN_OK)
        log_event(LOG_INFO, "keys_loaded", "file=%s keys=%zu", f->key_file, k.n);
    else
        log_event(LOG_WARN, "keys_kept", "file=%s why=\"%s\"", f->key_file, dg.message);
    buf_deinit(&k.text);
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

static cairn_status open_one(const char *word, size_t i, const serve_flags *f, served *s,
                             cairn_diag *dg)
{
    cairn_model_opts o;
    cairn_engine_opts eo;
    cairn_embed_info info;
    cairn_model_opts_init(&o);
    cairn_engine_opts_init(&eo);
    o.n_threads = (int32_t)f->threads;
    o.memory_limit = f->memory;
    eo.memory_budget = s->upto[i];
    eo.host_bytes = serve_host_bytes(f->memory);
    eo.score_len = CAIRN_SIGNAL_LEN;
    eo.ctx_len = (int32_t)f->ctx;
    eo.max_seqs = (int32_t)f->parallel;
    eo.max_queue = (int32_t)f->queue;
    eo.kv_codec = f->kv;
    eo.max_gap = (float)f->max_gap;
    eo.deadline_ms = (uint32_t)f->timeout_s * 1000;
    eo.prefix_limit = f->prompt_cache ? f->prompt_cache : CAIRN_NO_PREFIX;
    if (f->prompt_cache == SERVE_BY_DEFAULT) eo.prefix_limit = 0;
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

static void catch_signals(const serve_flags *f)
{
    const struct sigaction stop = {.sa_handler = on_stop}, again = {.sa_handler = on_hup};
    struct sigaction hup;

    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGINT, &stop, NULL);
    if (f->key_file || f->tls_cert)
        (void)sigaction(SIGHUP, &again, NULL);
    else if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) /* nohup's wish */
        (void)sigaction(SIGHUP, &stop, NULL);
}

static void fill_opts(const serve_flags *f, const served *s, cairn_server_opts *o)
{
    cairn_server_opts_init(o);
    o->host = f->host;
    o->port = (int32_t)f->port;
    o->models = s->entry;
    o->n_models = s->n;
    o->keep_volatile = f->keep_volatile;
    o->api_keys = s->keys.n ? s->keys.key : NULL;
    o->n_api_keys = s->keys.n;
    o->max_connections = (int32_t)f->connections;
    o->max_body_bytes = f->max_body;
    o->host_bytes = serve_host_bytes(f->memory);
    o->allow_hosts = f->hosts.item;
    o->n_allow_hosts = f->hosts.n;
    o->cors_origins = f->origins.item;
    o->n_cors_origins = f->origins.n;
    o->tls_cert = f->tls_cert;
    o->tls_key = f->tls_key;
    o->rate = (int32_t)f->rate;
    o->admin_socket = f->admin_socket;
    o->open_to_all = f->open;
    o->log_requests = f->log_prompts;
}

static cairn_status listen_and_serve(serve_flags *f, const served *s, cairn_diag *dg)
{
    cairn_server_opts o;
    buf line;

    fill_opts(f, s, &o);
    o.on_reload = reload_keys;
    o.reload_ctx = f;
    TRY(cairn_server_open(&o, &running, dg));
    catch_signals(f);
    buf_init(&line, MEM_SERVE);
    buf_printf(&line,
               strchr(f->host, ':') ? "listening on %s://[%s]:%d\n" : "listening on %s://%s:%d\n",
               f->tls_cert ? "https" : "http", f->host, (int)cairn_server_port(running));
    cairn_status st = cli_print(&line, dg);
    if (st == CAIRN_OK) st = cairn_server_run(running, (int32_t)f->drain_s * 1000, dg);
    cairn_server *closed = running;
    running = NULL;
    cairn_server_close(closed);
    return st;
}

/* Opens all that is served, serves, and closes it again. */
static cairn_status serve_models(serve_flags *f, cairn_diag *dg)
{
    cairn_status st;
    served s = {0};

    buf_init(&s.keys.text, MEM_SERVE);
    buf_init(&s.ssd, MEM_SERVE);
    TRY_GOTO(read_keys(f->key_file, &s.keys, dg), out);
    TRY_GOTO(name_folder(f->ssd, &s.ssd, dg), out);
    TRY_GOTO(serve_share_memory(&f->models, f->memory, s.upto, dg), out);
    for (size_t i = 0; i < f->models.n; i++)
        TRY_GOTO(open_one(f->models.word[i], i, f, &s, dg), out);
    TRY_GOTO(warm_all(f, &s, dg), out);
    st = listen_and_serve(f, &s, dg);
    flush_all(&s);
out:
    for (size_t i = s.n; i-- > 0;) {
        cairn_engine_close(s.entry[i].engine);
        cairn_model_close(s.model[i]);
    }
    buf_deinit(&s.ssd);
    buf_deinit(&s.keys.text);
    return st;
}

int cmd_serve(const command *c, int argc, char **argv)
{
    char twice[ID_MAX];
    cairn_diag dg = {0};
    int code = EXIT_OK;
    serve_flags *f = serve_flags_read(c, argc, argv, &code);

    if (!f) return code;
    if (!f->models.n) f->models.word[f->models.n++] = CLI_DEFAULT_MODEL;
    if (same_name(&f->models, twice)) {
        code = cli_usage(c, "serve: two models are called %s; expected a name for each", twice);
    } else {
        serve_log_start(f->log_level, f->verbose, f->log_json);
        if (serve_models(f, &dg) != CAIRN_OK) code = cli_failed(&dg);
    }
    serve_flags_deinit(f);
    return code;
}
