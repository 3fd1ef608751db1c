/* Llama 2 and 3, Mistral, and the many models of that shape (SmolLM2, Yi, ...).
   Touvron et al. 2023, "LLaMA"; Dubey et al. 2024, "The Llama 3 herd of models"; Jiang et al. 2023,
   "Mistral 7B" (every layer windowed).

   GGUF files of this architecture hold q and k with rows permuted so that rotary pairs are
   consecutive; HF files pair i with i + dim/2.  A file may carry frequency divisors (rope_freqs). */
#include <math.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/decoder.h"

typedef struct llama {
    decoder d;
    const int32_t *window; /* of each layer, 0: none */
    rope_spec rope;
    float eps;
} llama;

static const config_defaults llama_defaults = {.ctx = 2048};
static const config_defaults mistral_defaults = {.n_kv_head = 8, .ctx = 131072};

/* A Llama config may carry a window, which its reference ignores; a Mistral config that leaves it out
   means 4,096, and null means none. */
static int32_t window_of(config *c, bool mistral)
{
    if (!mistral || config_null(c, "sliding_window")) return 0;
    return config_int(c, "sliding_window", NULL, 1, 1 << 28, 4096);
}

static void bias_policy(config *c, weights *w)
{
    if (c->gguf) w->may_bias = W_BIAS_QKV | W_BIAS_OUT | W_BIAS_MLP;
    if (config_bool(c, "attention_bias", false)) w->need_bias |= W_BIAS_QKV | W_BIAS_OUT;
    if (config_bool(c, "mlp_bias", false)) w->need_bias |= W_BIAS_MLP;
}

static cairn_status llama_open(model *m, config *c, cairn_diag *dg)
{
    static const char *const acts[] = {"silu", NULL};
    const bool mistral = str_is(str_of(c->arch), "mistral");
    const base_config b = config_base(c, mistral ? &mistral_defaults : &llama_defaults);
    llama *l = arena_calloc(&m->a, 1, sizeof *l);
    if (!l) return diag_set(dg, CAIRN_E_NOMEM, "model");
    TRY(c->status);
    config_only(c, "hidden_act", acts);
    m->shape = b.s;
    m->impl = l;
    l->eps = b.eps;
    l->window = config_windows(c, b.s.n_layer, window_of(c, mistral), 0, &m->a);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    TRY(family_weights(m, &b, dg));
    bias_policy(c, &m->w);
    TRY(c->status);
    rope.interleaved = c->gguf;
    TRY(weights_vector(&m->w, "rope_freqs.weight", rope.dim / 2, &rope.divisor, dg));
    TRY(rope_make(&rope, &m->a, &l->rope, dg));
    TRY(family_cache(m, l->window, dg));
    return decoder_bind(m, &l->d, b.tied, false, dg);
}

static val llama_forward(fwd *f, const model *m)
{
    const llama *l = m->impl;
    const model_shape *s = &m->shape;
    attention a = {.h = {s->n_head, s->n_kv_head, s->head_dim},
                   .scale = 1.0f / sqrtf((float)s->head_dim)};
    val x = embed(f, l->d.tok_embed, 1.0f);
    tap(f, x, 0);
    for (f->layer = 0; f->layer < s->n_layer; f->layer++) {
        const decoder_layer *L = &l->d.layer[f->layer];
        val h = rms_norm(f, x, L->attn_norm, l->eps);
        a.window = l->window[f->layer];
        h = gqa(f, h, &L->attn, &a, &l->rope, l->eps);
        x = add(f, x, h);
        h = rms_norm(f, x, L->mlp_norm, l->eps);
        h = glu_mlp(f, h, &L->mlp, GLU_SILU);
        x = add(f, x, h);
        tap(f, x, f->layer + 1);
    }
    f->layer = -1;
    x = rms_norm(f, x, l->d.out_norm, l->eps);
    return linear(f, x, l->d.lm_head);
}

static const char *const hf_types[] = {"llama", "mistral", NULL};
static const char *const gguf_archs[] = {"llama", NULL};
const family family_llama = {"llama", hf_types, gguf_archs, llama_open, llama_forward};
