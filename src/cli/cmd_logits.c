/* logits, score: teacher-forced passes over given tokens. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "format/format.h"

enum { SCORE_TEXT_MAX = 256 << 20 }; /* what the tokenizer takes at once */

/* log of the sum of exp, in double around the maximum. */
static double log_sum_exp(const float *x, int32_t n)
{
    float top = x[0];
    double others = -1; /* the maximum itself counts 1 */
    for (int32_t i = 1; i < n; i++)
        if (x[i] > top) top = x[i];
    for (int32_t i = 0; i < n; i++) others += exp((double)x[i] - (double)top);
    return (double)top + log1p(others);
}

typedef struct ranked {
    float value;
    int32_t id;
} ranked;

/* Where rows of logits go. */
typedef struct sink {
    int32_t vocab, top;
    float *logits;   /* [n, vocab], or [n, top] */
    int32_t *ids;    /* [n, top] */
    float *lse;      /* [n] */
    ranked *order;   /* [vocab], of the row at hand */
    int32_t bad_pos; /* the first position whose logits are not finite; -1: none */
} sink;

/* Descending, ties to the lower id; NaN last. */
static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value > y->value || (isnan(y->value) && !isnan(x->value))) return -1;
    if (x->value < y->value || (isnan(x->value) && !isnan(y->value))) return 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void keep_best(const float *x, sink *s, int32_t *ids, float *best)
{
    for (int32_t i = 0; i < s->vocab; i++) s->order[i] = (ranked){x[i], i};
    qsort(s->order, (size_t)s->vocab, sizeof *s->order, by_rank);
    for (int32_t i = 0; i < s->top; i++) {
        best[i] = s->order[i].value;
        ids[i] = s->order[i].id;
    }
}

static bool all_finite(const float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static cairn_status not_finite(const char *model, int64_t pos, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_CORRUPT,
                    "%s: logits of position %lld are not finite; expected finite weights and "
                    "parameters",
                    model, (long long)pos);
}

static bool take_row(void *ctx, int32_t pos, const float *logits)
{
    sink *s = ctx;
    const size_t p = (size_t)pos, k = (size_t)s->top;
    if (!all_finite(logits, s->vocab)) {
        s->bad_pos = pos;
        return false;
    }
    if (s->top) {
        keep_best(logits, s, s->ids + p * k, s->logits + p * k);
        s->lse[p] = (float)log_sum_exp(logits, s->vocab);
    } else {
        memcpy(s->logits + p * (size_t)s->vocab, logits, (size_t)s->vocab * sizeof *logits);
    }
    return true;
}

static cairn_status sink_init(sink *s, size_t n, int32_t vocab, int32_t top, cairn_diag *dg)
{
    size_t cells;
    *s = (sink){.vocab = vocab, .top = top, .bad_pos = -1};
    if (!mul_size(n, (size_t)(top ? top : vocab), &cells))
        return diag_set(dg, CAIRN_E_LIMIT,
                        "logits of %zu positions; expected as many as memory can count", n);
    s->logits = mem_calloc(cells, sizeof *s->logits, MEM_IO);
    s->ids = mem_calloc(top ? cells : 1, sizeof *s->ids, MEM_IO);
    s->lse = mem_calloc(n, sizeof *s->lse, MEM_IO);
    s->order = mem_calloc(top ? (size_t)vocab : 1, sizeof *s->order, MEM_IO);
    if (s->logits && s->ids && s->lse && s->order) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_NOMEM, "%zu logits", cells);
}

static void sink_deinit(sink *s)
{
    mem_free(s->logits);
    mem_free(s->ids);
    mem_free(s->lse);
    mem_free(s->order);
}

static cairn_status write_logits(const sink *s, size_t n, const char *path, cairn_diag *dg)
{
    const size_t dim[2] = {n, (size_t)s->vocab};
    if (s->top) return npz_write_top(path, s->ids, s->logits, s->lse, n, (size_t)s->top, dg);
    return npy_write_f32(path, s->logits, dim, 2, dg);
}

