/* Everything about text beside a model's weights: opens the tokenizer from a directory or a GGUF,
   gathers the ids that end generation, and leaves the chat template to chatfile.c.  Invariant: what
   textfiles_open gives out holds no reference to the files. */
#include "format/textfiles.h"

#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "format/chatfile.h"
#include "format/format.h"
#include "format/hfconfig.h"

enum {
    MAX_TOKENIZER = 256 << 20,       /* Gemma's tokenizer.json has 33 MB */
    MAX_TOKENIZER_CONFIG = 16 << 20, /* with every added token spelt out: under 2 MB */
};

/* Ids beyond the vocabulary can never be sampled: configs of cut-down models keep some. */
static cairn_status add_eos(tok *t, const meta *m)
{
    if (m->type != META_INT || m->u.i < 0 || m->u.i >= tok_vocab(t)) return CAIRN_OK;
    return tok_add_eos(t, (int32_t)m->u.i);
}

/* `eos_token_id` of one file: a number or a list. */
static cairn_status add_eos_of(tok *t, const char *dir, const char *name, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    hfconfig *c = NULL;
    meta m, e;
    buf path;

    buf_init(&path, MEM_TEXT);
    if (!path_join(&path, dir, name)) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
        goto out;
    }
    if (!file_exists(path.ptr)) goto out;
    TRY_GOTO(hfconfig_open(path.ptr, &c, dg), out);
    const meta_view v = hfconfig_meta(c);
    if (!meta_get(&v, "eos_token_id", &m)) goto out;
    if (m.type != META_ARR) {
        st = add_eos(t, &m);
        goto out;
    }
    for (size_t i = 0; i < m.u.n && st == CAIRN_OK; i++)
        if (meta_at(&v, &m, i, &e)) st = add_eos(t, &e);
out:
    hfconfig_close(c);
    buf_deinit(&path);
    return st;
}

static cairn_status open_tokenizer(const char *dir, cairn_str config, tok **out, cairn_diag *dg)
{
    cairn_status st;
    bool found;
    buf text, where;

    buf_init(&text, MEM_TEXT);
    buf_init(&where, MEM_TEXT);
    TRY_GOTO(chatfile_read(dir, "tokenizer.json", MAX_TOKENIZER, false, &text, &found, dg), out);
    if (!found) {
        st = diag_set(dg, CAIRN_E_NOTFOUND, "%s: expected tokenizer.json, found none", dir);
        goto out;
    }
    if (!path_join(&where, dir, "tokenizer.json")) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
        goto out;
    }
    st = tok_open_hf(buf_view(&text), config, where.ptr, out, dg);
out:
    buf_deinit(&text);
    buf_deinit(&where);
    return st;
}

static cairn_status open_dir(const char *dir, textfiles *t, cairn_diag *dg)
{
    json_doc *config = NULL;
    cairn_status st;
    bool found;
    buf text;

    buf_init(&text, MEM_TEXT);
    TRY_GOTO(
        chatfile_read(dir, "tokenizer_config.json", MAX_TOKENIZER_CONFIG, true, &text, &found, dg),
        out);
    if (found) {
        st = json_parse(buf_view(&text), &config, dg);
        if (st != CAIRN_OK) {
            (void)diag_prefix(dg, st, "%s/tokenizer_config.json", dir);
            goto out;
        }
    }
    TRY_GOTO(open_tokenizer(dir, buf_view(&text), &t->tok, dg), out);
    TRY_GOTO(add_eos_of(t->tok, dir, "config.json", dg), out);
    TRY_GOTO(add_eos_of(t->tok, dir, "generation_config.json", dg), out);
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

void textfiles_close(textfiles *t)
{
    if (!t) return;
    if (t->chat) chat_close(t->chat);
    if (t->tok) tok_close(t->tok);
    *t = (textfiles){.tok = NULL};
}
