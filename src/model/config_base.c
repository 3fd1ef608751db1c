/* The fields that every family has under one name: widths, heads, layers, vocabulary.  What a config class
   assumes where config.json is silent is the family's to say; a GGUF file must have what llama.cpp
   writes for all. */
#include "base/diag.h"
#include "model/config.h"

/* Heads, and the width of one; elements of a row. */
enum { MOST_HEADS = 1 << 14, WIDE = 1 << 20 };

/* GGUF writes no vocabulary size for most families: the embedding tells. */
static int32_t vocab_size(config *c, int32_t otherwise)
{
    enum { MOST = 1 << 24 };
    if (!c->gguf && otherwise) return config_int(c, "vocab_size", NULL, 1, MOST, otherwise);
    if (!c->gguf) return config_need_int(c, "vocab_size", NULL, 1, MOST);
    const tensor_desc *t = source_find(c->src, "token_embd.weight");
    if (t && t->n_dim == 2 && t->dim[0] > 0 && t->dim[0] <= MOST) return (int32_t)t->dim[0];
    config_fail(c, "tensor token_embd.weight", "none of that shape", "[vocabulary, hidden]");
    return 1;
}

/* Without a width of its own a head has an equal share of the hidden state. */
static int32_t head_share(config *c, const model_shape *s)
{
    if (s->n_head > 0 && s->hidden % s->n_head == 0) return s->hidden / s->n_head;
    config_misfit(c, "hidden_size", "embedding_length", s->hidden, "a multiple of the %d heads",
                  (int)s->n_head);
    return 1;
}

static void check_heads(config *c, const model_shape *s)
{
    const int32_t dv = config_int(c, NULL, "attention.value_length", 1, MOST_HEADS, s->head_dim);
    if (dv != s->head_dim)
        config_misfit(c, NULL, "attention.value_length", dv, "%d as attention.key_length",
                      (int)s->head_dim);
    if (c->status == CAIRN_OK && s->n_head % s->n_kv_head != 0)
        config_misfit(c, "num_key_value_heads", "attention.head_count_kv", s->n_kv_head,
                      "a divisor of the %d heads", (int)s->n_head);
}

static void read_heads(config *c, const config_defaults *d, model_shape *s)
{
    static const char n[] = "num_attention_heads", gguf_n[] = "attention.head_count";
    static const char kv[] = "attention.head_count_kv", width[] = "attention.key_length";
    const bool defaults = !c->gguf;
    s->n_head = d->n_head && defaults ? config_int(c, n, NULL, 1, MOST_HEADS, d->n_head)
                                      : config_need_int(c, n, gguf_n, 1, MOST_HEADS);
    const int32_t n_kv = d->n_kv_head && defaults ? d->n_kv_head : s->n_head;
    s->n_kv_head = d->by_layer && c->gguf
                       ? config_first_above_0(c, kv, MOST_HEADS, n_kv)
                       : config_int(c, "num_key_value_heads", kv, 1, MOST_HEADS, n_kv);
    if (config_has(c, "head_dim", width))
        s->head_dim = config_need_int(c, "head_dim", width, 1, MOST_HEADS);
    else
        s->head_dim = d->head_dim && defaults ? d->head_dim : head_share(c, s);
    if (!d->latent) check_heads(c, s);
}

static int32_t mlp_width(config *c, const config_defaults *d)
{
    static const char hf[] = "intermediate_size", gguf[] = "feed_forward_length";
    if (d->by_layer && c->gguf) return config_first_above_0(c, gguf, WIDE, 1);
    if (d->by_layer && config_has(c, "intermediate_size.0", NULL))
        return config_int_at(c, hf, NULL, 0, 1, WIDE, 1);
    return d->ffn ? config_int(c, hf, gguf, 1, WIDE, d->ffn)
                  : config_need_int(c, hf, gguf, 1, WIDE);
}

/* As many as `key` has entries, else as the file says. */
static int32_t count_layers(config *c, const char *key)
{
    enum { MOST = 1 << 12 };
    meta m;
    if (!c->gguf && key && meta_get(&c->src->meta, key, &m)) {
        const size_t n = m.type == META_ARR ? m.u.n : m.type == META_STR ? m.u.s.len : 0;
        if (n >= 1 && n <= MOST) return (int32_t)n;
        config_fail_meta(c, key, &m, "one entry for each layer");
    }
    return config_need_int(c, "num_hidden_layers", "block_count", 1, MOST);
}

base_config config_base(config *c, const config_defaults *d)
{
    base_config b = {.partial = d->partial, .bias = d->bias};
    b.s.hidden = config_need_int(c, "hidden_size", "embedding_length", 1, WIDE);
    b.s.n_layer = count_layers(c, d->layers_key);
    if (!d->no_heads) read_heads(c, d, &b.s);
    b.s.ctx_train = config_int(c, "max_position_embeddings", "context_length", 1, 1 << 28, d->ctx);
    if (!d->no_mlp) b.ffn = mlp_width(c, d);
    b.eps = (float)config_num(c, d->eps_key ? d->eps_key : "rms_norm_eps",
                              "attention.layer_norm_rms_epsilon", 0, 1,
                              d->eps > 0 ? (double)d->eps : 1e-6);
    b.s.vocab = vocab_size(c, d->vocab);
    b.tied = c->gguf ? source_find(c->src, "output.weight") == NULL
                     : config_bool(c, "tie_word_embeddings", d->tied);
    return b;
}
