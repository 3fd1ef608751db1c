/* Everything about text beside a model's weights: opens the tokenizer from a directory or a GGUF,
   and leaves the ids that end generation to genconfig.c, the chat template to chatfile.c.  Invariant: what
   textfiles_open gives out holds no reference to the files. */
#include "format/textfiles.h"

#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "format/chatfile.h"
#include "format/format.h"
#include "format/genconfig.h"
#include "format/pyjson.h"

enum { MAX_TOKENIZER = 44 << 20 }; /* bytes; Gemma's tokenizer.json has 33 MB */

static const char token_file[] = "tokenizer_config.json";

/* One tokenizer file and what opens it; `beside` is a second file that it needs. */
typedef struct tokenizer_file {
    const char *name, *beside;
    cairn_status (*open)(const struct tokenizer_file *f, cairn_str text, cairn_str beside,
                         cairn_str config, const char *where, tok **out, cairn_diag *dg);
} tokenizer_file;

static cairn_status open_hf(const tokenizer_file *f, cairn_str text, cairn_str beside,
                            cairn_str config, const char *where, tok **out, cairn_diag *dg)
{
    (void)f;
    (void)beside;
    return tok_open_hf(text, config, where, out, dg);
}

/* Both kinds are called tokenizer.model. */
static cairn_status open_model(const tokenizer_file *f, cairn_str text, cairn_str beside,
                               cairn_str config, const char *where, tok **out, cairn_diag *dg)
{
    (void)beside;
    if (tok_is_tiktoken(text)) return tok_open_tiktoken(text, config, f->name, where, out, dg);
    return tok_open_sentencepiece(text, config, where, out, dg);
}

static cairn_status open_merges(const tokenizer_file *f, cairn_str text, cairn_str beside,
                                cairn_str config, const char *where, tok **out, cairn_diag *dg)
{
    (void)f;
    return tok_open_merges(text, beside, config, where, out, dg);
}

static cairn_status open_wordpiece(const tokenizer_file *f, cairn_str text, cairn_str beside,
                                   cairn_str config, const char *where, tok **out, cairn_diag *dg)
{
    (void)f;
    (void)beside;
    return tok_open_wordpiece(text, config, where, out, dg);
}

/* The first that is there counts. */
static const tokenizer_file tokenizer_files[] = {
    {"tokenizer.json", NULL, open_hf},          {"tokenizer.model", NULL, open_model},
    {"spiece.model", NULL, open_model},         {"sentencepiece.bpe.model", NULL, open_model},
    {"qwen.tiktoken", NULL, open_model},        {"tiktoken.model", NULL, open_model},
    {"cl100k_base.tiktoken", NULL, open_model}, {"o200k_base.tiktoken", NULL, open_model},
    {"vocab.json", "merges.txt", open_merges},  {"vocab.txt", NULL, open_wordpiece},
};

size_t textfiles_names(const char *out[TEXTFILES_MAX_NAMES])
{
    size_t n = 0;

    _Static_assert(2 * sizeof tokenizer_files / sizeof tokenizer_files[0] <= TEXTFILES_MAX_NAMES,
                   "room for each and what lies beside it");
    for (size_t i = 0; i < sizeof tokenizer_files / sizeof tokenizer_files[0]; i++) {
        out[n++] = tokenizer_files[i].name;
        if (tokenizer_files[i].beside) out[n++] = tokenizer_files[i].beside;
    }
    return n;
}

/* Mapped, a large file costs no memory of its own.  One that is not there is no error. */
static cairn_status map_file(const char *dir, const char *name, buf *path, file_map *out,
                             bool *found, cairn_diag *dg)
{
    *found = false;
    if (!path_join(path, dir, name)) return diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
    if (!file_exists(path->ptr)) return CAIRN_OK;
    TRY(file_map_open(path->ptr, out, dg));
    *found = true;
    if (out->size <= MAX_TOKENIZER) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_LIMIT, "%s: found %zu bytes; expected at most %d", path->ptr,
                    out->size, MAX_TOKENIZER);
}

static cairn_str view(const file_map *m)
{
    return (cairn_str){(const char *)m->ptr, m->size};
}

static cairn_status open_file(const tokenizer_file *f, const char *dir, cairn_str config, tok **out,
                              bool *found, cairn_diag *dg)
{
    cairn_status st;
    file_map text = {NULL, 0}, beside = {NULL, 0};
    buf where;

    buf_init(&where, MEM_TEXT);
    if (f->beside) {
        TRY_GOTO(map_file(dir, f->beside, &where, &beside, found, dg), out);
        if (!*found) goto out;
    }
    TRY_GOTO(map_file(dir, f->name, &where, &text, found, dg), out);
    if (!*found) goto out;
    st = f->open(f, view(&text), view(&beside), config, where.ptr, out, dg);
out:
    file_map_close(&text);
    file_map_close(&beside);
    buf_deinit(&where);
    return st;
}

