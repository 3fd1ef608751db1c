/* The interactive chat: line editing and history by libedit; each turn renders the whole conversation
   again.  What is pasted is one message (paste.h).  Ctrl-C ends an answer, or empties the line being
   typed; Ctrl-D or /exit ends the chat; /clear forgets the conversation. */
#include "cli/chat_loop.h"

#include <editline/readline.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/paste.h"

void chat_loop_begin(buf *conversation, const char *system)
{
    buf_clear(conversation);
    buf_byte(conversation, '[');
    if (system) chat_loop_say(conversation, "system", str_of(system));
}

void chat_loop_say(buf *conversation, const char *role, cairn_str text)
{
    if (conversation->len > 1) buf_byte(conversation, ',');
    json_writer w = json_write(conversation);
    json_w_obj(&w);
    json_w_kstr(&w, "role", str_of(role));
    json_w_kstr(&w, "content", text);
    json_w_end_obj(&w);
}

/* Templates drop the thoughts of earlier turns or not: they get them as OpenAI's clients send them. */
static void say_reply(buf *conversation, const answer_show *show)
{
    buf_byte(conversation, ',');
    json_writer w = json_write(conversation);
    json_w_obj(&w);
    json_w_kstr(&w, "role", STR_LIT("assistant"));
    json_w_kstr(&w, "content", show->content.len ? buf_view(&show->content) : STR_LIT(""));
    if (show->thought.len) json_w_kstr(&w, "reasoning_content", buf_view(&show->thought));
    json_w_end_obj(&w);
}

static void close_array(const buf *conversation, buf *whole)
{
    buf_init(whole, MEM_MISC);
    buf_str(whole, buf_view(conversation));
    buf_byte(whole, ']');
}

cairn_status chat_loop_prompt(const cairn_text *t, const buf *conversation, cairn_bytes *prompt,
                              cairn_ids *ids, cairn_diag *dg)
{
    cairn_render_opts o;
    cairn_bytes text = {0};
    buf whole;
    cairn_render_opts_init(&o);
    close_array(conversation, &whole);
    o.messages = buf_view(&whole);
    cairn_status st = buf_status(conversation);
    if (st == CAIRN_OK) st = buf_status(&whole);
    if (st != CAIRN_OK) (void)diag_set(dg, st, "no memory for the conversation");
    if (st == CAIRN_OK) st = cairn_text_render(t, &o, &text, dg);
    if (st == CAIRN_OK) st = cairn_text_encode_prompt(t, (cairn_str){text.ptr, text.len}, ids, dg);
    buf_deinit(&whole);
    if (st == CAIRN_OK)
        *prompt = text;
    else
        cairn_bytes_free(&text);
    return st;
}

static size_t find_marks(cairn_engine *e, const cairn_text *t, const buf *conversation,
                         const cairn_ids *ids, int32_t marks[2])
{
    cairn_render_opts o;
    buf whole;
    if (!cairn_engine_wants_marks(e)) return 0;
    cairn_render_opts_init(&o);
    close_array(conversation, &whole);
    o.messages = buf_view(&whole);
    const size_t n = cairn_text_marks(t, &o, ids->ptr, ids->len, marks);
    buf_deinit(&whole);
    return n;
}

void chat_loop_speeds(const answer_result *r)
{
    const double pre =
        r->prefill_seconds > 0 ? (r->n_prompt - r->n_cached) / r->prefill_seconds : 0;
    const double dec = r->decode_seconds > 0 ? r->n_generated / r->decode_seconds : 0;
    (void)fprintf(stderr, "[prompt %d tokens, %d known, %.1f t/s; answer %d tokens, %.1f t/s]\n",
                  (int)r->n_prompt, (int)r->n_cached, pre, (int)r->n_generated, dec);
}

static void say_end(const answer_result *r, const cairn_request *q, const char *full)
{
    if (r->finish != CAIRN_FINISH_LENGTH) return;
    (void)fputs(answer_filled_context(r, q->max_tokens) ? full : "[cut at the tokens of -n]\n",
                stderr);
}

/* One question and its answer; the conversation keeps what was said, even if cut short. */
static cairn_status turn(cairn_engine *e, const cairn_text *t, const cairn_request *r,
                         buf *conversation, bool verbose, const char *line, cairn_diag *dg)
{
    cairn_status st;
    cairn_bytes prompt = {0};
    cairn_ids ids = {0};
    cairn_request q = *r;
    cairn_reply_opts how;
    answer_result res = {0};
    answer_show show = {0};
    int32_t marks[2];
    const size_t before = conversation->len;
    chat_loop_say(conversation, "user", str_of(line));
    TRY_GOTO(chat_loop_prompt(t, conversation, &prompt, &ids, dg), out);
    TRY_GOTO(answer_show_init(&show, e, (cairn_str){prompt.ptr, prompt.len}, dg), out);
    answer_show_opts(&how, e, (cairn_str){prompt.ptr, prompt.len});
    q.reply = &how;
    q.ids = ids.ptr;
    q.n_ids = ids.len;
    q.marks = marks;
    q.n_marks = find_marks(e, t, conversation, &ids, marks);
    TRY_GOTO(answer_stream(e, &q, &show, &res, dg), out);
    TRY_GOTO(cli_write_out("\n\n", 2, dg), out);
    say_reply(conversation, &show);
    say_end(&res, &q, "[the context is full; /clear starts anew]\n");
    if (verbose) chat_loop_speeds(&res);
out:
    if (st != CAIRN_OK) buf_cut(conversation, before);
    cairn_bytes_free(&prompt);
    cairn_ids_free(&ids);
    answer_show_deinit(&show);
    return st;
}

