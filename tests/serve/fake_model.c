/* The test double's model: ids are bytes, and the "template" is lines of "role: content".  Words in the prompt direct it
   (fake_words.h). */
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "cairn/embed.h"
#include "cairn/fit.h"
#include "cairn/score.h"
#include "cairn/text.h"
#include "serve/fake_engine.h"
#include "serve/fake_words.h"

enum { RENDER_MS = 600000 }; /* at most: nobody hangs for ever */

void cairn_render_opts_init(cairn_render_opts *o)
{
    *o = (cairn_render_opts){.struct_size = sizeof *o};
}

cairn_status cairn_text_check_template(const cairn_text *t, cairn_diag *dg)
{
    return t ? CAIRN_OK : diag_set(dg, CAIRN_E_NOTFOUND, "no tokenizer");
}

static char pieces[FAKE_VOCAB];

cairn_str cairn_text_piece(const cairn_text *t, int32_t id)
{
    (void)t;
    return id >= 0 && id < FAKE_VOCAB ? (cairn_str){&pieces[id], 1} : (cairn_str){0};
}

size_t cairn_text_longest_piece(const cairn_text *t)
{
    (void)t;
    return 1;
}

static const char *the_template = "";
static char with_tools[256];

void fake_model_template(const char *text, bool takes_tools)
{
    const int n =
        snprintf(with_tools, sizeof with_tools, "%s%s", text, takes_tools ? "{{tools}}" : "");
    assert(n >= 0 && (size_t)n < sizeof with_tools);
    (void)n;
    the_template = text;
    for (int i = 0; i < FAKE_VOCAB; i++) pieces[i] = (char)i;
}

cairn_str cairn_text_template(const cairn_text *t, bool tools)
{
    (void)t;
    return str_of(tools ? with_tools : the_template);
}

static void end_prompt(buf *out)
{
    buf end;

    buf_init(&end, MEM_TEXT);
    if (out->len && word_quoted(out->ptr, "@ends=", &end))
        buf_str(out, buf_view(&end));
    else
        buf_puts(out, "assistant: ");
    if (buf_status(&end) != CAIRN_OK) out->no_memory = true;
    buf_deinit(&end);
}

static void put_after(const char *before, json_val v, buf *out)
{
    if (json_typeof(v) != JSON_STR) return;
    buf_puts(out, before);
    buf_str(out, json_str(v));
}

static void render_message(json_val m, buf *out)
{
    const json_val calls = json_get(m, "tool_calls");
    json_writer w;

    buf_str(out, json_str(json_get(m, "role")));
    put_after(" ", json_get(m, "tool_call_id"), out);
    put_after(" ", json_get(m, "name"), out);
    buf_puts(out, ": ");
    buf_str(out, json_str(json_get(m, "content")));
    if (json_typeof(calls) != JSON_NONE) {
        w = json_write(out);
        json_w_val(&w, calls);
    }
    put_after(" thought: ", json_get(m, "reasoning_content"), out);
    buf_byte(out, '\n');
}

static cairn_status render(const cairn_render_opts *o, buf *out, cairn_diag *dg)
{
    json_doc *doc = NULL;
    json_val m;
    json_iter it;

    TRY(json_parse(o->messages, &doc, dg));
    if (o->tools.len) buf_printf(out, "tools: %.*s\n", (int)o->tools.len, o->tools.ptr);
    if (o->kwargs.len) buf_printf(out, "kwargs: %.*s\n", (int)o->kwargs.len, o->kwargs.ptr);
    it = json_each(json_root(doc));
    while (json_next(&it, &m)) {
        render_message(m, out);
    }
    json_free(doc);
    if (out->len && memmem(out->ptr, out->len, "@template-error", 15))
        return diag_set(
            dg, CAIRN_E_ARG,
            "/srv/models of/fake/chat_template.jinja, line 3: use and/or: roles must alternate");
    if (o->max_steps && out->len && memmem(out->ptr, out->len, "@steps", 6))
        return diag_set(dg, CAIRN_E_LIMIT, "more than %u steps", (unsigned)o->max_steps);
    if (!o->no_generation_prompt) end_prompt(out);
    if (out->ptr && out->len < 10000) {
        char path[WORD_PATH_BYTES];
        word_path(out->ptr, "@render=", path);
        for (int ms = 0; ms < RENDER_MS && !word_is_there(path); ms += WORD_GATE_MS)
            poll(NULL, 0, WORD_GATE_MS);
    }
    return buf_status(out);
}

