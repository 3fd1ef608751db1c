/* fit: what a model takes by context and parallel requests, and how fast it would decode, before it is loaded. */
#include <stdio.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "cairn/fit.h"
#include "cli/cli.h"
#include "cli/serve_memory.h"
#include "serve/fit_json.h"

enum { MOST_ROWS = 64 }; /* 16 contexts by 3 counts at most */

typedef struct fit_table {
    cairn_fit_row row[MOST_ROWS];
    size_t n;
    uint64_t host_bytes; /* of a server, at most: a part of the report's other_bytes */
} fit_table;

static void add_row(void *ctx, const cairn_fit_row *row)
{
    fit_table *t = ctx;
    if (t->n < MOST_ROWS) t->row[t->n++] = *row;
}

static void print_json(const cairn_model_info *i, const cairn_fit_report *r, const fit_table *t,
                       buf *b)
{
    json_writer w = json_write(b);
    json_w_obj(&w);
    json_w_kstr(&w, "name", str_of(i->name));
    json_w_kstr(&w, "cache_codec", str_of(i->kv_codec));
    json_w_kint(&w, "model_context_tokens", i->ctx_train);
    fit_json_report(&w, r);
    json_w_key(&w, "rows");
    json_w_arr(&w);
    for (size_t k = 0; k < t->n; k++) fit_json_row(&w, &t->row[k], r->read_gbs > 0);
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    buf_byte(b, '\n');
}

static void print_text(const cairn_model_info *i, const cairn_fit_report *r, const fit_table *t,
                       buf *b)
{
    buf_printf(b, "%s  cache %s\n", i->name, i->kv_codec);
    buf_printf(b, "  weights     %10.1f MB, of which a token reads %.1f MB\n",
               (double)r->weights_bytes / 1e6, (double)r->token_bytes / 1e6);
    buf_printf(b, "  program     %10.1f MB, with the vocabulary\n",
               (double)(r->other_bytes - t->host_bytes) / 1e6);
    buf_printf(b, "  server      %10.1f MB, at most, for bodies and replies on their way\n",
               (double)t->host_bytes / 1e6);
    buf_printf(b, "  budget      %10.1f MB; %.1f of %.1f MB are free\n",
               (double)r->budget_bytes / 1e6, (double)r->free_bytes / 1e6,
               (double)r->total_bytes / 1e6);
    if (r->read_gbs > 0) buf_printf(b, "  reads       %10.2f GB/s\n", r->read_gbs);
    if (r->max_ctx)
        buf_printf(b, "  longest     %10d of %d positions, one request\n", (int)r->max_ctx,
                   (int)i->ctx_train);
    else
        buf_puts(b, "  longest     none: the model does not fit into the budget\n");
    buf_puts(b, "   context  parallel      cache MB     all in all MB  decode t/s, all\n");
    for (size_t k = 0; k < t->n; k++) {
        const cairn_fit_row *x = &t->row[k];
        char speed[24] = "-"; /* where nothing was measured */
        if (r->read_gbs > 0) (void)snprintf(speed, sizeof speed, "%.1f", x->decode_tps);
        buf_printf(b, "  %8d  %8d  %12.1f  %16.1f  %15s  %s\n", (int)x->ctx_len, (int)x->max_seqs,
                   (double)x->cache_bytes / 1e6, (double)x->needed_bytes / 1e6, speed,
                   x->fits ? "fits" : "too much");
    }
}

static cairn_status run_fit(const char *word, const cairn_model_opts *mo, cairn_fit_opts *o,
                            bool json, cairn_diag *dg)
{
    cairn_model *m = NULL;
    cairn_model_info info;
    cairn_fit_report r;
    fit_table t = {.n = 0};
    buf b;
    cairn_fit_report_init(&r);
    cairn_model_info_init(&info);
    buf_init(&b, MEM_MISC);
    TRY(cli_open_model(word, mo, &m, dg));
    o->host_bytes = t.host_bytes = serve_host_bytes(o->memory_budget);
    o->score_len = CAIRN_SIGNAL_LEN;
    cairn_status st = cairn_fit(m, o, add_row, &t, &r, dg);
    if (st == CAIRN_OK) {
        cairn_model_get_info(m, &info);
        (json ? print_json : print_text)(&info, &r, &t, &b);
        st = cli_print(&b, dg);
    } else {
        st = cli_blame(word, st, dg);
    }
    cairn_model_close(m);
    return st;
}

int cmd_fit(const command *c, int argc, char **argv)
{
    bool json = false;
    int64_t ctx = 0, parallel = 0, threads = 0;
    cairn_model_opts mo;
    cairn_fit_opts o;
    cairn_model_opts_init(&mo);
    cairn_fit_opts_init(&o);
    const flag table[] = {
        {"--ctx", NULL, FLAG_INT, &ctx, "N: this context alone (default: a table)", 1,
         CAIRN_MAX_CTX, NULL},
        {"--parallel", NULL, FLAG_INT, &parallel, "N: so many requests alone (1, 4 and 16)", 1,
         CAIRN_MAX_SEQS, NULL},
        {"--memory", NULL, FLAG_SIZE, &o.memory_budget,
         "BYTES: the budget (default: what a server here would take)", 1, 0x1p62, NULL},
        CLI_KV(&mo.kv_codec),
        {"--no-speed", NULL, FLAG_BOOL, &o.no_speed, "measure nothing", 0, 0, NULL},
        {"--json", NULL, FLAG_BOOL, &json, "one JSON object", 0, 0, NULL},
        CLI_THREADS(&threads),
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    cairn_diag dg = {0};
    mo.no_weights = true;
    o.n_threads = (int32_t)threads;
    o.ctx_len = (int32_t)ctx;
    o.max_seqs = (int32_t)parallel;
    return run_fit(words.word[0], &mo, &o, json, &dg) == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
