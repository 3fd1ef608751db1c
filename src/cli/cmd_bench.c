/* bench, check-numerics: how fast, and whether always the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/str.h"
#include "cli/bench_ops.h"
#include "cli/cli.h"

enum { MAX_REPEATS = 100 };

typedef struct bench_result {
    double prefill[MAX_REPEATS], decode[MAX_REPEATS];
    double read_gbs[MAX_REPEATS], tops[MAX_REPEATS], flops[MAX_REPEATS];
    int32_t n;
    uint64_t peak_rss; /* after the first repeat, before the limits take memory of their own */
} bench_result;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *x, int32_t n)
{
    double s[MAX_REPEATS];
    memcpy(s, x, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, by_value);
    return n % 2 ? s[n / 2] : 0.5 * (s[n / 2 - 1] + s[n / 2]);
}

/* Limits are measured beside every repeat: the machine's speed wanders over minutes. */
static cairn_status run_repeats(cairn_model *m, const cairn_bench_opts *o, int32_t n,
                                bench_result *r, cairn_diag *dg)
{
    double warm[2];
    cairn_machine_limits max;
    cairn_machine_limits_init(&max);
    cairn_bench_opts w = *o;
    w.n_prompt = min_i32(o->n_prompt, 32);
    w.n_decode = min_i32(o->n_decode, 4);
    w.depth = 0;
    TRY(cairn_bench_run(m, &w, &warm[0], &warm[1], dg));
    for (r->n = 0; r->n < n; r->n++) {
        TRY(cairn_bench_run(m, o, &r->prefill[r->n], &r->decode[r->n], dg));
        if (r->n == 0) r->peak_rss = machine_peak_rss();
        TRY(cairn_bench_machine(m, &max, dg));
        r->read_gbs[r->n] = max.read_gbs;
        r->tops[r->n] = max.int8_tops;
        r->flops[r->n] = max.f32_tflops;
    }
    return CAIRN_OK;
}

/* What the figures mean beside the limits of the machine. */
typedef struct shares {
    double prefill, decode, read_gbs, tops, flops, share_decode, share_prefill;
} shares;

static shares share_of(const bench_result *r, const cairn_model_info *i, const cairn_bench_opts *o)
{
    shares s = {median(r->prefill, r->n),
                median(r->decode, r->n),
                median(r->read_gbs, r->n),
                median(r->tops, r->n),
                median(r->flops, r->n),
                0,
                0};
    double dec[MAX_REPEATS] = {0}, pre[MAX_REPEATS] = {0};
    /* A row multiplies every matrix once, two operations a weight; the head only once a prompt. */
    const double ops = 2.0 * ((double)(i->matmul_params - i->head_params) +
                              (double)i->head_params / max_i32(1, o->n_prompt));
    for (int32_t k = 0; k < r->n; k++) {
        const double steps = r->decode[k] / (double)(o->batch > 0 ? o->batch : 1);
        dec[k] = steps * (double)i->token_bytes / 1e9 / r->read_gbs[k];
        pre[k] = r->prefill[k] * ops / 1e12 / r->tops[k];
    }
    s.share_decode = median(dec, r->n);
    s.share_prefill = median(pre, r->n);
    return s;
}

static void json_list(json_writer *w, const char *key, const double *x, int32_t n)
{
    json_w_key(w, key);
    json_w_arr(w);
    for (int32_t i = 0; i < n; i++) json_w_num(w, x[i]);
    json_w_end_arr(w);
}

