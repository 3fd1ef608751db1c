/* The module files of sentence-transformers: modules.json lists folders; 1_Pooling says how rows become
   one, N_Dense holds matrices, Normalize has nothing to say.  Beside them the longest text, the prompts and
   the width that is kept.  What the library does with a field is the law; what it only warns of is an error
   here.  Invariant: nothing but b->src.pool, b's arena and b's tensors changes. */
#include "format/modules.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "format/pyjson.h"
#include "format/safetensors_priv.h"
#include "tensor/pool.h"

enum {
    MAX_FILE = 4 << 20, /* the largest public one, a prompt for each of many tasks, has 30 KB */
    MAX_MODULES = 16,   /* known models have 5 */
    WIDEST = 1 << 20,   /* of any vector: as hidden_size */
    LONGEST = 1 << 28,  /* ids of a text: as max_position_embeddings */
    NO_LENGTH = 1 << 30 /* model_max_length of tokenizers that know none is 1e30 */
};

typedef struct reader {
    source_build *b;
    const char *dir;
    pool_spec *p;
    bool pooled, normalised;
    char path[512]; /* of the file at hand, for messages */
    cairn_diag *dg;
} reader;

static cairn_status wrong(const reader *r, const char *key, cairn_str found, const char *expected)
{
    if (found.len == 0) found = STR_LIT("nothing");
    return diag_set(r->dg, CAIRN_E_UNSUPPORTED, "%s: %s: found %.*s; expected %s", r->path, key,
                    STR_ARG(found), expected);
}

static cairn_status wrong_type(const reader *r, const char *key, json_val v, const char *expected)
{
    return wrong(r, key, str_of(json_type_name(json_typeof(v))), expected);
}

/* What json_want_* complains of is the file's fault. */
static cairn_status in_file(const reader *r, cairn_status st)
{
    if (st == CAIRN_OK) return st;
    return diag_prefix(r->dg, st == CAIRN_E_ARG ? CAIRN_E_CORRUPT : st, "%s", r->path);
}

/* Parses dir/folder/name; *doc NULL: no such file, which is an error if `needed`. */
static cairn_status open_json(reader *r, const char *folder, const char *name, bool needed,
                              json_type type, json_doc **doc)
{
    cairn_status st = CAIRN_OK;
    buf raw, text;
    const int n =
        snprintf(r->path, sizeof r->path, "%s/%s%s%s", r->dir, folder, folder[0] ? "/" : "", name);
    *doc = NULL;
    if (n < 0 || (size_t)n >= sizeof r->path)
        return diag_set(r->dg, CAIRN_E_LIMIT, "%s: path of %s", r->dir, name);
    if (!file_exists(r->path) && !needed) return CAIRN_OK;
    buf_init(&raw, MEM_MODEL);
    buf_init(&text, MEM_MODEL);
    TRY_GOTO(file_read(r->path, MAX_FILE, &raw, r->dg), out);
    pyjson_to_json(buf_view(&raw), &text);
    TRY_GOTO(buf_status(&text), out);
    st = json_parse(buf_view(&text), doc, r->dg);
    if (st != CAIRN_OK) {
        (void)diag_prefix(r->dg, st, "%s", r->path);
        goto out;
    }
    const json_type found = json_typeof(json_root(*doc));
    if (found != type) {
        st = diag_set(r->dg, CAIRN_E_CORRUPT, "%s: found %s; expected %s", r->path,
                      json_type_name(found), json_type_name(type));
        json_free(*doc);
        *doc = NULL;
    }
out:
    buf_deinit(&raw);
    buf_deinit(&text);
    return st;
}

static cairn_status want_width(const reader *r, json_val v, const char *key, int32_t *out)
{
    int64_t n = *out;
    TRY(in_file(r, json_want_int(v, key, 1, WIDEST, &n, r->dg)));
    *out = (int32_t)n;
    return CAIRN_OK;
}

