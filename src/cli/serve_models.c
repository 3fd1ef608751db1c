/* Opens the models of a server, and shares one budget among them.

   One model takes what there is, as it always did.  Of several, each is first looked at without its weights, so
   that what it takes at least is known: weights, programs, requests, and the cache of one short request.  The budget, less
   the server's part, is shared among so many models as --model-pool says, the hungriest first, or as many of those as
   fit: what their least leaves is divided in equal parts, and any model gets such a part beside its own least.  So a
   model's context is the same whenever it is loaded, and what is loaded together fits (serve/models_load.c sees to that, by
   these sums). */
#include "cli/serve_models.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "cairn/embed.h"
#include "cairn/fit.h"
#include "cli/serve_memory.h"
#include "cli/serve_scan.h"
#include "cli/warm.h"

enum {
    FLUSH_MS = 120000, /* who stops a server waits for it: 8 GiB of prefixes at 70 MB/s */
    SWAP_MS = 30000,   /* and who waits for another model, for this */
    SLICE_MS = 250,    /* between two looks whether the program is to end */
    LEAST_CTX = 4096,  /* of a model that is said to fit: a conversation of some turns */
    UNKNOWN_CTX = 2048,
    DEFAULT_SEQS = 4,
    LEAST_POOL = 2 /* one that chats, one that embeds */
};
#define MS_NS       UINT64_C(1000000)
#define EMBED_ROOM  (UINT64_C(64) << 20) /* for the rows of a batch of texts */
#define DISK_STAGES (UINT64_C(64) << 20) /* cairn_fit leaves these out */

typedef struct one {
    cairn_server_about about;
    uint64_t least, other; /* bytes; other: vocabulary and tables */
    uint64_t fixed;        /* of the least, what grows with no context */
    bool given;            /* by a word: what is wrong with it ends the program */
    cairn_model *model;    /* the loader's, once the server runs; like the next */
    cairn_engine *engine;
} one;

struct serve_models {
    const serve_flags *f;
    const char *ssd;
    arena mem;
    serve_list list;
    one one[SERVE_MAX_KNOWN];
    cairn_server_model entry[SERVE_MAX_KNOWN];
    cairn_server_alias alias[SERVE_MAX_ALIASES];
    uint64_t total;           /* of all models; 0: there is one, and it has what there is */
    atomic_i64 stopped;       /* by the server */
    const atomic_i64 *ending; /* by who opens it */
};

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

static bool goes_on(void *ctx)
{
    const serve_models *s = ctx;
    return atomic_get(&s->stopped) == 0 && atomic_get(s->ending) == 0;
}

