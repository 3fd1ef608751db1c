/* What a request is known by after a crash: a hash of all that decides its answer.  Whoever gives a request or
   its sampling another field adds it here: the sizes asserted below are there to remind of it. */
#include <string.h>

#include "base/hash.h"
#include "cairn/engine.h"
#include "engine/request.h"
#include "text/reply.h"

enum {
    KEY_VERSION = 4,   /* of what is below */
    AUTOREGRESSIVE = 1 /* the one way there is to make an answer */
};
_Static_assert(sizeof(cairn_sampling) == 136, "a new field of it belongs to the key");
_Static_assert(sizeof(cairn_request) == 272, "so does one of these, if answers depend on it");
_Static_assert(sizeof(struct cairn_reply_opts) == 96, "and of these");

enum { IGNORE_EOS = 1, KEEP_SPECIAL = 2, SEED_GIVEN = 4, MARKS_SPECIAL = 8, ANY_TOOL = 16 };

typedef struct key_parts { /* without padding: all of it is hashed */
    hash128 space;         /* the cache's: model, scheme, numerics version, namespace */
    hash128 text_files, ids, bias, stops, breakers, curve, family, template_text, hint, tools,
        prompt;
    uint64_t seed, n_ids, n_bias, n_stop, n_breakers, n_curve;
    float temperature, top_p, min_p, repetition, presence, frequency;
    float typical_p, xtc_probability, xtc_threshold, tau, eta, dry_multiplier, dry_base;
    int32_t top_k, window, presence_window, frequency_window, mirostat, dry_allowed, dry_window;
    int32_t max_new, think_budget;
    uint32_t choice, flags, version, method;
} key_parts;
_Static_assert(sizeof(key_parts) == 12 * 16 + 6 * 8 + 26 * 4, "no padding");

static hash128 hash_str(cairn_str s)
{
    return hash128_of(s.ptr, s.len);
}

static hash128 hash_strs(const cairn_str *list, size_t n)
{
    hash128 h[2] = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < n; i++) {
        h[1] = hash_str(list[i]);
        h[0] = hash128_of(h, sizeof h);
    }
    return h[0];
}

static void add_sampling(key_parts *k, const cairn_sampling *s)
{
    k->bias = hash128_of(s->bias, s->n_bias * sizeof *s->bias);
    k->n_bias = s->n_bias;
    k->temperature = s->temperature;
    k->top_p = s->top_p;
    k->min_p = s->min_p;
    k->repetition = s->repetition_penalty;
    k->presence = s->presence_penalty;
    k->frequency = s->frequency_penalty;
    k->top_k = s->top_k;
    k->window = s->repetition_window;
    k->presence_window = s->presence_window;
    k->frequency_window = s->frequency_window;
    k->typical_p = s->typical_p;
    k->xtc_probability = s->xtc_probability;
    k->xtc_threshold = s->xtc_threshold;
    k->mirostat = s->mirostat;
    k->tau = s->mirostat_tau;
    k->eta = s->mirostat_eta;
    k->dry_multiplier = s->dry_multiplier;
    k->dry_base = s->dry_base;
    k->dry_allowed = s->dry_allowed_length;
    k->dry_window = s->dry_window;
    k->breakers = hash_strs(s->dry_breakers, s->n_dry_breakers);
    k->n_breakers = s->n_dry_breakers;
    k->curve = hash128_of(s->curve, s->n_curve * sizeof *s->curve);
    k->n_curve = s->n_curve;
}

/* How the reply is read decides where a thought is closed. */
static void add_reply(key_parts *k, const struct cairn_reply_opts *o)
{
    const cairn_str family = {o->family, o->family ? strlen(o->family) : 0};
    k->family = hash_str(family);
    k->template_text = hash_str(o->template_text);
    k->hint = hash_str(o->hint);
    k->tools = hash_str(o->tools);
    k->prompt = hash_str(o->prompt);
    k->flags |= (o->marks_special ? MARKS_SPECIAL : 0u) | (o->any_tool ? ANY_TOOL : 0u);
}

hash128 resume_key(const cairn_request *q, const request *r, hash128 text_files)
{
    key_parts k = {.space = r->ns,
                   .text_files = text_files,
                   .ids = hash128_of(q->ids, q->n_ids * sizeof *q->ids),
                   .stops = hash_strs(q->stop, q->n_stop),
                   .seed = q->any_seed ? 0 : q->sampling.seed,
                   .n_ids = q->n_ids,
                   .n_stop = q->n_stop,
                   .max_new = r->max_ids - r->n_prompt,
                   .think_budget = -1,
                   .choice = q->choice,
                   .version = KEY_VERSION,
                   .method = AUTOREGRESSIVE};
    k.flags = (q->ignore_eos ? IGNORE_EOS : 0u) | (q->keep_special ? KEEP_SPECIAL : 0u) |
              (q->any_seed ? 0u : SEED_GIVEN);
    add_sampling(&k, &q->sampling);
    if (q->think_budget >= 0 && q->reply) {
        k.think_budget = q->think_budget;
        add_reply(&k, q->reply);
    }
    return hash128_of(&k, sizeof k);
}