cairn_status cairn_text_render(const cairn_text *t, const cairn_render_opts *o, cairn_bytes *out,
                               cairn_diag *dg)
{
    buf b;
    cairn_status st;

    (void)t;
    buf_init(&b, MEM_TEXT);
    st = render(o, &b, dg);
    if (st == CAIRN_OK) st = buf_take(&b, out);
    buf_deinit(&b);
    return st;
}

cairn_status cairn_text_encode_prompt(const cairn_text *t, cairn_str text, cairn_ids *out,
                                      cairn_diag *dg)
{
    int32_t *ids = mem_alloc(text.len * sizeof *ids, MEM_TEXT);

    (void)t;
    for (size_t i = 0; ids && i < text.len; i++) ids[i] = (uint8_t)text.ptr[i];
    *out = (cairn_ids){ids, ids ? text.len : 0};
    return ids ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "ids");
}

cairn_status cairn_text_detokenize(const cairn_text *t, const int32_t *ids, size_t n,
                                   bool keep_special, cairn_bytes *out, cairn_diag *dg)
{
    buf b;

    (void)t, (void)keep_special, (void)dg;
    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; i < n; i++) buf_byte(&b, (char)ids[i]);
    return buf_take(&b, out);
}

cairn_status cairn_text_tokenize(const cairn_text *t, cairn_str s, uint32_t flags, cairn_ids *out,
                                 cairn_diag *dg)
{
    cairn_ids ids = {0};

    TRY(cairn_text_encode_prompt(t, s, &ids, dg));
    /* BOS is a "^", and special tokens are "<x>", one id. */
    *out = (cairn_ids){mem_alloc((ids.len + 1) * sizeof *ids.ptr, MEM_TEXT), 0};
    if (out->ptr && flags & CAIRN_TOK_ADD_SPECIAL) out->ptr[out->len++] = '^';
    for (size_t i = 0; out->ptr && i < ids.len; i++) {
        const bool special = i + 2 < ids.len && memcmp(s.ptr + i, "<x>", 3) == 0;
        out->ptr[out->len++] = special && flags & CAIRN_TOK_PARSE_SPECIAL ? 1 : ids.ptr[i];
        if (special && flags & CAIRN_TOK_PARSE_SPECIAL) i += 2;
    }
    cairn_ids_free(&ids);
    return out->ptr ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "ids");
}

struct cairn_stream {
    char held[4];
    size_t n_held;
};

cairn_status cairn_stream_new(const cairn_text *t, bool keep_special, cairn_stream **out)
{
    (void)t, (void)keep_special;
    *out = mem_calloc(1, sizeof **out, MEM_TEXT);
    return *out ? CAIRN_OK : CAIRN_E_NOMEM;
}

/* Well-formed text: a character is whole when its first byte says so. */
cairn_status cairn_stream_feed(cairn_stream *s, int32_t id, cairn_str *text)
{
    const uint8_t first = (uint8_t)(s->n_held ? s->held[0] : id);
    const size_t n = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

    s->held[s->n_held++] = (char)id;
    *text = (cairn_str){s->held, s->n_held == n ? n : 0};
    if (s->n_held == n) s->n_held = 0;
    return CAIRN_OK;
}

void cairn_stream_free(cairn_stream *s)
{
    mem_free(s);
}

int32_t cairn_text_vocab(const cairn_text *t)
{
    (void)t;
    return FAKE_VOCAB;
}

size_t cairn_text_marks(const cairn_text *t, const cairn_render_opts *o, const int32_t *ids,
                        size_t n, int32_t marks[2])
{
    (void)t;
    marks[0] = (int32_t)(n / 2);
    return o->messages.len && ids ? 1 : 0;
}

