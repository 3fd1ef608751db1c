/* What may be asked of the sampling chain, and what asks for nothing. */
#include <math.h>

#include "base/diag.h"
#include "sample/sample.h"

cairn_sampling sample_neutral(void)
{
    /* llama.cpp's defaults, where a chain has one thing switched on. */
    static const cairn_str breakers[] = {{"\n", 1}, {":", 1}, {"\"", 1}, {"*", 1}};
    return (cairn_sampling){.top_p = 1.0f,
                            .repetition_penalty = 1.0f,
                            .typical_p = 1.0f,
                            .xtc_threshold = 0.1f,
                            .mirostat_tau = 5.0f,
                            .mirostat_eta = 0.1f,
                            .dry_base = 1.75f,
                            .dry_allowed_length = 2,
                            .dry_breakers = breakers,
                            .n_dry_breakers = sizeof breakers / sizeof *breakers};
}

sample_state sample_begin(const cairn_sampling *p)
{
    return (sample_state){2 * (double)p->mirostat_tau}; /* as both algorithms begin */
}

typedef struct num_range {
    const char *name;
    float value, lo, hi;
} num_range;

typedef struct int_range {
    const char *name;
    int32_t value, lo, hi;
} int_range;

static cairn_status check_nums(const cairn_sampling *p, cairn_diag *dg)
{
    const num_range all[] = {
        {"temperature", p->temperature, 0, 100},
        {"top_p", p->top_p, 0, 1},
        {"min_p", p->min_p, 0, 1},
        {"typical_p", p->typical_p, 0, 1},
        {"xtc_probability", p->xtc_probability, 0, 1},
        {"xtc_threshold", p->xtc_threshold, 0, 1},
        {"mirostat_tau", p->mirostat_tau, 0, 100},
        {"mirostat_eta", p->mirostat_eta, 0, 10},
        {"repetition_penalty", p->repetition_penalty, 1e-3f, 1e3f},
        {"presence_penalty", p->presence_penalty, -100, 100},
        {"frequency_penalty", p->frequency_penalty, -100, 100},
        {"dry_multiplier", p->dry_multiplier, 0, 1e6f},
        {"dry_base", p->dry_base, 1, 1e6f},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const num_range *r = &all[i];
        if (r->value >= r->lo && r->value <= r->hi) continue; /* NaN is not */
        return diag_set(dg, CAIRN_E_ARG, "%s is %g; expected %g to %g", r->name, (double)r->value,
                        (double)r->lo, (double)r->hi);
    }
    return CAIRN_OK;
}

static cairn_status check_ints(const cairn_sampling *p, cairn_diag *dg)
{
    const int_range all[] = {
        {"top_k", p->top_k, 0, INT32_MAX},
        {"repetition_window", p->repetition_window, 0, INT32_MAX},
        {"presence_window", p->presence_window, 0, INT32_MAX},
        {"frequency_window", p->frequency_window, 0, INT32_MAX},
        {"mirostat", p->mirostat, 0, 2},
        {"dry_allowed_length", p->dry_allowed_length, 0, CAIRN_MAX_DRY_ALLOWED},
        {"dry_window", p->dry_window, 0, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int_range *r = &all[i];
        if (r->value >= r->lo && r->value <= r->hi) continue;
        return diag_set(dg, CAIRN_E_ARG, "%s is %d; expected %d to %d", r->name, r->value, r->lo,
                        r->hi);
    }
    return CAIRN_OK;
}

static cairn_status check_bias(const cairn_sampling *p, int32_t vocab, cairn_diag *dg)
{
    if (p->n_bias > CAIRN_MAX_BIAS)
        return diag_set(dg, CAIRN_E_ARG, "%zu logit biases; expected at most %d", p->n_bias,
                        CAIRN_MAX_BIAS);
    if (p->n_bias && !p->bias)
        return diag_set(dg, CAIRN_E_ARG, "logit_bias has %zu entries and no array", p->n_bias);
    for (size_t i = 0; i < p->n_bias; i++) {
        const cairn_bias *b = &p->bias[i];
        if (b->id < 0 || b->id >= vocab)
            return diag_set(dg, CAIRN_E_ARG, "logit_bias of id %d; the vocabulary has %d", b->id,
                            vocab);
        if (isnan(b->value) || b->value > 1e6f)
            return diag_set(dg, CAIRN_E_ARG, "logit_bias of id %d is %g; expected at most 1e6",
                            b->id, (double)b->value);
    }
    return CAIRN_OK;
}

static cairn_status check_breakers(const cairn_sampling *p, cairn_diag *dg)
{
    if (p->n_dry_breakers > CAIRN_MAX_BREAKERS)
        return diag_set(dg, CAIRN_E_ARG, "%zu dry_breakers; expected at most %d", p->n_dry_breakers,
                        CAIRN_MAX_BREAKERS);
    if (p->n_dry_breakers && !p->dry_breakers)
        return diag_set(dg, CAIRN_E_ARG, "dry_breakers has %zu entries and no array",
                        p->n_dry_breakers);
    for (size_t i = 0; i < p->n_dry_breakers; i++) {
        const size_t n = p->dry_breakers[i].len;
        if (n < 1 || n > CAIRN_MAX_BREAKER_BYTES)
            return diag_set(dg, CAIRN_E_ARG,
                            "dry_breakers: entry %zu has %zu bytes; expected 1 to %d", i, n,
                            CAIRN_MAX_BREAKER_BYTES);
    }
    return CAIRN_OK;
}

/* Percents below the floor count as it: two knots there are one. */
static cairn_status check_curve(const cairn_sampling *p, cairn_diag *dg)
{
    const size_t n = p->n_curve;
    if (n == 0) return CAIRN_OK;
    if (n < 2 || n > CAIRN_MAX_KNOTS || !p->curve)
        return diag_set(dg, CAIRN_E_ARG, "curve has %zu knots; expected an array of 2 to %d", n,
                        CAIRN_MAX_KNOTS);
    for (size_t i = 0; i < n; i++) {
        const cairn_knot *k = &p->curve[i];
        if (!(k->x >= 0 && k->x <= 100 && k->y >= 0 && k->y <= 100))
            return diag_set(dg, CAIRN_E_ARG, "curve: knot %zu is (%g, %g); expected 0 to 100", i,
                            (double)k->x, (double)k->y);
        if (i &&
            (k->x <= p->curve[i - 1].x || k->x <= SAMPLE_CURVE_FLOOR || k->y < p->curve[i - 1].y))
            return diag_set(dg, CAIRN_E_ARG,
                            "curve: knot %zu is (%g, %g) after (%g, %g); expected a greater x (and "
                            "above %g), and no smaller y",
                            i, (double)k->x, (double)k->y, (double)p->curve[i - 1].x,
                            (double)p->curve[i - 1].y, (double)SAMPLE_CURVE_FLOOR);
    }
    return CAIRN_OK;
}

cairn_status sample_check(const cairn_sampling *p, int32_t vocab, cairn_diag *dg)
{
    TRY(check_nums(p, dg));
    TRY(check_ints(p, dg));
    TRY(check_curve(p, dg));
    TRY(check_bias(p, vocab, dg));
    return check_breakers(p, dg);
}
