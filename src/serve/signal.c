/* A text's next token, seen over the whole vocabulary: counts of log-probabilities in 80 bins from ln 1e-6 to 0,
   the first with all below.  The engine tells twenty log-probabilities at most, so the model is asked
   beside it (cairn_score), on the worker for long work, as embeddings are; the bits are the engine's. */
#include "serve/signal.h"

#include "base/fmath.h"
#include "base/json.h"
#include "cairn/score.h"
#include "cairn/server.h"
#include "serve/endpoint.h"
#include "serve/openai_chat_format.h"
#include "serve/prompt.h"

enum {
    N_BINS = 80,               /* some 19 % of a probability each */
    MAX_IDS = CAIRN_SIGNAL_LEN /* engines set its cache aside, and nothing stops it half-way */
};

typedef struct signal {
    int32_t vocab, bin[N_BINS];
} signal;

static double power(double x)
{
    return x > -700 ? fmath_exp(x) : 0;
}

static bool count(void *ctx, int32_t pos, const float *logits)
{
    static const double low = -13.815510557964274; /* ln 1e-6 */
    signal *s = ctx;
    double top = -1e300, sum = 0;

    (void)pos;
    for (int32_t i = 0; i < s->vocab; i++)
        if ((double)logits[i] > top) top = (double)logits[i];
    for (int32_t i = 0; i < s->vocab; i++) sum += power((double)logits[i] - top);
    const double lse = top + fmath_log(sum);
    for (int32_t i = 0; i < s->vocab; i++) {
        const double t = ((double)logits[i] - lse - low) / -low;
        const int32_t bin = t > 0 ? (int32_t)(t * N_BINS) : 0; /* NaN too */
        s->bin[bin < N_BINS ? bin : N_BINS - 1]++;
    }
    return true;
}

static bool encode(prompt *p, cairn_ids *ids)
{
    const struct cairn_text *t = served_model_text(p->model);
    const json_val v = json_get(json_root(p->ask.doc), "prompt");
    const cairn_str text = json_str(v);
    cairn_diag dg = {0};
    cairn_status st;

    if (json_typeof(v) != JSON_STR || text.len == 0)
        return prompt_refuse(p, 400, "prompt", "invalid_value",
                             "`prompt` must be a string that is not empty");
    if (!t) return prompt_refuse_as(p, CAIRN_E_ARG, "model", "the model has no tokenizer");
    if (cairn_text_least_ids(t, text) <= MAX_IDS) {
        st = cairn_text_encode_prompt(t, text, ids, &dg);
        if (st != CAIRN_OK) return prompt_refuse_as(p, st, "prompt", dg.message);
        if (ids->len == 0)
            return prompt_refuse(p, 400, "prompt", "invalid_value", "`prompt` makes no tokens");
        if (ids->len <= MAX_IDS) return prompt_fits(p, "prompt", "", ids->len);
    }
    return prompt_refuse(p, 400, "prompt", "context_length_exceeded",
                         "`prompt` makes more than %d tokens", MAX_IDS);
}

static bool score(prompt *p, const cairn_ids *ids, signal *s)
{
    cairn_model_info info;
    cairn_score_opts o;
    cairn_diag dg = {0};
    cairn_status st;

    cairn_model_info_init(&info);
    cairn_model_get_info(p->model->model, &info);
    s->vocab = info.vocab;
    cairn_score_opts_init(&o);
    o.first = (int32_t)ids->len - 1;
    st = cairn_score(p->model->model, ids->ptr, ids->len, &o, count, s, &dg);
    return st == CAIRN_OK || prompt_refuse_as(p, st, NULL, dg.message);
}

static void write(prompt *p, const signal *s)
{
    json_writer w;

    buf_init(&p->text, MEM_SERVE);
    w = json_write(&p->text);
    json_w_obj(&w);
    json_w_key(&w, "bins");
    json_w_arr(&w);
    for (int i = 0; i < N_BINS; i++) json_w_int(&w, s->bin[i]);
    json_w_end_arr(&w);
    json_w_kint(&w, "vocab", s->vocab);
    json_w_end_obj(&w);
}

/* Worker. */
static void make(prompt *p, const models *m, cairn_str body)
{
    cairn_ids ids = {0};
    signal s = {0};

    *p = (prompt){.client = p->client};
    if (prompt_read(p, chat_ask_open, body) && prompt_find_engine(p, m) && encode(p, &ids) &&
        score(p, &ids, &s))
        write(p, &s);
    cairn_ids_free(&ids);
    if (p->fault.status) prompt_deinit(p);
}

void signal_serve(cairn_server *s, http_req *rq)
{
    static const endpoint e = {
        .format = &openai_chat_format, .make = make, .just_text = true, .slow = true};

    endpoint_serve(s, rq, &e);
}
