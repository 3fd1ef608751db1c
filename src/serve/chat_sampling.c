/* The fields of a body that say how tokens are drawn, by OpenAI's, mlx-lm's and llama-server's names; what each
   means is docs/sampling.md's.  Numbers are a table of name, range and place. */
#include "serve/chat_sampling.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

typedef struct num_field {
    const char *name;
    double lo, hi;
    size_t at; /* a float of cairn_sampling */
} num_field;

typedef struct int_field {
    const char *name;
    int32_t lo, hi;
    size_t at; /* an int32_t of cairn_sampling */
} int_field;

#define AT(field) offsetof(cairn_sampling, field)
static const num_field nums[] = {
    {"temperature", 0, 2, AT(temperature)},
    {"top_p", 0, 1, AT(top_p)},
    {"min_p", 0, 1, AT(min_p)},
    {"typical_p", 0, 1, AT(typical_p)},
    {"xtc_probability", 0, 1, AT(xtc_probability)},
    {"xtc_threshold", 0, 1, AT(xtc_threshold)},
    {"mirostat_tau", 0, 100, AT(mirostat_tau)},
    {"mirostat_eta", 0, 10, AT(mirostat_eta)},
    {"dry_multiplier", 0, 100, AT(dry_multiplier)},
    {"dry_base", 1, 100, AT(dry_base)},
    {"repetition_penalty", 0.01, 10, AT(repetition_penalty)},
    {"repeat_penalty", 0.01, 10, AT(repetition_penalty)},
    {"presence_penalty", -2, 2, AT(presence_penalty)},
    {"frequency_penalty", -2, 2, AT(frequency_penalty)},
};
static const int_field ints[] = {
    {"top_k", -1, INT32_MAX, AT(top_k)}, /* -1: off, as others write it */
    {"mirostat", 0, 2, AT(mirostat)},
    {"dry_allowed_length", 0, CAIRN_MAX_DRY_ALLOWED, AT(dry_allowed_length)},
    {"repetition_context_size", 0, INT32_MAX, AT(repetition_window)},
    {"presence_context_size", 0, INT32_MAX, AT(presence_window)},
    {"frequency_context_size", 0, INT32_MAX, AT(frequency_window)},
};
#undef AT

static cairn_status read_num(json_val root, const num_field *n, cairn_sampling *s, chat_fault *f)
{
    float *to = (float *)(void *)((char *)s + n->at);
    double v = (double)*to;

    (void)snprintf(f->param, sizeof f->param, "%s", n->name);
    TRY(json_want_num(root, n->name, n->lo, n->hi, &v, &f->dg));
    *to = (float)v;
    return CAIRN_OK;
}

static cairn_status read_int(json_val root, const int_field *n, int32_t *to, chat_fault *f)
{
    int64_t v = *to;

    (void)snprintf(f->param, sizeof f->param, "%s", n->name);
    TRY(json_want_int(root, n->name, n->lo, n->hi, &v, &f->dg));
    *to = (int32_t)v;
    return CAIRN_OK;
}

/* llama-server's windows: 0 switches off what looks at them, -1 is everything. */
static cairn_status read_windows(json_val root, cairn_sampling *s, chat_fault *f)
{
    static const int_field of_penalties = {"repeat_last_n", -1, INT32_MAX, 0};
    static const int_field of_dry = {"dry_penalty_last_n", -1, INT32_MAX, 0};
    int32_t n = INT32_MIN, n_dry = -1;

    TRY(read_int(root, &of_penalties, &n, f));
    if (n == 0) {
        s->repetition_penalty = 1;
        s->presence_penalty = s->frequency_penalty = 0;
    } else if (n >= -1) {
        s->repetition_window = n < 0 ? 0 : n;
        s->presence_window = s->frequency_window = n < 0 ? INT32_MAX : n;
    }
    TRY(read_int(root, &of_dry, &n_dry, f));
    if (n_dry == 0) s->dry_multiplier = 0;
    if (n_dry > 0) s->dry_window = n_dry;
    return CAIRN_OK;
}

