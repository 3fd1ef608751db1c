/* Finds the chat template of a checkpoint and gives it the texts of the special tokens.  Where they
   lie and which one wins is transformers' rule; compiling and rendering are text/chat.h's. */
#include "format/chatfile.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "format/pyjson.h"

/* The longest public template has some 30 KB. */
enum { MAX_TEMPLATE = 4 << 20 };

cairn_status chatfile_read(const char *dir, const char *name, size_t max, bool json, buf *text,
                           bool *found, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    buf path, raw;

    *found = false;
    buf_init(&path, MEM_TEXT);
    buf_init(&raw, MEM_TEXT);
    if (!path_join(&path, dir, name)) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
        goto out;
    }
    if (!file_exists(path.ptr)) goto out;
    TRY_GOTO(file_read(path.ptr, max, json ? &raw : text, dg), out);
    if (json) pyjson_to_json(buf_view(&raw), text);
    if (buf_status(text) != CAIRN_OK) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s/%s: no memory to read it", dir, name);
        goto out;
    }
    *found = true;
out:
    buf_deinit(&path);
    buf_deinit(&raw);
    return st;
}

/* A token is written as a string, or as an object with its content. */
static cairn_str token_text(json_val v)
{
    return json_typeof(v) == JSON_OBJ ? json_str(json_get(v, "content")) : json_str(v);
}

static void put_token(json_writer *w, cairn_str key, json_val v)
{
    const cairn_str text = token_text(v);
    char name[64];
    if (!text.len || key.len >= sizeof name) return;
    memcpy(name, key.ptr, key.len);
    name[key.len] = 0;
    json_w_kstr(w, name, text);
}

/* Every other token that the configuration names, by its key: pad_token, image_token, … */
static void other_tokens(json_val config, buf *out)
{
    json_writer w = json_write(out);
    json_iter it = json_each(config);
    cairn_str key;
    json_val v;

    json_w_obj(&w);
    while (json_typeof(config) == JSON_OBJ && json_next_member(&it, &key, &v))
        if (str_ends(key, STR_LIT("_token")) && !str_is(key, "bos_token") &&
            !str_is(key, "eos_token"))
            put_token(&w, key, v);
    v = json_get(config, "extra_special_tokens");
    it = json_each(v);
    if (json_typeof(v) == JSON_OBJ)
        while (json_next_member(&it, &key, &v)) put_token(&w, key, v);
    json_w_end_obj(&w);
}

/* A template that does not compile must not keep the tokenizer from working. */
static cairn_status compile(cairn_str text, cairn_str bos, cairn_str eos, json_val extra,
                            const char *where, textfiles *t, cairn_diag *dg)
{
    const cairn_status st = chat_open(text, bos, eos, extra, where, &t->chat, &t->chat_diag);
    if (st == CAIRN_E_NOMEM) return diag_set(dg, st, "%s", t->chat_diag.message);
    if (st != CAIRN_OK) {
        t->chat = NULL;
        t->chat_diag.status = st;
    }
    return CAIRN_OK;
}

/* The others beside "default", which `pick` gives. */
static cairn_status add_others(chat *c, json_val v, const char *where, cairn_diag *dg)
{
    json_iter it = json_each(v);
    const bool object = json_typeof(v) == JSON_OBJ;
    cairn_status st = CAIRN_OK;
    cairn_str name;
    json_val e;

    if (!object && json_typeof(v) != JSON_ARR) return CAIRN_OK;
    while (st == CAIRN_OK && (object ? json_next_member(&it, &name, &e) : json_next(&it, &e))) {
        if (!object) name = json_str(json_get(e, "name"));
        const cairn_str text = json_str(object ? e : json_get(e, "template"));
        if (text.len && name.len && !str_is(name, "default") && !chat_has_named(c, name))
            st = chat_add_named(c, name, text, where, dg);
    }
    return st;
}

