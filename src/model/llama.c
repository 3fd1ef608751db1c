/* Llama 2 and 3, Mistral, and the many models of that shape (SmolLM2, Yi, ...).
   Touvron et al. 2023, "LLaMA"; Dubey et al. 2024, "The Llama 3 herd of models"; Jiang et al. 2023,
   "Mistral 7B" (every layer windowed); Ministral (windows by layer) and Ministral 3, whose queries grow
   with the position by 1 + beta · log(1 + p div the original context).

   GGUF files of this architecture hold q and k with rows permuted so that rotary pairs are
   consecutive; HF files pair i with i + dim/2.  A file may carry frequency divisors (rope_freqs). */
#include "base/diag.h"
#include "base/str.h"
#include "model/decoder.h"

static const config_defaults llama_defaults = {.ctx = 2048, .bias = W_BIAS_ATTN | W_BIAS_MLP};
static const config_defaults ministral3_defaults = {
    .n_head = 32, .n_kv_head = 8, .head_dim = 128, .vocab = 131072, .ctx = 262144, .eps = 1e-5f};
static const config_defaults mistral_defaults = {.n_kv_head = 8, .ctx = 131072};

/* A Llama config may carry a window, which its reference ignores; a Mistral config that leaves it out
   means 4,096, one of Ministral 3 none; null means none. */
static int32_t window_of(config *c, bool mistral, bool third)
{
    if ((!mistral && !third) || config_null(c, "sliding_window")) return 0;
    return config_int(c, "sliding_window", NULL, 1, 1 << 28, third ? 0 : 4096);
}

/* The queries' rotation of Ministral 3, else NULL. */
static cairn_status tempered(model *m, config *c, const rope_params *p, decoder *d, cairn_diag *dg)
{
    const bool third = str_is(str_of(c->arch), "ministral3");
    if (!third && !str_is(str_of(c->arch), "mistral3")) return CAIRN_OK;
    rope_spec *q = arena_alloc(&m->a, sizeof *q);
    if (!q) return diag_set(dg, CAIRN_E_NOMEM, "model");
    *q = d->rope;
    config_temper(c, p, q);
    if (q->temper > 0 && p->dim != m->shape.head_dim)
        config_fail(c, "partial_rotary_factor", "a part", "heads that rotate whole");
    d->q_rope = q;
    return c->status;
}

static cairn_status llama_open(model *m, config *c, cairn_diag *dg)
{
    const bool third = str_is(str_of(c->arch), "ministral3");
    const bool mistral = str_is(str_of(c->arch), "mistral") || str_is(str_of(c->arch), "ministral");
    const base_config b = config_base(c, third     ? &ministral3_defaults
                                         : mistral ? &mistral_defaults
                                                   : &llama_defaults);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    d->window = config_windows(c, b.s.n_layer, window_of(c, mistral, third), 0, &m->a);
    rope.interleaved = c->gguf;
    TRY(decoder_bind(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg));
    return tempered(m, c, &rope, d, dg);
}

static const char *const hf_types[] = {"llama", "mistral", "ministral", "ministral3", NULL};
static const char *const gguf_archs[] = {"llama", "mistral3", NULL};
const family family_llama = {"llama", hf_types, gguf_archs, llama_open, decoder_forward, true};
