/* The public face of embeddings: prompts before texts, tokens, cutting what is too long; the rest is
   engine/embed.c's. */
#include "api/api_model.h"
#include "api/api_text.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "cairn/embed.h"
#include "engine/embed.h"
#include "tensor/pool.h"
#include "tensor/source.h"

void cairn_embed_info_init(cairn_embed_info *info)
{
    *info = (cairn_embed_info){.struct_size = sizeof *info};
}

void cairn_embed_get_info(const cairn_model *cm, cairn_embed_info *info)
{
    const model *m = cm->m;
    const cairn_embed_info i = {.struct_size = info->struct_size,
                                .dimensions = embed_dim(m),
                                .max_tokens = embed_max_ids(m),
                                .n_prompts = m->pool.n_prompt,
                                .normalised = m->pool.normalise,
                                .embeds = m->embeds || m->headless,
                                .only_embeds = m->headless};
    memcpy(info, &i, min_size(info->struct_size, sizeof i));
}

void cairn_embed_prompt(const cairn_model *m, int32_t i, cairn_str *name, cairn_str *text)
{
    assert(i >= 0 && i < m->m->pool.n_prompt);
    *name = m->m->pool.prompt[i].name;
    *text = m->m->pool.prompt[i].text;
}

void cairn_embed_opts_init(cairn_embed_opts *o)
{
    *o = (cairn_embed_opts){.struct_size = sizeof *o};
}

/* One call: ids of every text, in buffers of our own where texts were given. */
typedef struct call {
    const cairn_model *m;
    cairn_embed_opts o;
    embed_text *text; /* [n] */
    cairn_ids *own;   /* [n] of texts, or NULL */
    size_t n;
    cairn_embed_fn fn;
    void *ctx;
} call;

static cairn_status call_begin(call *c, const cairn_embed_opts *o, const void *texts,
                               cairn_diag *dg)
{
    cairn_embed_opts_init(&c->o);
    if (!c->m) return diag_set(dg, CAIRN_E_ARG, "no model");
    if (!c->m->m->dev)
        return diag_set(dg, CAIRN_E_ARG,
                        "the model was opened without its weights; expected one opened with them");
    if (!texts || !c->fn) return diag_set(dg, CAIRN_E_ARG, "no texts or no callback");
    if (c->n > CAIRN_MAX_EMBED_TEXTS)
        return diag_set(dg, CAIRN_E_LIMIT, "%zu texts; expected at most %d", c->n,
                        CAIRN_MAX_EMBED_TEXTS);
    if (o && o->struct_size != sizeof *o)
        return diag_set(dg, CAIRN_E_ARG, "cairn_embed: options not initialised");
    if (o) c->o = *o;
    c->text = mem_calloc(c->n + 1, sizeof *c->text, MEM_ENGINE);
    return c->text ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "%zu texts", c->n);
}

static void call_end(call *c)
{
    for (size_t i = 0; c->own && i < c->n; i++) cairn_ids_free(&c->own[i]);
    mem_free(c->own);
    mem_free(c->text);
}

static embed_how how_of(const call *c)
{
    return (embed_how){.dimensions = c->o.dimensions,
                       .n_threads = c->o.n_threads,
                       .names = c->o.names,
                       .go_on = c->o.go_on,
                       .go_on_ctx = c->o.go_on_ctx};
}

static cairn_status blame(const call *c, size_t i, cairn_status st, cairn_diag *dg)
{
    const embed_how how = how_of(c);
    return embed_blame(&how, i, st, dg);
}

/* `at_least`: it was not counted to its end. */
static cairn_status too_long(const call *c, size_t i, bool at_least, size_t n, cairn_diag *dg)
{
    return blame(c, i,
                 diag_set(dg, CAIRN_E_LIMIT,
                          "found %s%zu tokens; expected at most the %d that the model takes, or "
                          "truncate",
                          at_least ? "at least " : "", n, (int)embed_max_ids(c->m->m)),
                 dg);
}

static cairn_status set_text(call *c, size_t i, cairn_ids ids, cairn_diag *dg)
{
    const size_t most = (size_t)embed_max_ids(c->m->m);
    if (c->o.truncate && ids.len > most) ids.len = most;
    if (ids.len > most) return too_long(c, i, false, ids.len, dg);
    c->text[i].ids = ids.ptr;
    c->text[i].n = (int32_t)ids.len;
    return CAIRN_OK;
}

