/* The public face of tokenizers and templates: checks arguments, converts, nothing clever. */
#include "api/api_text.h"

#include "base/diag.h"
#include "base/str.h"
#include "text/detok.h"
#include "text/jinja_run.h"

_Static_assert((int)CAIRN_MAX_PROMPT_BYTES == (int)JINJA_MAX_OUTPUT, "one limit");

cairn_status cairn_text_open(const char *path, cairn_text **out, cairn_diag *dg)
{
    if (!path || !out) return diag_set(dg, CAIRN_E_ARG, "cairn_text_open: path or out is NULL");
    cairn_text *t = mem_calloc(1, sizeof *t, MEM_TEXT);
    if (!t) return diag_set(dg, CAIRN_E_NOMEM, "text");
    const cairn_status st = textfiles_open(path, &t->f, dg);
    if (st != CAIRN_OK) {
        mem_free(t);
        return st;
    }
    *out = t;
    return CAIRN_OK;
}

void cairn_text_close(cairn_text *t)
{
    if (!t) return;
    textfiles_close(&t->f);
    mem_free(t);
}

cairn_status text_tokenize_some(const cairn_text *t, cairn_str s, uint32_t flags, size_t enough,
                                cairn_ids *out, cairn_diag *dg)
{
    uint32_t f = 0;
    cairn_bytes bytes;
    buf ids;
    if (flags & CAIRN_TOK_ADD_SPECIAL) f |= TOK_ADD_SPECIAL;
    if (flags & CAIRN_TOK_PARSE_SPECIAL) f |= TOK_PARSE_SPECIAL;
    buf_init(&ids, MEM_TEXT);
    cairn_status st = tok_encode_some(t->f.tok, s, f, enough, &ids, dg);
    const size_t n = ids.len / sizeof(int32_t);
    if (st == CAIRN_OK) st = buf_take(&ids, &bytes);
    buf_deinit(&ids);
    if (st != CAIRN_OK) return st == CAIRN_E_NOMEM ? diag_set(dg, st, "token ids") : st;
    out->ptr = (int32_t *)(void *)bytes.ptr;
    out->len = n;
    return CAIRN_OK;
}

cairn_status cairn_text_tokenize(const cairn_text *t, cairn_str s, uint32_t flags, cairn_ids *out,
                                 cairn_diag *dg)
{
    return text_tokenize_some(t, s, flags, SIZE_MAX, out, dg);
}

cairn_status cairn_text_detokenize(const cairn_text *t, const int32_t *ids, size_t n,
                                   bool keep_special, cairn_bytes *out, cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_TEXT);
    cairn_status st = tok_decode(t->f.tok, ids, n, keep_special, &b, dg);
    if (st == CAIRN_OK) st = buf_take(&b, out);
    buf_deinit(&b);
    return st;
}

cairn_status cairn_text_spans(const cairn_text *t, const int32_t *ids, size_t n, bool keep_special,
                              size_t *spans, cairn_diag *dg)
{
    return tok_spans(t->f.tok, ids, n, keep_special, spans, dg);
}

void cairn_render_opts_init(cairn_render_opts *o)
{
    *o = (cairn_render_opts){.struct_size = sizeof *o};
}

/* The three JSON arguments of a render. */
typedef struct render_args {
    json_doc *messages, *tools, *kwargs;
} render_args;

static cairn_status parse_arg(cairn_str text, json_type want, const char *what, json_doc **out,
                              cairn_diag *dg)
{
    *out = NULL;
    if (text.len == 0) return CAIRN_OK;
    const cairn_status st = json_parse_any(text, out, dg);
    if (st != CAIRN_OK) return diag_prefix(dg, st, "%s", what);
    const json_type found = json_typeof(json_root(*out));
    if (found == want) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG, "%s: found %s; expected %s", what, json_type_name(found),
                    json_type_name(want));
}

static json_val root_of(const json_doc *d)
{
    return d ? json_root(d) : (json_val){0};
}

cairn_status cairn_text_check_template(const cairn_text *t, cairn_diag *dg)
{
    if (!t) return diag_set(dg, CAIRN_E_NOTFOUND, "the model has no tokenizer");
    if (t->f.chat) return CAIRN_OK;
    if (t->f.chat_diag.status != CAIRN_OK)
        return diag_set(dg, t->f.chat_diag.status, "%s", t->f.chat_diag.message);
    return diag_set(dg, CAIRN_E_NOTFOUND, "the model has no chat template");
}

static cairn_status render_with(const cairn_text *t, const cairn_render_opts *o,
                                const render_args *a, buf *out, buf *spans, cairn_diag *dg)
{
    cairn_status st;
    chat *own = NULL;
    const chat *c = t ? t->f.chat : NULL;
    chat_how how = {.add_generation_prompt = !o->no_generation_prompt,
                    .max_steps = o->max_steps,
                    .spans = spans};
    if (o->template_text.len && c && chat_has_named(c, o->template_text)) {
        how.name = o->template_text;
    } else if (o->template_text.len) {
        TRY(chat_open(o->template_text, STR_LIT(""), STR_LIT(""), (json_val){0}, "template", &own,
                      dg));
        c = own;
    }
    if (!c) return cairn_text_check_template(t, dg);
    st = chat_render_as(c, &how, root_of(a->messages), root_of(a->tools), root_of(a->kwargs), out,
                        dg);
    chat_close(own);
    return st;
}

