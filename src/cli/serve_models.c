/* Opens and closes the models of a server.

   One model takes what there is, as it always did.  Several share one budget (serve_share.c), by whose sums what is
   loaded together fits: serve/models_load.c sees to that. */
#include "cli/serve_models.h"

#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/thread.h"
#include "cairn/embed.h"
#include "cli/serve_memory.h"
#include "cli/serve_models_priv.h"
#include "cli/warm.h"

enum {
    FLUSH_MS = 120000, /* who stops a server waits for it: 8 GiB of prefixes at 70 MB/s */
    SWAP_MS = 30000,   /* and who waits for another model, for this */
    SLICE_MS = 250     /* between two looks whether the program is to end */
};
#define MS_NS UINT64_C(1000000)

static bool split_alias(const char *word, cairn_str *name, const char **id)
{
    const char *eq = strchr(word, '=');
    if (!eq || eq == word || !eq[1]) return false;
    *name = (cairn_str){word, (size_t)(eq - word)};
    *id = eq + 1;
    return true;
}

cairn_status serve_models_usage(const serve_flags *f, cairn_diag *dg)
{
    serve_list *l = mem_calloc(1, sizeof *l, MEM_SERVE);
    cairn_status st = CAIRN_OK;
    cairn_str name;
    const char *id;
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "no memory for names");
    for (size_t i = 0; i < f->models.n && st == CAIRN_OK; i++) {
        st = serve_list_add(l, f->models.word[i], dg);
        if (st == CAIRN_OK && serve_list_find(l, l->item[i].id) != &l->item[i])
            st = diag_set(dg, CAIRN_E_ARG, "two models are called %s; expected a name for each",
                          l->item[i].id);
    }
    for (size_t i = 0; i < f->aliases.n && st == CAIRN_OK; i++)
        if (!split_alias(f->aliases.item[i], &name, &id))
            st = diag_set(dg, CAIRN_E_ARG, "--alias: found \"%s\"; expected NAME=ID",
                          f->aliases.item[i]);
    serve_list_deinit(l);
    mem_free(l);
    return st;
}

bool serve_models_go_on(void *ctx)
{
    const serve_models *s = ctx;
    return atomic_get(&s->stopped) == 0 && atomic_get(s->ending) == 0;
}

cairn_model_opts serve_models_opts(serve_models *s)
{
    cairn_model_opts o;
    cairn_model_opts_init(&o);
    o.n_threads = (int32_t)s->f->threads;
    o.memory_limit = s->f->memory;
    o.kv_codec = s->f->kv; /* what scores and sums take is what the engine has */
    o.go_on = serve_models_go_on;
    o.go_on_ctx = s;
    return o;
}

static cairn_engine_opts engine_opts(serve_models *s, size_t i)
{
    const serve_flags *f = s->f;
    const one *m = &s->one[i];
    cairn_engine_opts o;
    cairn_engine_opts_init(&o);
    o.memory_budget = s->total ? s->entry[i].bytes : f->memory;
    o.other_bytes = s->total ? m->other : 0;
    o.host_bytes = s->total ? 0 : serve_host_bytes(f->memory);
    o.score_len = CAIRN_SIGNAL_LEN;
    o.ctx_len = (int32_t)f->ctx;
    if (!m->given && m->about.info.ctx_train && o.ctx_len > m->about.info.ctx_train)
        o.ctx_len = m->about.info.ctx_train;
    o.max_seqs = (int32_t)f->parallel;
    o.max_queue = (int32_t)f->queue;
    o.kv_codec = f->kv;
    o.max_gap = (float)f->max_gap;
    o.deadline_ms = (uint32_t)f->timeout_s * 1000;
    o.prefix_limit = f->prompt_cache ? f->prompt_cache : CAIRN_NO_PREFIX;
    if (f->prompt_cache == SERVE_BY_DEFAULT) o.prefix_limit = 0;
    o.disk_dir = s->ssd;
    o.disk_limit = f->ssd_max;
    o.checkpoint_every = (int32_t)f->checkpoint;
    o.go_on = serve_models_go_on;
    o.go_on_ctx = s;
    return o;
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

static cairn_status warm(serve_models *s, const one *m, cairn_diag *dg)
{
    for (size_t k = 0; k < s->f->warm.n; k++)
        TRY(warm_prefix(m->engine, cairn_model_text(m->model), s->f->warm_file[k],
                        serve_models_go_on, s, dg));
    return CAIRN_OK;
}

static void close_one(one *m)
{
    cairn_engine_close(m->engine);
    cairn_model_close(m->model);
    m->engine = NULL;
    m->model = NULL;
    mem_trim(); /* for the next one */
}

static cairn_status open_one(serve_models *s, size_t i, cairn_diag *dg)
{
    const cairn_model_opts mo = serve_models_opts(s);
    const char *word = s->list.item[i].word;
    const cairn_engine_opts eo = engine_opts(s, i);
    one *m = &s->one[i];
    cairn_embed_info info;
    cairn_status st;
    TRY(cli_open_model(word, &mo, &m->model, dg));
    cairn_embed_info_init(&info);
    cairn_embed_get_info(m->model, &info);
    if (!info.only_embeds) {
        if (m->given) TRY_GOTO(cli_check_ctx(m->model, word, s->f->ctx, dg), out);
        TRY_GOTO(cairn_engine_open(m->model, &eo, &m->engine, dg), out);
        TRY_GOTO(warm(s, m, dg), out);
    }
    if (!info.embeds) warn_of_text(word, m->model);
    return CAIRN_OK;
out:
    close_one(m);
    return st;
}

static cairn_status too_large(const serve_models *s, size_t i, uint64_t left, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_LIMIT,
                    "%s: takes %llu bytes at least, and %llu of the %llu that models may take are "
                    "left; expected a model that fits, or a larger --memory",
                    s->list.item[i].word, (unsigned long long)s->one[i].least,
                    (unsigned long long)left, (unsigned long long)s->total);
}

