/* bench: how fast, beside what the machine could do in the same minutes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/bench_ops.h"
#include "cli/cli.h"

enum { MAX_REPEATS = 100 };

typedef struct bench_result {
    double prefill[MAX_REPEATS], decode[MAX_REPEATS];
    double read_gbs[MAX_REPEATS], weights_gbs[MAX_REPEATS], tops[MAX_REPEATS], flops[MAX_REPEATS];
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
        r->weights_gbs[r->n] = max.weights_gbs;
        r->tops[r->n] = max.int8_tops;
        r->flops[r->n] = max.f32_tflops;
    }
    return CAIRN_OK;
}

/* What the figures mean beside the limits of the machine; NaN: of a phase that was left out. */
typedef struct shares {
    double prefill, decode, read_gbs, weights_gbs, tops, flops, share_decode, share_prefill;
    double share_weights; /* of decode: of what reading the weights alone would let it be */
    bool in_cache;        /* decoding: memory's bandwidth is no limit to it */
} shares;

/* The second level is sure to hold what fits in it; how much of the third is ours no file tells. */
static bool reads_caches(const cairn_model_info *i, double share)
{
    return i->token_bytes <= machine_core_cache() || share > 1;
}

static shares share_of(const bench_result *r, const cairn_model_info *i, const cairn_bench_opts *o)
{
    shares s = {.prefill = (double)NAN,
                .decode = (double)NAN,
                .read_gbs = median(r->read_gbs, r->n),
                .weights_gbs = median(r->weights_gbs, r->n),
                .tops = median(r->tops, r->n),
                .flops = median(r->flops, r->n),
                .share_decode = (double)NAN,
                .share_weights = (double)NAN,
                .share_prefill = (double)NAN};
    double dec[MAX_REPEATS] = {0}, own[MAX_REPEATS] = {0}, pre[MAX_REPEATS] = {0};
    /* A row multiplies every matrix once, two operations a weight; the head only once a prompt. */
    const double ops = 2.0 * ((double)(i->matmul_params - i->head_params) +
                              (double)i->head_params / max_i32(1, o->n_prompt));
    for (int32_t k = 0; k < r->n; k++) {
        const double steps = r->decode[k] / (double)(o->batch > 0 ? o->batch : 1);
        dec[k] = steps * (double)i->token_bytes / 1e9 / r->read_gbs[k];
        own[k] = steps * (double)i->token_bytes / 1e9 / r->weights_gbs[k];
        pre[k] = r->prefill[k] * ops / 1e12 / r->tops[k];
    }
    if (o->n_prompt > 0) {
        s.prefill = median(r->prefill, r->n);
        s.share_prefill = median(pre, r->n);
    }
    if (o->n_decode > 0) {
        s.decode = median(r->decode, r->n);
        s.share_decode = median(dec, r->n);
        if (s.weights_gbs > 0) s.share_weights = median(own, r->n);
        s.in_cache = reads_caches(i, s.share_decode);
    }
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
    json_w_kstr(&w, "cache_codec", str_of(i->kv_codec));
    json_w_kstr(&w, "version", str_of(cairn_version()));
    json_w_knum(&w, "prefill_tokens_per_second", s->prefill);
    json_w_knum(&w, "decode_tokens_per_second", s->decode);
    json_list(&w, "prefill_runs", r->prefill, isnan(s->prefill) ? 0 : r->n);
    json_list(&w, "decode_runs", r->decode, isnan(s->decode) ? 0 : r->n);
    json_w_knum(&w, "read_bandwidth_gbs", s->read_gbs);
    json_w_knum(&w, "weights_read_gbs", s->weights_gbs);
    json_w_knum(&w, "int8_dot_tops", s->tops);
    json_w_knum(&w, "f32_fma_tflops", s->flops);
    json_w_knum(&w, "decode_share_of_bandwidth", s->share_decode);
    json_w_knum(&w, "decode_share_of_weights_read", s->share_weights);
    json_w_kbool(&w, "decode_weights_in_cache", s->in_cache);
    json_w_knum(&w, "prefill_share_of_peak", s->share_prefill);
    json_w_kint(&w, "peak_rss_bytes", (int64_t)r->peak_rss);
    json_w_knum(&w, "load_seconds", i->load_seconds);
    if (ops) bench_ops_json(ops, &w);
    json_w_end_obj(&w);
    buf_byte(b, '\n');
}

/* One that was left out is a dash. */
static void put_speed(buf *b, const char *phase, double tps, int decimals)
{
    if (tps > 0)
        buf_printf(b, "  %s %9.*f t/s", phase, decimals, tps);
    else
        buf_printf(b, "  %s %9s    ", phase, "-");
}

