/* Flags of sampling: their table, and what of them becomes of a request. */
#include "cli/sample_flags.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/rng.h"

void sample_flags_init(sample_flags *f, flag *table)
{
    cairn_request neutral;
    cairn_request_init(&neutral);
    const cairn_sampling *n = &neutral.sampling;
    *f = (sample_flags){.how = *n,
                        .temp = 0.7,
                        .top_p = 1,
                        .min_p = 0.05,
                        .typical_p = 1,
                        .xtc_threshold = (double)n->xtc_threshold,
                        .tau = (double)n->mirostat_tau,
                        .eta = (double)n->mirostat_eta,
                        .repetition = 1,
                        .dry_base = (double)n->dry_base,
                        .last_n = -1,
                        .dry_allowed = n->dry_allowed_length,
                        .dry_last_n = -1};
    f->breakers = (flag_list){f->breaker, 0, CAIRN_MAX_BREAKERS};
    f->biases = (flag_list){f->bias, 0, SAMPLE_MAX_BIAS};
    const flag all[] = {
        {"--temp", NULL, FLAG_NUM, &f->temp, "T: temperature, 0: greedy (0.7)", 0, 100, NULL},
        {"--top-k", NULL, FLAG_INT, &f->top_k, "K: only the K likeliest, 0: all", 0, 1 << 24, NULL},
        {"--top-p", NULL, FLAG_NUM, &f->top_p, "P: only the likeliest that reach P, 1: all (1)", 0,
         1, NULL},
        {"--min-p", NULL, FLAG_NUM, &f->min_p, "P: only those of P times the best, 0: all (0.05)",
         0, 1, NULL},
        {"--typical-p", "--typical", FLAG_NUM, &f->typical_p,
         "P: only those of about the expected surprise that reach P, 1: all (1)", 0, 1, NULL},
        {"--xtc-probability", NULL, FLAG_NUM, &f->xtc_probability,
         "P: how often the likeliest are left out (0)", 0, 1, NULL},
        {"--xtc-threshold", NULL, FLAG_NUM, &f->xtc_threshold,
         "P: which are: of those of P or more all but the last (0.1)", 0, 1, NULL},
        {"--mirostat", NULL, FLAG_INT, &f->mirostat,
         "V: version 1 or 2, in the place of these cuts, 0: off (0)", 0, 2, NULL},
        {"--mirostat-tau", "--mirostat-ent", FLAG_NUM, &f->tau, "T: bits of surprise to aim at (5)",
         0, 100, NULL},
        {"--mirostat-eta", "--mirostat-lr", FLAG_NUM, &f->eta, "E: how quickly (0.1)", 0, 10, NULL},
        {"--repetition-penalty", "--repeat-penalty", FLAG_NUM, &f->repetition, "R: 1: none", 0.01,
         100, NULL},
        {"--presence-penalty", NULL, FLAG_NUM, &f->presence, "P: of what was generated (0)", -100,
         100, NULL},
        {"--frequency-penalty", NULL, FLAG_NUM, &f->frequency, "P: for each time it was (0)", -100,
         100, NULL},
        {"--repeat-last-n", NULL, FLAG_INT, &f->last_n,
         "N: penalties look at the last N tokens, the prompt's too; 0: none, -1: each at its own "
         "(-1)",
         -1, CAIRN_MAX_CTX, NULL},
        {"--dry-multiplier", NULL, FLAG_NUM, &f->dry_multiplier,
         "M: penalty of what prolongs a repeat, 0: off (0)", 0, 1e6, NULL},
        {"--dry-base", NULL, FLAG_NUM, &f->dry_base, "B: growth of it with each token (1.75)", 1,
         1e6, NULL},
        {"--dry-allowed-length", NULL, FLAG_INT, &f->dry_allowed,
         "N: tokens that may be repeated (2)", 0, CAIRN_MAX_DRY_ALLOWED, NULL},
        {"--dry-penalty-last-n", NULL, FLAG_INT, &f->dry_last_n,
         "N: looks at the last N tokens; 0: off, -1: all (-1)", -1, CAIRN_MAX_CTX, NULL},
        {"--dry-sequence-breaker", NULL, FLAG_LIST, &f->breakers,
         "TEXT: a repeat ends there; \\n and \\t are read; none: nowhere (\\n : \" *)", 0, 0, NULL},
        {"--logit-bias", NULL, FLAG_LIST, &f->biases, "ID+B or ID-B: added to a token's logit", 0,
         0, NULL},
        {"--seed", NULL, FLAG_INT, &f->seed, "S: the same seed gives the same text", 0, 0,
         &f->seed_given},
    };
    static_assert(sizeof all / sizeof *all == SAMPLE_FLAGS, "SAMPLE_FLAGS counts them");
    memcpy(table, all, sizeof all);
}