static bool give(void *ctx, size_t i, const float *v, int32_t dim)
{
    const call *c = ctx;
    const cairn_embedding e = {i, v, dim, c->text[i].n};
    return c->fn(c->ctx, &e);
}

static cairn_status call_run(call *c, cairn_diag *dg)
{
    const embed_how how = how_of(c);
    return embed_run(c->m->m, c->text, c->n, &how, give, c, dg);
}

cairn_status cairn_embed_ids(const cairn_model *m, const cairn_ids *texts, size_t n,
                             const cairn_embed_opts *o, cairn_embed_fn fn, void *ctx,
                             cairn_diag *dg)
{
    call c = {.m = m, .n = n, .fn = fn, .ctx = ctx};
    cairn_status st;
    TRY_GOTO(call_begin(&c, o, texts, dg), out);
    for (size_t i = 0; i < n; i++) TRY_GOTO(set_text(&c, i, texts[i], dg), out);
    st = call_run(&c, dg);
out:
    call_end(&c);
    return st;
}

static cairn_status choose_prompt(const call *c, cairn_str *out, cairn_diag *dg)
{
    const pool_spec *p = &c->m->m->pool;
    *out = c->o.prompt;
    if (c->o.prompt.ptr) return CAIRN_OK;
    *out = p->default_prompt >= 0 ? p->prompt[p->default_prompt].text : STR_LIT("");
    if (!c->o.prompt_name.len) return CAIRN_OK;
    for (int32_t i = 0; i < p->n_prompt; i++) {
        *out = p->prompt[i].text;
        if (str_eq(p->prompt[i].name, c->o.prompt_name)) return CAIRN_OK;
    }
    return diag_set(dg, CAIRN_E_ARG,
                    "prompt \"%.*s\": the model's files name %d others; expected one",
                    STR_ARG(c->o.prompt_name), (int)p->n_prompt);
}

static const uint32_t whole = CAIRN_TOK_ADD_SPECIAL | CAIRN_TOK_PARSE_SPECIAL;

/* Tokens of the prompt without the special one that ends a text: what stands alike before every text. */
static cairn_status prompt_len(const call *c, cairn_str prompt, int32_t *out, cairn_diag *dg)
{
    cairn_ids alone = {0}, bare = {0};
    cairn_status st = CAIRN_OK;
    *out = 0;
    if (!c->m->m->pool.skip_prompt || prompt.len == 0) return CAIRN_OK;
    TRY_GOTO(cairn_text_tokenize(c->m->text, prompt, whole, &alone, dg), out);
    TRY_GOTO(cairn_text_tokenize(c->m->text, prompt, CAIRN_TOK_PARSE_SPECIAL, &bare, dg), out);
    const bool ends = alone.len > bare.len &&
                      (bare.len == 0 || alone.ptr[alone.len - 1] != bare.ptr[bare.len - 1]);
    *out = (int32_t)min_size(alone.len - (ends ? 1 : 0), INT32_MAX);
out:
    cairn_ids_free(&alone);
    cairn_ids_free(&bare);
    return st;
}

/* As tokenizers cut: the special tokens around the text stay, its own last ones go. */
static void cut(const call *c, cairn_ids *ids)
{
    const size_t most = (size_t)embed_max_ids(c->m->m), after = tok_n_after(c->m->text->f.tok);
    if (ids->len <= most) return;
    if (after < most)
        memmove(ids->ptr + most - after, ids->ptr + ids->len - after, after * sizeof *ids->ptr);
    ids->len = most;
}

/* A text that is far too long is refused by its bytes, or once so many tokens more than fit were found. */
enum { COUNTED_OVER = 1 << 16 };

static cairn_status tokenize(call *c, size_t i, cairn_str prompt, cairn_str text, buf *joined,
                             cairn_diag *dg)
{
    const size_t most = (size_t)embed_max_ids(c->m->m), counted = most + COUNTED_OVER;
    cairn_ids *ids = &c->own[i];
    buf_clear(joined);
    buf_str(joined, prompt);
    buf_str(joined, text);
    TRY(buf_status(joined));
    const size_t least = c->o.truncate ? 0 : cairn_text_least_ids(c->m->text, buf_view(joined));
    if (least > counted) return too_long(c, i, true, least, dg);
    const cairn_status st = text_tokenize_some(c->m->text, buf_view(joined), whole,
                                               c->o.truncate ? most : counted, ids, dg);
    if (st != CAIRN_OK) return blame(c, i, st, dg);
    if (c->o.truncate)
        cut(c, ids);
    else if (ids->len >= counted)
        return too_long(c, i, true, ids->len, dg);
    return set_text(c, i, *ids, dg);
}

