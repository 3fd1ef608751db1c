/* Phi-3, 3.5 and 4-mini (Abdin et al. 2024, "Phi-3 technical report"): a Llama block whose q, k, v lie
   in one tensor and gate, up in another; windowed layers; in the long models two lists of frequency
   divisors ("LongRoPE"), over a part of each head in 4-mini.

   llama.cpp leaves the windows of GGUF files out and takes one of the two lists for the whole
   context; here both are as in the reference. */
#include "base/diag.h"
#include "model/decoder.h"

static const config_defaults phi3_defaults = {
    .n_head = 32, .vocab = 32064, .ctx = 4096, .eps = 1e-5f, .partial = 1.0f};

/* The reference takes the original context from the top of config.json, or 4,096, whatever the
   block of rotary parameters says. */
static rope_params read_rope(config *c, const base_config *b, arena *a)
{
    rope_params p = config_rope(c, b, NULL, 10000.0, a);
    if (p.kind != ROPE_LONG || c->gguf) return p;
    const bool factor =
        config_has(c, "rope_scaling.factor", NULL) || config_has(c, "rope_parameters.factor", NULL);
    p.ctx_orig = config_int(c, "original_max_position_embeddings", NULL, 1, 1 << 28, 4096);
    if (!factor) p.factor = (double)p.ctx / p.ctx_orig;
    return p;
}

static cairn_status phi_open(model *m, config *c, cairn_diag *dg)
{
    const base_config b = config_base(c, &phi3_defaults);
    const rope_params rope = read_rope(c, &b, &m->a);
    decoder *d;
    TRY(decoder_begin(m, c, &b, &d, dg));
    config_only_one(c, "hidden_act", "silu");
    if (rope.kind == ROPE_YARN)
        config_fail(c, "rope_scaling.type", "\"yarn\"", "longrope in this family");
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", c->gguf ? 0 : 1, 1 << 28, 0);
    d->window = config_windows(c, b.s.n_layer, window, 0, &m->a);
    return decoder_bind(m, c, &b, &rope, decoder_pre_norms, DECODER_PRE_NORMS, dg);
}

static const char *const hf_types[] = {"phi3", NULL};
static const char *const gguf_archs[] = {"phi3", NULL};
const family family_phi = {"phi", hf_types, gguf_archs, phi_open, decoder_forward, true};