static cairn_status render_into(const cairn_text *t, const cairn_render_opts *o, buf *out,
                                buf *spans, cairn_diag *dg)
{
    cairn_status st;
    render_args a = {0};
    if (o->struct_size != sizeof *o)
        return diag_set(dg, CAIRN_E_ARG, "render options not initialised");
    if (o->messages.len == 0) return diag_set(dg, CAIRN_E_ARG, "messages: missing");
    TRY_GOTO(parse_arg(o->messages, JSON_ARR, "messages", &a.messages, dg), out);
    TRY_GOTO(parse_arg(o->tools, JSON_ARR, "tools", &a.tools, dg), out);
    TRY_GOTO(parse_arg(o->kwargs, JSON_OBJ, "kwargs", &a.kwargs, dg), out);
    st = render_with(t, o, &a, out, spans, dg);
out:
    json_free(a.messages);
    json_free(a.tools);
    json_free(a.kwargs);
    return st;
}

cairn_status cairn_text_render(const cairn_text *t, const cairn_render_opts *o, cairn_bytes *out,
                               cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_TEXT);
    cairn_status st = render_into(t, o, &b, NULL, dg);
    if (st == CAIRN_OK) st = buf_take(&b, out);
    buf_deinit(&b);
    return st;
}

cairn_status cairn_text_render_spans(const cairn_text *t, const cairn_render_opts *o,
                                     cairn_bytes *out, cairn_bytes *spans, cairn_diag *dg)
{
    buf b, s;
    buf_init(&b, MEM_TEXT);
    buf_init(&s, MEM_TEXT);
    cairn_status st = render_into(t, o, &b, &s, dg);
    if (st == CAIRN_OK) st = buf_take(&s, spans);
    if (st == CAIRN_OK && (st = buf_take(&b, out)) != CAIRN_OK) cairn_bytes_free(spans);
    buf_deinit(&b);
    buf_deinit(&s);
    return st;
}

/* A template writes BOS itself more often than not: then the encoder must not add a second one. */
static uint32_t prompt_flags(const cairn_text *t, cairn_str text)
{
    const tok_special s = tok_specials(t->f.tok);
    if (!s.add_bos || s.bos < 0) return CAIRN_TOK_PARSE_SPECIAL;
    cairn_bytes bos = {0};
    const cairn_status st = cairn_text_detokenize(t, &s.bos, 1, true, &bos, NULL);
    const bool has = st == CAIRN_OK && bos.len && str_starts(text, (cairn_str){bos.ptr, bos.len});
    cairn_bytes_free(&bos);
    return CAIRN_TOK_PARSE_SPECIAL | (has ? 0 : CAIRN_TOK_ADD_SPECIAL);
}

cairn_status cairn_text_prompt(const cairn_text *t, const cairn_render_opts *o, cairn_ids *out,
                               cairn_diag *dg)
{
    buf b;
    if (!t) return diag_set(dg, CAIRN_E_ARG, "the model has no tokenizer");
    buf_init(&b, MEM_TEXT);
    cairn_status st = render_into(t, o, &b, NULL, dg);
    if (st == CAIRN_OK) st = cairn_text_encode_prompt(t, buf_view(&b), out, dg);
    buf_deinit(&b);
    return st;
}

cairn_status cairn_text_encode_prompt(const cairn_text *t, cairn_str text, cairn_ids *out,
                                      cairn_diag *dg)
{
    if (!t) return diag_set(dg, CAIRN_E_ARG, "the model has no tokenizer");
    return cairn_text_tokenize(t, text, prompt_flags(t, text), out, dg);
}

size_t cairn_text_least_ids(const cairn_text *t, cairn_str text)
{
    return t ? tok_least_ids(t->f.tok, text) : 0;
}

bool cairn_text_has_template(const cairn_text *t)
{
    return t && t->f.chat;
}

cairn_str cairn_text_template(const cairn_text *t, bool tools)
{
    return cairn_text_has_template(t) ? chat_source(t->f.chat, tools) : (cairn_str){0};
}

int32_t cairn_text_vocab(const cairn_text *t)
{
    return tok_vocab(t->f.tok);
}

bool cairn_text_is_eos(const cairn_text *t, int32_t id)
{
    return tok_is_eos(t->f.tok, id);
}

cairn_str cairn_text_piece(const cairn_text *t, int32_t id)
{
    return tok_piece(t->f.tok, id);
}

size_t cairn_text_longest_piece(const cairn_text *t)
{
    return tok_longest_piece(t->f.tok);
}

struct cairn_stream {
    detok *d;
};

cairn_status cairn_stream_new(const cairn_text *t, bool keep_special, cairn_stream **out)
{
    cairn_stream *s = mem_calloc(1, sizeof *s, MEM_TEXT);
    if (!s) return CAIRN_E_NOMEM;
    const cairn_status st = detok_new(t->f.tok, keep_special, &s->d);
    if (st != CAIRN_OK) {
        mem_free(s);
        return st;
    }
    *out = s;
    return CAIRN_OK;
}

cairn_status cairn_stream_feed(cairn_stream *s, int32_t id, cairn_str *text)
{
    return detok_feed(s->d, id, text);
}

cairn_status cairn_stream_end(cairn_stream *s, cairn_str *text)
{
    return detok_end(s->d, text);
}

void cairn_stream_free(cairn_stream *s)
{
    if (!s) return;
    detok_free(s->d);
    mem_free(s);
}