/* The names of one kind, old and new, in the order in which results are joined. */
static const struct {
    const char *flag, *word;
    pool_kind kind;
} kinds[POOL_KINDS] = {
    {"pooling_mode_cls_token", "cls", POOL_CLS},
    {"pooling_mode_max_tokens", "max", POOL_MAX},
    {"pooling_mode_mean_tokens", "mean", POOL_MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", POOL_MEAN_SQRT},
    {"pooling_mode_weightedmean_tokens", "weightedmean", POOL_WEIGHTED_MEAN},
    {"pooling_mode_lasttoken", "lasttoken", POOL_LAST},
};

static const char kinds_expected[] =
    "one to six of cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken";

static cairn_status add_kind(reader *r, json_val word)
{
    if (json_typeof(word) != JSON_STR) return wrong_type(r, "pooling_mode", word, kinds_expected);
    for (size_t i = 0; i < POOL_KINDS; i++) {
        if (!str_is(json_str(word), kinds[i].word)) continue;
        if (r->p->n_kind == POOL_KINDS) break;
        r->p->kind[r->p->n_kind++] = kinds[i].kind;
        return CAIRN_OK;
    }
    return wrong(r, "pooling_mode", json_str(word), kinds_expected);
}

/* The old fields, one a kind.  The mean is what remains, unless it is turned off by name. */
static cairn_status read_flags(reader *r, json_val v)
{
    bool mean = true;
    for (size_t i = 0; i < POOL_KINDS; i++) {
        bool on = false;
        TRY(in_file(r, json_want_bool(v, kinds[i].flag, &on, r->dg)));
        if (on) r->p->kind[r->p->n_kind++] = kinds[i].kind;
        if (kinds[i].kind == POOL_MEAN) mean = json_bool(json_get(v, kinds[i].flag), true);
    }
    if (r->p->n_kind) return CAIRN_OK;
    if (!mean) return wrong(r, "pooling_mode_*", STR_LIT("none that is true"), "a way of pooling");
    r->p->kind[r->p->n_kind++] = POOL_MEAN;
    return CAIRN_OK;
}

static cairn_status read_kinds(reader *r, json_val v)
{
    const json_val mode = json_get(v, "pooling_mode");
    json_iter it = json_each(mode);
    json_val word;
    if (json_typeof(mode) == JSON_NONE) return read_flags(r, v);
    if (json_typeof(mode) != JSON_ARR) return add_kind(r, mode);
    while (json_next(&it, &word)) TRY(add_kind(r, word));
    return r->p->n_kind ? CAIRN_OK
                        : wrong(r, "pooling_mode", STR_LIT("an empty array"), kinds_expected);
}

/* A way of pooling that is newer than this file. */
static cairn_status check_flags(const reader *r, json_val v)
{
    json_iter it = json_each(v);
    cairn_str key;
    json_val on;
    while (json_next_member(&it, &key, &on)) {
        bool known = !str_starts(key, STR_LIT("pooling_mode_"));
        for (size_t i = 0; i < POOL_KINDS && !known; i++) known = str_is(key, kinds[i].flag);
        if (!known && json_bool(on, true))
            return diag_set(r->dg, CAIRN_E_UNSUPPORTED,
                            "%s: %.*s: found true; expected a way of pooling that is known",
                            r->path, STR_ARG(key));
    }
    return CAIRN_OK;
}

static cairn_status read_pooling(reader *r, const char *folder)
{
    json_doc *doc;
    bool include_prompt = true;
    cairn_status st = CAIRN_OK;
    TRY(open_json(r, folder, "config.json", true, JSON_OBJ, &doc));
    const json_val v = json_root(doc);
    TRY_GOTO(want_width(r, v, "word_embedding_dimension", &r->p->width), out);
    TRY_GOTO(want_width(r, v, "embedding_dimension", &r->p->width), out);
    TRY_GOTO(check_flags(r, v), out);
    TRY_GOTO(read_kinds(r, v), out);
    TRY_GOTO(in_file(r, json_want_bool(v, "include_prompt", &include_prompt, r->dg)), out);
    r->p->skip_prompt = !include_prompt;
    r->pooled = true;
out:
    json_free(doc);
    return st;
}

/* A dense module without the field has a tanh. */
static cairn_status read_activation(const reader *r, json_val v, pool_dense *d)
{
    static const struct {
        const char *name;
        bool tanh;
        glu_act act;
    } acts[] = {{"Identity", false, GLU_BILINEAR}, {"Tanh", true, GLU_BILINEAR},
                {"GELU", false, GLU_GELU_ERF},     {"SiLU", false, GLU_SILU},
                {"ReLU", false, GLU_RELU},         {"Sigmoid", false, GLU_SIGMOID}};
    cairn_str name = STR_LIT("torch.nn.modules.activation.Tanh");
    TRY(in_file(r, json_want_str(v, "activation_function", &name, r->dg)));
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        const size_t n = strlen(acts[i].name);
        if (!str_starts(name, STR_LIT("torch.nn.")) || !str_ends(name, str_of(acts[i].name)) ||
            name.ptr[name.len - n - 1] != '.')
            continue;
        d->tanh = acts[i].tanh;
        d->act = acts[i].act;
        return CAIRN_OK;
    }
    return wrong(r, "activation_function", name,
                 "Identity, Tanh, GELU, SiLU, ReLU or Sigmoid of torch.nn");
}

