/* A text to a model's tokens, and back.  On a worker, as both take time that grows with the body. */
#include "serve/tokens.h"

#include <assert.h>

#include "base/json.h"
#include "base/str.h"
#include "serve/endpoint.h"
#include "serve/openai_chat_format.h"
#include "serve/openai_input.h"
#include "serve/openai_messages.h"
#include "serve/prompt.h"

static bool find_text(prompt *p, const models *m)
{
    if (!prompt_find_model(p, m, p->ask.model)) return false;
    return served_model_text(p->model) ||
           prompt_refuse_as(p, CAIRN_E_ARG, "model", "the model has no tokenizer");
}

static bool read_flag(prompt *p, const char *name, bool *out)
{
    chat_fault f = {0};
    const cairn_status st = chat_want_bool(json_root(p->ask.doc), name, out, &f);

    return st == CAIRN_OK || prompt_refuse_as(p, st, name, f.dg.message);
}

/* A piece that is no text by itself as its bytes. */
static void put_piece(json_writer *w, cairn_str piece)
{
    if (json_utf8_valid(piece)) {
        json_w_kstr(w, "piece", piece.len ? piece : STR_LIT(""));
        return;
    }
    json_w_key(w, "piece");
    json_w_arr(w);
    for (size_t i = 0; i < piece.len; i++) json_w_int(w, (uint8_t)piece.ptr[i]);
    json_w_end_arr(w);
}

static void put_tokens(prompt *p, const cairn_ids *ids, bool with_pieces)
{
    json_writer w;

    buf_init(&p->text, MEM_SERVE);
    p->text.max = p->client.most_text;
    w = json_write(&p->text);
    json_w_obj(&w);
    json_w_key(&w, "tokens");
    json_w_arr(&w);
    for (size_t i = 0; i < ids->len; i++) {
        if (!with_pieces) {
            json_w_int(&w, ids->ptr[i]);
            continue;
        }
        json_w_obj(&w);
        json_w_kint(&w, "id", ids->ptr[i]);
        put_piece(&w, cairn_text_piece(served_model_text(p->model), ids->ptr[i]));
        json_w_end_obj(&w);
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
}

static bool encode(prompt *p)
{
    const json_val content = json_get(json_root(p->ask.doc), "content");
    bool add = false, parse = true, pieces = false;
    chat_fault f = {0};
    cairn_diag dg = {0};
    cairn_ids ids = {0};
    cairn_status st;

    if (!read_flag(p, "add_special", &add) || !read_flag(p, "parse_special", &parse) ||
        !read_flag(p, "with_pieces", &pieces))
        return false;
    if (json_typeof(content) != JSON_STR) {
        st = chat_want(&f, "content", "a text", content);
        return prompt_refuse_as(p, st, "content", f.dg.message);
    }
    st = cairn_text_tokenize(
        served_model_text(p->model), json_str(content),
        (add ? CAIRN_TOK_ADD_SPECIAL : 0U) | (parse ? CAIRN_TOK_PARSE_SPECIAL : 0U), &ids, &dg);
    if (st != CAIRN_OK) return prompt_refuse_as(p, st, "content", dg.message);
    put_tokens(p, &ids, pieces);
    cairn_ids_free(&ids);
    return true;
}

static bool decode_these(prompt *p, const cairn_ids *ids)
{
    cairn_bytes text = {0};
    cairn_diag dg = {0};
    json_writer w;
    const cairn_status st =
        cairn_text_detokenize(served_model_text(p->model), ids->ptr, ids->len, true, &text, &dg);

    if (st != CAIRN_OK) return prompt_refuse_as(p, st, "tokens", dg.message);
    buf_init(&p->text, MEM_SERVE);
    p->text.max = p->client.most_text;
    w = json_write(&p->text);
    json_w_obj(&w);
    json_w_kstr(&w, "content", text.len ? (cairn_str){text.ptr, text.len} : STR_LIT(""));
    json_w_end_obj(&w);
    cairn_bytes_free(&text);
    return true;
}

static bool decode(prompt *p)
{
    const json_val list = json_get(json_root(p->ask.doc), "tokens");
    const cairn_ids none = {0};
    chat_fault f = {0};
    input_list in = {0};
    cairn_status st = CAIRN_OK;
    bool fine;

    if (json_typeof(list) == JSON_ARR && json_size(list) == 0) return decode_these(p, &none);
    if (json_typeof(list) != JSON_ARR)
        st = chat_want(&f, "tokens", "a list of token ids", list);
    else
        st = input_read_ids(&in, list, "tokens", cairn_text_vocab(served_model_text(p->model)), &f);
    assert(st != CAIRN_OK || in.lists);
    fine = st == CAIRN_OK ? decode_these(p, &in.lists[0])
                          : prompt_refuse_as(p, st, f.param, f.dg.message);
    input_deinit(&in);
    return fine;
}

static void make(prompt *p, const models *m, cairn_str body, bool (*finish)(prompt *p))
{
    *p = (prompt){.client = p->client};
    if (prompt_read(p, chat_ask_open, body) && find_text(p, m)) (void)finish(p);
    if (p->fault.status) prompt_deinit(p);
}

/* Worker. */
static void make_encoded(prompt *p, const models *m, cairn_str body)
{
    make(p, m, body, encode);
}

/* Worker. */
static void make_decoded(prompt *p, const models *m, cairn_str body)
{
    make(p, m, body, decode);
}

void tokens_encode(cairn_server *s, http_req *rq)
{
    static const endpoint e = {
        .format = &openai_chat_format, .make = make_encoded, .just_text = true};

    endpoint_serve(s, rq, &e);
}

void tokens_decode(cairn_server *s, http_req *rq)
{
    static const endpoint e = {
        .format = &openai_chat_format, .make = make_decoded, .just_text = true};

    endpoint_serve(s, rq, &e);
}