static cairn_model_opts model_opts(serve_models *s)
{
    cairn_model_opts o;
    cairn_model_opts_init(&o);
    o.n_threads = (int32_t)s->f->threads;
    o.memory_limit = s->f->memory;
    o.kv_codec = s->f->kv; /* what scores and sums take is what the engine has */
    o.go_on = goes_on;
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
    o.go_on = goes_on;
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
        TRY(warm_prefix(m->engine, cairn_model_text(m->model), s->f->warm_file[k], goes_on, s, dg));
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
    const cairn_model_opts mo = model_opts(s);
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

static void keep_row(void *ctx, const cairn_fit_row *row)
{
    *(cairn_fit_row *)ctx = *row;
}

/* The sums of the guard, with the whole budget in sight, as what waits has a share of that. */
static cairn_status count_least(const serve_models *s, const cairn_model *m, uint64_t before,
                                one *out, cairn_diag *dg)
{
    const cairn_model_info *info = &out->about.info;
    const int32_t most = info->ctx_train > 0 ? info->ctx_train : UNKNOWN_CTX;
    int32_t ctx = s->f->ctx && s->f->ctx < most ? (int32_t)s->f->ctx : most;
    cairn_fit_opts o;
    cairn_fit_report r;
    cairn_fit_row row = {0};
    cairn_fit_opts_init(&o);
    cairn_fit_report_init(&r);
    o.memory_budget = s->total;
    o.n_threads = (int32_t)s->f->threads;
    o.ctx_len = ctx;
    o.max_seqs = s->f->parallel ? (int32_t)s->f->parallel : DEFAULT_SEQS;
    o.no_speed = true;
    o.score_len = CAIRN_SIGNAL_LEN;
    TRY(cairn_fit(m, &o, keep_row, &row, &r, dg));
    if (!s->f->ctx && ctx > LEAST_CTX) ctx = LEAST_CTX;
    out->least = row.needed_bytes - row.cache_bytes - before + cairn_model_cache_bytes(m, ctx);
    if (s->ssd) out->least += DISK_STAGES;
    out->fixed = out->least - (uint64_t)ctx * info->cache_bytes_token;
    out->about.ctx_len = ctx;
    return CAIRN_OK;
}

/* What a context will be, nearly: an engine says it exactly, once there is one. */
static void guess_ctx(const serve_models *s, one *m, uint64_t bytes)
{
    const cairn_model_info *info = &m->about.info;
    int32_t most = info->ctx_train > 0 ? info->ctx_train : UNKNOWN_CTX;
    if (m->about.only_embeds) return;
    if (s->f->ctx && s->f->ctx < most) most = (int32_t)s->f->ctx;
    const uint64_t room = bytes > m->fixed ? bytes - m->fixed : 0;
    const uint64_t ctx = info->cache_bytes_token ? room / info->cache_bytes_token : UINT64_MAX;
    if (ctx >= (uint64_t)m->about.ctx_len)
        m->about.ctx_len = ctx < (uint64_t)most ? (int32_t)ctx : most;
}

static const char *keep_text(serve_models *s, const char *text)
{
    return text ? arena_strdup(&s->mem, str_of(text)) : NULL;
}

static cairn_str keep_template(serve_models *s, const cairn_text *t, bool tools)
{
    const cairn_str own = t ? cairn_text_template(t, tools) : STR_LIT("");
    const char *copy = own.len ? arena_strdup(&s->mem, own) : NULL;
    return copy ? (cairn_str){copy, own.len} : STR_LIT("");
}

/* Strings of the model's files would go with it. */
static void describe(serve_models *s, const cairn_model *m, cairn_server_about *a)
{
    cairn_embed_info e;
    cairn_embed_info_init(&e);
    cairn_embed_get_info(m, &e);
    cairn_model_info_init(&a->info);
    cairn_model_get_info(m, &a->info);
    a->info.format = keep_text(s, a->info.format);
    a->info.family = keep_text(s, a->info.family);
    a->info.quant = keep_text(s, a->info.quant);
    a->info.name = a->info.isa = a->info.kv_codec = NULL;
    a->embeds = e.embeds;
    a->only_embeds = e.only_embeds;
    a->ctx_len = e.only_embeds ? e.max_tokens : 0;
    a->chat_template = keep_template(s, cairn_model_text(m), false);
    a->tools_template = keep_template(s, cairn_model_text(m), true);
}

/* At a model without its weights: a tenth of a second or so, for its vocabulary. */
static cairn_status look_at(serve_models *s, size_t i, cairn_diag *dg)
{
    cairn_model_opts o = model_opts(s);
    one *m = &s->one[i];
    cairn_model *headers = NULL;
    cairn_status st = CAIRN_OK;
    const uint64_t before = mem_used_all();
    o.no_weights = true;
    TRY(cli_open_model(s->list.item[i].word, &o, &headers, dg));
    m->other = mem_used_all() - before;
    describe(s, headers, &m->about);
    m->least = m->about.info.loaded_bytes + m->other + EMBED_ROOM;
    if (!m->about.only_embeds) {
        if (m->given) st = cli_check_ctx(headers, s->list.item[i].word, s->f->ctx, dg);
        if (st == CAIRN_OK) st = count_least(s, headers, before, m, dg);
    }
    cairn_model_close(headers);
    return st;
}

static cairn_status look_at_all(serve_models *s, cairn_diag *dg)
{
    size_t n = 0;
    for (size_t i = 0; i < s->list.n; i++) {
        cairn_diag why = {0};
        one m = s->one[i];
        s->one[n] = m;
        const serve_found found = s->list.item[i];
        if (!goes_on(s))
            return diag_set(dg, CAIRN_E_CANCELLED, "%s: looking at it was cancelled", found.word);
        s->list.item[i] = s->list.item[n];
        s->list.item[n] = found;
        const cairn_status st = look_at(s, n, &why);
        if (st != CAIRN_OK && m.given) return diag_set(dg, st, "%s", why.message);
        if (st == CAIRN_OK)
            n++;
        else
            log_event(LOG_WARN, "model_skipped", "model=%s why=\"%s\"", found.id, why.message);
    }
    while (s->list.n > n) {
        s->list.n--;
        mem_free(s->list.item[s->list.n].word);
        mem_free(s->list.item[s->list.n].id);
    }
    if (n) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_NOTFOUND, "%s: no model that can be opened; expected at least one",
                    s->f->models_dir);
}

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* That none can be used is no error of those who start it, as files may come and go, but none will be. */
static void warn_of_room(const serve_models *s)
{
    const one *least = &s->one[0];
    if (s->f->models.n || s->f->pins.n) return; /* of those it is an error */
    for (size_t i = 1; i < s->list.n; i++)
        if (s->one[i].least < least->least) least = &s->one[i];
    if (least->least <= s->total) return;
    log_event(LOG_WARN, "no_model_fits",
              "models=%zu smallest=%s at_least=%llu bytes=%llu budget=%llu server=%llu "
              "why=\"requests for any are refused; expected smaller models or a larger --memory\"",
              s->list.n, s->list.item[least - s->one].id, (unsigned long long)least->least,
              (unsigned long long)s->total, (unsigned long long)serve_budget(s->f->memory),
              (unsigned long long)serve_host_bytes(s->f->memory));
}

