/* embed: one vector a file, a JSON array a line. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "cairn/embed.h"
#include "cli/cli.h"

enum { TEXT_MAX = 64 << 20 }; /* far longer than any model reads */

/* Files and what is in them. */
typedef struct inputs {
    const char *name[CLI_MAX_WORDS];
    size_t n;
    buf *text;       /* [n] */
    cairn_str *view; /* [n] */
} inputs;

static bool print_vector(void *ctx, const cairn_embedding *e)
{
    buf *b = ctx;
    for (int32_t i = 0; i < e->n_values; i++)
        buf_printf(b, "%s%.9g", i ? ", " : "[", (double)e->values[i]);
    buf_puts(b, "]\n");
    return buf_status(b) == CAIRN_OK;
}

static cairn_status read_inputs(inputs *in, cairn_diag *dg)
{
    in->text = mem_calloc(in->n, sizeof *in->text, MEM_MISC);
    in->view = mem_calloc(in->n, sizeof *in->view, MEM_MISC);
    if (!in->text || !in->view) return diag_set(dg, CAIRN_E_NOMEM, "%zu files", in->n);
    for (size_t i = 0; i < in->n; i++) {
        buf_init(&in->text[i], MEM_MISC);
        TRY(file_read_input(in->name[i], TEXT_MAX, &in->text[i], dg));
        in->view[i] = in->text[i].ptr ? buf_view(&in->text[i]) : STR_LIT("");
    }
    return CAIRN_OK;
}

static void free_inputs(inputs *in)
{
    for (size_t i = 0; in->text && i < in->n; i++) buf_deinit(&in->text[i]);
    mem_free(in->text);
    mem_free(in->view);
}

/* Vectors of any model can be had, and those of one for text compare badly: who meant another file sees it. */
static void warn_of_text(const char *word, const cairn_model *m)
{
    cairn_embed_info info;
    cairn_embed_info_init(&info);
    cairn_embed_get_info(m, &info);
    if (info.embeds) return;
    (void)fprintf(stderr,
                  "cairn: warning: %s: its files say nothing of embeddings: a model that writes "
                  "text, whose vectors were not trained to be compared\n",
                  word);
}

/* What is over a limit is a text. */
static cairn_status explain(const char *word, const cairn_embed_opts *o, cairn_status st,
                            cairn_diag *dg)
{
    const cairn_diag said = *dg;
    if (st == CAIRN_E_LIMIT && !o->truncate)
        return diag_set(dg, st, "%s: %s (--truncate)", word, said.message);
    return cli_blame(word, st, dg);
}

static cairn_status embed_files(const char *word, inputs *in, const cairn_model_opts *mo,
                                const cairn_embed_opts *o, cairn_diag *dg)
{
    cairn_status st;
    cairn_model *m = NULL;
    buf out;
    buf_init(&out, MEM_MISC);
    TRY_GOTO(read_inputs(in, dg), out);
    TRY_GOTO(cli_open_model(word, mo, &m, dg), out);
    st = cairn_embed(m, in->view, in->n, o, print_vector, &out, dg);
    if (st != CAIRN_OK)
        (void)explain(word, o, st, dg);
    else
        warn_of_text(word, m);
    if (st == CAIRN_OK) st = cli_print(&out, dg);
out:
    buf_deinit(&out);
    free_inputs(in);
    cairn_model_close(m);
    return st;
}

static bool stdin_twice(const inputs *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->n; i++) n += strcmp(in->name[i], "-") == 0;
    return n > 1;
}

/* -f A B C and -f A -f B -f C are both read, and their order is the texts'; not a mix of the two. */
static bool add_words(inputs *in, const cli_words *w)
{
    if (w->n > 1 && in->n != 1) return false;
    for (size_t i = 1; i < w->n && in->n < CLI_MAX_WORDS; i++) in->name[in->n++] = w->word[i];
    return true;
}

int cmd_embed(const command *c, int argc, char **argv)
{
    inputs in = {.n = 0};
    flag_list files = {in.name, 0, CLI_MAX_WORDS};
    const char *prompt = NULL, *prompt_name = NULL, *compute = NULL;
    int64_t threads = 0, dimensions = 0;
    cairn_model_opts mo;
    cairn_embed_opts o;
    cairn_embed_opts_init(&o);
    const flag table[] = {
        {"--file", "-f", FLAG_LIST, &files, "FILE...: a text each ('-': standard input)", 0, 0,
         NULL},
        {"--dimensions", NULL, FLAG_INT, &dimensions, "N: the first N elements, normalised again",
         1, 1 << 20, NULL},
        {"--prompt-name", NULL, FLAG_STR, &prompt_name,
         "NAME: of the model's files, before each text", 0, 0, NULL},
        {"--prompt", NULL, FLAG_STR, &prompt, "TEXT: before each text", 0, 0, NULL},
        {"--truncate", NULL, FLAG_BOOL, &o.truncate, "cut a text that is too long for the model", 0,
         0, NULL},
        CLI_COMPUTE(&compute),
        CLI_THREADS(&threads),
    };
    cli_words words;
    int code;
    cairn_diag dg = {0};
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, CLI_MAX_WORDS, &words,
                   &code))
        return code;
    in.n = files.n;
    if (in.n == 0) return cli_usage(c, "embed: -f FILE is missing");
    if (!add_words(&in, &words))
        return cli_usage(c, "\"%s\": expected files after one -f, or -f before each",
                         words.word[1]);
    if (stdin_twice(&in)) return cli_usage(c, "-f -: found twice; expected standard input once");
    if (prompt && prompt_name)
        return cli_usage(c, "embed: expected one of --prompt and --prompt-name");
    cairn_model_opts_init(&mo);
    mo.n_threads = (int32_t)threads;
    o.dimensions = (int32_t)dimensions;
    o.names = in.name;
    if (prompt) o.prompt = str_of(prompt);
    if (prompt_name) o.prompt_name = str_of(prompt_name);
    mo.compute = cli_compute(compute);
    return embed_files(words.word[0], &in, &mo, &o, &dg) == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
