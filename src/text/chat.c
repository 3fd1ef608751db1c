/* A chat template with its fixed variables: what a model's tokenizer configuration says, rendered
   for a conversation.  The language is jinja.c's. */
#include "text/chat.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/str.h"
#include "text/jinja.h"

enum {
    MAX_VARS = 256, /* special tokens and keyword arguments together */
    MAX_NAMED = 16  /* tool_use, rag: no public model has more than three */
};

typedef struct named {
    char *name;
    jinja *t;
    cairn_bytes source;
} named;

struct chat {
    jinja *t; /* NULL: only named ones */
    cairn_bytes source;
    named more[MAX_NAMED];
    size_t n_more;
    json_doc *extra;
    char *text; /* bos, then eos */
    size_t n_bos, n_eos;
    bool has_bos, has_eos;
    char sha[65];
};

/* A copy of a JSON value that lives as long as the chat. */
static cairn_status copy_json(json_val v, json_doc **out, cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_TEXT);
    json_writer w = json_write(&b);
    json_w_val(&w, v);
    cairn_status st = buf_status(&b);
    if (st == CAIRN_OK) st = json_parse(buf_view(&b), out, dg);
    buf_deinit(&b);
    return st;
}

static cairn_status keep_source(cairn_str text, cairn_bytes *out, cairn_diag *dg)
{
    char *copy = mem_alloc(text.len + 1, MEM_TEXT);

    if (!copy) return diag_set(dg, CAIRN_E_NOMEM, "a chat template");
    if (text.len) memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    *out = (cairn_bytes){copy, text.len};
    return CAIRN_OK;
}

static void hash_text(chat *c, cairn_str text)
{
    sha256 h;
    uint8_t digest[32];

    if (!text.ptr) return;
    while (text.len && strchr(" \t\r\n", text.ptr[text.len - 1]) && text.ptr[text.len - 1])
        text.len--;
    sha256_init(&h);
    sha256_add(&h, text.ptr, text.len);
    sha256_end(&h, digest);
    sha256_hex(digest, c->sha);
}

const char *chat_sha256(const chat *c)
{
    return c->sha;
}

cairn_status chat_open(cairn_str template_text, cairn_str bos, cairn_str eos, json_val extra,
                       const char *where, chat **out, cairn_diag *dg)
{
    chat *c = mem_calloc(1, sizeof *c, MEM_TEXT);
    cairn_status st = CAIRN_OK;

    if (!c) return diag_set(dg, CAIRN_E_NOMEM, "%s: a chat template", where);
    json_type type = json_typeof(extra);
    if (type != JSON_NONE && type != JSON_OBJ)
        st = diag_set(dg, CAIRN_E_ARG, "%s: variables must be an object, found %s", where,
                      json_type_name(type));
    if (st == CAIRN_OK && json_size(extra) > MAX_VARS / 2)
        st = diag_set(dg, CAIRN_E_LIMIT, "%s: more than %d variables", where, MAX_VARS / 2);
    if (st != CAIRN_OK) goto out;
    c->text = mem_alloc(bos.len + eos.len + 1, MEM_TEXT);
    if (!c->text) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: a chat template", where);
        goto out;
    }
    if (bos.len) memcpy(c->text, bos.ptr, bos.len);
    if (eos.len) memcpy(c->text + bos.len, eos.ptr, eos.len);
    c->n_bos = bos.len;
    c->n_eos = eos.len;
    c->has_bos = bos.ptr != NULL;
    c->has_eos = eos.ptr != NULL;
    if (type == JSON_OBJ) TRY_GOTO(copy_json(extra, &c->extra, dg), out);
    hash_text(c, template_text);
    if (template_text.ptr) {
        TRY_GOTO(keep_source(template_text, &c->source, dg), out);
        TRY_GOTO(jinja_compile(template_text, where, &c->t, dg), out);
    }
    *out = c;
    c = NULL;
out:
    chat_close(c);
    return st;
}

void chat_close(chat *c)
{
    if (!c) return;
    jinja_free(c->t);
    cairn_bytes_free(&c->source);
    for (size_t i = 0; i < c->n_more; i++) {
        jinja_free(c->more[i].t);
        mem_free(c->more[i].name);
        cairn_bytes_free(&c->more[i].source);
    }
    json_free(c->extra);
    mem_free(c->text);
    mem_free(c);
}

