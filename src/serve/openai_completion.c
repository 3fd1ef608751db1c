/* Reads a completion's body and makes its prompts: texts are encoded as they are, with BOS where the model
   has one, lists of tokens are taken as they come.  Prompts times `n` are the choices, in that order. */
#include "serve/openai_completion.h"

#include "base/diag.h"
#include "serve/body_fields.h"
#include "serve/chat_sampling.h"
#include "serve/endpoint.h"
#include "serve/openai_completion_format.h"
#include "serve/openai_input.h"
#include "serve/prompt.h"
#include "serve/random.h"

enum { MOST_PROMPTS = CAIRN_MAX_SEQS + CAIRN_MAX_QUEUE }; /* each takes a place in the engine */

static const chat_refusal refusals[] = {
    {"suffix", chat_empty_text, "text before a suffix cannot be filled in"},
    {"store", NULL, "completions are not stored"},
};

static const body_field fields[] = {
    BODY_WORD(NULL, "service_tier", CHAT_TIERS),
    BODY_FIELD(NULL, "user", FIELD_TEXT),
};

/* What is drawn more than once is what is given back. */
static cairn_status read_best_of(json_val root, const chat_ask *a, chat_fault *f)
{
    int32_t best_of = a->n;

    TRY(chat_want_int(root, "best_of", 1, CHAT_MAX_CHOICES, &best_of, f));
    if (best_of == a->n) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, "best_of",
                          "`best_of` is %d, and only as many as `n`, %d, are drawn: choose among "
                          "those",
                          (int)best_of, (int)a->n);
}

static cairn_status read_flags(json_val root, chat_ask *a, chat_fault *f)
{
    TRY(chat_stream_read(root, a, f));
    TRY(chat_want_bool(root, "return_progress", &a->progress, f));
    TRY(chat_want_bool(root, "echo", &a->echo, f));
    TRY(chat_special_read(root, a, f));
    TRY(chat_want_int(root, "logprobs", 0, CAIRN_MAX_LOGPROBS, &a->rq.n_logprobs, f));
    a->rq.prompt_logprobs = a->echo && a->rq.n_logprobs >= 0;
    return CAIRN_OK;
}

/* 0 is the prompt alone; the engine's 0 is what stands where there is none. */
static cairn_status read_max_tokens(json_val root, chat_ask *a, chat_fault *f)
{
    int32_t n = -1;

    TRY(chat_want_int(root, "max_tokens", 0, INT32_MAX, &n, f));
    a->rq.prompt_only = n == 0;
    a->rq.max_tokens = n < 0 ? 0 : n;
    return CAIRN_OK;
}

cairn_status completion_ask_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    TRY(chat_ask_open(a, body, f));
    const json_val root = json_root(a->doc);
    TRY(chat_refuse(root, refusals, sizeof refusals / sizeof refusals[0], f));
    TRY(BODY_FIELDS_CHECK(root, (body_path){0}, fields, f));
    TRY(chat_sampling_read(root, a, f));
    TRY(chat_priority_read(root, a, f));
    TRY(read_max_tokens(root, a, f));
    TRY(chat_want_int(root, "n", 1, CHAT_MAX_CHOICES, &a->n, f));
    TRY(read_best_of(root, a, f));
    TRY(chat_stop_read(root, "stop", a, f));
    return read_flags(root, a, f);
}

static bool encode(prompt *p, cairn_str text, const char *name, cairn_ids *out)
{
    const struct cairn_text *t = served_model_text(p->model);
    cairn_diag dg = {0};
    cairn_status st;

    if (!t)
        return prompt_refuse_as(p, CAIRN_E_ARG, name,
                                "the model has no tokenizer; give lists of tokens");
    if (!prompt_fits(p, name, "at least ", cairn_text_least_ids(t, text))) return false;
    st = cairn_text_encode_prompt(t, text, out, &dg);
    return st == CAIRN_OK || prompt_refuse_as(p, st, name, dg.message);
}

/* What the answer to prompt i begins with. */
static bool put_echo(prompt *p, const input_list *in, size_t i)
{
    const struct cairn_text *t = served_model_text(p->model);
    cairn_diag dg = {0};
    cairn_status st = CAIRN_OK;
    buf copy;

    if (!p->echo) return true;
    if (in->lists) {
        if (!t) return prompt_refuse_as(p, CAIRN_E_ARG, "echo", "the model has no tokenizer");
        st = cairn_text_detokenize(t, p->ids[i].ptr, p->ids[i].len, p->ask.rq.keep_special,
                                   &p->echo[i], &dg);
        return st == CAIRN_OK || prompt_refuse_as(p, st, "echo", dg.message);
    }
    buf_init(&copy, MEM_SERVE);
    buf_str(&copy, in->texts[i]);
    st = buf_status(&copy);
    if (st == CAIRN_OK) st = buf_take(&copy, &p->echo[i]);
    buf_deinit(&copy);
    return st == CAIRN_OK || prompt_no_memory(p);
}

static bool make_one(prompt *p, input_list *in, size_t i)
{
    char name[INPUT_NAME];

    input_name(in, "prompt", i, name);
    if (in->lists) {
        p->ids[i] = in->lists[i];
        in->lists[i] = (cairn_ids){0};
    } else if (!encode(p, in->texts[i], name, &p->ids[i])) {
        return false;
    }
    if (p->ids[i].len == 0)
        return prompt_refuse(p, 400, name, "invalid_value",
                             "`%s` is empty, and the model begins no text by itself", name);
    return prompt_fits(p, name, "", p->ids[i].len) && put_echo(p, in, i);
}

static bool make_all(prompt *p, input_list *in)
{
    cairn_model_info info;
    chat_fault f = {0};
    cairn_status st;

    cairn_model_info_init(&info);
    cairn_model_get_info(p->model->model, &info);
    st = input_read(in, json_get(json_root(p->ask.doc), "prompt"), "prompt", info.vocab,
                    MOST_PROMPTS, &f);
    if (st != CAIRN_OK) return prompt_refuse_as(p, st, f.param, f.dg.message);
    p->ids = mem_calloc(in->n, sizeof *p->ids, MEM_SERVE);
    if (!p->ids) return prompt_no_memory(p);
    p->n_ids = in->n;
    p->listed = in->lists;
    if (p->ask.echo) {
        p->echo = mem_calloc(in->n, sizeof *p->echo, MEM_SERVE);
        if (!p->echo) return prompt_no_memory(p);
    }
    for (size_t i = 0; i < in->n; i++)
        if (!make_one(p, in, i)) return false;
    if (!p->ask.has_seed) p->ask.rq.sampling.seed = random_seed();
    p->ask.rq.any_seed = !p->ask.has_seed;
    return true;
}

/* Worker. */
static void make(prompt *p, const models *m, cairn_str body)
{
    input_list in = {0};

    *p = (prompt){.client = p->client};
    if (prompt_read(p, completion_ask_read, body) && prompt_find_engine(p, m) &&
        prompt_check_bias(p))
        (void)make_all(p, &in);
    input_deinit(&in);
    if (p->fault.status) prompt_deinit(p);
}

void openai_completion_serve(cairn_server *s, http_req *rq)
{
    static const endpoint completion = {
        .format = &openai_completion_format, .make = make, .direct = true};

    endpoint_serve(s, rq, &completion);
}