/* additional_chat_templates/NAME.jinja, as the reference saves them. */
static cairn_status add_folder(chat *c, const char *dir, cairn_diag *dg)
{
    static const char *const names[] = {"tool_use", "rag"}; /* the only ones that are known */
    char file[80];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool found;
        buf text;
        (void)snprintf(file, sizeof file, "additional_chat_templates/%s.jinja", names[i]);
        buf_init(&text, MEM_TEXT);
        cairn_status st = chatfile_read(dir, file, MAX_TEMPLATE, false, &text, &found, dg);
        if (st == CAIRN_OK && found && !chat_has_named(c, str_of(names[i])))
            st = chat_add_named(c, str_of(names[i]), buf_view(&text), file, dg);
        buf_deinit(&text);
        if (st != CAIRN_OK) return st;
    }
    return CAIRN_OK;
}

/* A named template that does not compile is the whole chat's fault: which one a render takes must not
   depend on what happened to compile. */
static cairn_status named_done(cairn_status st, textfiles *t, cairn_diag *dg)
{
    if (st == CAIRN_OK) return st;
    chat_close(t->chat);
    t->chat = NULL;
    t->chat_diag.status = st;
    return st == CAIRN_E_NOMEM ? diag_set(dg, st, "%s", t->chat_diag.message) : CAIRN_OK;
}

/* One template, or several by name: as a list of {name, template} or as an object. */
static cairn_str pick(json_val v)
{
    json_iter it = json_each(v);
    json_val e;

    if (json_typeof(v) == JSON_OBJ) return json_str(json_get(v, "default"));
    if (json_typeof(v) != JSON_ARR) return json_str(v);
    while (json_next(&it, &e))
        if (str_is(json_str(json_get(e, "name")), "default"))
            return json_str(json_get(e, "template"));
    return (cairn_str){NULL, 0};
}

/* The template's text, which lives in `text`, in `doc` or in the configuration; empty: none. */
static cairn_status find_template(const char *dir, json_val config, buf *text, json_doc **doc,
                                  cairn_str *out, const char **name, cairn_diag *dg)
{
    bool found;

    *name = "chat_template.jinja";
    TRY(chatfile_read(dir, *name, MAX_TEMPLATE, false, text, &found, dg));
    *out = buf_view(text);
    if (found) return CAIRN_OK;
    *name = "tokenizer_config.json";
    *out = pick(json_get(config, "chat_template"));
    if (out->len) return CAIRN_OK;
    *name = "chat_template.json"; /* how processors once kept it */
    TRY(chatfile_read(dir, *name, MAX_TEMPLATE, true, text, &found, dg));
    if (!found) return CAIRN_OK;
    const cairn_status st = json_parse(buf_view(text), doc, dg);
    if (st != CAIRN_OK) return diag_prefix(dg, st, "%s/%s", dir, *name);
    *out = pick(json_get(json_root(*doc), "chat_template"));
    return CAIRN_OK;
}

cairn_status chatfile_from_dir(const char *dir, json_val config, textfiles *t, cairn_diag *dg)
{
    cairn_str template_text = {NULL, 0};
    json_doc *doc = NULL, *extra = NULL;
    json_val others = {0};
    const char *name = NULL;
    cairn_status st;
    buf text, tokens, where;

    buf_init(&text, MEM_TEXT);
    buf_init(&tokens, MEM_TEXT);
    buf_init(&where, MEM_TEXT);
    TRY_GOTO(find_template(dir, config, &text, &doc, &template_text, &name, dg), out);
    if (!str_ends(str_of(name), STR_LIT(".jinja")))
        others = json_get(doc ? json_root(doc) : config, "chat_template");
    if (!template_text.len && json_size(others) == 0) goto out;
    if (!template_text.len) template_text.ptr = NULL;
    other_tokens(config, &tokens);
    path_join(&where, dir, name);
    if (buf_status(&tokens) != CAIRN_OK || buf_status(&where) != CAIRN_OK) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: chat template", dir);
        goto out;
    }
    TRY_GOTO(json_parse(buf_view(&tokens), &extra, dg), out);
    st = compile(template_text, token_text(json_get(config, "bos_token")),
                 token_text(json_get(config, "eos_token")), json_root(extra), where.ptr, t, dg);
    if (st != CAIRN_OK || !t->chat) goto out;
    st = add_others(t->chat, others, where.ptr, &t->chat_diag);
    if (st == CAIRN_OK) st = add_folder(t->chat, dir, &t->chat_diag);
    st = named_done(st, t, dg);
