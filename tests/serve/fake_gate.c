/* The gate is a folder.  Opening a model waits until it has a file `open` (or, for model ID, `open-ID` with / as _),
   and fails while it has one called `fail`; closing waits while it has one called `stay`.  Both end when the server
   is told to stop. */
#include "serve/fake_gate.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/thread.h"
#include "cairn/engine.h"
#include "cairn/model.h"
#include "serve/fake_engine.h"

enum { LOOK_MS = 2 }; /* between looks for a file: short beside what a test waits for */

static struct opener {
    const fake_gate *g;
    cairn_server_model *list;
    cairn_server_about about[FAKE_MAX_MODELS];
    atomic_i64 stopped; /* any thread */
} opener;

static bool has_file(const char *name, const char *id)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s%s", opener.g->folder, name, id);

    for (char *p = path + n - strlen(id); *p; p++)
        if (*p == '/') *p = '_';
    return access(path, F_OK) == 0;
}

/* The loader's thread, like the next. */
static cairn_status open_model(void *ctx, size_t i, cairn_server_model *out, cairn_diag *dg)
{
    const fake_gate *g = opener.g;
    const char *id = opener.list[i].id;

    (void)ctx;
    while (!has_file("open", "") && !has_file("open-", id)) {
        if (atomic_get(&opener.stopped)) return diag_set(dg, CAIRN_E_CANCELLED, "stopped");
        poll(NULL, 0, LOOK_MS);
    }
    if (has_file("fail", ""))
        return diag_set(dg, CAIRN_E_CORRUPT, "/secret/folder/%s.gguf: told to fail", id);
    TRY(fake_engine_new(g->seqs, g->queue, g->ctx, &opener.list[i].engine));
    out->engine = opener.list[i].engine;
    return CAIRN_OK;
}

static void close_model(void *ctx, size_t i)
{
    (void)ctx;
    while (has_file("stay", "") && !atomic_get(&opener.stopped)) poll(NULL, 0, LOOK_MS);
    cairn_engine_close(opener.list[i].engine);
    opener.list[i].engine = NULL;
}

static void stop_opening(void *ctx)
{
    (void)ctx;
    atomic_put(&opener.stopped, 1);
}

void fake_gate_set(const fake_gate *g, cairn_server_model *list, size_t n, cairn_server_opts *o)
{
    assert(n <= FAKE_MAX_MODELS);
    opener.g = g;
    opener.list = list;
    for (size_t i = 0; i < n; i++) {
        cairn_server_about *a = &opener.about[i];
        cairn_model_info_init(&a->info);
        cairn_model_get_info(NULL, &a->info);
        a->ctx_len = g->ctx;
        a->chat_template = cairn_text_template(NULL, false);
        a->tools_template = cairn_text_template(NULL, true);
        list[i].about = a;
        list[i].bytes = 1000000;
        list[i].pinned = g->pinned && strcmp(list[i].id, g->pinned) == 0;
    }
    o->open_model = open_model;
    o->close_model = close_model;
    o->stop_opening = stop_opening;
}
