/* Reading a model's numbers from either file format, by both names at once, with a sticky error. */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include "cairn/status.h"
#include "model/model.h"
#include "tensor/source.h"

enum { CONFIG_KEY_LEN = 128 };

typedef struct config {
    const source *src;
    bool gguf;
    char arch[48]; /* GGUF: general.architecture; HF: model_type */
    cairn_diag *dg;
    cairn_status status;
} config;

config config_of(const source *src, cairn_diag *dg);

/* `hf` is a dotted path of config.json, `gguf` a key after "ARCH."; either may be NULL: the format has
   no such field and `otherwise` holds.  A value of the wrong type or outside [lo, hi] is an error. */
int32_t config_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi,
                   int32_t otherwise);
/* The same of a field that may be a list: its entry i. */
int32_t config_int_at(config *c, const char *hf, const char *gguf, int32_t i, int32_t lo,
                      int32_t hi, int32_t otherwise);
/* Of a list by layer in a GGUF file, in which layers without the thing have 0; or of one number for all. */
int32_t config_first_above_0(config *c, const char *gguf, int32_t most, int32_t otherwise);
/* A default of the config class: GGUF files must have the key. */
int32_t config_class_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi,
                         int32_t otherwise);
int32_t config_need_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi);
double config_num(config *c, const char *hf, const char *gguf, double lo, double hi,
                  double otherwise);
/* Entry i of a field that must be a list of n numbers. */
double config_num_at(config *c, const char *hf, const char *gguf, int32_t i, int32_t n, double lo,
                     double hi, double otherwise);
double config_need_num(config *c, const char *hf, const char *gguf, double lo, double hi);
bool config_bool(config *c, const char *hf, bool otherwise);
/* Field `hf`, when present, must be `want`. */
void config_switch(config *c, const char *hf, bool want);
/* Marks those of [0, n) that the list of numbers `hf` of config.json names; false: there is no list. */
bool config_named(config *c, const char *hf, int32_t n, bool *mark);
/* Found string, or "" . */
cairn_str config_str(config *c, const char *hf, const char *gguf);
bool config_has(config *c, const char *hf, const char *gguf);
/* config.json writes the field as null, which is not the same as leaving it out. */
bool config_null(config *c, const char *hf);
/* Field `hf`, when present, must be an object. */
void config_object(config *c, const char *hf);
/* The text of field `hf` must be one of `allowed` (NULL-terminated) when present. */
void config_only(config *c, const char *hf, const char *const *allowed);
void config_only_one(config *c, const char *hf, const char *allowed);
/* The activation that a text names, as transformers' ACT2FN has it; where there is none GELU by erf. */
glu_act config_act(config *c, const char *hf, const char *gguf);

/* The key of this format for the two names, or NULL when it has none. */
const char *config_key(const config *c, const char *hf, const char *gguf, char out[CONFIG_KEY_LEN]);
/* The first failure sticks: "FILE: key: found …; expected …". */
void config_fail(config *c, const char *key, const char *found, const char *expected);
/* The same of a value as the file spells it. */
void config_fail_meta(config *c, const char *key, const meta *m, const char *expected);
/* The same of a number, in either format; `expected` is a format. */
void config_misfit(config *c, const char *hf, const char *gguf, int32_t found, const char *expected,
                   ...) __attribute__((format(printf, 5, 6)));

/* The fields that every family of this vocabulary shares. */
typedef struct base_config {
    model_shape s;
    int32_t ffn;
    float eps, partial;
    uint32_t bias;
    bool tied;
} base_config;
/* What the reference's config class assumes where config.json is silent; 0: it must be there.
   `n_kv_head` 0: as many as heads; `head_dim` 0: hidden / heads. */
typedef struct config_defaults {
    int32_t n_head, n_kv_head, head_dim, vocab, ctx;
    bool tied;
    float eps;   /* 0: 1e-6 */
    int32_t ffn; /* the width of dense MLPs; 0: it must be there */
    bool latent; /* latent attention: widths of heads are the family's to read */
    /* GGUF: KV heads and MLP widths may be lists, whose first entries above 0 are taken. */
    bool by_layer;
    const char *eps_key; /* of config.json; NULL: rms_norm_eps */
    /* Of config.json: a list or a text of one entry a layer, if it is there. */
    const char *layers_key;
    bool no_heads; /* no layer attends: numbers of heads are 0 */
    bool no_mlp;   /* no layer has one */
    /* The share of a head that rotates; 0: heads rotate whole, whatever config.json says. */
    float partial;
    /* W_BIAS_ATTN, W_BIAS_MLP: what attention_bias and mlp_bias of config.json switch on. */
    uint32_t bias;
} config_defaults;
base_config config_base(config *c, const config_defaults *d);

/* Rotary parameters: HF rope_parameters (flat or by layer type), or rope_theta and rope_scaling; GGUF
   rope.*.  `kind` names the layer type for configs keyed by it ("full_attention"), or NULL. */
rope_params config_rope(config *c, const base_config *b, const char *kind, double theta, arena *a);

/* The temperature that queries gain with their position: into the rotation of the queries. */
void config_temper(config *c, const rope_params *p, rope_spec *q);

/* Window of each layer (0: full), [n_layer] in the arena.  HF: layer_types when present; GGUF:
   attention.sliding_window_pattern when present (a period, or one truth a layer).  Else layer i is
   full iff `period` > 0 and (i + 1) % period == 0; period 0: all are windowed. */
const int32_t *config_windows(config *c, int32_t n_layer, int32_t window, int32_t period, arena *a);

/* A list with one of two words for each layer: yes[i] whether it is `yes`; GGUF: truths.  False: the file
   has no such list.  Longer lists are fine. */
bool config_words(config *c, const char *hf, const char *gguf, const char *yes, const char *no,
                  int32_t n_layer, bool *is_yes);

#endif