/* Whether the tokenizer makes the same of a piece in ASCII capitals. */
static cairn_status lowers_piece(const cairn_text *t, cairn_str piece, bool *lowers, cairn_diag *dg)
{
    enum { LONGEST = 64 };
    char capitals[LONGEST];
    cairn_ids ids[2] = {{0}, {0}};
    cairn_status st = CAIRN_OK;
    if (piece.len > LONGEST) return CAIRN_OK;
    for (size_t i = 0; i < piece.len; i++) {
        const char c = piece.ptr[i];
        capitals[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    TRY_GOTO(cairn_text_tokenize(t, piece, 0, &ids[0], dg), out);
    TRY_GOTO(cairn_text_tokenize(t, (cairn_str){capitals, piece.len}, 0, &ids[1], dg), out);
    *lowers =
        ids[0].len == ids[1].len &&
        (ids[0].len == 0 || memcmp(ids[0].ptr, ids[1].ptr, ids[0].len * sizeof *ids[0].ptr) == 0);
out:
    cairn_ids_free(&ids[0]);
    cairn_ids_free(&ids[1]);
    return st;
}

cairn_status embed_tells_case(const cairn_text *t, bool *tells, cairn_diag *dg)
{
    enum { PIECES = 2000 }; /* some have letters; all take a few ms */
    const int32_t n = min_i32(PIECES, cairn_text_vocab(t));
    bool lowers = true;
    for (int32_t i = 0; lowers && i < n; i++)
        TRY(lowers_piece(t, cairn_text_piece(t, i), &lowers, dg));
    *tells = !lowers;
    return CAIRN_OK;
}

/* Where do_lower_case is true, sentence-transformers puts a step before a tokenizer that does not lower
   by itself; we have none. */
static cairn_status check_case(const call *c, cairn_diag *dg)
{
    if (!c->m->tells_case) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_UNSUPPORTED,
                    "%s: do_lower_case: found true beside a tokenizer that tells cases apart; "
                    "expected one that lowers by itself",
                    c->m->m->src->path);
}

static cairn_status tokenize_all(call *c, const cairn_str *texts, cairn_diag *dg)
{
    cairn_str prompt;
    int32_t skip;
    cairn_status st = CAIRN_OK;
    buf joined;
    if (!c->m->text) return diag_set(dg, CAIRN_E_NOTFOUND, "the model has no tokenizer");
    TRY(check_case(c, dg));
    TRY(choose_prompt(c, &prompt, dg));
    TRY(prompt_len(c, prompt, &skip, dg));
    c->own = mem_calloc(c->n + 1, sizeof *c->own, MEM_ENGINE);
    if (!c->own) return diag_set(dg, CAIRN_E_NOMEM, "%zu texts", c->n);
    buf_init(&joined, MEM_TEXT);
    for (size_t i = 0; i < c->n && st == CAIRN_OK; i++) {
        if (c->o.go_on && !c->o.go_on(c->o.go_on_ctx)) {
            st = diag_set(dg, CAIRN_E_CANCELLED, "stopped");
            break;
        }
        st = tokenize(c, i, prompt, texts[i], &joined, dg);
        c->text[i].skip = min_i32(skip, max_i32(0, c->text[i].n - 1));
    }
    buf_deinit(&joined);
    return st;
}

cairn_status cairn_embed(const cairn_model *m, const cairn_str *texts, size_t n,
                         const cairn_embed_opts *o, cairn_embed_fn fn, void *ctx, cairn_diag *dg)
{
    call c = {.m = m, .n = n, .fn = fn, .ctx = ctx};
    cairn_status st;
    TRY_GOTO(call_begin(&c, o, texts, dg), out);
    TRY_GOTO(tokenize_all(&c, texts, dg), out);
    st = call_run(&c, dg);
out:
    call_end(&c);
    return st;
}
