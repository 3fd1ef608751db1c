/* info: what a model is made of, without reading its weights or its vocabulary. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "format/format.h"
#include "format/textfiles.h"

static const int32_t ctx_steps[] = {2048, 4096, 8192, 16384, 32768, 65536, 131072};
enum { N_CTX = sizeof ctx_steps / sizeof ctx_steps[0], MAX_SUMS = 128 };

/* What a tensor is for, by the words in the names of both formats; the first that fits. */
static const struct {
    const char *word, *class;
} classes[] = {
    {"norm", "norms"},
    {"_exps", "experts"},
    {".experts.", "experts"},
    {"switch_", "experts"},
    {"block_sparse_moe", "experts"},
    {"embed_tokens", "embedding"},
    {"embeddings", "embedding"},
    {"token_embd", "embedding"},
    {"lm_head", "head"},
    {"attn", "attention"},
    {"mixer.q_proj", "attention"},
    {"mixer.k_proj", "attention"},
    {"mixer.v_proj", "attention"},
    {"mixer.o_proj", "attention"},
    {"mlp", "mlp"},
    {"ffn", "mlp"},
    {"feed_forward", "mlp"},
    {"shared_experts", "mlp"},
    {"mixer.up_proj", "mlp"},
    {"mixer.down_proj", "mlp"},
    {".mixer.", "recurrent"},
    {".mamba.", "recurrent"},
    {".ssm_", "recurrent"},
    {".conv.", "recurrent"},
    {".shortconv.", "recurrent"},
};

static const char *class_of(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strstr(name, classes[i].word)) return classes[i].class;
    return strncmp(name, "output.", 7) == 0 ? "head" : "other";
}

/* Bytes and tensors of one stored type in one class; class NULL: in all. */
typedef struct type_sum {
    const char *class, *type;
    uint64_t bytes, n;
} type_sum;