/* Between the pooled vector and the next module. */
static cairn_status check_place(const reader *r, json_val v)
{
    static const char *const keys[] = {"module_input_name", "module_output_name"};
    for (size_t i = 0; i < 2; i++) {
        cairn_str name = STR_LIT("sentence_embedding");
        TRY(in_file(r, json_want_str(v, keys[i], &name, r->dg)));
        if (!str_is(name, "sentence_embedding"))
            return wrong(r, keys[i], name, "sentence_embedding");
    }
    return CAIRN_OK;
}

static const char *dense_name(const reader *r, const char *folder, const char *part)
{
    char name[FORMAT_MAX_NAME];
    const int n = snprintf(name, sizeof name, "%s.%s", folder, part);
    return n > 0 && (size_t)n < sizeof name ? arena_strdup(&r->b->mem, str_of(name)) : NULL;
}

static cairn_status dense_fields(const reader *r, json_val v, const char *folder, pool_dense *d)
{
    static const char width[] = "the length of a vector";
    bool residual = false;
    d->bias = true;
    TRY(want_width(r, v, "in_features", &d->in));
    TRY(want_width(r, v, "out_features", &d->out));
    if (d->in == 0) return wrong_type(r, "in_features", json_get(v, "in_features"), width);
    if (d->out == 0) return wrong_type(r, "out_features", json_get(v, "out_features"), width);
    TRY(in_file(r, json_want_bool(v, "bias", &d->bias, r->dg)));
    TRY(in_file(r, json_want_bool(v, "use_residual", &residual, r->dg)));
    TRY(check_place(r, v));
    TRY(read_activation(r, v, d));
    d->residual = residual;
    d->weight = dense_name(r, folder, "linear");
    d->shortcut = residual && d->in != d->out ? dense_name(r, folder, "residual") : NULL;
    if (!d->weight || (residual && d->in != d->out && !d->shortcut))
        return diag_set(r->dg, CAIRN_E_NOMEM, "%s: names", r->path);
    return CAIRN_OK;
}

