/* A list's first element says what the others must be. */
#include "serve/openai_input.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/str.h"

typedef struct reading {
    input_list *in;
    const char *name;
    int32_t n_vocab;
    size_t most;
    chat_fault *f;
} reading;

static cairn_status no_memory(const reading *r)
{
    return chat_fault_set(r->f, CAIRN_E_NOMEM, "", "no memory for the request");
}

static cairn_status bad_input(const reading *r)
{
    return chat_fault_set(r->f, CAIRN_E_ARG, r->name,
                          "`%s` must be a text, a list of tokens, or a list of 1 to %zu of either",
                          r->name, r->most);
}

static cairn_status bad_element(const reading *r, size_t i, const char *expected)
{
    char at[INPUT_NAME];

    input_name(r->in, r->name, i, at);
    return chat_fault_set(r->f, CAIRN_E_ARG, at, "`%s` must be %s", at, expected);
}

/* Element i of the list called `list`. */
static cairn_status bad_token(const reading *r, const char *list, size_t i, json_val v)
{
    char found[32], at[2 * INPUT_NAME];

    if (json_typeof(v) == JSON_INT)
        (void)snprintf(found, sizeof found, "%lld", (long long)json_int(v, 0));
    else
        (void)snprintf(found, sizeof found, "%s", json_type_name(json_typeof(v)));
    (void)snprintf(at, sizeof at, "%s[%zu]", list, i);
    return chat_fault_set(r->f, CAIRN_E_ARG, at, "`%s` must be a token id from 0 to %d, found %s",
                          at, (int)r->n_vocab - 1, found);
}

/* Of list i, which is not empty. */
static cairn_status read_tokens(const reading *r, json_val list, size_t i)
{
    cairn_ids *out = &r->in->lists[i];
    json_iter it = json_each(list);
    char name[INPUT_NAME];
    json_val v;

    input_name(r->in, r->name, i, name);
    out->ptr = mem_calloc(json_size(list), sizeof *out->ptr, MEM_SERVE);
    if (!out->ptr) return no_memory(r);
    while (json_next(&it, &v)) {
        const int64_t id = json_int(v, -1);
        if (id < 0 || id >= r->n_vocab) return bad_token(r, name, out->len, v);
        out->ptr[out->len++] = (int32_t)id;
    }
    return CAIRN_OK;
}

static cairn_status make_room(const reading *r, bool texts, size_t n)
{
    if (texts)
        r->in->texts = mem_calloc(n, sizeof *r->in->texts, MEM_SERVE);
    else
        r->in->lists = mem_calloc(n, sizeof *r->in->lists, MEM_SERVE);
    if (!r->in->texts && !r->in->lists) return no_memory(r);
    r->in->n = n; /* of those that are read, and of the zeros behind them */
    return CAIRN_OK;
}

/* `list` holds texts, or lists of tokens. */
static cairn_status read_list(const reading *r, json_val list)
{
    const json_type first = json_typeof(json_at(list, 0));
    const bool texts = first == JSON_STR;
    const size_t n = json_size(list);
    json_iter it = json_each(list);
    json_val v;

    if (n == 0 || n > r->most) return bad_input(r);
    r->in->many = true;
    if (!texts && first != JSON_ARR)
        return bad_element(r, 0, "a text, a token id or a list of token ids");
    TRY(make_room(r, texts, n));
    for (size_t i = 0; json_next(&it, &v); i++) {
        if (texts && json_typeof(v) != JSON_STR)
            return bad_element(r, i, "a text, as the first is");
        if (!texts && json_size(v) == 0) return bad_element(r, i, "a list of token ids, not empty");
        if (!texts && json_typeof(v) != JSON_ARR) return bad_element(r, i, "a list of token ids");
        if (texts)
            r->in->texts[i] = json_str(v);
        else
            TRY(read_tokens(r, v, i));
    }
    return CAIRN_OK;
}

/* One text, or the tokens of one. */
static cairn_status read_single(const reading *r, json_val v)
{
    const bool text = json_typeof(v) == JSON_STR;

    if (!text && json_typeof(v) != JSON_ARR) return bad_input(r);
    TRY(make_room(r, text, 1));
    if (!text) return read_tokens(r, v, 0);
    r->in->texts[0] = json_str(v);
    return CAIRN_OK;
}

cairn_status input_read(input_list *in, json_val v, const char *name, int32_t n_vocab, size_t most,
                        chat_fault *f)
{
    const reading r = {in, name, n_vocab, most, f};
    const bool many = json_typeof(v) == JSON_ARR && json_typeof(json_at(v, 0)) != JSON_INT;

    *in = (input_list){0};
    return many ? read_list(&r, v) : read_single(&r, v);
}

cairn_status input_read_ids(input_list *in, json_val v, const char *name, int32_t n_vocab,
                            chat_fault *f)
{
    const reading r = {in, name, n_vocab, 1, f};

    *in = (input_list){0};
    return read_single(&r, v);
}

void input_deinit(input_list *in)
{
    for (size_t i = 0; in->lists && i < in->n; i++) cairn_ids_free(&in->lists[i]);
    mem_free(in->lists);
    mem_free(in->texts);
    *in = (input_list){0};
}

void input_name(const input_list *in, const char *name, size_t i, char out[INPUT_NAME])
{
    if (in->many)
        (void)snprintf(out, INPUT_NAME, "%s[%zu]", name, i);
    else
        (void)snprintf(out, INPUT_NAME, "%s", name);
}