static void print_text(const bench_result *r, const shares *s, const cairn_model_info *i,
                       const bench_ops *ops, buf *b)
{
    buf_printf(b, "%s  %d threads  %s  cache %s  load %.3f s  peak RSS %.0f MB\n", i->name,
               (int)i->n_threads, i->isa, i->kv_codec, i->load_seconds, (double)r->peak_rss / 1e6);
    for (int32_t k = 0; k < r->n; k++) {
        buf_printf(b, "  run %d", (int)k + 1);
        put_speed(b, "prefill", r->prefill[k], 1);
        put_speed(b, "decode", r->decode[k], 2);
        buf_printf(b, "  read %6.2f GB/s, weights %6.2f  dot %6.3f TOPS\n", r->read_gbs[k],
                   r->weights_gbs[k], r->tops[k]);
    }
    if (s->prefill > 0) {
        put_speed(b, "median prefill", s->prefill, 1);
        buf_printf(b, " = %4.1f%% of the dot peak\n", 100 * s->share_prefill);
    }
    if (s->decode > 0) {
        put_speed(b, "median decode ", s->decode, 2);
        buf_printf(b, " = %4.1f%% of the read bandwidth%s\n", 100 * s->share_decode,
                   s->in_cache ? " of memory, but the weights lie in caches" : "");
        if (s->share_weights > 0)
            buf_printf(b, "  %31s = %4.1f%% of reading the weights alone\n", "",
                       100 * s->share_weights);
    }
    if (ops) bench_ops_text(ops, b);
}

typedef struct bench_flags {
    int64_t n_prompt, n_decode, depth, batch, threads, repeats;
    const char *kv;
    bool json, by_op;
} bench_flags;

static cairn_status run_bench(const char *word, const bench_flags *f, cairn_diag *dg)
{
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
    o.n_threads = (int32_t)f->threads;
    o.kv_codec = f->kv;
    o.no_text = true;
    bo.n_prompt = (int32_t)f->n_prompt;
    bo.n_decode = (int32_t)f->n_decode;
    bo.depth = (int32_t)f->depth;
    bo.batch = (int32_t)f->batch;
    TRY_GOTO(cli_open_model(word, &o, &m, dg), out);
    TRY_GOTO(run_repeats(m, &bo, (int32_t)f->repeats, &r, dg), out);
    cairn_model_get_info(m, &info);
    const shares s = share_of(&r, &info, &bo);
    if (f->by_op) {
        const double read = s.weights_gbs > s.read_gbs ? s.weights_gbs : s.read_gbs;
        const cairn_machine_limits max = {.struct_size = sizeof max,
                                          .read_gbs = read,
                                          .int8_tops = s.tops,
                                          .f32_tflops = s.flops};
        TRY_GOTO(bench_ops_run(m, &bo, &max, &ops, dg), out);
    }
    (f->json ? print_json : print_text)(&r, &s, &info, ops, &b);
    st = cli_print(&b, dg);
out:
    bench_ops_free(ops);
    buf_deinit(&b);
    cairn_model_close(m);
    return st;
}

int cmd_bench(const command *c, int argc, char **argv)
{
    bench_flags f = {.n_prompt = 512, .n_decode = 128, .batch = 1, .repeats = 5};
    const flag table[] = {
        {"--prompt-tokens", "-p", FLAG_INT, &f.n_prompt, "N: tokens of prefill (512)", 0,
         CAIRN_MAX_CTX, NULL},
        {"--tokens", "-n", FLAG_INT, &f.n_decode, "N: tokens decoded (128)", 0, CAIRN_MAX_CTX,
         NULL},
        {"--depth", "-d", FLAG_INT, &f.depth, "N: positions in the cache before", 0, CAIRN_MAX_CTX,
         NULL},
        {"--batch", "-b", FLAG_INT, &f.batch, "N: sequences decoded together", 1, CAIRN_MAX_SEQS,
         NULL},
        CLI_KV(&f.kv),
        CLI_THREADS(&f.threads),
        {"--repeats", "-r", FLAG_INT, &f.repeats, "N: repeats (5)", 1, MAX_REPEATS, NULL},
        {"--ops", NULL, FLAG_BOOL, &f.by_op, "where the time goes, op by op", 0, 0, NULL},
        {"--json", NULL, FLAG_BOOL, &f.json, "one JSON object", 0, 0, NULL},
    };
    cli_words words;
    cairn_diag dg = {0};
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    if (f.n_prompt == 0 && f.n_decode == 0)
        return cli_usage(c, "-p and -n: found 0 for both; expected one over 0");
    return run_bench(words.word[0], &f, &dg) == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
