/* XTC, "exclude top choices" (P. E. Weidmann 2024, text-generation-webui pull request 6335): with a chance,
   of the tokens that reach the threshold all but the least likely go.  Of equal ones the last by id counts as
   the least likely, as everywhere.  Ids that end the text or a line are spared, as mlx-lm spares them: without
   them a text would not end. */
#include <string.h>

#include "base/num.h"
#include "sample/sample_priv.h"

static bool is_spared(const sampler *s, int32_t id)
{
    for (int32_t i = 0; i < s->n_spared; i++)
        if (s->spared[i] == id) return true;
    return false;
}

/* The least likely of those that reach it, the last of equals; -1: none does. */
static int32_t find_least(const sampler *s, double need)
{
    int32_t least = -1;
    for (int32_t from = 0; from < s->n; from += RUN) {
        if ((double)s->high[from / RUN] < need) continue;
        const int32_t end = min_i32(from + RUN, s->n);
        for (int32_t i = from; i < end; i++)
            if ((double)s->weight[i] >= need && (least < 0 || s->value[i] <= s->value[least]))
                least = i;
    }
    return least;
}

static int32_t keep_token(sampler *s, int32_t n, int32_t i)
{
    s->id[n] = s->id[i];
    s->value[n] = s->value[i];
    return n + 1;
}

static void exclude(sampler *s, double need, int32_t least)
{
    int32_t n = 0;
    for (int32_t from = 0; from < s->n; from += RUN) {
        const int32_t end = min_i32(from + RUN, s->n);
        const bool some = (double)s->high[from / RUN] >= need;
        for (int32_t i = from; some && i < end; i++)
            if ((double)s->weight[i] < need || i == least || is_spared(s, s->id[i]))
                n = keep_token(s, n, i);
        if (some) continue;
        memmove(s->id + n, s->id + from, (size_t)(end - from) * sizeof *s->id);
        memmove(s->value + n, s->value + from, (size_t)(end - from) * sizeof *s->value);
        n += end - from;
    }
    s->n = n;
}

void xtc_keep(sampler *s, const sample_in *in)
{
    const cairn_sampling *p = in->how;
    if (p->xtc_probability <= 0.0f || s->n < 2) return;
    if (sample_unit(in, DRAW_XTC) >= (double)p->xtc_probability) return;
    const double sum = weigh(s, s->value, s->n, weigh_top(s, s->value, s->n), 1.0f);
    const double need = sum * (double)p->xtc_threshold;
    (void)weigh_top(s, s->weight, s->n); /* for its runs' */
    const int32_t least = find_least(s, need);
    if (least >= 0) exclude(s, need, least);
}