/* The tokens that are read are texts, or objects that hold one. */
static cairn_status check_tokens(const char *dir, json_val config, cairn_diag *dg)
{
    static const char *const key[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    if (json_typeof(config) != JSON_OBJ)
        return diag_set(dg, CAIRN_E_CORRUPT, "%s/%s: found %s; expected an object", dir, token_file,
                        json_type_name(json_typeof(config)));
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        const json_val v = json_get(config, key[i]);
        const json_type type = json_typeof(v);
        const cairn_str text = json_str(v);
        double number;
        if (type == JSON_OBJ) {
            const json_type inner = json_typeof(json_get(v, "content"));
            if (inner == JSON_STR) continue;
            return diag_set(dg, CAIRN_E_CORRUPT, "%s/%s: %s.content: found %s; expected a text",
                            dir, token_file, key[i], json_type_name(inner));
        }
        if (type == JSON_NONE || type == JSON_NULL ||
            (type == JSON_STR && !pyjson_nonfinite(text, &number)))
            continue;
        return diag_set(dg, CAIRN_E_CORRUPT, "%s/%s: %s: found %s; expected a text", dir,
                        token_file, key[i], type == JSON_STR ? text.ptr + 1 : json_type_name(type));
    }
    return CAIRN_OK;
}

/* The reference makes a new token of a name that is none, with an id that the model lacks: a prompt would
   begin with it, or an answer never end. */
static cairn_status check_named(const char *dir, const tok *t, json_val config, cairn_diag *dg)
{
    static const char *const key[] = {"bos_token", "eos_token"};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        const json_val v = json_get(config, key[i]);
        const cairn_str s =
            json_typeof(v) == JSON_OBJ ? json_str(json_get(v, "content")) : json_str(v);
        if (s.len && tok_find(t, s) < 0)
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s/%s: %s: found \"%.*s\"; expected a token of the vocabulary", dir,
                            token_file, key[i], STR_ARG(s));
    }
    return CAIRN_OK;
}

static cairn_status open_tokenizer(const char *dir, cairn_str config, tok **out, cairn_diag *dg)
{
    const size_t n = sizeof tokenizer_files / sizeof tokenizer_files[0];
    bool found = false;

    for (size_t i = 0; i < n && !found; i++)
        TRY(open_file(&tokenizer_files[i], dir, config, out, &found, dg));
    if (found) return CAIRN_OK;
    return diag_set(
        dg, CAIRN_E_NOTFOUND,
        "%s: expected tokenizer.json, tokenizer.model, a tiktoken file, vocab.json with "
        "merges.txt or vocab.txt, found none",
        dir);
}

static cairn_status open_dir(const char *dir, textfiles *t, cairn_diag *dg)
{
    json_doc *config = NULL;
    cairn_status st;
    bool found;
    buf text;

    buf_init(&text, MEM_TEXT);
    TRY_GOTO(chatfile_read(dir, token_file, CHATFILE_MAX_CONFIG, true, &text, &found, dg), out);
    if (found) {
        st = json_parse(buf_view(&text), &config, dg);
        if (st != CAIRN_OK) {
            (void)diag_prefix(dg, st, "%s/%s", dir, token_file);
            goto out;
        }
        TRY_GOTO(check_tokens(dir, json_root(config), dg), out);
    }
    TRY_GOTO(open_tokenizer(dir, buf_view(&text), &t->tok, dg), out);
    if (config) TRY_GOTO(check_named(dir, t->tok, json_root(config), dg), out);
    TRY_GOTO(genconfig_read(dir, "config.json", t->tok, dg), out);
    TRY_GOTO(genconfig_read(dir, "generation_config.json", t->tok, dg), out);
    st = chatfile_from_dir(dir, config ? json_root(config) : (json_val){0}, t, dg);
out:
    if (config) json_free(config);
    buf_deinit(&text);
    return st;
}

static cairn_status open_gguf(const char *path, textfiles *t, cairn_diag *dg)
{
    cairn_status st;
    source *s = NULL;
    meta m;

    TRY(gguf_open(path, &s, dg));
    if (!meta_get(&s->meta, "tokenizer.ggml.tokens", &m)) {
        st = diag_set(dg, CAIRN_E_NOTFOUND,
                      "%s: tokenizer.ggml.tokens: expected a vocabulary, found none", path);
        goto out;
    }
    TRY_GOTO(tok_open_gguf(&s->meta, path, &t->tok, dg), out);
    st = chatfile_from_gguf(path, &s->meta, t, dg);
out:
    source_close(s);
    return st;
}

cairn_status textfiles_open(const char *path, textfiles *out, cairn_diag *dg)
{
    textfiles t = {.tok = NULL};
    cairn_status st;

    if (file_is_dir(path))
        st = open_dir(path, &t, dg);
    else if (file_exists(path))
        st = open_gguf(path, &t, dg);
    else
        st = diag_set(dg, CAIRN_E_NOTFOUND, "%s: no such file or directory", path);
    if (st != CAIRN_OK) {
        textfiles_close(&t);
        return st;
    }
    *out = t;
    return CAIRN_OK;
}

cairn_status textfiles_has_template(const char *path, bool *out, cairn_diag *dg)
{
    source *s = NULL;
    if (file_is_dir(path)) return chatfile_in_dir(path, out, dg);
    TRY(gguf_open(path, &s, dg));
    *out = meta_str(&s->meta, "tokenizer.chat_template", STR_LIT("")).len > 0;
    source_close(s);
    return CAIRN_OK;
}

void textfiles_close(textfiles *t)
{
    if (!t) return;
    if (t->chat) chat_close(t->chat);
    if (t->tok) tok_close(t->tok);
    *t = (textfiles){.tok = NULL};
}
