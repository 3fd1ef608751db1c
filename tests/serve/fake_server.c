/* The real server over the test double of the engine: what the protocol tests start.  What its flags say becomes the
   server's options; SIGUSR1 and SIGUSR2 make requests for memory fail.  With --gate FOLDER models are opened on demand
   (fake_gate.c). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/flags.h"
#include "base/log.h"
#include "cairn/server.h"
#include "serve/fake_engine.h"
#include "serve/fake_gate.h"

enum { PATIENT_MS = 60000 }; /* a test on a busy machine may be slow to send its head */

static cairn_server *the_server;

/* As cmd_serve.c has it. */
static void on_signal(int sig)
{
    static volatile sig_atomic_t asked;

    if (asked) _exit(128 + sig);
    asked = 1;
    cairn_server_stop(the_server);
}

/* The n-th request for memory from now fails, n one more at each signal: test_memory.py. */
static void on_usr1(int sig)
{
    static volatile sig_atomic_t n; /* the main thread's alone: take_signals */

    (void)sig;
    n = n + 1;
    mem_fail_nth((uint64_t)n);
}

/* None fails from now, which a line tells. */
static void on_usr2(int sig)
{
    static const char line[] = "none fails\n";

    (void)sig;
    mem_fail_nth(0);
    if (write(STDOUT_FILENO, line, sizeof line - 1) < 0) _exit(1);
}

static void on_hup(int sig)
{
    (void)sig;
    cairn_server_reload(the_server);
}

static void on_line(void *ctx, log_level level, const char *event, const char *line)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, "%s %s\n", event, line);
}

/* The main thread takes these, and threads that it starts before do not: it reads the requests, so that a signal counts
   for all that is sent after it, and two signals keep their order. */
static void take_signals(int how)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGUSR2);
    (void)sigprocmask(how, &set, NULL);
}

static int fail(const cairn_diag *dg)
{
    fprintf(stderr, "fake_server: %s\n", dg->message);
    return 1;
}

static fake_gate gate;

/* What the flags say. */
static struct flags {
    int64_t port, seqs, queue, ctx, conns, header_ms, body_ms, body_bytes, drain_ms, models, rate;
    int64_t model_bytes, keep_ms, retry_ms, timeout_ms, first, host_bytes;
    const char *alias, *alias_of, *host, *cert, *cert_key, *admin, *template;
    const char *keys[2], *names[4], *origins[4];
    flag_list hosts, sites;
    bool log_requests, open, no_tools;
} f = {.seqs = 4,
       .queue = 64,
       .ctx = 100000,
       .header_ms = PATIENT_MS,
       .drain_ms = 2000,
       .models = 1,
       .template = "{{reasoning_effort}}{{enable_thinking}}",
       .hosts = {f.names, 0, 4},
       .sites = {f.origins, 0, 4}};

static const flag table[] = {
    {"--port", NULL, FLAG_INT, &f.port, "N", 0, 65535, NULL},
    {"--seqs", NULL, FLAG_INT, &f.seqs, "N", 1, 10000, NULL},
    {"--queue", NULL, FLAG_INT, &f.queue, "N", 0, 10000, NULL},
    {"--ctx", NULL, FLAG_INT, &f.ctx, "N", 1, 1000000000, NULL},
    {"--conns", NULL, FLAG_INT, &f.conns, "N", 1, 100000, NULL},
    {"--header-ms", NULL, FLAG_INT, &f.header_ms, "N", 1, 100000, NULL},
    {"--body-ms", NULL, FLAG_INT, &f.body_ms, "N", 1, 100000, NULL},
    {"--body-bytes", NULL, FLAG_INT, &f.body_bytes, "N", 1, 1000000000, NULL},
    {"--drain-ms", NULL, FLAG_INT, &f.drain_ms, "N", 0, 10000000, NULL},
    {"--models", NULL, FLAG_INT, &f.models, "N", 1, FAKE_MAX_MODELS, NULL},
    {"--gate", NULL, FLAG_STR, &gate.folder, "FOLDER", 0, 0, NULL},
    {"--model-bytes", NULL, FLAG_INT, &f.model_bytes, "N", 0, 1000000000, NULL},
    {"--host-bytes", NULL, FLAG_INT, &f.host_bytes, "N", 0, 1000000000, NULL},
    {"--keep-ms", NULL, FLAG_INT, &f.keep_ms, "N", 0, 1000000000, NULL},
    {"--retry-ms", NULL, FLAG_INT, &f.retry_ms, "N", 0, 1000000, NULL},
    {"--timeout-ms", NULL, FLAG_INT, &f.timeout_ms, "N", 0, 1000000, NULL},
    {"--default", NULL, FLAG_INT, &f.first, "N", 0, FAKE_MAX_MODELS, NULL},
    {"--pin", NULL, FLAG_STR, &gate.pinned, "ID", 0, 0, NULL},
    {"--alias", NULL, FLAG_STR, &f.alias, "NAME", 0, 0, NULL},
    {"--alias-of", NULL, FLAG_STR, &f.alias_of, "ID", 0, 0, NULL},
    {"--key", NULL, FLAG_STR, &f.keys[0], "KEY", 0, 0, NULL},
    {"--key2", NULL, FLAG_STR, &f.keys[1], "KEY", 0, 0, NULL},
    {"--rate", NULL, FLAG_INT, &f.rate, "N", 0, 1000000, NULL},
    {"--host", NULL, FLAG_STR, &f.host, "H", 0, 0, NULL},
    {"--open", NULL, FLAG_BOOL, &f.open, "", 0, 0, NULL},
    {"--allow-host", NULL, FLAG_LIST, &f.hosts, "NAME", 0, 0, NULL},
    {"--cors-origin", NULL, FLAG_LIST, &f.sites, "ORIGIN", 0, 0, NULL},
    {"--tls-cert", NULL, FLAG_STR, &f.cert, "FILE", 0, 0, NULL},
    {"--tls-key", NULL, FLAG_STR, &f.cert_key, "FILE", 0, 0, NULL},
    {"--admin-socket", NULL, FLAG_STR, &f.admin, "PATH", 0, 0, NULL},
    {"--log-requests", NULL, FLAG_BOOL, &f.log_requests, "", 0, 0, NULL},
    {"--template", NULL, FLAG_STR, &f.template, "TEXT", 0, 0, NULL},
    {"--no-tools", NULL, FLAG_BOOL, &f.no_tools, "", 0, 0, NULL},
};

