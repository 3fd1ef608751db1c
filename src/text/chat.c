/* A chat template with its fixed variables: what a model's tokenizer configuration says, rendered
   for a conversation.  The language is jinja.c's. */
#include "text/chat.h"

#include "base/diag.h"
#include "base/str.h"
#include "text/jinja.h"

enum { MAX_VARS = 256 }; /* special tokens and keyword arguments together */

struct chat {
    jinja *t;
    json_doc *extra;
    char *text; /* bos, then eos */
    size_t n_bos, n_eos;
    bool has_bos, has_eos;
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
    TRY_GOTO(jinja_compile(template_text, where, &c->t, dg), out);
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
    json_free(c->extra);
    mem_free(c->text);
    mem_free(c);
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
        (jinja_var){.name = STR_LIT("add_generation_prompt"), .flag = add_generation_prompt};
    add_members(kwargs, vars, &n);
    return jinja_render(c->t, vars, n, out, dg);
}
