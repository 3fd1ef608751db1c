/* Shares one budget among the models of a server.

   Each is first looked at without its weights, so that what it takes at least is known: weights, programs, requests, and
   the cache of one short request.  The budget, less the server's part, is shared among so many models as --model-pool
   says, the hungriest first, or as many of those as fit: what their least leaves is divided in equal parts, and any model
   gets such a part beside its own least.  So a model's context is the same whenever it is loaded, and what is loaded
   together fits. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/str.h"
#include "cairn/embed.h"
#include "cairn/fit.h"
#include "cli/serve_memory.h"
#include "cli/serve_models_priv.h"

enum {
    LEAST_CTX = 4096, /* of a model that is said to fit: a conversation of some turns */
    UNKNOWN_CTX = 2048,
    DEFAULT_SEQS = 4,
    LEAST_POOL = 2 /* one that chats, one that embeds */
};
#define EMBED_ROOM  (UINT64_C(64) << 20) /* for the rows of a batch of texts */
#define DISK_STAGES (UINT64_C(64) << 20) /* cairn_fit leaves these out */

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
void serve_models_describe(serve_models *s, const cairn_model *m, cairn_server_about *a)
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
    cairn_model_opts o = serve_models_opts(s);
    one *m = &s->one[i];
    cairn_model *headers = NULL;
    cairn_status st = CAIRN_OK;
    const uint64_t before = mem_used_all();
    o.no_weights = true;
    TRY(cli_open_model(s->list.item[i].word, &o, &headers, dg));
    m->other = mem_used_all() - before;
    serve_models_describe(s, headers, &m->about);
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
        if (!serve_models_go_on(s))
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

/* The whole budget less the server's part and what the program holds by now. */
static void find_total(serve_models *s)
{
    const uint64_t all = serve_budget(s->f->memory);
    const uint64_t taken = serve_host_bytes(s->f->memory) + mem_used_all();
    s->total = all > taken ? all - taken : 1;
}

cairn_status serve_models_share(serve_models *s, cairn_diag *dg)
{
    find_total(s);
    TRY(look_at_all(s, dg));
    mem_trim();
    share(s);
    warn_of_room(s);
    return CAIRN_OK;
}
