/* serve: models behind HTTP until SIGTERM or SIGINT, then a drain, which a second one cuts short.  One that comes while
   models are being opened ends that.  SIGHUP reads keys and certificate again; where there are neither it ends the server
   too, as the terminal is gone. */
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
#include "base/thread.h"
#include "cairn/server.h"
#include "cli/serve_flags.h"
#include "cli/serve_log.h"
#include "cli/serve_memory.h"
#include "cli/serve_models.h"

enum {
    MAX_KEYS = 256, /* compared with every request's, all of them */
    KEY_FILE_MAX = 1 << 20
};

/* Accepted keys. */
typedef struct key_list {
    buf text; /* the file, lines cut by NULs */
    const char *key[MAX_KEYS];
    size_t n;
} key_list;

typedef struct served {
    serve_models *models;
    key_list keys;
    buf ssd; /* the folder of --ssd-cache, from the root on */
} served;

static cairn_server *running; /* for the signal handlers, while runs is 1 */
static atomic_i64 runs;
static atomic_i64 ending; /* it was asked to end before it ran: models are opened no further */

/* The first asks for a drain; whoever asks again does not want to wait for it. */
static void on_stop(int sig)
{
    static volatile sig_atomic_t asked;
    if (asked) _exit(128 + sig);
    asked = 1;
    if (atomic_get(&runs))
        cairn_server_stop(running);
    else
        atomic_put(&ending, 1);
}

static void on_hup(int sig)
{
    (void)sig;
    if (atomic_get(&runs)) cairn_server_reload(running);
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

static void catch_signals(const serve_flags *f)
{
    /* reading a model's files goes on, and is ended between two of its parts */
    const struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    const struct sigaction again = {.sa_handler = on_hup, .sa_flags = SA_RESTART};
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
    serve_models_fill(s->models, o);
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
    o->timeout_ms = f->timeout_s * 1000;
}

static cairn_status listen_and_serve(serve_flags *f, const served *s, cairn_diag *dg)
{
    cairn_server_opts o;
    buf line;

    fill_opts(f, s, &o);
    o.on_reload = reload_keys;
    o.reload_ctx = f;
    TRY(cairn_server_open(&o, &running, dg));
    atomic_put(&runs, 1);
    if (atomic_get(&ending)) cairn_server_stop(running);
    buf_init(&line, MEM_SERVE);
    buf_printf(&line,
               strchr(f->host, ':') ? "listening on %s://[%s]:%d\n" : "listening on %s://%s:%d\n",
               f->tls_cert ? "https" : "http", f->host, (int)cairn_server_port(running));
    cairn_status st = cli_print(&line, dg);
    if (st == CAIRN_OK) st = cairn_server_run(running, (int32_t)f->drain_s * 1000, dg);
    atomic_put(&runs, 0);
    cairn_server_close(running);
    return st;
}

/* Opens all that is served, serves, and closes it again. */
static cairn_status serve(serve_flags *f, cairn_diag *dg)
{
    cairn_status st;
    served s = {0};

    buf_init(&s.keys.text, MEM_SERVE);
    buf_init(&s.ssd, MEM_SERVE);
    TRY_GOTO(read_keys(f->key_file, &s.keys, dg), out);
    TRY_GOTO(name_folder(f->ssd, &s.ssd, dg), out);
    catch_signals(f);
    st = serve_models_open(f, s.ssd.len ? s.ssd.ptr : NULL, &ending, &s.models, dg);
    if (atomic_get(&ending) && (st == CAIRN_OK || st == CAIRN_E_CANCELLED)) {
        log_event(LOG_INFO, "server_stopped", "before=listening");
        st = CAIRN_OK; /* as a drain with nothing to do */
        goto out;
    }
    if (st != CAIRN_OK) goto out;
    st = listen_and_serve(f, &s, dg);
    serve_models_flush(s.models);
out:
    serve_models_close(s.models);
    buf_deinit(&s.ssd);
    buf_deinit(&s.keys.text);
    return st;
}

int cmd_serve(const command *c, int argc, char **argv)
{
    cairn_diag dg = {0};
    int code = EXIT_OK;
    serve_flags *f = serve_flags_read(c, argc, argv, &code);

    if (!f) return code;
    if (!f->models.n && !f->models_dir) f->models.word[f->models.n++] = CLI_DEFAULT_MODEL;
    mem_give_back_early();
    serve_log_start(f->log_level, f->verbose, f->log_json);
    if (serve_models_usage(f, &dg) != CAIRN_OK)
        code = cli_usage(c, "%s", dg.message);
    else if (serve(f, &dg) != CAIRN_OK)
        code = cli_failed(&dg);
    serve_flags_deinit(f);
    return code;
}