/* As if the longest piece had ten bytes. */
size_t cairn_text_least_ids(const cairn_text *t, cairn_str text)
{
    (void)t;
    return text.len / 10;
}

void cairn_model_info_init(cairn_model_info *info)
{
    *info = (cairn_model_info){.struct_size = sizeof *info};
}

void cairn_model_get_info(const cairn_model *m, cairn_model_info *info)
{
    (void)m;
    *info = (cairn_model_info){.struct_size = sizeof *info,
                               .format = "fake",
                               .family = "fake",
                               .name = "fake",
                               .quant = "F32",
                               .vocab = FAKE_VOCAB,
                               .n_params = 42};
}

/* Opaque to their users: any address will do. */
static const char the_model, the_text;

const cairn_model *fake_model(void)
{
    return (const cairn_model *)(const void *)&the_model;
}

/* The double chats, and embeds nothing: tests/serve/test_embeddings.py asks the real program. */
void cairn_embed_info_init(cairn_embed_info *info)
{
    *info = (cairn_embed_info){.struct_size = sizeof *info};
}

void cairn_embed_get_info(const cairn_model *m, cairn_embed_info *info)
{
    (void)m;
    (void)info;
}

void cairn_score_opts_init(cairn_score_opts *o)
{
    *o = (cairn_score_opts){.struct_size = sizeof *o};
}

/* Logit i is -i/4 from the last id on. */
cairn_status cairn_score(const cairn_model *m, const int32_t *ids, size_t n,
                         const cairn_score_opts *o, cairn_logits_fn fn, void *ctx, cairn_diag *dg)
{
    float logits[FAKE_VOCAB];

    (void)m;
    if (o->first != (int32_t)n - 1) return diag_set(dg, CAIRN_E_ARG, "more than the last");
    for (int32_t i = 0; i < FAKE_VOCAB; i++) logits[(ids[n - 1] + i) % FAKE_VOCAB] = -(float)i / 4;
    (void)fn(ctx, o->first, logits);
    return CAIRN_OK;
}

void cairn_embed_opts_init(cairn_embed_opts *o)
{
    *o = (cairn_embed_opts){.struct_size = sizeof *o};
}

cairn_status cairn_embed(const cairn_model *m, const cairn_str *texts, size_t n,
                         const cairn_embed_opts *o, cairn_embed_fn fn, void *ctx, cairn_diag *dg)
{
    (void)m, (void)texts, (void)n, (void)o, (void)fn, (void)ctx;
    return diag_set(dg, CAIRN_E_UNSUPPORTED, "no embeddings here");
}

cairn_status cairn_embed_ids(const cairn_model *m, const cairn_ids *texts, size_t n,
                             const cairn_embed_opts *o, cairn_embed_fn fn, void *ctx,
                             cairn_diag *dg)
{
    (void)m, (void)texts, (void)n, (void)o, (void)fn, (void)ctx;
    return diag_set(dg, CAIRN_E_UNSUPPORTED, "no embeddings here");
}

const struct cairn_text *cairn_model_text(const cairn_model *m)
{
    (void)m;
    return (const struct cairn_text *)(const void *)&the_text;
}

void cairn_fit_opts_init(cairn_fit_opts *o)
{
    *o = (cairn_fit_opts){.struct_size = sizeof *o};
}

void cairn_fit_report_init(cairn_fit_report *r)
{
    *r = (cairn_fit_report){.struct_size = sizeof *r};
}

/* One row. */
cairn_status cairn_fit(const cairn_model *m, const cairn_fit_opts *o, cairn_fit_fn fn, void *ctx,
                       cairn_fit_report *out, cairn_diag *dg)
{
    const cairn_fit_row row = {.ctx_len = 2048, .max_seqs = 1, .needed_bytes = 9, .fits = true};

    (void)m;
    (void)o;
    (void)dg;
    fn(ctx, &row);
    out->max_ctx = 2048;
    return CAIRN_OK;
}