static cairn_server_model list[FAKE_MAX_MODELS] = {
    {.id = "fake-model"}, {.id = "org/other"}, {.id = "third"}, {.id = "fourth"}};

static cairn_server_opts server_opts(const cairn_server_alias *also)
{
    cairn_server_opts o;

    cairn_server_opts_init(&o);
    if (gate.folder) fake_gate_set(&gate, list, (size_t)f.models, &o);
    o.aliases = also;
    o.n_aliases = also->name != NULL;
    o.default_model = (size_t)f.first;
    o.model_bytes = (uint64_t)f.model_bytes;
    o.host_bytes = (uint64_t)f.host_bytes;
    o.keep_ms = f.keep_ms;
    o.retry_ms = (int32_t)f.retry_ms;
    o.timeout_ms = f.timeout_ms;
    o.port = (int32_t)f.port;
    o.models = list;
    o.n_models = (size_t)f.models;
    o.api_keys = f.keys;
    o.n_api_keys = (size_t)(f.keys[0] != NULL) + (f.keys[1] != NULL);
    o.host = f.host;
    o.rate = (int32_t)f.rate;
    o.open_to_all = f.open;
    o.log_requests = f.log_requests;
    o.allow_hosts = f.hosts.item;
    o.n_allow_hosts = f.hosts.n;
    o.cors_origins = f.sites.item;
    o.n_cors_origins = f.sites.n;
    o.tls_cert = f.cert;
    o.tls_key = f.cert_key;
    o.admin_socket = f.admin;
    o.max_connections = (int32_t)f.conns;
    o.header_timeout_ms = (int32_t)f.header_ms;
    o.body_timeout_ms = (int32_t)f.body_ms;
    o.max_body_bytes = (uint64_t)f.body_bytes;
    return o;
}

static cairn_status open_models(void)
{
    gate.seqs = (int32_t)f.seqs;
    gate.queue = (int32_t)f.queue;
    gate.ctx = (int32_t)f.ctx;
    for (int64_t i = 0; i < f.models && !gate.folder; i++)
        TRY(fake_engine_new(gate.seqs, gate.queue, gate.ctx, &list[i].engine));
    return CAIRN_OK;
}

static void hear_signals(void)
{
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGHUP, on_hup);
    signal(SIGUSR1, on_usr1);
    signal(SIGUSR2, on_usr2);
    take_signals(SIG_UNBLOCK);
}

int main(int argc, char **argv)
{
    const char *rest[1];
    size_t n_rest;
    cairn_diag dg = {0};

    take_signals(SIG_BLOCK);
    if (getenv("FAKE_LOG")) log_set(LOG_DEBUG, on_line, NULL);
    if (flags_parse(table, sizeof table / sizeof table[0], argc - 1, argv + 1, rest, 1, &n_rest,
                    &dg) != CAIRN_OK)
        return fail(&dg);
    fake_model_template(f.template, !f.no_tools);
    if (open_models() != CAIRN_OK) return 1;
    const cairn_server_alias also = {f.alias, f.alias_of};
    const cairn_server_opts o = server_opts(&also);
    if (cairn_server_open(&o, &the_server, &dg) != CAIRN_OK) return fail(&dg);
    hear_signals();
    printf("listening on http://127.0.0.1:%d\n", cairn_server_port(the_server));
    fflush(stdout);
    const cairn_status st = cairn_server_run(the_server, (int32_t)f.drain_ms, &dg);
    cairn_server_close(the_server);
    for (int64_t i = 0; i < f.models; i++) cairn_engine_close(list[i].engine);
    return st == CAIRN_OK ? 0 : fail(&dg);
}