/* TEXT with \n, \t and \\ read; at most as long as itself. */
static cairn_status read_breaker(const char *text, char *to, cairn_str *out, cairn_diag *dg)
{
    size_t n = 0;
    for (const char *p = text; *p && n <= CAIRN_MAX_BREAKER_BYTES; p++, n++) {
        char c = *p;
        if (c == '\\' && (p[1] == 'n' || p[1] == 't' || p[1] == '\\')) {
            p++;
            c = *p == 'n' ? '\n' : *p == 't' ? '\t' : '\\';
        }
        if (n < CAIRN_MAX_BREAKER_BYTES) to[n] = c;
    }
    if (n == 0 || n > CAIRN_MAX_BREAKER_BYTES)
        return diag_set(dg, CAIRN_E_ARG,
                        "--dry-sequence-breaker: found \"%s\"; expected 1 to %d bytes", text,
                        CAIRN_MAX_BREAKER_BYTES);
    *out = (cairn_str){to, n};
    return CAIRN_OK;
}

static cairn_status read_breakers(sample_flags *f, cairn_diag *dg)
{
    if (f->breakers.n == 0) return CAIRN_OK;
    f->how.dry_breakers = f->breaker_text;
    f->how.n_dry_breakers = 0;
    if (f->breakers.n == 1 && strcmp(f->breaker[0], "none") == 0) return CAIRN_OK;
    for (size_t i = 0; i < f->breakers.n; i++)
        TRY(read_breaker(f->breaker[i], f->breaker_bytes[i], &f->breaker_text[i], dg));
    f->how.n_dry_breakers = f->breakers.n;
    return CAIRN_OK;
}

static cairn_status read_biases(sample_flags *f, cairn_diag *dg)
{
    for (size_t i = 0; i < f->biases.n; i++) {
        char *sign, *end;
        const long id = strtol(f->bias[i], &sign, 10);
        const double b = strtod(sign, &end);
        if (sign == f->bias[i] || (*sign != '+' && *sign != '-') || end == sign || *end || id < 0 ||
            id > INT32_MAX)
            return diag_set(dg, CAIRN_E_ARG, "--logit-bias: found \"%s\"; expected ID+B or ID-B",
                            f->bias[i]);
        f->bias_value[i] = (cairn_bias){(int32_t)id, (float)b};
    }
    f->how.bias = f->bias_value;
    f->how.n_bias = f->biases.n;
    return CAIRN_OK;
}

cairn_status sample_flags_read(sample_flags *f, cairn_diag *dg)
{
    cairn_sampling *s = &f->how;
    const bool penalties = f->last_n != 0, dry = f->dry_last_n != 0;
    s->temperature = (float)f->temp;
    s->top_k = (int32_t)f->top_k;
    s->top_p = (float)f->top_p;
    s->min_p = (float)f->min_p;
    s->typical_p = (float)f->typical_p;
    s->xtc_probability = (float)f->xtc_probability;
    s->xtc_threshold = (float)f->xtc_threshold;
    s->mirostat = (int32_t)f->mirostat;
    s->mirostat_tau = (float)f->tau;
    s->mirostat_eta = (float)f->eta;
    s->repetition_penalty = penalties ? (float)f->repetition : 1;
    s->presence_penalty = penalties ? (float)f->presence : 0;
    s->frequency_penalty = penalties ? (float)f->frequency : 0;
    s->repetition_window = s->presence_window = s->frequency_window =
        f->last_n > 0 ? (int32_t)f->last_n : 0;
    s->dry_multiplier = dry ? (float)f->dry_multiplier : 0;
    s->dry_base = (float)f->dry_base;
    s->dry_allowed_length = (int32_t)f->dry_allowed;
    s->dry_window = f->dry_last_n > 0 ? (int32_t)f->dry_last_n : 0;
    s->seed = f->seed_given ? (uint64_t)f->seed : rng_u64(clock_ns(), 0, (uint64_t)getpid());
    TRY(read_breakers(f, dg));
    return read_biases(f, dg);
}