static void print_json(const bench_result *r, const shares *s, const cairn_model_info *i,
                       const bench_ops *ops, buf *b)
{
    json_writer w = json_write(b);
    json_w_obj(&w);
    json_w_kstr(&w, "model", str_of(i->name));
    json_w_kint(&w, "threads", i->n_threads);
    json_w_kstr(&w, "isa", str_of(i->isa));
    json_w_kstr(&w, "version", str_of(cairn_version()));
    json_w_knum(&w, "prefill_tokens_per_second", s->prefill);
    json_w_knum(&w, "decode_tokens_per_second", s->decode);
    json_list(&w, "prefill_runs", r->prefill, r->n);
    json_list(&w, "decode_runs", r->decode, r->n);
    json_w_knum(&w, "read_bandwidth_gbs", s->read_gbs);
    json_w_knum(&w, "int8_dot_tops", s->tops);
    json_w_knum(&w, "f32_fma_tflops", s->flops);
    json_w_knum(&w, "decode_share_of_bandwidth", s->share_decode);
    json_w_knum(&w, "prefill_share_of_peak", s->share_prefill);
    json_w_kint(&w, "peak_rss_bytes", (int64_t)r->peak_rss);
    json_w_knum(&w, "load_seconds", i->load_seconds);
    if (ops) bench_ops_json(ops, &w);
    json_w_end_obj(&w);
    buf_byte(b, '\n');
}

static void print_text(const bench_result *r, const shares *s, const cairn_model_info *i,
                       const bench_ops *ops, buf *b)
{
    buf_printf(b, "%s  %d threads  %s  load %.3f s  peak RSS %.0f MB\n", i->name, (int)i->n_threads,
               i->isa, i->load_seconds, (double)r->peak_rss / 1e6);
    for (int32_t k = 0; k < r->n; k++)
        buf_printf(
            b, "  run %d  prefill %9.1f t/s  decode %8.2f t/s  read %6.2f GB/s  dot %6.3f TOPS\n",
            (int)k + 1, r->prefill[k], r->decode[k], r->read_gbs[k], r->tops[k]);
    buf_printf(b, "  median prefill %9.1f t/s = %4.1f%% of the dot peak\n", s->prefill,
               100 * s->share_prefill);
    buf_printf(b, "  median decode  %9.2f t/s = %4.1f%% of the read bandwidth\n", s->decode,
               100 * s->share_decode);
    if (ops) bench_ops_text(ops, b);
}

int cmd_bench(const command *c, int argc, char **argv)
{
    int64_t n_prompt = 512, n_decode = 128, depth = 0, batch = 1, threads = 0, repeats = 5;
    bool json = false, by_op = false;
    const flag table[] = {
        {"--prompt-tokens", "-p", FLAG_INT, &n_prompt, "N: tokens of prefill (512)", 0,
         CAIRN_MAX_CTX, NULL},
        {"--tokens", "-n", FLAG_INT, &n_decode, "N: tokens decoded (128)", 0, CAIRN_MAX_CTX, NULL},
        {"--depth", "-d", FLAG_INT, &depth, "N: positions in the cache before", 0, CAIRN_MAX_CTX,
         NULL},
        {"--batch", "-b", FLAG_INT, &batch, "N: sequences decoded together", 1, CAIRN_MAX_SEQS,
         NULL},
        CLI_THREADS(&threads),
        {"--repeats", "-r", FLAG_INT, &repeats, "N: repeats (5)", 1, MAX_REPEATS, NULL},
        {"--ops", NULL, FLAG_BOOL, &by_op, "where the time goes, op by op", 0, 0, NULL},
        {"--json", NULL, FLAG_BOOL, &json, "one JSON object", 0, 0, NULL},
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 0, 1, &words, &code))
        return code;
    if (n_prompt == 0 && n_decode == 0)
        return cli_usage(c, "-p and -n: found 0 for both; expected one over 0");

    cairn_diag dg = {0};
    cairn_status st;
    cairn_model *m = NULL;
    cairn_model_info info;
    cairn_model_opts o;
    cairn_bench_opts bo;
    bench_result r = {0};
    bench_ops *ops = NULL;
    buf b;
    buf_init(&b, MEM_MISC);
    cairn_model_opts_init(&o);
    cairn_bench_opts_init(&bo);
    cairn_model_info_init(&info);
    o.n_threads = (int32_t)threads;
    o.no_text = true;
    bo.n_prompt = (int32_t)n_prompt;
    bo.n_decode = (int32_t)n_decode;
    bo.depth = (int32_t)depth;
    bo.batch = (int32_t)batch;
    TRY_GOTO(cli_open_model(words.n ? words.word[0] : NULL, &o, &m, &dg), out);
    TRY_GOTO(run_repeats(m, &bo, (int32_t)repeats, &r, &dg), out);
    cairn_model_get_info(m, &info);
    const shares s = share_of(&r, &info, &bo);
    if (by_op) {
        const cairn_machine_limits max = {sizeof max, s.read_gbs, s.tops, s.flops};
        TRY_GOTO(bench_ops_run(m, &bo, &max, &ops, &dg), out);
    }
    (json ? print_json : print_text)(&r, &s, &info, ops, &b);
    st = cli_print(&b, &dg);
