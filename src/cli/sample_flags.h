/* The flags that say how tokens are drawn, by the names of llama.cpp's and mlx-lm's. */
#ifndef CLI_SAMPLE_FLAGS_H
#define CLI_SAMPLE_FLAGS_H

#include "base/flags.h"
#include "cairn/engine.h"

enum { SAMPLE_FLAGS = 21, SAMPLE_MAX_BIAS = 64 /* that anyone would type */ };

typedef struct sample_flags {
    cairn_sampling how; /* what sample_flags_read makes */
    double temp, top_p, min_p, typical_p, xtc_probability, xtc_threshold;
    double tau, eta, repetition, presence, frequency, dry_multiplier, dry_base;
    int64_t top_k, seed, mirostat, last_n, dry_allowed, dry_last_n;
    bool seed_given;
    const char *breaker[CAIRN_MAX_BREAKERS], *bias[SAMPLE_MAX_BIAS];
    flag_list breakers, biases;
    char breaker_bytes[CAIRN_MAX_BREAKERS][CAIRN_MAX_BREAKER_BYTES];
    cairn_str breaker_text[CAIRN_MAX_BREAKERS];
    cairn_bias bias_value[SAMPLE_MAX_BIAS];
} sample_flags;

/* Defaults, and the flags that change them at table[0 … SAMPLE_FLAGS - 1].  f stays where it is. */
void sample_flags_init(sample_flags *f, flag *table);
/* f->how of what was parsed; it points into f.  E_ARG: a list's word is wrong. */
cairn_status sample_flags_read(sample_flags *f, cairn_diag *dg);

#endif
