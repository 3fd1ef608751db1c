/* Llama 2 and 3, Mistral, and the many models of that shape (SmolLM2, Yi, ...).
   Touvron et al. 2023, "LLaMA"; Dubey et al. 2024, "The Llama 3 herd of models"; Jiang et al. 2023,
   "Mistral 7B" (every layer windowed).

   GGUF files of this architecture hold q and k with rows permuted so that rotary pairs are
   consecutive; HF files pair i with i + dim/2.  A file may carry frequency divisors (rope_freqs). */
#include "base/diag.h"
#include "base/str.h"
#include "model/decoder.h"

static const config_defaults llama_defaults = {.ctx = 2048};
static const config_defaults mistral_defaults = {.n_kv_head = 8, .ctx = 131072};

/* A Llama config may carry a window, which its reference ignores; a Mistral config that leaves it out
   means 4,096, and null means none. */
static int32_t window_of(config *c, bool mistral)
{
    if (!mistral || config_null(c, "sliding_window")) return 0;
    return config_int(c, "sliding_window", NULL, 1, 1 << 28, 4096);
}

static cairn_status llama_open(model *m, config *c, cairn_diag *dg)
{
    static const char *const acts[] = {"silu", NULL};
    const bool mistral = str_is(str_of(c->arch), "mistral") || str_is(str_of(c->arch), "ministral");
    const base_config b = config_base(c, mistral ? &mistral_defaults : &llama_defaults);
    rope_params rope = config_rope(c, &b, NULL, 10000.0, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only(c, "hidden_act", acts);
    d->window = config_windows(c, b.s.n_layer, window_of(c, mistral), 0, &m->a);
    rope.interleaved = c->gguf;
    return decoder_bind(m, c, &b, d, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg);
}

static const char *const hf_types[] = {"llama", "mistral", "ministral", NULL};
static const char *const gguf_archs[] = {"llama", NULL};
const family family_llama = {"llama", hf_types, gguf_archs, llama_open, decoder_forward};