out:
    bench_ops_free(ops);
    buf_deinit(&b);
    cairn_model_close(m);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}

enum { DEFAULT_IDS = 1300 }; /* several splits of 256 positions and many cache blocks */

static cairn_status seeded_ids(int32_t vocab, int32_t ctx, cairn_ids *out, cairn_diag *dg)
{
    const size_t n = (size_t)min_i32(DEFAULT_IDS, ctx);
    buf b;
    cairn_bytes bytes = {0};
    buf_init(&b, MEM_MISC);
    for (size_t i = 0; i < n; i++) {
        const int32_t id = (int32_t)(rng_u64(1, 0, i) % (uint64_t)vocab);
        buf_put(&b, &id, sizeof id);
    }
    const cairn_status st = buf_take(&b, &bytes);
    buf_deinit(&b);
    if (st != CAIRN_OK) return diag_set(dg, st, "%zu ids", n);
    *out = (cairn_ids){(int32_t *)(void *)bytes.ptr, n};
    return CAIRN_OK;
}

static void say(void *ctx, const char *line)
{
    (void)ctx;
    (void)fprintf(stderr, "%s\n", line);
}

int cmd_check_numerics(const command *c, int argc, char **argv)
{
    const char *ids_path = NULL, *compute = NULL;
    int64_t threads = 8;
    bool verbose = false;
    const flag table[] = {
        {"--ids", NULL, FLAG_STR, &ids_path, "IDS.json: the prompt (default: 1,300 seeded ids)", 0,
         0, NULL},
        CLI_COMPUTE(&compute),
        {"--threads", "-t", FLAG_INT, &threads, "N: try 1 to N threads (8)", 1, CAIRN_MAX_THREADS,
         NULL},
        {"--verbose", "-v", FLAG_BOOL, &verbose, "a line for each comparison", 0, 0, NULL},
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 0, 1, &words, &code))
        return code;

    cairn_diag dg = {0};
    cairn_status st;
    cairn_model *m = NULL;
    cairn_ids ids = {0};
    cairn_model_info info;
    cairn_model_opts o;
    cairn_numerics_report r;
    cairn_numerics_report_init(&r);
    cairn_model_opts_init(&o);
    cairn_model_info_init(&info);
    o.n_threads = (int32_t)threads;
    o.no_text = true;
    o.compute = cli_compute(compute);
    TRY_GOTO(cli_open_model(words.n ? words.word[0] : NULL, &o, &m, &dg), out);
    cairn_model_get_info(m, &info);
    TRY_GOTO(ids_path ? cli_read_ids(ids_path, &ids, &dg)
                      : seeded_ids(info.vocab, info.ctx_train, &ids, &dg),
             out);
    TRY_GOTO(cairn_check_numerics(m, ids.ptr, ids.len, (int32_t)threads, verbose ? say : NULL, NULL,
                                  &r, &dg),
             out);
    buf b;
    buf_init(&b, MEM_MISC);
    buf_printf(&b, "%llu comparisons, %llu different bits\n", (unsigned long long)r.n_comparisons,
               (unsigned long long)r.n_different);
    if (r.n_different) buf_printf(&b, "first: %s\n", r.first);
    st = cli_print(&b, &dg);
out:
    cairn_ids_free(&ids);
    cairn_model_close(m);
    if (st != CAIRN_OK) return cli_failed(&dg);
    return r.n_different ? EXIT_FAILED : EXIT_OK;
}