static int32_t vocab_of(const cairn_model *m)
{
    cairn_model_info i;
    cairn_model_info_init(&i);
    cairn_model_get_info(m, &i);
    return i.vocab;
}

int cmd_logits(const command *c, int argc, char **argv)
{
    const char *ids_path = NULL, *out_path = NULL, *compute = NULL, *kv = NULL;
    int64_t top = 0, chunk = 0, threads = 0;
    const flag table[] = {
        {"--ids", NULL, FLAG_STR, &ids_path, "IDS.json: the tokens", 0, 0, NULL},
        {"--out", NULL, FLAG_STR, &out_path, "OUT.npy: where the logits go (OUT.npz with --top)", 0,
         0, NULL},
        {"--top", NULL, FLAG_INT, &top, "K: only the K best of each position", 1, 1 << 20, NULL},
        {"--chunk", NULL, FLAG_INT, &chunk, "N: rows computed at a time", 1, 1 << 20, NULL},
        CLI_COMPUTE(&compute),
        CLI_KV(&kv),
        CLI_THREADS(&threads),
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    if (!ids_path || !out_path)
        return cli_usage(c, "logits: a file is missing; expected --ids IDS.json and --out OUT.npy");
    if (!top && str_ends(str_of(out_path), STR_LIT(".npz")))
        return cli_usage(c, "--out: found \"%s\"; expected a .npy file, or --top K", out_path);
    if (top && str_ends(str_of(out_path), STR_LIT(".npy")))
        return cli_usage(c, "--out: found \"%s\"; expected a .npz file with --top", out_path);

    cairn_diag dg = {0};
    cairn_status st;
    cairn_model *m = NULL;
    cairn_ids ids = {0};
    sink s = {0};
    cairn_model_opts o;
    cairn_score_opts so;
    cairn_model_opts_init(&o);
    cairn_score_opts_init(&so);
    o.n_threads = (int32_t)threads;
    o.no_text = true;
    so.chunk = (int32_t)chunk;
    o.compute = cli_compute(compute);
    o.kv_codec = kv;
    TRY_GOTO(cli_read_ids(ids_path, &ids, &dg), out);
    TRY_GOTO(cli_open_model(words.word[0], &o, &m, &dg), out);
    if (top > vocab_of(m)) top = vocab_of(m);
    TRY_GOTO(sink_init(&s, ids.len, vocab_of(m), (int32_t)top, &dg), out);
    TRY_GOTO(cairn_score(m, ids.ptr, ids.len, &so, take_row, &s, &dg), out);
    st = s.bad_pos < 0 ? write_logits(&s, ids.len, out_path, &dg)
                       : not_finite(words.word[0], s.bad_pos, &dg);
out:
    sink_deinit(&s);
    cairn_ids_free(&ids);
    cairn_model_close(m);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}

typedef struct tally {
    const int32_t *ids; /* of the window */
    size_t n;
    int32_t vocab;
    int32_t bad_pos; /* of the window: its logits are not finite; -1: none */
    double nll;      /* sum */
    uint64_t scored;
} tally;

static bool add_row(void *ctx, int32_t pos, const float *logits)
{
    tally *t = ctx;
    if (!all_finite(logits, t->vocab)) {
        t->bad_pos = pos;
        return false;
    }
    if ((size_t)pos + 1 >= t->n) return true;
    t->nll += log_sum_exp(logits, t->vocab) - (double)logits[t->ids[pos + 1]];
    t->scored++;
    return true;
}

/* Windows of the context, half of each overlapping: every token but the first is scored once, with at
   least half a window before it where there is as much. */
static cairn_status score_windows(const char *name, cairn_model *m, const cairn_ids *ids,
                                  size_t window, tally *t, cairn_diag *dg)
{
    cairn_score_opts o;
    size_t scored_to = 1; /* tokens before this index are done */
    cairn_score_opts_init(&o);
    for (size_t at = 0; scored_to < ids->len; at += window / 2) {
        const size_t n = ids->len - at < window ? ids->len - at : window;
        t->ids = ids->ptr + at;
        t->n = n;
        o.first = (int32_t)(scored_to - 1 - at);
        TRY(cairn_score(m, t->ids, n, &o, add_row, t, dg));
        if (t->bad_pos >= 0) return not_finite(name, (int64_t)at + t->bad_pos, dg);
        scored_to = at + n;
    }
    return CAIRN_OK;
}

static cairn_status print_score(const tally *t, bool json, cairn_diag *dg)
{
    const double nll = t->scored ? t->nll / (double)t->scored : 0;
    buf b;
    buf_init(&b, MEM_MISC);
    if (json) {
        json_writer w = json_write(&b);
        json_w_obj(&w);
        json_w_kint(&w, "tokens", (int64_t)t->scored);
        json_w_knum(&w, "nll", nll);
        json_w_knum(&w, "perplexity", exp(nll));
        json_w_end_obj(&w);
        buf_byte(&b, '\n');
    } else {
        buf_printf(&b, "tokens %llu  nll %.6f  perplexity %.4f\n", (unsigned long long)t->scored,
                   nll, exp(nll));
    }
    return cli_print(&b, dg);
}

static cairn_status tokenize_file(const cairn_model *m, const char *path, cairn_ids *ids,
                                  cairn_diag *dg)
{
    buf text;
    const cairn_text *t = cairn_model_text(m);
    if (!t)
        return diag_set(dg, CAIRN_E_NOTFOUND,
                        "the model has no tokenizer; expected tokenizer.json, or one in a GGUF");
    buf_init(&text, MEM_MISC);
    cairn_status st = file_read_input(path, SCORE_TEXT_MAX, &text, dg);
    if (st == CAIRN_OK) {
        st = cairn_text_tokenize(t, buf_view(&text), CAIRN_TOK_ADD_SPECIAL, ids, dg);
        if (st != CAIRN_OK) (void)diag_prefix(dg, st, "%s", path);
    }
    buf_deinit(&text);
    if (st == CAIRN_OK && ids->len < 2)
        st = diag_set(dg, CAIRN_E_ARG, "%s: %zu tokens; expected at least 2", path, ids->len);
    return st;
}

int cmd_score(const command *c, int argc, char **argv)
{
    const char *file = NULL, *compute = NULL, *kv = NULL;
    int64_t threads = 0, ctx = 0;
    bool json = false;
    const flag table[] = {
        {"--file", "-f", FLAG_STR, &file, "TEXT: the file ('-': standard input)", 0, 0, NULL},
        {"--json", NULL, FLAG_BOOL, &json, "one JSON object", 0, 0, NULL},
        {"--ctx", NULL, FLAG_INT, &ctx, "N: window (default: the model's context)", 2,
         CAIRN_MAX_CTX, NULL},
        CLI_COMPUTE(&compute),
        CLI_KV(&kv),
        CLI_THREADS(&threads),
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    if (!file) return cli_usage(c, "score: no text; expected -f TEXT");

    cairn_diag dg = {0};
    cairn_status st;
    cairn_model *m = NULL;
    cairn_ids ids = {0};
    cairn_model_info info;
    cairn_model_opts o;
    tally t = {.bad_pos = -1};
    cairn_model_opts_init(&o);
    cairn_model_info_init(&info);
    o.n_threads = (int32_t)threads;
    o.compute = cli_compute(compute);
    o.kv_codec = kv;
    TRY_GOTO(cli_open_model(words.word[0], &o, &m, &dg), out);
    TRY_GOTO(tokenize_file(m, file, &ids, &dg), out);
    cairn_model_get_info(m, &info);
    t.vocab = info.vocab;
    const int32_t window = ctx && ctx < info.ctx_train ? (int32_t)ctx : info.ctx_train;
    TRY_GOTO(score_windows(words.word[0], m, &ids, (size_t)window, &t, &dg), out);
    st = print_score(&t, json, &dg);
out:
    cairn_ids_free(&ids);
    cairn_model_close(m);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