static cairn_status read_dense(reader *r, const char *folder)
{
    json_doc *doc;
    if (r->p->n_dense == POOL_DENSE_MAX)
        return diag_set(r->dg, CAIRN_E_LIMIT, "%s: over %d dense modules", r->path, POOL_DENSE_MAX);
    TRY(open_json(r, folder, "config.json", true, JSON_OBJ, &doc));
    const cairn_status st = dense_fields(r, json_root(doc), folder, &r->p->dense[r->p->n_dense++]);
    json_free(doc);
    TRY(st);
    const int n = snprintf(r->path, sizeof r->path, "%s/%s/model.safetensors", r->dir, folder);
    if (n < 0 || (size_t)n >= sizeof r->path)
        return diag_set(r->dg, CAIRN_E_LIMIT, "%s: path of %s", r->dir, folder);
    return safetensors_add_file(r->b, r->path, folder, r->dg);
}

/* Older files have no folder for it. */
static cairn_status read_normalize(reader *r, const char *folder)
{
    json_doc *doc;
    TRY(open_json(r, folder, "config.json", false, JSON_OBJ, &doc));
    r->p->normalise = r->normalised = true;
    if (!doc) return CAIRN_OK;
    const cairn_status st = check_place(r, json_root(doc));
    json_free(doc);
    return st;
}

/* Inside the checkpoint's folder: a file must not lead elsewhere. */
static bool plain_folder(cairn_str s)
{
    return s.len > 0 && s.len < 64 && s.ptr[0] != '/' && !memchr(s.ptr, 0, s.len) &&
           str_find(s, STR_LIT(".."), 0) == SIZE_MAX;
}

static cairn_status read_module(reader *r, cairn_str kind, const char *folder)
{
    if (str_is(kind, "Dropout")) return CAIRN_OK;
    if (str_is(kind, "Pooling") && !r->pooled) return read_pooling(r, folder);
    if (str_is(kind, "Dense") && r->pooled && !r->normalised) return read_dense(r, folder);
    if (str_is(kind, "Normalize") && r->pooled) return read_normalize(r, folder);
    return wrong(r, "type", kind, "Transformer, Pooling, Dense, Normalize, in this order");
}

static cairn_status read_list(reader *r, json_val list)
{
    json_iter it = json_each(list);
    json_val v;
    for (size_t i = 0; json_next(&it, &v); i++) {
        cairn_str type = STR_LIT(""), path = STR_LIT("");
        char folder[64] = "";
        (void)snprintf(r->path, sizeof r->path, "%s/modules.json", r->dir);
        if (json_typeof(v) != JSON_OBJ) return wrong_type(r, "a module", v, "an object");
        TRY(in_file(r, json_want_str(v, "type", &type, r->dg)));
        TRY(in_file(r, json_want_str(v, "path", &path, r->dg)));
        for (size_t dot; (dot = str_find(type, STR_LIT("."), 0)) != SIZE_MAX;)
            type = str_sub(type, dot + 1, type.len - dot - 1);
        if (i == 0 && str_is(type, "Transformer") && path.len == 0) continue;
        if (i == 0) return wrong(r, "0.type", type, "a Transformer whose path is empty");
        if (i == MAX_MODULES) return wrong(r, "modules", type, "no more than 16 of them");
        if (!plain_folder(path)) return wrong(r, "path", path, "a folder inside this one");
        memcpy(folder, path.ptr, path.len);
        TRY(read_module(r, type, folder));
    }
    (void)snprintf(r->path, sizeof r->path, "%s/modules.json", r->dir);
    if (!r->pooled) return wrong(r, "type", STR_LIT("no Pooling"), "a module of that type");
    return CAIRN_OK;
}

