/* check-numerics: whether logits have always the same bits. */
#include <stdio.h>

#include "base/diag.h"
#include "base/num.h"
#include "base/rng.h"
#include "cli/cli.h"

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

typedef struct numerics_flags {
    const char *ids, *compute, *kv;
    int64_t threads;
    bool verbose;
} numerics_flags;

static cairn_status compare(const char *word, const numerics_flags *f, cairn_numerics_report *r,
                            cairn_diag *dg)
{
    cairn_status st;
    cairn_model *m = NULL;
    cairn_ids ids = {0};
    cairn_model_info info;
    cairn_model_opts o;
    cairn_model_opts_init(&o);
    cairn_model_info_init(&info);
    o.n_threads = (int32_t)f->threads;
    o.no_text = true;
    o.compute = cli_compute(f->compute);
    o.kv_codec = f->kv;
    TRY_GOTO(cli_open_model(word, &o, &m, dg), out);
    cairn_model_get_info(m, &info);
    TRY_GOTO(f->ids ? cli_read_ids(f->ids, &ids, dg)
                    : seeded_ids(info.vocab, info.ctx_train, &ids, dg),
             out);
    st = cairn_check_numerics(m, ids.ptr, ids.len, (int32_t)f->threads, f->verbose ? say : NULL,
                              NULL, r, dg);
out:
    cairn_ids_free(&ids);
    cairn_model_close(m);
    return st;
}

static cairn_status print_report(const cairn_numerics_report *r, cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_MISC);
    buf_printf(&b, "%llu comparisons, %llu different bits\n", (unsigned long long)r->n_comparisons,
               (unsigned long long)r->n_different);
    if (r->n_different) buf_printf(&b, "first: %s\n", r->first);
    return cli_print(&b, dg);
}

int cmd_check_numerics(const command *c, int argc, char **argv)
{
    numerics_flags f = {.threads = 8};
    const flag table[] = {
        {"--ids", NULL, FLAG_STR, &f.ids, "IDS.json: the prompt (default: 1,300 seeded ids)", 0, 0,
         NULL},
        CLI_COMPUTE(&f.compute),
        CLI_KV(&f.kv),
        {"--threads", "-t", FLAG_INT, &f.threads, "N: try 1 to N threads (8)", 1, CAIRN_MAX_THREADS,
         NULL},
        {"--verbose", "-v", FLAG_BOOL, &f.verbose, "a line for each comparison", 0, 0, NULL},
    };
    cli_words words;
    cairn_diag dg = {0};
    cairn_numerics_report r;
    int code;
    cairn_numerics_report_init(&r);
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    cairn_status st = compare(words.word[0], &f, &r, &dg);
    if (st == CAIRN_OK) st = print_report(&r, &dg);
    if (st != CAIRN_OK) return cli_failed(&dg);
    return r.n_different ? EXIT_FAILED : EXIT_OK;
}