cairn_status chat_seed_read(json_val root, chat_ask *a, chat_fault *f)
{
    json_val v = json_get(root, "seed");

    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    a->has_seed = true;
    if (json_typeof(v) != JSON_INT && json_typeof(v) != JSON_UINT)
        return chat_fault_set(f, CAIRN_E_ARG, "seed",
                              "`seed` must be an integer from -2^63 to 2^64 - 1, found %s",
                              json_type_name(json_typeof(v)));
    a->rq.sampling.seed = json_typeof(v) == JSON_UINT ? json_uint(v, 0) : (uint64_t)json_int(v, 0);
    return CAIRN_OK;
}

/* A token id written as an object's key. */
static bool key_to_id(cairn_str key, int32_t *out)
{
    int64_t id = 0;

    if (key.len == 0 || key.len > 9) return false;
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] < '0' || key.ptr[i] > '9') return false;
        id = id * 10 + (key.ptr[i] - '0');
    }
    *out = (int32_t)id;
    return true;
}

static cairn_status read_bias(json_val root, chat_ask *a, chat_fault *f)
{
    json_val v = json_get(root, "logit_bias"), value;
    json_iter it = json_each(v);
    cairn_bias *list;
    cairn_str key;
    size_t n = json_size(v);

    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(v) != JSON_OBJ || n > CAIRN_MAX_BIAS)
        return chat_fault_set(f, CAIRN_E_ARG, "logit_bias",
                              "`logit_bias` must be an object of at most %d token ids",
                              CAIRN_MAX_BIAS);
    list = arena_calloc(&a->mem, n + 1, sizeof *list);
    if (!list) return chat_fault_set(f, CAIRN_E_NOMEM, "logit_bias", "no memory");
    a->rq.sampling.bias = list;
    for (n = 0; json_next_member(&it, &key, &value); n++) {
        double x = json_num(value, 1e9);
        if (!key_to_id(key, &list[n].id) || x < -100 || x > 100)
            return chat_fault_set(
                f, CAIRN_E_ARG, "logit_bias",
                "`logit_bias` takes token ids to numbers from -100 to 100: `%.*s`", STR_ARG(key));
        list[n].value = (float)x;
    }
    a->rq.sampling.n_bias = n;
    return CAIRN_OK;
}

static cairn_status read_breakers(json_val root, chat_ask *a, chat_fault *f)
{
    static const char name[] = "dry_sequence_breakers";
    json_val v = json_get(root, name), item;
    json_iter it = json_each(v);
    const size_t n = json_size(v);
    cairn_str *list;

    if (json_typeof(v) <= JSON_NULL) return CAIRN_OK;
    if (json_typeof(v) != JSON_ARR || n > CAIRN_MAX_BREAKERS)
        return chat_fault_set(f, CAIRN_E_ARG, name, "`%s` must be an array of at most %d strings",
                              name, CAIRN_MAX_BREAKERS);
    list = arena_calloc(&a->mem, n + 1, sizeof *list);
    if (!list) return chat_fault_set(f, CAIRN_E_NOMEM, name, "no memory");
    for (size_t i = 0; json_next(&it, &item); i++) {
        list[i] = json_str(item);
        if (list[i].len == 0 || list[i].len > CAIRN_MAX_BREAKER_BYTES)
            return chat_fault_set(f, CAIRN_E_ARG, name,
                                  "`%s` must be an array of strings of 1 to %d bytes", name,
                                  CAIRN_MAX_BREAKER_BYTES);
    }
    a->rq.sampling.dry_breakers = list;
    a->rq.sampling.n_dry_breakers = n;
    return CAIRN_OK;
}

cairn_status chat_sampling_read(json_val root, chat_ask *a, chat_fault *f)
{
    cairn_sampling *s = &a->rq.sampling;

    TRY(chat_constraints_refuse(root, f));
    s->repetition_window = 20; /* what mlx-lm's field of this name defaults to */
    for (size_t i = 0; i < sizeof nums / sizeof nums[0]; i++) TRY(read_num(root, &nums[i], s, f));
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++)
        TRY(read_int(root, &ints[i], (int32_t *)(void *)((char *)s + ints[i].at), f));
    if (s->top_k < 0) s->top_k = 0;
    TRY(read_windows(root, s, f));
    TRY(chat_seed_read(root, a, f));
    TRY(read_breakers(root, a, f));
    return read_bias(root, a, f);
}