/* Those of --pin have to fit; those of words do as far as there is room, each by itself at least. */
static cairn_status open_first(serve_models *s, cairn_diag *dg)
{
    uint64_t left = s->total;
    for (int pinned = 1; pinned >= 0; pinned--)
        for (size_t i = 0; i < s->list.n; i++) {
            const bool wanted = pinned ? s->entry[i].pinned : s->one[i].given;
            if (!wanted || s->one[i].model) continue;
            if (s->one[i].least > s->total || (pinned && s->entry[i].bytes > left))
                return too_large(s, i, left, dg);
            if (s->entry[i].bytes > left) continue;
            TRY(open_one(s, i, dg));
            left -= s->entry[i].bytes;
        }
    return CAIRN_OK;
}

static cairn_status name_all(serve_models *s, cairn_diag *dg)
{
    const serve_flags *f = s->f;
    for (size_t i = 0; i < s->list.n; i++) s->entry[i].id = s->list.item[i].id;
    for (size_t k = 0; k < f->pins.n; k++) {
        const serve_found *m = serve_list_find(&s->list, f->pins.item[k]);
        if (!m)
            return diag_set(dg, CAIRN_E_ARG, "--pin %s: no model is called so; expected an id",
                            f->pins.item[k]);
        s->entry[m - s->list.item].pinned = true;
    }
    for (size_t k = 0; k < f->aliases.n; k++) {
        cairn_str name;
        const char *id;
        if (!split_alias(f->aliases.item[k], &name, &id)) continue; /* serve_models_usage saw it */
        s->alias[k] = (cairn_server_alias){arena_strdup(&s->mem, name), id};
        if (!s->alias[k].name) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a model's name");
    }
    return CAIRN_OK;
}

static cairn_status open_all(serve_models *s, cairn_diag *dg)
{
    const serve_flags *f = s->f;
    for (size_t i = 0; i < f->models.n; i++) TRY(serve_list_add(&s->list, f->models.word[i], dg));
    if (f->models_dir) TRY(serve_list_scan(&s->list, f->models_dir, dg));
    for (size_t i = 0; i < s->list.n; i++) s->one[i].given = i < f->models.n;
    if (f->models_dir || s->list.n > 1) {
        TRY(serve_models_share(s, dg));
    }
    TRY(name_all(s, dg));
    if (s->total) return open_first(s, dg);
    TRY(open_one(s, 0, dg));
    serve_models_describe(s, s->one[0].model, &s->one[0].about);
    return CAIRN_OK;
}

cairn_status serve_models_open(const serve_flags *f, const char *ssd, const atomic_i64 *ending,
                               serve_models **out, cairn_diag *dg)
{
    serve_models *s = mem_calloc(1, sizeof *s, MEM_SERVE);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "no memory for models");
    s->f = f;
    s->ssd = ssd;
    s->ending = ending;
    arena_init(&s->mem, MEM_SERVE);
    const cairn_status st = open_all(s, dg);
    if (st == CAIRN_OK)
        *out = s;
    else
        serve_models_close(s);
    return st;
}