/* Of the tokenizer too: newer checkpoints say it there alone. */
static cairn_status read_length(reader *r)
{
    static const struct {
        const char *file, *key;
        bool lowers; /* do_lower_case is this library's */
    } places[] = {{"sentence_bert_config.json", "max_seq_length", true},
                  {"sentence_roberta_config.json", "max_seq_length", true},
                  {"sentence_xlm-roberta_config.json", "max_seq_length", true},
                  {"tokenizer_config.json", "model_max_length", false}};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !r->p->max_ids; i++) {
        json_doc *doc;
        double n = 0;
        bool lower = false;
        TRY(open_json(r, "", places[i].file, false, JSON_OBJ, &doc));
        if (!doc) continue;
        const json_val v = json_root(doc);
        cairn_status st = in_file(r, json_want_num(v, places[i].key, 1, 1e31, &n, r->dg));
        if (st == CAIRN_OK && places[i].lowers)
            st = in_file(r, json_want_bool(v, "do_lower_case", &lower, r->dg));
        json_free(doc);
        TRY(st);
        r->p->lowered |= lower;
        if (n < NO_LENGTH) r->p->max_ids = n < LONGEST ? (int32_t)n : LONGEST;
    }
    return CAIRN_OK;
}

static cairn_status keep_prompts(reader *r, json_val prompts, cairn_str chosen)
{
    json_iter it = json_each(prompts);
    cairn_str name;
    json_val text;
    const json_type found = json_typeof(prompts);
    if (found != JSON_NONE && found != JSON_NULL && found != JSON_OBJ)
        return wrong_type(r, "prompts", prompts, "an object of texts by name");
    pool_prompt *list = arena_calloc(&r->b->mem, json_size(prompts) + 1, sizeof *list);
    int32_t n = 0;
    while (list && json_next_member(&it, &name, &text)) {
        if (json_typeof(text) == JSON_NULL) continue;
        if (json_typeof(text) != JSON_STR) return wrong_type(r, "prompts", text, "texts by name");
        if (n == POOL_PROMPTS_MAX) return wrong(r, "prompts", STR_LIT("more"), "at most 256");
        const cairn_str t = json_str(text);
        const char *kept_name = arena_strdup(&r->b->mem, name);
        const char *kept = arena_strdup(&r->b->mem, t);
        if (!kept_name || !kept) return diag_set(r->dg, CAIRN_E_NOMEM, "%s: prompts", r->path);
        if (chosen.len && str_eq(chosen, name)) r->p->default_prompt = n;
        list[n++] = (pool_prompt){{kept_name, name.len}, {kept, t.len}};
    }
    if (!list) return diag_set(r->dg, CAIRN_E_NOMEM, "%s: prompts", r->path);
    if (chosen.len && r->p->default_prompt < 0)
        return wrong(r, "default_prompt_name", chosen, "the name of a prompt");
    r->p->prompt = list;
    r->p->n_prompt = n;
    return CAIRN_OK;
}

static cairn_status read_settings(reader *r)
{
    json_doc *doc;
    cairn_str chosen = STR_LIT("");
    cairn_status st = CAIRN_OK;
    TRY(open_json(r, "", "config_sentence_transformers.json", false, JSON_OBJ, &doc));
    if (!doc) return CAIRN_OK;
    const json_val v = json_root(doc);
    TRY_GOTO(want_width(r, v, "truncate_dim", &r->p->n_dim), out);
    TRY_GOTO(in_file(r, json_want_str(v, "default_prompt_name", &chosen, r->dg)), out);
    st = keep_prompts(r, json_get(v, "prompts"), chosen);
out:
    json_free(doc);
    return st;
}

cairn_status modules_read(source_build *b, const char *dir, cairn_diag *dg)
{
    json_doc *doc;
    reader r = {.b = b, .dir = dir, .dg = dg};
    TRY(open_json(&r, "", "modules.json", false, JSON_ARR, &doc));
    if (!doc) return CAIRN_OK;
    cairn_status st = CAIRN_E_NOMEM;
    r.p = arena_calloc(&b->mem, 1, sizeof *r.p);
    if (!r.p) {
        (void)diag_set(dg, st, "%s", r.path);
        goto out;
    }
    r.p->default_prompt = -1;
    TRY_GOTO(read_list(&r, json_root(doc)), out);
    TRY_GOTO(read_length(&r), out);
    TRY_GOTO(read_settings(&r), out);
    b->src.pool = r.p;
out:
    json_free(doc);
    return st;
}
