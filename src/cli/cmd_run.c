/* run: answer one prompt, or hold a conversation on a terminal. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "cli/answer.h"
#include "cli/chat_loop.h"
#include "cli/cli.h"
#include "cli/sample_flags.h"

enum { PROMPT_MAX = 64 << 20 }; /* four bytes for each position that any context may have */

typedef struct run_flags {
    const char *model, *prompt, *file, *system, *compute;
    int64_t n, threads, ctx, think_budget;
    bool raw, verbose;
    sample_flags sample;
} run_flags;

static void read_limits(const run_flags *f, cairn_request *r)
{
    r->max_tokens = f->n > 0 ? (int32_t)f->n : 0;
    r->think_budget = (int32_t)f->think_budget;
    r->sampling = f->sample.how;
}

/* Without -p and -f the prompt is what standard input holds.  The line feed that ends a file is an
   editor's, not the prompt's. */
static cairn_status read_prompt(const run_flags *f, buf *text, cairn_diag *dg)
{
    if (f->prompt) {
        buf_puts(text, f->prompt);
        return buf_status(text);
    }
    TRY(file_read_input(f->file ? f->file : "-", PROMPT_MAX, text, dg));
    if (text->len && text->ptr[text->len - 1] == '\n') buf_cut(text, text->len - 1);
    return CAIRN_OK;
}

/* The prompt as the model gets it; a failure is said of the model. */
static cairn_status make_prompt(const cairn_text *t, const run_flags *f, const buf *text,
                                cairn_bytes *rendered, cairn_ids *ids, cairn_diag *dg)
{
    cairn_status st;
    buf conversation;
    buf_init(&conversation, MEM_MISC);
    if (f->raw || !cairn_text_has_template(t)) {
        st = cairn_text_tokenize(t, buf_view(text), CAIRN_TOK_ADD_SPECIAL | CAIRN_TOK_PARSE_SPECIAL,
                                 ids, dg);
    } else {
        chat_loop_begin(&conversation, f->system);
        chat_loop_say(&conversation, "user", buf_view(text));
        st = chat_loop_prompt(t, &conversation, rendered, ids, dg);
    }
    buf_deinit(&conversation);
    return st == CAIRN_OK ? st : diag_prefix(dg, st, "%s", f->model);
}

static cairn_status answer_once(cairn_engine *e, const cairn_text *t, const run_flags *f,
                                const cairn_request *r, const buf *text, cairn_finish *finish,
                                cairn_diag *dg)
{
    cairn_status st;
    cairn_bytes prompt = {0};
    cairn_ids ids = {0};
    cairn_reply_opts how;
    cairn_request q = *r;
    answer_result res = {0};
    answer_show show = {0};
    TRY_GOTO(make_prompt(t, f, text, &prompt, &ids, dg), out);
    if (prompt.len && isatty(STDOUT_FILENO))
        TRY_GOTO(answer_show_init(&show, e, (cairn_str){prompt.ptr, prompt.len}, dg), out);
    answer_show_opts(&how, e, (cairn_str){prompt.ptr, prompt.len});
    if (prompt.len) q.reply = &how;
    q.ids = ids.ptr;
    q.n_ids = ids.len;
    answer_catch_interrupt();
    if (f->n != 0) TRY_GOTO(answer_stream(e, &q, show.reply ? &show : NULL, &res, dg), out);
    *finish = res.finish;
    TRY_GOTO(cli_write_out("\n", 1, dg), out);
    if (answer_filled_context(&res, q.max_tokens))
        (void)fputs("cairn: the context is full: the answer is cut\n", stderr);
    if (f->verbose) chat_loop_speeds(&res);
out:
    cairn_bytes_free(&prompt);
    cairn_ids_free(&ids);
    answer_show_deinit(&show);
    return st;
}

/* The tokenizer; without one, or with a template that is broken, there is nothing to answer with. */
static cairn_status find_text(const cairn_model *m, const run_flags *f, const cairn_text **out,
                              cairn_diag *dg)
{
    const cairn_text *t = cairn_model_text(m);
    if (!t)
        return diag_set(
            dg, CAIRN_E_NOTFOUND,
            "%s: no tokenizer beside the weights; expected tokenizer.json, or one in a GGUF",
            f->model);
    if (!f->raw && !cairn_text_has_template(t)) {
        const cairn_status st = cairn_text_check_template(t, dg);
        if (st != CAIRN_E_NOTFOUND) /* its own is broken: going on without it would be a guess */
            return diag_prefix(dg, st, "%s: chat template (--raw goes without)", f->model);
    }
    *out = t;
    return CAIRN_OK;
}

