/* The counters of the server and of each engine, a table of them, as Prometheus reads them: for each metric
   its help, its type, and a line for each model. */
#include "serve/metrics.h"

#include "serve/openai_wire.h"

typedef enum value_kind { VALUE_I32, VALUE_U64, VALUE_SECONDS } value_kind;

typedef struct metric {
    const char *name, *type, *help;
    value_kind kind;
    size_t at; /* of cairn_engine_stats */
} metric;

#define AT(field) offsetof(cairn_engine_stats, field)
static const metric metrics[] = {
    {"active_requests", "gauge", "Requests being computed", VALUE_I32, AT(n_active)},
    {"queued_requests", "gauge", "Requests that wait for a place", VALUE_I32, AT(n_queued)},
    {"max_requests", "gauge", "Requests computed at once at most", VALUE_I32, AT(max_seqs)},
    {"context_tokens", "gauge", "Positions that a request may use", VALUE_I32, AT(ctx_len)},
    {"requests_total", "counter", "Requests accepted", VALUE_U64, AT(n_requests)},
    {"requests_cancelled_total", "counter", "Requests cancelled", VALUE_U64, AT(n_cancelled)},
    {"requests_failed_total", "counter", "Requests that failed", VALUE_U64, AT(n_failed)},
    {"prompt_tokens_total", "counter", "Tokens of prompts computed", VALUE_U64, AT(prompt_tokens)},
    {"cached_tokens_total", "counter", "Tokens of prompts taken from a cache", VALUE_U64,
     AT(cached_tokens)},
    {"generated_tokens_total", "counter", "Tokens generated", VALUE_U64, AT(generated_tokens)},
    {"steps_total", "counter", "Steps computed", VALUE_U64, AT(steps)},
    {"busy_seconds_total", "counter", "Time in steps", VALUE_SECONDS, AT(busy_seconds)},
    {"cache_used_bytes", "gauge", "Cache in use", VALUE_U64, AT(cache_bytes_used)},
    {"cache_limit_bytes", "gauge", "Cache there is", VALUE_U64, AT(cache_bytes_total)},
    {"prefix_used_bytes", "gauge", "Cache held by no request", VALUE_U64, AT(prefix_bytes_used)},
    {"prefix_limit_bytes", "gauge", "Cache that prefixes may hold", VALUE_U64,
     AT(prefix_bytes_limit)},
    {"disk_bytes", "gauge", "Prefixes on disk", VALUE_U64, AT(disk_bytes)},
    {"weights_bytes", "gauge", "Weights in memory", VALUE_U64, AT(weights_bytes)},
    {"scratch_bytes", "gauge", "Memory of steps", VALUE_U64, AT(scratch_bytes)},
};
#undef AT

static void put_head(buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# HELP cairn_%s %s.\n# TYPE cairn_%s %s\n", name, help, name, type);
}

/* A label's value: the three characters that would end it are escaped. */
static void put_label(buf *b, const char *value)
{
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') buf_byte(b, '\\');
        if (*value == '\n')
            buf_puts(b, "\\n");
        else
            buf_byte(b, *value);
    }
}

static void put_value(buf *b, const metric *m, const cairn_engine_stats *st)
{
    const char *at = (const char *)st + m->at;
    uint64_t whole;
    double seconds;
    int32_t i;

    switch (m->kind) {
    case VALUE_I32:
        memcpy(&i, at, sizeof i);
        buf_printf(b, "%d", (int)i);
        break;
    case VALUE_U64:
        memcpy(&whole, at, sizeof whole);
        buf_printf(b, "%llu", (unsigned long long)whole);
        break;
    case VALUE_SECONDS:
        memcpy(&seconds, at, sizeof seconds);
        buf_printf(b, "%.6f", seconds);
        break;
    }
}

static void put_engines(buf *b, const models *all, const cairn_engine_stats *st)
{
    for (size_t k = 0; k < sizeof metrics / sizeof metrics[0]; k++) {
        put_head(b, metrics[k].name, metrics[k].type, metrics[k].help);
        for (size_t i = 0; i < all->n; i++) {
            if (!models_nth(all, i)->engine) continue;
            buf_printf(b, "cairn_%s{model=\"", metrics[k].name);
            put_label(b, models_nth(all, i)->id);
            buf_puts(b, "\"} ");
            put_value(b, &metrics[k], &st[i]);
            buf_byte(b, '\n');
        }
    }
}

/* Of each that is known, loaded or not. */
static void put_known(buf *b, const models *all, const char *name, const char *type,
                      const char *help, uint64_t (*value)(const served_model *m))
{
    put_head(b, name, type, help);
    for (size_t i = 0; i < all->n; i++) {
        const served_model *m = models_nth(all, i);
        buf_printf(b, "cairn_%s{model=\"", name);
        put_label(b, m->id);
        buf_printf(b, "\"} %llu\n", (unsigned long long)value(m));
    }
}

static uint64_t is_loaded(const served_model *m)
{
    return m->model != NULL;
}

static uint64_t n_loads(const served_model *m)
{
    return served_model_use(m).n_loads;
}

static uint64_t n_failed(const served_model *m)
{
    return served_model_use(m).n_failed;
}

static void put_server(buf *b, const cairn_server *s)
{
    put_head(b, "start_time_seconds", "gauge", "When the server started, in Unix time");
    buf_printf(b, "cairn_start_time_seconds %lld\n", (long long)s->started_unix_s);
    put_head(b, "connections", "gauge", "Connections");
    buf_printf(b, "cairn_connections %zu\n", http_connections(s->http));
    put_head(b, "http_requests_total", "counter", "HTTP requests that reached a handler");
    buf_printf(b, "cairn_http_requests_total %llu\n", (unsigned long long)s->n_requests);
}

void metrics_serve(cairn_server *s, http_req *rq)
{
    cairn_engine_stats *st = mem_calloc(s->models.n, sizeof *st, MEM_SERVE);
    buf b;

    buf_init(&b, MEM_SERVE);
    put_server(&b, s);
    put_head(&b, "pending_prompts", "gauge", "Prompts that wait or are being made");
    buf_printf(&b, "cairn_pending_prompts %zu\n", jobs_live(&s->jobs));
    for (size_t i = 0; st && i < s->models.n; i++) {
        cairn_engine_stats_init(&st[i]);
        if (models_nth(&s->models, i)->engine)
            cairn_engine_get_stats(models_nth(&s->models, i)->engine, &st[i]);
    }
    put_known(&b, &s->models, "model_loaded", "gauge", "Whether the model is loaded", is_loaded);
    put_known(&b, &s->models, "model_loads_total", "counter", "Times it was loaded on demand",
              n_loads);
    put_known(&b, &s->models, "model_load_failures_total", "counter", "Times it could not be",
              n_failed);
    if (st) put_engines(&b, &s->models, st);
    if (st && buf_status(&b) == CAIRN_OK)
        http_reply(rq, 200, "text/plain; version=0.0.4; charset=utf-8", buf_view(&b));
    else
        openai_error(rq, 503, NULL, "out_of_memory", "no memory for the answer");
    buf_deinit(&b);
    mem_free(st);
}
