/* tokenize, detokenize, render: a model's text files, no weights. */
#include <stdio.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"

enum {
    TEXT_FILE_MAX = 256 << 20, /* what the tokenizer takes at once */
    JSON_FILE_MAX = 64 << 20,  /* messages with images in them */
};

static cairn_status print_ids(const cairn_ids *ids, cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_MISC);
    json_writer w = json_write(&b);
    json_w_arr(&w);
    for (size_t i = 0; i < ids->len; i++) json_w_int(&w, ids->ptr[i]);
    json_w_end_arr(&w);
    buf_byte(&b, '\n');
    return cli_print(&b, dg);
}

int cmd_tokenize(const command *c, int argc, char **argv)
{
    const char *file = NULL, *text = NULL;
    bool no_special = false, no_parse = false;
    const flag table[] = {
        {"--file", "-f", FLAG_STR, &file, "FILE: the text ('-': standard input)", 0, 0, NULL},
        {"--prompt", "-p", FLAG_STR, &text, "TEXT: the text itself", 0, 0, NULL},
        {"--no-special", NULL, FLAG_BOOL, &no_special, "do not add BOS or EOS", 0, 0, NULL},
        {"--no-parse-special", NULL, FLAG_BOOL, &no_parse,
         "special tokens written in the text are plain text", 0, 0, NULL},
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    if (!file == !text) return cli_usage(c, "tokenize: expected one of -f FILE and -p TEXT");

    cairn_diag dg = {0};
    cairn_status st;
    cairn_text *t = NULL;
    cairn_ids ids = {0};
    buf b;
    buf_init(&b, MEM_MISC);
    TRY_GOTO(cli_open_text(words.word[0], &t, &dg), out);
    if (file) TRY_GOTO(file_read_input(file, TEXT_FILE_MAX, &b, &dg), out);
    const uint32_t flags =
        (no_special ? 0u : CAIRN_TOK_ADD_SPECIAL) | (no_parse ? 0u : CAIRN_TOK_PARSE_SPECIAL);
    st = cairn_text_tokenize(t, file ? buf_view(&b) : str_of(text), flags, &ids, &dg);
    if (st != CAIRN_OK) {
        (void)diag_prefix(&dg, st, "%s", file ? file : "-p");
        goto out;
    }
    st = print_ids(&ids, &dg);
out:
    cairn_ids_free(&ids);
    cairn_text_close(t);
    buf_deinit(&b);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}

/* A model may have more rows than its tokenizer has pieces: such ids have no text.  Without a model
   beside the text files the pieces are all. */
static int32_t vocab_of(const char *word, const cairn_text *t)
{
    const cairn_model_opts o = {.struct_size = sizeof o, .no_weights = true, .no_text = true};
    cairn_model_info info;
    cairn_model *m = NULL;
    cairn_model_info_init(&info);
    if (cli_open_model(word, &o, &m, NULL) == CAIRN_OK) cairn_model_get_info(m, &info);
    cairn_model_close(m);
    return max_i32(info.vocab, cairn_text_vocab(t));
}

/* To the library ids that nobody knows have no text either; here they are a mistake. */
static cairn_status check_known(const char *word, const cairn_text *t, const cairn_ids *ids,
                                const char *path, cairn_diag *dg)
{
    int32_t vocab = cairn_text_vocab(t);
    for (size_t i = 0; i < ids->len; i++) {
        if (ids->ptr[i] < vocab) continue;
        vocab = vocab_of(word, t);
        if (ids->ptr[i] >= vocab)
            return diag_set(dg, CAIRN_E_ARG,
                            "%s: element %zu is %d; expected ids of the vocabulary, 0 to %d", path,
                            i, ids->ptr[i], vocab - 1);
    }
    return CAIRN_OK;
}

int cmd_detokenize(const command *c, int argc, char **argv)
{
    const char *file = NULL;
    const flag table[] = {
        {"--file", "-f", FLAG_STR, &file, "IDS.json: an array of ids ('-': standard input)", 0, 0,
         NULL},
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    if (!file) return cli_usage(c, "detokenize: no ids; expected -f IDS.json");

    cairn_diag dg = {0};
    cairn_status st;
    cairn_text *t = NULL;
    cairn_ids ids = {0};
    cairn_bytes text = {0};
    TRY_GOTO(cli_open_text(words.word[0], &t, &dg), out);
    TRY_GOTO(cli_read_ids(file, &ids, &dg), out);
    TRY_GOTO(check_known(words.word[0], t, &ids, file, &dg), out);
    TRY_GOTO(cairn_text_detokenize(t, ids.ptr, ids.len, true, &text, &dg), out);
    st = cli_write_out(text.ptr, text.len, &dg);
out:
    cairn_bytes_free(&text);
    cairn_ids_free(&ids);
    cairn_text_close(t);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}

/* What a flag's value must be is known before any file is opened. */
static bool is_object(const char *text, cairn_diag *dg)
{
    json_doc *doc = NULL;
    cairn_status st = json_parse_any(str_of(text), &doc, dg);
    if (st == CAIRN_OK && json_typeof(json_root(doc)) != JSON_OBJ)
        st = diag_set(dg, CAIRN_E_ARG, "found %s; expected an object",
                      json_type_name(json_typeof(json_root(doc))));
    json_free(doc);
    return st == CAIRN_OK;
}

static cairn_status slurp(const char *path, buf *b, cairn_str *out, cairn_diag *dg)
{
    *out = (cairn_str){0};
    if (!path) return CAIRN_OK;
    TRY(file_read_input(path, JSON_FILE_MAX, b, dg));
    *out = buf_view(b);
    return CAIRN_OK;
}

/* Messages of render begin with the part that is wrong, which the library knows by no file. */
static void name_file(cairn_diag *dg, const char *part, const char *path)
{
    if (path && str_starts(str_of(dg->message), str_of(part)))
        (void)diag_prefix(dg, dg->status, "%s", path);
}

int cmd_render(const command *c, int argc, char **argv)
{
    const char *messages = NULL, *tools = NULL, *kwargs = NULL, *template_file = NULL;
    const flag table[] = {
        {"--messages", NULL, FLAG_STR, &messages, "FILE.json: an OpenAI messages array", 0, 0,
         NULL},
        {"--tools", NULL, FLAG_STR, &tools, "FILE.json: an OpenAI tools array", 0, 0, NULL},
        {"--kwargs", NULL, FLAG_STR, &kwargs, "JSON: more variables for the template", 0, 0, NULL},
        {"--template", NULL, FLAG_STR, &template_file, "FILE.jinja: in place of the model's own", 0,
         0, NULL},
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 0, 1, &words, &code))
        return code;
    if (!messages) return cli_usage(c, "render: no messages; expected --messages FILE.json");
    if (!words.n && !template_file)
        return cli_usage(c, "render: expected MODEL or --template FILE");
    cairn_diag dg = {0};
    if (kwargs && !is_object(kwargs, &dg)) return cli_usage(c, "--kwargs: %s", dg.message);

    cairn_status st;
    cairn_text *t = NULL;
    cairn_bytes text = {0};
    cairn_render_opts o;
    buf b[3];
    cairn_render_opts_init(&o);
    for (int i = 0; i < 3; i++) buf_init(&b[i], MEM_MISC);
    if (words.n) TRY_GOTO(cli_open_text(words.word[0], &t, &dg), out);
    TRY_GOTO(slurp(messages, &b[0], &o.messages, &dg), out);
    TRY_GOTO(slurp(tools, &b[1], &o.tools, &dg), out);
    TRY_GOTO(slurp(template_file, &b[2], &o.template_text, &dg), out);
    if (kwargs) o.kwargs = str_of(kwargs);
    st = cairn_text_render(t, &o, &text, &dg);
    if (st != CAIRN_OK) {
        name_file(&dg, "messages", messages);
        name_file(&dg, "tools", tools);
        name_file(&dg, "template", template_file);
        goto out;
    }
    st = cli_write_out(text.ptr, text.len, &dg);
out:
    cairn_bytes_free(&text);
    cairn_text_close(t);
    for (int i = 0; i < 3; i++) buf_deinit(&b[i]);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