static cairn_status plain_turn(cairn_engine *e, const cairn_text *t, const cairn_request *r,
                               bool verbose, const char *line, cairn_diag *dg)
{
    cairn_ids ids = {0};
    cairn_request q = *r;
    answer_result res = {0};
    TRY(cairn_text_tokenize(t, str_of(line), CAIRN_TOK_ADD_SPECIAL | CAIRN_TOK_PARSE_SPECIAL, &ids,
                            dg));
    q.ids = ids.ptr;
    q.n_ids = ids.len;
    cairn_status st = answer_stream(e, &q, NULL, &res, dg);
    cairn_ids_free(&ids);
    if (st == CAIRN_OK) st = cli_write_out("\n\n", 2, dg);
    if (st == CAIRN_OK) say_end(&res, &q, "[the context is full]\n");
    if (st == CAIRN_OK && verbose) chat_loop_speeds(&res);
    return st;
}

static const char *history_path(buf *b)
{
    buf dir;
    buf_init(&dir, MEM_MISC);
    const bool there = path_cache_dir(&dir, NULL) == CAIRN_OK;
    const char *path = there ? path_join(b, dir.ptr, "history") : NULL;
    buf_deinit(&dir);
    return path;
}

static const char help[] =
    "/clear starts anew, /exit, /quit or Ctrl-D leaves, Ctrl-C stops an answer\n";

typedef enum chat_command { CHAT_NONE, CHAT_CLEAR, CHAT_EXIT, CHAT_HELP } chat_command;

/* What else begins with a slash (a path, say), and all that has several lines, is for the model. */
static chat_command command_of(const char *line)
{
    static const struct {
        const char *word;
        chat_command what;
    } commands[] = {
        {"/clear", CHAT_CLEAR}, {"/exit", CHAT_EXIT}, {"/quit", CHAT_EXIT}, {"/help", CHAT_HELP}};
    const char *from = line + strspn(line, " \t");
    const cairn_str word = {from, strcspn(from, " \t")};
    for (size_t i = 0; !strchr(line, '\n') && i < sizeof commands / sizeof commands[0]; i++)
        if (str_is(word, commands[i].word)) return commands[i].what;
    return CHAT_NONE;
}

/* False: the chat ends. */
static bool do_command(chat_command what, buf *conversation, const char *system)
{
    switch (what) {
    case CHAT_CLEAR:
        chat_loop_begin(conversation, system);
        (void)fputs("[a new conversation]\n", stderr);
        break;
    case CHAT_HELP:
        (void)fputs(help, stderr);
        break;
    case CHAT_EXIT:
        return false;
    case CHAT_NONE:
        break;
    }
    return true;
}

/* A failure is said, and the chat goes on. */
static void say_failure(cairn_status st, const buf *conversation, const cairn_diag *dg)
{
    if (st == CAIRN_OK || st == CAIRN_E_IO) return;
    (void)cli_failed(dg);
    if (st == CAIRN_E_LIMIT && conversation->len > 1) (void)fputs("[/clear starts anew]\n", stderr);
}

/* The line editor drops what the locale's characters do not hold: UTF-8, whatever the user's language.
   Nothing else here looks at a locale. */
static void edit_utf8(void)
{
    const char *own =
        setlocale(LC_CTYPE, ""); /* NOLINT(concurrency-mt-unsafe): once, for this loop */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): likewise */
    if (own && strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return;
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* NOLINT(concurrency-mt-unsafe) */
}

cairn_status chat_loop(cairn_engine *e, const cairn_text *t, const cairn_request *r,
                       const char *system, bool verbose, cairn_diag *dg)
{
    const bool templated = cairn_text_has_template(t);
    cairn_status st = CAIRN_OK;
    buf conversation, path;
    buf_init(&conversation, MEM_MISC);
    buf_init(&path, MEM_MISC);
    const char *history = history_path(&path);
    edit_utf8();
    chat_loop_begin(&conversation, system);
    (void)fputs(help, stderr);
    paste_begin();
    using_history();
    if (history) (void)read_history(history);
    answer_catch_interrupt();
    for (bool go = true; go && st != CAIRN_E_IO;) {
        errno = 0;
        char *line = readline("> ");
        if (!line && paste_interrupted()) {
            (void)cli_write_out("\n", 1, NULL);
            continue;
        }
        if (!line) {
            (void)cli_write_out("\n", 1, NULL); /* the shell's prompt begins a line of its own */
            break;
        }
        if (line[0]) (void)add_history(line);
        const chat_command what = command_of(line);
        if (what != CHAT_NONE) {
            go = do_command(what, &conversation, system);
        } else if (line[0]) {
            st = templated ? turn(e, t, r, &conversation, verbose, line, dg)
                           : plain_turn(e, t, r, verbose, line, dg);
            say_failure(st, &conversation, dg);
        }
        free(line); /* readline's own allocation */
    }
    paste_end();
    if (history) (void)write_history(history);
    buf_deinit(&path);
    buf_deinit(&conversation);
    return st == CAIRN_E_IO ? st : CAIRN_OK;
}