/* text NULL: a conversation. */
static cairn_status run_model(const run_flags *f, const buf *text, cairn_finish *finish,
                              cairn_diag *dg)
{
    cairn_status st;
    cairn_model *m = NULL;
    cairn_engine *e = NULL;
    const cairn_text *t = NULL;
    cairn_model_opts o;
    cairn_engine_opts eo;
    cairn_request r;
    cairn_model_opts_init(&o);
    cairn_engine_opts_init(&eo);
    cairn_request_init(&r);
    o.n_threads = (int32_t)f->threads;
    o.compute = cli_compute(f->compute);
    eo.max_seqs = 1;
    eo.ctx_len = (int32_t)f->ctx;
    TRY_GOTO(cli_open_model(f->model, &o, &m, dg), out);
    TRY_GOTO(cli_check_ctx(m, f->model, f->ctx, dg), out);
    TRY_GOTO(find_text(m, f, &t, dg), out);
    TRY_GOTO(cairn_engine_open(m, &eo, &e, dg), out);
    if (!f->raw && !cairn_text_has_template(t))
        (void)fputs("cairn: the model has no chat template: completing the text as it is\n",
                    stderr);
    read_limits(f, &r);
    st = text ? answer_once(e, t, f, &r, text, finish, dg)
              : chat_loop(e, t, &r, f->system, f->verbose, dg);
    st = cli_blame(f->model, st, dg);
out:
    cairn_engine_close(e);
    cairn_model_close(m);
    return st;
}

/* What the flags ask for cannot be: status 2. */
static bool usable(const command *c, run_flags *f, bool chat, int *exit_code)
{
    const char *wrong = NULL;
    cairn_diag dg = {0};
    if (f->n == 0 && !f->prompt && !f->file && isatty(STDIN_FILENO))
        wrong = "-n: found \"0\" for a conversation; expected -1 or more than 0";
    else if (f->raw && f->think_budget >= 0)
        wrong = "--think-budget: found --raw; expected the chat template's thoughts";
    else if (f->prompt && f->file)
        wrong = "run: expected one of -p PROMPT and -f FILE";
    else if (chat && f->raw)
        wrong = "--raw: expected -p PROMPT or a text on standard input, not a conversation";
    else if (sample_flags_read(&f->sample, &dg) != CAIRN_OK)
        wrong = dg.message;
    if (wrong) *exit_code = cli_usage(c, "%s", wrong);
    return !wrong;
}

/* Reads the prompt, unless there will be a conversation, and answers. */
static int run_prompt(const command *c, const run_flags *f, bool chat)
{
    cairn_diag dg = {0};
    cairn_finish finish = CAIRN_FINISH_STOP;
    buf text;
    buf_init(&text, MEM_MISC);
    cairn_status st = chat ? CAIRN_OK : read_prompt(f, &text, &dg);
    const bool nothing = !chat && !f->file && !f->prompt && text.len == 0;
    if (st == CAIRN_OK && !nothing) st = run_model(f, chat ? NULL : &text, &finish, &dg);
    buf_deinit(&text);
    if (st != CAIRN_OK) return cli_failed(&dg);
    if (nothing)
        return cli_usage(c, "standard input: found nothing; expected a prompt there or -p PROMPT");
    return finish == CAIRN_FINISH_CANCELLED ? EXIT_INTERRUPTED : EXIT_OK;
}

int cmd_run(const command *c, int argc, char **argv)
{
    run_flags f = {.n = -1, .think_budget = -1};
    const flag own[] = {
        {"--prompt", "-p", FLAG_STR, &f.prompt, "TEXT: what to answer", 0, 0, NULL},
        {"--file", "-f", FLAG_STR, &f.file, "FILE: likewise ('-': standard input)", 0, 0, NULL},
        {"--tokens", "-n", FLAG_INT, &f.n,
         "N: at most so many; 0: none, -1: what the context holds (-1)", -1, CAIRN_MAX_CTX, NULL},
        {"--think-budget", NULL, FLAG_INT, &f.think_budget,
         "N: tokens of thought at most, then the answer; -1: any number (-1)", -1, CAIRN_MAX_CTX,
         NULL},
        {"--system", NULL, FLAG_STR, &f.system, "TEXT: a system message first", 0, 0, NULL},
        {"--raw", NULL, FLAG_BOOL, &f.raw, "complete the text, without the chat template", 0, 0,
         NULL},
        {"--ctx", NULL, FLAG_INT, &f.ctx, "N: context (default: the largest that fits)", 1,
         CAIRN_MAX_CTX, NULL},
        CLI_COMPUTE(&f.compute),
        CLI_THREADS(&f.threads),
        {"--verbose", "-v", FLAG_BOOL, &f.verbose, "speeds on standard error", 0, 0, NULL},
    };
    flag table[sizeof own / sizeof own[0] + SAMPLE_FLAGS];
    cli_words words;
    int code;
    memcpy(table, own, sizeof own);
    sample_flags_init(&f.sample, table + sizeof own / sizeof own[0]);
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 0, 1, &words, &code))
        return code;
    f.model = words.n ? words.word[0] : CLI_DEFAULT_MODEL;
    const bool chat = !f.prompt && !f.file && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    return usable(c, &f, chat, &code) ? run_prompt(c, &f, chat) : code;
}