cairn_status chat_add_named(chat *c, cairn_str name, cairn_str template_text, const char *where,
                            cairn_diag *dg)
{
    named *to = &c->more[c->n_more];
    cairn_status st;

    if (c->n_more == MAX_NAMED)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: more than %d chat templates", where, MAX_NAMED);
    char *copy = mem_alloc(name.len + 1, MEM_TEXT);
    if (!copy) return diag_set(dg, CAIRN_E_NOMEM, "%s: a chat template", where);
    if (name.len) memcpy(copy, name.ptr, name.len);
    copy[name.len] = 0;
    st = keep_source(template_text, &to->source, dg);
    if (st == CAIRN_OK) st = jinja_compile(template_text, where, &to->t, dg);
    if (st != CAIRN_OK) {
        mem_free(copy);
        cairn_bytes_free(&to->source);
        return diag_prefix(dg, st, "chat template '%.*s'", STR_ARG(name));
    }
    to->name = copy;
    c->n_more++;
    return CAIRN_OK;
}

static const named *find_named(const chat *c, cairn_str name)
{
    for (size_t i = 0; i < c->n_more; i++)
        if (str_is(name, c->more[i].name)) return &c->more[i];
    return NULL;
}

bool chat_has_named(const chat *c, cairn_str name)
{
    return find_named(c, name) != NULL;
}

static const named *tool_template(const chat *c, bool tools)
{
    return tools ? find_named(c, STR_LIT("tool_use")) : NULL;
}

cairn_str chat_source(const chat *c, bool tools)
{
    const named *by_name = tool_template(c, tools);
    const cairn_bytes *s = by_name ? &by_name->source : &c->source;

    return (cairn_str){s->ptr, s->len};
}

static cairn_status choose(const chat *c, cairn_str name, bool tools, const jinja **out,
                           cairn_diag *dg)
{
    const named *by_name = name.len ? find_named(c, name) : tool_template(c, tools);
    char list[200];
    size_t n = 0;

    *out = by_name ? by_name->t : name.len ? NULL : c->t;
    if (*out) return CAIRN_OK;
    list[0] = 0;
    for (size_t i = 0; i < c->n_more && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", c->more[i].name);
    if (name.len)
        return diag_set(dg, CAIRN_E_NOTFOUND, "no chat template named '%.*s'; there are: %s",
                        STR_ARG(name), list);
    return diag_set(dg, CAIRN_E_NOTFOUND, "several chat templates and none is the default: %s",
                    list);
}

static void add_members(json_val object, jinja_var *vars, size_t *n)
{
    json_iter it = json_each(object);
    cairn_str key;
    json_val v;
    while (json_typeof(object) == JSON_OBJ && json_next_member(&it, &key, &v))
        vars[(*n)++] = (jinja_var){.name = key, .value = v};
}

cairn_status chat_render(const chat *c, json_val messages, json_val tools, json_val kwargs,
                         bool add_generation_prompt, buf *out, cairn_diag *dg)
{
    const chat_how how = {.add_generation_prompt = add_generation_prompt};
    return chat_render_as(c, &how, messages, tools, kwargs, out, dg);
}

cairn_status chat_render_as(const chat *c, const chat_how *how, json_val messages, json_val tools,
                            json_val kwargs, buf *out, cairn_diag *dg)
{
    const jinja *t = NULL;
    jinja_var vars[MAX_VARS];
    size_t n = 0;

    if (json_typeof(messages) != JSON_ARR)
        return diag_set(dg, CAIRN_E_ARG, "messages must be an array, found %s",
                        json_type_name(json_typeof(messages)));
    if (json_typeof(kwargs) != JSON_NONE && json_typeof(kwargs) != JSON_OBJ)
        return diag_set(dg, CAIRN_E_ARG, "template arguments must be an object, found %s",
                        json_type_name(json_typeof(kwargs)));
    if (json_size(kwargs) > MAX_VARS / 2 - 8)
        return diag_set(dg, CAIRN_E_LIMIT, "more than %d template arguments", MAX_VARS / 2 - 8);
    if (c->has_bos)
        vars[n++] = (jinja_var){.name = STR_LIT("bos_token"), .text = {c->text, c->n_bos}};
    if (c->has_eos)
        vars[n++] =
            (jinja_var){.name = STR_LIT("eos_token"), .text = {c->text + c->n_bos, c->n_eos}};
    if (c->extra) add_members(json_root(c->extra), vars, &n);
    vars[n++] = (jinja_var){.name = STR_LIT("messages"), .value = messages};
    vars[n++] = (jinja_var){.name = STR_LIT("tools"), .value = tools, .is_none = true};
    vars[n++] = (jinja_var){.name = STR_LIT("documents"), .is_none = true};
    vars[n++] =
        (jinja_var){.name = STR_LIT("add_generation_prompt"), .flag = how->add_generation_prompt};
    add_members(kwargs, vars, &n);
    TRY(choose(c, how->name, json_typeof(tools) == JSON_ARR, &t, dg));
    return jinja_render(t, vars, n, how->max_steps, out, how->spans, dg);
}
