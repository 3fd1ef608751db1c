/* XTC, "exclude top choices" (P. E. Weidmann 2024, text-generation-webui pull request 6335): with a chance,
   of the tokens that reach the threshold all but the least likely go.  Of equal ones the last by id counts as
   the least likely, as everywhere.  Ids that end the text or a line are spared, as mlx-lm spares them: without
   them a text would not end. */
#include "sample/sample_priv.h"

static bool is_spared(const sampler *s, int32_t id)
{
    for (int32_t i = 0; i < s->n_spared; i++)
        if (s->spared[i] == id) return true;
    return false;
}

void xtc_keep(sampler *s, const sample_in *in)
{
    const cairn_sampling *p = in->how;
    if (p->xtc_probability <= 0.0f || s->n < 2) return;
    if (sample_unit(in, DRAW_XTC) >= (double)p->xtc_probability) return;
    const double sum = weigh(s, s->value, s->n, weigh_top(s->value, s->n), 1.0f);
    const double need = sum * (double)p->xtc_threshold;
    int32_t least = -1, n = 0;
    for (int32_t i = 0; i < s->n; i++)
        if ((double)s->weight[i] >= need && (least < 0 || s->value[i] <= s->value[least]))
            least = i;
    if (least < 0) return;
    for (int32_t i = 0; i < s->n; i++) {
        if ((double)s->weight[i] >= need && i != least && !is_spared(s, s->id[i])) continue;
        s->id[n] = s->id[i];
        s->value[n++] = s->value[i];
    }
    s->n = n;
}
