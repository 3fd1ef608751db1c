/* Helpers of the commands; the only place that prints errors and writes to standard output.

   Every error is one line on standard error, "cairn: WHERE: what was found; what was expected". */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"

enum { IDS_FILE_MAX = 64 << 20 }; /* some ten million ids */

int cli_failed(const cairn_diag *dg)
{
    (void)fprintf(stderr, "cairn: %s\n",
                  dg->message[0] ? dg->message : cairn_status_text(dg->status));
    return EXIT_FAILED;
}

int cli_usage(const command *c, const char *fmt, ...)
{
    va_list ap;
    (void)fputs("cairn: ", stderr);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "; usage: cairn %s %s\n", c->name, c->words);
    return EXIT_USAGE;
}

static int print_help(const command *c, const flag *table, size_t n)
{
    buf b;
    cairn_diag dg = {0};
    buf_init(&b, MEM_MISC);
    buf_printf(&b, "usage: cairn %s %s\n\n%s\n", c->name, c->words, c->help);
    if (n) buf_puts(&b, "\n");
    flags_help(table, n, &b);
    return cli_print(&b, &dg) == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}

/* Each command calls this first, with what argc, argv and its table say: a struct would only rename
   them. */
// NOLINTNEXTLINE(readability-function-size)
bool cli_flags(const command *c, const flag *table, size_t n_flags, int argc, char **argv,
               size_t min_words, size_t max_words, cli_words *out, int *exit_code)
{
    cairn_diag dg = {0};
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *exit_code = print_help(c, table, n_flags);
            return false;
        }
    if (flags_parse(table, n_flags, argc, argv, out->word, max_words, &out->n, &dg) != CAIRN_OK) {
        *exit_code = cli_usage(c, "%s", dg.message);
        return false;
    }
    if (out->n < min_words) {
        *exit_code =
            cli_usage(c, "%s: %zu words given; expected at least %zu", c->name, out->n, min_words);
        return false;
    }
    return true;
}

cairn_status cli_open_model(const char *word, const cairn_model_opts *o, cairn_model **out,
                            cairn_diag *dg)
{
    cairn_bytes path = {0};
    TRY(cairn_model_resolve(word ? word : CLI_DEFAULT_MODEL, &path, dg));
    const cairn_status st = cairn_model_open(path.ptr, o, out, dg);
    cairn_bytes_free(&path);
    return st;
}

cairn_status cli_check_ctx(const cairn_model *m, const char *word, int64_t ctx, cairn_diag *dg)
{
    cairn_model_info info;
    cairn_model_info_init(&info);
    cairn_model_get_info(m, &info);
    if (!info.ctx_train || ctx <= info.ctx_train) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG,
                    "%s: --ctx is %lld; expected at most %d, the model's own context", word,
                    (long long)ctx, info.ctx_train);
}

cairn_status cli_open_text(const char *word, cairn_text **out, cairn_diag *dg)
{
    cairn_bytes path = {0};
    TRY(cairn_model_resolve(word, &path, dg));
    const cairn_status st = cairn_text_open(path.ptr, out, dg);
    cairn_bytes_free(&path);
    return st;
}

cairn_status cli_blame(const char *model, cairn_status st, cairn_diag *dg)
{
    if (st == CAIRN_OK || st == CAIRN_E_IO || strncmp(dg->message, model, strlen(model)) == 0)
        return st;
    return diag_prefix(dg, st, "%s", model);
}

cairn_compute cli_compute(const char *word)
{
    return word && strcmp(word, "f32") == 0 ? CAIRN_COMPUTE_F32 : CAIRN_COMPUTE_FAST;
}

static cairn_status collect_ids(json_val arr, const char *path, buf *ids, cairn_diag *dg)
{
    json_val v;
    if (json_typeof(arr) != JSON_ARR)
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: found %s; expected an array of token ids", path,
                        json_type_name(json_typeof(arr)));
    json_iter it = json_each(arr);
    for (size_t i = 0; json_next(&it, &v); i++) {
        const int64_t id = json_int(v, -1);
        if (json_typeof(v) != JSON_INT || id < 0 || id > INT32_MAX)
            return diag_set(
                dg, CAIRN_E_CORRUPT, "%s: element %zu is %s; expected a token id", path, i,
                json_typeof(v) == JSON_INT ? "out of range" : json_type_name(json_typeof(v)));
        const int32_t id32 = (int32_t)id;
        buf_put(ids, &id32, sizeof id32);
    }
    return buf_status(ids);
}

cairn_status cli_read_ids(const char *path, cairn_ids *out, cairn_diag *dg)
{
    cairn_status st;
    json_doc *doc = NULL;
    buf text, ids;
    cairn_bytes bytes = {0};
    buf_init(&text, MEM_MISC);
    buf_init(&ids, MEM_MISC);
    TRY_GOTO(file_read_input(path, IDS_FILE_MAX, &text, dg), out);
    st = json_parse(buf_view(&text), &doc, dg);
    if (st != CAIRN_OK) {
        (void)diag_prefix(dg, st, "%s", path);
        goto out;
    }
    TRY_GOTO(collect_ids(json_root(doc), path, &ids, dg), out);
    const size_t n = ids.len / sizeof(int32_t);
    TRY_GOTO(buf_take(&ids, &bytes), out);
    *out = (cairn_ids){(int32_t *)(void *)bytes.ptr, n};
out:
    json_free(doc);
    buf_deinit(&text);
    buf_deinit(&ids);
    return st;
}

/* Whoever read has enough: end as a program does that never heard of the signal, without a word. */
static void end_by_pipe(void)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
}

cairn_status cli_write_out(const void *p, size_t n, cairn_diag *dg)
{
    const char *at = p;
    while (n > 0) {
        const ssize_t done = write(STDOUT_FILENO, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EPIPE) end_by_pipe();
        if (done < 0) {
            char why[64];
            return diag_set(dg, CAIRN_E_IO, "standard output: %s",
                            strerror_r(errno, why, sizeof why));
        }
        at += done;
        n -= (size_t)done;
    }
    return CAIRN_OK;
}

cairn_status cli_print(buf *b, cairn_diag *dg)
{
    cairn_status st = buf_status(b);
    if (st == CAIRN_OK)
        st = cli_write_out(b->ptr, b->len, dg);
    else
        (void)diag_set(dg, st, "no memory for what is to be printed");
    buf_deinit(b);
    return st;
}