out:
    if (doc) json_free(doc);
    if (extra) json_free(extra);
    buf_deinit(&text);
    buf_deinit(&tokens);
    buf_deinit(&where);
    return st;
}

cairn_status chatfile_in_dir(const char *dir, bool *out, cairn_diag *dg)
{
    cairn_str template_text = {NULL, 0};
    json_doc *config = NULL, *doc = NULL;
    const char *name = "tokenizer_config.json";
    cairn_status st;
    bool found;
    buf raw, text;

    buf_init(&raw, MEM_TEXT);
    buf_init(&text, MEM_TEXT);
    TRY_GOTO(chatfile_read(dir, name, CHATFILE_MAX_CONFIG, true, &raw, &found, dg), out);
    if (found) st = json_parse(buf_view(&raw), &config, dg);
    if (st != CAIRN_OK) {
        (void)diag_prefix(dg, st, "%s/%s", dir, name);
        goto out;
    }
    st = find_template(dir, config ? json_root(config) : (json_val){0}, &text, &doc, &template_text,
                       &name, dg);
    if (st == CAIRN_OK) *out = template_text.len > 0;
out:
    json_free(config);
    json_free(doc);
    buf_deinit(&raw);
    buf_deinit(&text);
    return st;
}

/* The piece as the file spells it; empty for no id. */
static cairn_str gguf_piece(const meta_view *v, int32_t id)
{
    meta list, e;
    if (id < 0 || !meta_get(v, "tokenizer.ggml.tokens", &list) || list.type != META_ARR ||
        !meta_at(v, &list, (size_t)id, &e) || e.type != META_STR)
        return (cairn_str){NULL, 0};
    return e.u.s;
}

static void put_piece(json_writer *w, const char *key, cairn_str piece)
{
    if (piece.len) json_w_kstr(w, key, piece);
}

cairn_status chatfile_from_gguf(const char *path, const meta_view *v, textfiles *t, cairn_diag *dg)
{
    const cairn_str text = meta_str(v, "tokenizer.chat_template", (cairn_str){NULL, 0});
    const tok_special sp = tok_specials(t->tok);
    json_doc *extra = NULL;
    cairn_status st = CAIRN_OK;
    buf tokens;

    if (!text.len) return CAIRN_OK;
    buf_init(&tokens, MEM_TEXT);
    json_writer w = json_write(&tokens);
    json_w_obj(&w);
    put_piece(&w, "pad_token", gguf_piece(v, sp.pad));
    put_piece(&w, "unk_token", gguf_piece(v, sp.unk));
    json_w_end_obj(&w);
    TRY_GOTO(buf_status(&tokens), out);
    TRY_GOTO(json_parse(buf_view(&tokens), &extra, dg), out);
    st = compile(text, gguf_piece(v, sp.bos), gguf_piece(v, sp.eos), json_root(extra), path, t, dg);
    for (size_t i = 0; st == CAIRN_OK && t->chat && i < 2; i++) {
        const cairn_str more =
            meta_str(v, i ? "tokenizer.chat_template.rag" : "tokenizer.chat_template.tool_use",
                     (cairn_str){NULL, 0});
        if (!more.len) continue;
        st = chat_add_named(t->chat, i ? STR_LIT("rag") : STR_LIT("tool_use"), more, path,
                            &t->chat_diag);
        st = named_done(st, t, dg);
    }
out:
    if (extra) json_free(extra);
    buf_deinit(&tokens);
    return st;
}
