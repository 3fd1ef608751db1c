/* --warm-prefix: a conversation's beginning becomes a prompt, computed once and pinned. */
#include "cli/warm.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"

enum {
    MAX_FILE = 64 << 20, /* more than any context takes: bytes of text, several a token */
    LOOK_MS = 250        /* who ends a server waits for it */
};

typedef struct waiting {
    mutex mu;
    cond over;
    bool done, pinned; /* guarded by mu, like the rest */
    cairn_status status;
    cairn_diag dg;
} waiting;

static void on_event(void *ctx, const cairn_event *ev)
{
    waiting *w = ctx;
    if (ev->kind != CAIRN_EV_DONE) return;
    mutex_lock(&w->mu);
    w->done = true;
    w->pinned = ev->pinned;
    w->status = ev->finish == CAIRN_FINISH_ERROR ? ev->status : CAIRN_OK;
    (void)diag_set(&w->dg, w->status, "%s", ev->message);
    cond_signal(&w->over);
    mutex_unlock(&w->mu);
}

static cairn_status compute(cairn_engine *e, const cairn_ids *ids, bool (*go_on)(void *ctx),
                            void *ctx, cairn_diag *dg)
{
    waiting w = {0};
    bool stopped = false;
    cairn_request r;
    cairn_request_id id;
    cairn_request_init(&r);
    r.ids = ids->ptr;
    r.n_ids = ids->len;
    r.max_tokens = 1;
    r.pin = true;
    r.deadline_ms = UINT32_MAX; /* nobody waits for it */
    mutex_init(&w.mu);
    cond_init(&w.over);
    cairn_status st = cairn_engine_submit(e, &r, on_event, &w, &id, dg);
    mutex_lock(&w.mu);
    while (st == CAIRN_OK && !w.done) {
        (void)cond_wait_ms(&w.over, &w.mu, LOOK_MS);
        if (stopped || w.done || go_on(ctx)) continue;
        stopped = true;
        mutex_unlock(&w.mu); /* its last event may come at once */
        cairn_engine_cancel(e, id);
        mutex_lock(&w.mu);
    }
    mutex_unlock(&w.mu);
    if (stopped) st = diag_set(dg, CAIRN_E_CANCELLED, "stopped before it was computed");
    if (st == CAIRN_OK && w.status != CAIRN_OK) st = diag_set(dg, w.status, "%s", w.dg.message);
    if (st == CAIRN_OK && !w.pinned)
        st = diag_set(dg, CAIRN_E_LIMIT,
                      "its %zu tokens cannot be kept: %s; expected --prompt-cache and --memory to "
                      "leave room, and at most %d files",
                      ids->len, w.dg.message, CAIRN_MAX_PINS);
    cond_deinit(&w.over);
    mutex_deinit(&w.mu);
    return st;
}

/* A member's JSON, normalised as a server does with requests; nothing where there is none. */
static cairn_status take(json_val v,
                         cairn_status (*normalise)(cairn_str, cairn_bytes *, cairn_diag *),
                         cairn_bytes *out, cairn_diag *dg)
{
    buf b;
    if (json_typeof(v) == JSON_NONE) return CAIRN_OK;
    buf_init(&b, MEM_MISC);
    json_writer w = json_write(&b);
    json_w_val(&w, v);
    cairn_status st = buf_status(&b);
    if (st == CAIRN_OK) st = normalise(buf_view(&b), out, dg);
    buf_deinit(&b);
    return st;
}

static cairn_status make_prompt(const cairn_text *t, cairn_str file, cairn_ids *ids, cairn_diag *dg)
{
    cairn_status st;
    json_doc *d = NULL;
    cairn_render_opts o;
    cairn_bytes messages = {0}, tools = {0};
    cairn_render_opts_init(&o);
    TRY_GOTO(json_parse(file, &d, dg), out);
    const json_val root = json_root(d);
    const bool whole = json_typeof(root) == JSON_OBJ;
    const json_val said = whole ? json_get(root, "messages") : root;
    if (json_typeof(said) != JSON_ARR) {
        st = diag_set(dg, CAIRN_E_ARG,
                      "found %s; expected an array of messages, or an object with one",
                      json_type_name(json_typeof(said)));
        goto out;
    }
    if (json_size(said) == 0) {
        st = diag_set(dg, CAIRN_E_ARG, "found no message; expected at least one");
        goto out;
    }
    TRY_GOTO(take(said, cairn_normalise_messages, &messages, dg), out);
    if (whole) TRY_GOTO(take(json_get(root, "tools"), cairn_normalise_tools, &tools, dg), out);
    o.messages = (cairn_str){messages.ptr, messages.len};
    o.tools = (cairn_str){tools.ptr, tools.len};
    o.no_generation_prompt = true;
    st = cairn_text_prompt(t, &o, ids, dg);
out:
    json_free(d);
    cairn_bytes_free(&messages);
    cairn_bytes_free(&tools);
    return st;
}

cairn_status warm_prefix(cairn_engine *e, const cairn_text *t, const char *path,
                         bool (*go_on)(void *ctx), void *ctx, cairn_diag *dg)
{
    cairn_ids ids = {0};
    buf file;
    buf_init(&file, MEM_MISC);
    cairn_status st = file_read(path, MAX_FILE, &file, dg);
    if (st == CAIRN_OK) {
        st = make_prompt(t, buf_view(&file), &ids, dg);
        if (st == CAIRN_OK) st = compute(e, &ids, go_on, ctx, dg);
        if (st != CAIRN_OK) st = diag_prefix(dg, st, "%s", path);
    }
    cairn_ids_free(&ids);
    buf_deinit(&file);
    return st;
}