static bool same_class(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static size_t sum_types(const cairn_model *m, bool by_class, type_sum out[MAX_SUMS])
{
    size_t n = 0;
    for (size_t i = 0; i < cairn_model_n_tensors(m); i++) {
        cairn_tensor_info t;
        size_t k = 0;
        cairn_model_tensor(m, i, &t);
        const char *class = by_class ? class_of(t.name) : NULL;
        while (k < n && (strcmp(out[k].type, t.type) != 0 || !same_class(out[k].class, class))) k++;
        if (k == MAX_SUMS) continue;
        if (k == n) out[n++] = (type_sum){class, t.type, 0, 0};
        out[k].bytes += t.bytes;
        out[k].n++;
    }
    return n;
}

static void json_sums(json_writer *w, const char *key, const type_sum *sums, size_t n)
{
    json_w_key(w, key);
    json_w_arr(w);
    for (size_t k = 0; k < n; k++) {
        json_w_obj(w);
        if (sums[k].class) json_w_kstr(w, "class", str_of(sums[k].class));
        json_w_kstr(w, "type", str_of(sums[k].type));
        json_w_kint(w, "tensors", (int64_t)sums[k].n);
        json_w_kint(w, "size_bytes", (int64_t)sums[k].bytes);
        json_w_end_obj(w);
    }
    json_w_end_arr(w);
}

static uint64_t needed_bytes(const cairn_model *m, const cairn_model_info *i, int32_t ctx)
{
    const uint64_t cache = cairn_model_cache_bytes(m, ctx);
    return cache > UINT64_MAX - i->loaded_bytes ? UINT64_MAX : i->loaded_bytes + cache;
}

static void json_info(const cairn_model *m, const cairn_model_info *i, bool has_template, buf *b)
{
    type_sum sums[MAX_SUMS] = {0};
    json_writer w = json_write(b);
    json_w_obj(&w);
    json_w_kstr(&w, "name", str_of(i->name));
    json_w_kstr(&w, "format", str_of(i->format));
    json_w_kstr(&w, "family", str_of(i->family));
    json_w_kstr(&w, "quantization", str_of(i->quant));
    json_w_kint(&w, "layers", i->n_layer);
    json_w_kint(&w, "hidden_elements", i->hidden);
    json_w_kint(&w, "heads", i->n_head);
    json_w_kint(&w, "kv_heads", i->n_kv_head);
    json_w_kint(&w, "head_elements", i->head_dim);
    json_w_kint(&w, "vocabulary_tokens", i->vocab);
    json_w_kint(&w, "context_tokens", i->ctx_train);
    json_w_kint(&w, "parameters", (int64_t)i->n_params);
    json_w_kint(&w, "weights_bytes", (int64_t)i->file_bytes);
    json_w_kuint(&w, "loaded_weights_bytes", i->loaded_bytes);
    json_w_kint(&w, "decode_read_bytes", (int64_t)i->token_bytes);
    json_w_kstr(&w, "cache_codec", str_of(i->kv_codec));
    json_w_kint(&w, "cache_per_token_bytes", (int64_t)i->cache_bytes_token);
    json_w_kint(&w, "cache_windowed_bytes", (int64_t)i->cache_bytes_window);
    json_w_kint(&w, "cache_state_bytes", (int64_t)i->cache_bytes_state);
    json_w_kint(&w, "tensors", (int64_t)cairn_model_n_tensors(m));
    json_w_kbool(&w, "has_chat_template", has_template);
    json_sums(&w, "tensor_types", sums, sum_types(m, false, sums));
    json_sums(&w, "tensor_classes", sums, sum_types(m, true, sums));
    json_w_key(&w, "memory_by_context");
    json_w_arr(&w);
    for (size_t k = 0; k < N_CTX && (k == 0 || ctx_steps[k] <= i->ctx_train); k++) {
        json_w_obj(&w);
        json_w_kint(&w, "context_tokens", min_i32(ctx_steps[k], i->ctx_train));
        json_w_kuint(&w, "needed_bytes", needed_bytes(m, i, min_i32(ctx_steps[k], i->ctx_train)));
        json_w_end_obj(&w);
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    buf_byte(b, '\n');
}

static void text_info(const cairn_model *m, const cairn_model_info *i, buf *b)
{
    type_sum sums[MAX_SUMS] = {0};
    const size_t n = sum_types(m, true, sums);
    buf_printf(b, "%s\n", i->name);
    buf_printf(b, "  format      %s, family %s\n", i->format, i->family);
    buf_printf(b, "  shape       %d layers, hidden %d, ", (int)i->n_layer, (int)i->hidden);
    if (i->n_head)
        buf_printf(b, "%d heads of %d, %d KV heads\n", (int)i->n_head, (int)i->head_dim,
                   (int)i->n_kv_head);
    else
        buf_puts(b, "no attention\n");
    if (i->cache_bytes_state)
        buf_printf(b, "  state       %.1f MB a sequence, whatever its length\n",
                   (double)i->cache_bytes_state / 1e6);
    buf_printf(b, "  vocabulary  %d\n  context     %d\n", (int)i->vocab, (int)i->ctx_train);
    buf_printf(b, "  parameters  %.1f M\n", (double)i->n_params / 1e6);
    buf_printf(b, "  weights     %.1f MB, of which a token reads %.1f MB; once loaded %.1f MB\n",
               (double)i->file_bytes / 1e6, (double)i->token_bytes / 1e6,
               (double)i->loaded_bytes / 1e6);
    for (size_t k = 0; k < n; k++)
        buf_printf(b, "    %-10s %-8s  %5llu tensors  %10.1f MB\n", sums[k].class, sums[k].type,
                   (unsigned long long)sums[k].n, (double)sums[k].bytes / 1e6);
    buf_printf(b, "  cache       %s\n", i->kv_codec);
    buf_puts(b, "  memory by context (loaded weights and cache)\n");
    for (size_t k = 0; k < N_CTX && (k == 0 || ctx_steps[k] <= i->ctx_train); k++) {
        const int32_t ctx = min_i32(ctx_steps[k], i->ctx_train);
        buf_printf(b, "    %7d  %10.1f MB\n", (int)ctx, (double)needed_bytes(m, i, ctx) / 1e6);
    }
}

static cairn_status has_template(const char *word, bool *out, cairn_diag *dg)
{
    cairn_bytes path = {0};
    TRY(cairn_model_resolve(word, &path, dg));
    const cairn_status st = textfiles_has_template(path.ptr, out, dg);
    cairn_bytes_free(&path);
    return st;
}

static cairn_status print_info(const cairn_model *m, const char *word, bool json, cairn_diag *dg)
{
    cairn_model_info i;
    bool templated = false;
    buf b;
    if (json) TRY(has_template(word, &templated, dg));
    cairn_model_info_init(&i);
    cairn_model_get_info(m, &i);
    buf_init(&b, MEM_MISC);
    if (json)
        json_info(m, &i, templated, &b);
    else
        text_info(m, &i, &b);
    return cli_print(&b, dg);
}

static cairn_status write_tensor(const cairn_model *m, const char *word, const char *name,
                                 const char *path, cairn_diag *dg)
{
    cairn_tensor_info t = {0};
    size_t i = 0, n = 1, dim[4] = {0};
    const size_t count = cairn_model_n_tensors(m);
    for (; i < count; i++) {
        cairn_model_tensor(m, i, &t);
        if (strcmp(t.name, name) == 0) break;
    }
    if (i == count)
        return diag_set(dg, CAIRN_E_NOTFOUND,
                        "%s: tensor %s: found none of that name; expected one of %zu, as %s", word,
                        name, count, count ? t.name : "none");
    for (int32_t d = 0; d < t.n_dim; d++) {
        dim[d] = (size_t)t.dim[d];
        n *= dim[d];
    }
    size_t size;
    if (!mul_size(n, sizeof(float), &size))
        return diag_set(dg, CAIRN_E_LIMIT,
                        "%s: found a size that overflows; expected less than 2^64 bytes", name);
    float *f = mem_alloc(size, MEM_IO);
    if (!f) return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for tensor %s", size, name);
    cairn_status st = cairn_model_read_tensor(m, name, f, n, dg);
    if (st == CAIRN_OK) st = npy_write_f32(path, f, dim, (size_t)t.n_dim, dg);
    mem_free(f);
    return st;
}

int cmd_info(const command *c, int argc, char **argv)
{
    bool json = false;
    const char *tensor = NULL, *out_path = NULL;
    cairn_model_opts o;
    cairn_model_opts_init(&o);
    const flag table[] = {
        {"--json", NULL, FLAG_BOOL, &json, "one JSON object", 0, 0, NULL},
        CLI_KV(&o.kv_codec),
        {"--tensor", NULL, FLAG_STR, &tensor, "NAME: write this tensor, dequantised", 0, 0, NULL},
        {"--out", NULL, FLAG_STR, &out_path, "OUT.npy: where", 0, 0, NULL},
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;
    if (!tensor != !out_path)
        return cli_usage(c, "info: one of --tensor and --out is missing; expected both or none");

    cairn_diag dg = {0};
    cairn_model *m = NULL;
    o.no_weights = o.no_text = true;
    cairn_status st = cli_open_model(words.word[0], &o, &m, &dg);
    if (st == CAIRN_OK)
        st = tensor ? write_tensor(m, words.word[0], tensor, out_path, &dg)
                    : print_info(m, words.word[0], json, &dg);
    cairn_model_close(m);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