static void tell_lost(const serve_models *s, size_t i, const cairn_flush *f)
{
    const char *id = s->list.item[i].id;
    if (f->checkpoints_pending || f->checkpoints_failed || f->cleanups_failed)
        log_event(LOG_WARN, "checkpoints_lost", "model=%s pending=%u failed=%u cleanups=%u", id,
                  f->checkpoints_pending, f->checkpoints_failed, f->cleanups_failed);
    if (f->pending || f->dropped || f->failed)
        log_event(LOG_WARN, "prefixes_lost", "model=%s pending=%u dropped=%u failed=%u", id,
                  f->pending, f->dropped, f->failed);
}

/* Of one that nobody uses: what waits is written in slices, so that the end of the server cuts it short. */
static void flush_unused(const serve_models *s, size_t i)
{
    cairn_flush f = {0};
    bool waits = s->one[i].engine && s->ssd;
    for (uint32_t ms = 0; waits && ms < SWAP_MS; ms += SLICE_MS) {
        cairn_flush part;
        cairn_flush_init(&part);
        cairn_engine_flush(s->one[i].engine, SLICE_MS, &part);
        if (atomic_get(&s->stopped)) return; /* the end flushes it, and tells */
        if (part.dropped < f.dropped) part.dropped = f.dropped;
        f = part;
        waits = (f.pending || f.checkpoints_pending) && !f.failed && !f.checkpoints_failed;
    }
    tell_lost(s, i, &f);
}

/* The loader's thread, like the next. */
static cairn_status open_for_server(void *ctx, size_t i, cairn_server_model *out, cairn_diag *dg)
{
    serve_models *s = ctx;
    cairn_bytes path = {0};
    /* Told to clients, to whom advice for a command line would be none. */
    if (cairn_model_resolve(s->list.item[i].word, &path, NULL) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOTFOUND,
                        "its files, which the server found when it looked for models, are gone");
    cairn_bytes_free(&path);
    TRY(open_one(s, i, dg));
    out->engine = s->one[i].engine;
    out->model = s->one[i].model;
    return CAIRN_OK;
}

/* What was computed is found again when the model is back, if it is on disk by then.  Where the server ends meanwhile
   the model is left to serve_models_flush and serve_models_close. */
static void close_for_server(void *ctx, size_t i)
{
    serve_models *s = ctx;
    flush_unused(s, i);
    if (serve_models_go_on(s)) close_one(&s->one[i]);
}

static void stop_opening(void *ctx)
{
    atomic_put(&((serve_models *)ctx)->stopped, 1);
}

/* One model alone stays, unless it is said when it goes. */
void serve_models_fill(serve_models *s, cairn_server_opts *o)
{
    const serve_flags *f = s->f;
    for (size_t i = 0; i < s->list.n; i++) {
        s->entry[i].engine = s->one[i].engine;
        s->entry[i].model = s->one[i].model;
        s->entry[i].about = s->total || f->keep_s ? &s->one[i].about : NULL;
    }
    o->models = s->entry;
    o->n_models = s->list.n;
    o->aliases = s->alias;
    o->n_aliases = f->aliases.n;
    o->default_model = f->models.n > 0;
    for (size_t i = 0; i < s->list.n && !o->default_model; i++)
        if (s->entry[i].pinned) o->default_model = i + 1;
    o->open_model = open_for_server;
    o->close_model = close_for_server;
    o->stop_opening = stop_opening;
    o->models_ctx = s;
    o->model_bytes = s->total;
    o->keep_ms = f->keep_s * 1000;
}

void serve_models_flush(const serve_models *s)
{
    const uint64_t end_ns = clock_ns() + FLUSH_MS * MS_NS;
    for (size_t i = 0; i < s->list.n; i++) {
        const uint64_t now = clock_ns(), left = now < end_ns ? end_ns - now : 0;
        cairn_flush f;
        if (!s->one[i].engine || !s->ssd) continue;
        cairn_flush_init(&f);
        cairn_engine_flush(s->one[i].engine, (uint32_t)(left / MS_NS), &f);
        tell_lost(s, i, &f);
    }
}

void serve_models_close(serve_models *s)
{
    if (!s) return;
    for (size_t i = s->list.n; i-- > 0;) close_one(&s->one[i]);
    serve_list_deinit(&s->list);
    arena_deinit(&s->mem);
    mem_free(s);
}