/* Each model's bytes. */
static void share(serve_models *s)
{
    uint64_t least[SERVE_MAX_KNOWN] = {0}, sum = 0, part = 0;
    size_t n = 0, k = 0, pool = s->f->models.n > LEAST_POOL ? s->f->models.n : LEAST_POOL;
    if (s->f->pool) pool = (size_t)s->f->pool;
    for (size_t i = 0; i < s->list.n; i++)
        if (s->one[i].least <= s->total) least[n++] = s->one[i].least;
    qsort(least, n, sizeof *least, falling);
    while (k < n && k < pool && least[k] <= s->total - sum) sum += least[k++];
    if (k) part = (s->total - sum) / k;
    for (size_t i = 0; i < s->list.n; i++) {
        one *m = &s->one[i];
        const bool grows = m->least <= s->total && !m->about.only_embeds;
        const uint64_t bytes = m->least + (grows ? part : 0);
        s->entry[i].bytes = grows && bytes > s->total ? s->total : bytes;
        guess_ctx(s, m, s->entry[i].bytes);
        log_event(LOG_INFO, "model_known", "model=%s bytes=%llu at_least=%llu ctx_len=%d",
                  s->list.item[i].id, (unsigned long long)s->entry[i].bytes,
                  (unsigned long long)m->least, (int)m->about.ctx_len);
    }
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

/* The whole budget less the server's part and what the program holds by now. */
static void find_total(serve_models *s)
{
    const uint64_t all = serve_budget(s->f->memory);
    const uint64_t taken = serve_host_bytes(s->f->memory) + mem_used_all();
    s->total = all > taken ? all - taken : 1;
}

static cairn_status open_all(serve_models *s, cairn_diag *dg)
{
    const serve_flags *f = s->f;
    for (size_t i = 0; i < f->models.n; i++) TRY(serve_list_add(&s->list, f->models.word[i], dg));
    if (f->models_dir) TRY(serve_list_scan(&s->list, f->models_dir, dg));
    for (size_t i = 0; i < s->list.n; i++) s->one[i].given = i < f->models.n;
    if (f->models_dir || s->list.n > 1) {
        find_total(s);
        TRY(look_at_all(s, dg));
        mem_trim();
        share(s);
        warn_of_room(s);
    }
    TRY(name_all(s, dg));
    if (s->total) return open_first(s, dg);
    TRY(open_one(s, 0, dg));
    describe(s, s->one[0].model, &s->one[0].about);
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
    if (goes_on(s)) close_one(&s->one[i]);
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
