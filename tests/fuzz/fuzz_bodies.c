/* The readers of short bodies on any bytes: curves of /generate, completions, and lists of texts and ids as embeddings,
   completions and /detokenize have them.  No crash; what is refused has a reason and its place; what is accepted is in
   range, and the sampler takes it too. */
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "sample/sample.h"
#include "serve/generate.h"
#include "serve/openai_completion.h"
#include "serve/openai_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VOCAB = 64, MOST = 8 };

static void want_reason(const chat_fault *f)
{
    if (f->dg.message[0] == 0) abort();
}

/* Biases are by ids, whose vocabulary the readers do not know. */
static void check_sampling(cairn_sampling how)
{
    how.n_bias = 0;
    if (sample_check(&how, VOCAB, NULL) != CAIRN_OK) abort();
}

static void try_curve(cairn_str body)
{
    chat_ask a;
    chat_fault f;

    if (generate_ask_read(&a, body, &f) == CAIRN_OK) {
        if (a.n < 1 || a.n > 8 || a.rq.max_tokens < 1 || a.rq.max_tokens > 256) abort();
        if (a.rq.sampling.n_curve == 1 || a.rq.sampling.n_curve > CAIRN_MAX_KNOTS) abort();
        check_sampling(a.rq.sampling);
    } else {
        want_reason(&f);
    }
    chat_ask_deinit(&a);
}

static void try_completion(cairn_str body)
{
    chat_ask a;
    chat_fault f;

    if (completion_ask_read(&a, body, &f) == CAIRN_OK) {
        if (a.n < 1 || a.n > CHAT_MAX_CHOICES || a.rq.n_stop > CAIRN_MAX_STOP) abort();
        if (a.rq.max_tokens < 0 || (a.rq.prompt_only && a.rq.max_tokens)) abort();
        if (a.rq.prompt_logprobs && (!a.echo || a.rq.n_logprobs < 0)) abort();
        check_sampling(a.rq.sampling);
    } else {
        want_reason(&f);
    }
    chat_ask_deinit(&a);
}

static void check_ids(const cairn_ids *ids)
{
    if (ids->len == 0) abort();
    for (size_t i = 0; i < ids->len; i++)
        if (ids->ptr[i] < 0 || ids->ptr[i] >= VOCAB) abort();
}

static void try_list(json_val v, const char *name, bool one)
{
    input_list in = {0};
    chat_fault f = {0};
    const cairn_status st =
        one ? input_read_ids(&in, v, name, VOCAB, &f) : input_read(&in, v, name, VOCAB, MOST, &f);

    if (st == CAIRN_OK) {
        if (in.n < 1 || in.n > MOST || (in.texts != NULL) == (in.lists != NULL)) abort();
        for (size_t i = 0; in.lists && i < in.n; i++) check_ids(&in.lists[i]);
    } else {
        want_reason(&f);
        if (strncmp(f.param, name, strlen(name)) != 0) abort();
    }
    input_deinit(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cairn_str body = {(const char *)data, size};
    chat_ask a;
    chat_fault f;

    try_curve(body);
    try_completion(body);
    if (chat_ask_open(&a, body, &f) == CAIRN_OK) {
        const json_val root = json_root(a.doc), tokens = json_get(root, "tokens");
        try_list(json_get(root, "input"), "input", false);
        try_list(json_get(root, "prompt"), "prompt", false);
        if (json_size(tokens) && json_typeof(tokens) == JSON_ARR) try_list(tokens, "tokens", true);
    } else {
        want_reason(&f);
    }
    chat_ask_deinit(&a);
    return 0;
}
