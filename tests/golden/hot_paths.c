/* Hot paths, each once in a function of its own, after their set-up: tools/budgets counts their
   instructions under callgrind and holds them against tools/budgets.txt.  (Valgrind has AVX2 and no
   AVX-512, so the kernels are AVX2's; the level is named.)  Prints a checksum a path, so that nothing
   can be left out.

   usage: hot_paths    from the top of the repository */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/kern/kern.h"
#include "backend/cpu/tiles.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "engine/step.h"
#include "golden/mkweights.h"
#include "sample/sample.h"
#include "tensor/kvview.h"
#include "text/chat.h"
#include "text/tok.h"

#define HOT __attribute__((noinline))

static cairn_diag dg;

static void must(cairn_status st)
{
    if (st == CAIRN_OK) return;
    fprintf(stderr, "hot_paths: %s\n", dg.message);
    exit(1);
}

static json_doc *parsed(cairn_str s)
{
    json_doc *d = NULL;
    must(json_parse(s, &d, &dg));
    return d;
}

HOT static void hot_json(cairn_str s, json_doc **out)
{
    must(json_parse(s, out, &dg));
}

HOT static void hot_tokenize(const tok *t, cairn_str s, buf *ids)
{
    must(tok_encode(t, s, 0, ids, &dg));
}

HOT static void hot_render(const chat *c, json_val messages, buf *out)
{
    must(chat_render(c, messages, (json_val){0}, (json_val){0}, true, out, &dg));
}

HOT static void hot_load(cairn_str s, tok **out)
{
    must(tok_open_hf(s, STR_LIT(""), "load", out, &dg));
}

/* Text number i of n letters. */
static void spell(char *out, int n, int i)
{
    for (out[n] = '\0'; n-- > 0; i /= 26) out[n] = (char)('a' + i % 26);
}

/* Every text of one to three letters is a piece, and each cut of a longer one a merge; indented, as files are. */
static void fill_vocab(buf *b)
{
    static const int count[] = {0, 26, 26 * 26, 26 * 26 * 26};
    char s[4];
    int id = 0;
    buf_puts(b, "{\"model\": {\n    \"type\": \"BPE\",\n    \"vocab\": {");
    for (int n = 1; n <= 3; n++)
        for (int i = 0; i < count[n]; i++, id++) {
            spell(s, n, i);
            buf_printf(b, "%s\n      \"%s\": %d", id ? "," : "", s, id);
        }
    buf_puts(b, "\n    },\n    \"merges\": [");
    for (int n = 2; n <= 3; n++)
        for (int i = 0; i < count[n]; i++)
            for (int cut = 1; cut < n; cut++) {
                spell(s, n, i);
                buf_printf(b, "%s\n      [\n        \"%.*s\",\n        \"%s\"\n      ]",
                           n > 2 || i ? "," : "", cut, s, s + cut);
            }
    buf_puts(b, "\n    ]\n  }}");
}

static void load_path(void)
{
    buf file;
    tok *t = NULL;
    buf_init(&file, MEM_MISC);
    fill_vocab(&file);
    hot_load(buf_view(&file), &t);
    printf("load      %zu bytes, %d ids\n", file.len, (int)tok_vocab(t));
    tok_close(t);
    buf_deinit(&file);
}

static void fill_words(buf *b, size_t size)
{
    static const char *const word[] = {"the ", "engine ", "reads ",   "a file, ", "counts 1024 ",
                                       "and ", "says: ",  "\"ok\"\n", "for(i=0;", "größer "};
    for (uint64_t i = 0; b->len < size; i++) buf_puts(b, word[rng_u64(1, 1, i) % 10]);
    b->len = size;
}

static void text_paths(void)
{
    buf file, text, out;
    tok *t = NULL;
    chat *c = NULL;
    json_doc *vocab, *talk, *again = NULL;
    buf_init(&file, MEM_MISC), buf_init(&text, MEM_MISC), buf_init(&out, MEM_MISC);
    must(file_read("tests/text/data/bytes_smollm.json", 64 << 20, &file, &dg));
    vocab = parsed(buf_view(&file));
    json_writer w = json_write(&text);
    json_w_val(&w, json_get(json_root(vocab), "tokenizer"));
    must(tok_open_hf(buf_view(&text), STR_LIT(""), "smollm", &t, &dg));
    hot_json(buf_view(&text), &again);
    printf("json      %zu bytes, %zu members\n", text.len, json_size(json_root(again)));
    text.len = 0;
    fill_words(&text, 64 << 10);
    hot_tokenize(t, buf_view(&text), &out);
    printf("tokenize  %zu bytes, %zu ids\n", text.len, out.len / sizeof(int32_t));
    text.len = out.len = 0;
    buf_puts(&text, "[");
    for (int i = 0; i < 50; i++)
        buf_printf(&text, "%s{\"role\":\"%s\",\"content\":\" Turn %d of a talk. \"}", i ? "," : "",
                   i % 2 ? "assistant" : "user", i);
    buf_puts(&text, "]");
    talk = parsed(buf_view(&text));
    must(chat_open(
        STR_LIT("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
                "{% if m['content'] is string %}{{ m['content'] | trim }}{% endif %}"
                "{{ '<|im_end|>' + '\n' }}{% endfor %}"
                "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"),
        STR_LIT("<s>"), STR_LIT("</s>"), (json_val){0}, "template", &c, &dg));
    hot_render(c, json_root(talk), &out);
    printf("render    %zu bytes\n", out.len);
    chat_close(c), tok_close(t), json_free(vocab), json_free(talk), json_free(again);
    buf_deinit(&file), buf_deinit(&text), buf_deinit(&out);
}

HOT static void hot_decode(stepper *s, seq_id q, const int32_t *id, int32_t known)
{
    stepper_begin(s);
    (void)stepper_add(s, q, id, 1, 1, known);
    stepper_run(s);
}

HOT static void hot_prefill(stepper *s, seq_id q, const int32_t *ids, int32_t n)
{
    stepper_begin(s);
    (void)stepper_add(s, q, ids, n, 1, n);
    stepper_run(s);
}

static void model_paths(void)
{
    enum { PROMPT = 40, CTX = 64 };
    char dir[MKWEIGHTS_PATH];
    const cairn_model_opts mo = {
        .struct_size = sizeof mo, .compute = CAIRN_COMPUTE_FAST, .n_threads = 1};
    model *m = NULL;
    stepper *s = NULL;
    seq_id q;
    int32_t ids[PROMPT + 1];
    must(mkweights_temp("tests/golden/hf/llama", dir, &dg));
    must(model_open(dir, &mo, &m, &dg));
    mkweights_remove(dir);
    const stepper_opts so = {
        .max_rows = PROMPT, .max_out = 1, .max_seqs = 1, .ctx_len = CTX, .codec = stepper_codec(m)};
    must(stepper_new(m, &so, &s, &dg));
    must(stepper_add_cache(s, CTX, (stepper_room){0}, &dg));
    must(cache_open(stepper_cache(s), CTX, &q));
    for (int32_t i = 0; i <= PROMPT; i++) ids[i] = (7 * i + 1) % m->shape.vocab;
    hot_prefill(s, q, ids, PROMPT);
    printf("prefill   logit %a\n", (double)stepper_logits(s, 0)[0]);
    hot_decode(s, q, &ids[PROMPT], PROMPT + 1);
    printf("decode    logit %a\n", (double)stepper_logits(s, 0)[0]);
    stepper_free(s);
    model_close(m);
}

/* Tiles times vectors: name, type, bytes of a stored block, its f16 numbers (place, number), vectors.  One vector is
   decoding, 24 go by a panel. */
#define TILE_PATHS(X)                                                                              \
    X(tile, TILE_Q4_K, 144, 0, 2, 1)                                                               \
    X(tile_many, TILE_Q4_K, 144, 0, 2, 24)                                                         \
    X(tile_q6_k, TILE_Q6_K, 210, 208, 1, 1)                                                        \
    X(tile_q6_k_many, TILE_Q6_K, 210, 208, 1, 24)                                                  \
    X(tile_q4_1, TILE_Q4_1, 20, 0, 2, 1)                                                           \
    X(tile_q4_1_many, TILE_Q4_1, 20, 0, 2, 24)                                                     \
    X(tile_q8_0, TILE_Q8_0, 34, 0, 1, 1)                                                           \
    X(tile_iq3_s, TILE_IQ3_S, 110, 0, 1, 1)                                                        \
    X(tile_mxfp4, TILE_MXFP4, 17, 0, 0, 1)

typedef struct tile_run {
    const uint8_t *tile;
    int32_t n_block, n_vec;
    const void *act;
    size_t stride;
} tile_run;

#define DEFINE_HOT(name, ...)                                                                      \
    HOT static void hot_##name(kern_tile_fn *f, const tile_run *r, float *y, void *panel)          \
    {                                                                                              \
        f(r->tile, r->n_block, r->act, r->stride, r->n_vec, 1, y, panel);                          \
    }
TILE_PATHS(DEFINE_HOT)

static const struct tile_path {
    const char *name;
    void (*run)(kern_tile_fn *f, const tile_run *r, float *y, void *panel);
    tile_type type;
    size_t size, half_at, n_half;
    int32_t n_vec;
} tile_list[] = {
#define LIST_HOT(name, ...) {#name, hot_##name, __VA_ARGS__},
    TILE_PATHS(LIST_HOT)};

enum { COLS = 2048, MOST_VEC = 24 };

HOT static void hot_quant32(kern_quant32_fn *f, const float *x, a8_32 *out)
{
    f(x, COLS / 32, 1, out, sizeof *out);
}

HOT static void hot_quant256(kern_quant256_fn *f, const float *x, a8_256 *out)
{
    f(x, COLS / 256, 1, out, sizeof *out);
}

/* Random codes, scales of 2^−7. */
static void fill_rows(const struct tile_path *p, uint8_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t at = i % p->size - p->half_at;
        rows[i] = at < 2 * p->n_half ? (at % 2 ? 0x20 : 0) : (uint8_t)rng_u64(3, 1, i);
    }
}

static void tile_path(const kern *k, const struct tile_path *p, const float *x)
{
    static _Alignas(64) uint8_t tile[COLS / 32 * TILE_ROWS * 34 + TILE_SLACK], panel[TILE_PANEL];
    static _Alignas(64) float y[TILE_ROWS * MOST_VEC];
    static uint8_t rows[COLS / 32 * TILE_ROWS * 34];
    static a8_32 act32[COLS / 32 * MOST_VEC];
    static a8_256 act256[COLS / 256 * MOST_VEC];
    const int32_t elems = tile_elems(p->type), n_block = COLS / elems;
    const size_t one = elems == 32 ? sizeof *act32 : sizeof *act256;
    const size_t row = (size_t)n_block * p->size;
    tile_run r = {tile, n_block, p->n_vec, elems == 32 ? (void *)act32 : (void *)act256,
                  one * (size_t)p->n_vec};
    fill_rows(p, rows, row * TILE_ROWS);
    tiles_pack(p->type, rows, row, TILE_ROWS, n_block, tile);
    for (int32_t v = 0; v < p->n_vec; v++) {
        if (elems == 32)
            k->lin.quant32(x, n_block, 1, act32 + v, r.stride);
        else
            k->lin.quant256(x, n_block, 1, act256 + v, r.stride);
    }
    p->run(k->lin.tile[p->type], &r, y, panel);
    printf("%-9s %a\n", p->name, (double)y[0]);
}

/* A block of positions times the queries of heads that share it, and what these sum up to. */
typedef struct attend_run {
    kern_mm keys, values;
    float *s; /* scores, [head][KV_BLOCK] */
} attend_run;

static void soften(const kern_vec *v, const attend_run *r)
{
    float max[8], sum[8];
    v->softmax(&(kern_softmax){.s = r->s,
                               .max = max,
                               .sum = sum,
                               .pitch = KV_BLOCK,
                               .step = 1,
                               .n = r->keys.n_a,
                               .hi = KV_BLOCK - 1,
                               .scale = 0.125f});
}

HOT static void hot_attend(const kern_vec *v, const attend_run *r)
{
    v->mm[KV_F16](&r->keys);
    soften(v, r);
    v->mm[KV_F16](&r->values);
}

HOT static void hot_attend_q8(const kern_vec *v, const attend_run *r)
{
    v->mm_tiles[KV_Q8](&r->keys);
    soften(v, r);
    v->mm_rows[KV_Q8](&r->values);
}

static void attend_path(const kern_vec *v, const float *x)
{
    enum { DIM = 64, HEADS = 3, GROUP = 32 };
    static uint8_t kept[KV_BLOCK * DIM * 2]; /* f16, or less of codes: any bytes that are finite */
    static float s[HEADS * KV_BLOCK], out[HEADS * DIM];
    for (size_t i = 0; i < sizeof kept; i++) kept[i] = (uint8_t)(0x2c + rng_u64(3, 4, i) % 8);
    attend_run r = {.keys = {.c = s,
                             .a = x,
                             .b = kept,
                             .ldc = KV_BLOCK,
                             .lda = DIM,
                             .row = KV_TILE,
                             .strip = (size_t)KV_TILE * DIM,
                             .n_a = HEADS,
                             .n_strip = KV_BLOCK / KV_TILE,
                             .n = DIM,
                             .group = GROUP},
                    .values = {.c = out,
                               .a = s,
                               .b = kept,
                               .ldc = DIM,
                               .lda = KV_BLOCK,
                               .row = DIM,
                               .strip = 16,
                               .n_a = HEADS,
                               .n_strip = DIM / 16,
                               .n = KV_BLOCK,
                               .group = GROUP},
                    .s = s};
    hot_attend(v, &r);
    printf("attend    %a\n", (double)out[0]);
    r.values.row = kv_row_bytes((kv_codec){KV_Q8, GROUP}, DIM);
    hot_attend_q8(v, &r);
    printf("attend_q8 %a\n", (double)out[0]);
}

HOT static void hot_fp8(kern_widen_fn *f, const uint8_t *w, float *y)
{
    f(w, COLS, 0.37f, y);
}

HOT static void hot_dense(kern_dense_fn *f, const uint8_t *w, const float *x, float *y)
{
    f(w, 2 * COLS, TILE_ROWS, x, COLS, 1, COLS, y, TILE_ROWS);
}

static void float_paths(const kern_linear *k, const float *x)
{
    static uint8_t w[TILE_ROWS * COLS * 2];
    static float y[COLS];
    for (size_t i = 0; i < sizeof w; i++) w[i] = (uint8_t)(0x3a + rng_u64(3, 5, i) % 4);
    hot_fp8(k->widen_e4m3, w, y);
    printf("fp8       %a\n", (double)y[0]);
    hot_dense(k->dense_bf16, w, x, y);
    printf("dense     %a\n", (double)y[0]);
}

static void kernel_paths(void)
{
    static float x[COLS];
    static a8_32 act32[COLS / 32];
    static a8_256 act256[COLS / 256];
    kern k;
    kern_init(&k, ISA_AVX2);
    for (size_t i = 0; i < COLS; i++) x[i] = (float)rng_unit(3, 2, i) - 0.5f;
    for (size_t i = 0; i < sizeof tile_list / sizeof *tile_list; i++)
        tile_path(&k, &tile_list[i], x);
    attend_path(&k.vec, x);
    float_paths(&k.lin, x);
    hot_quant32(k.lin.quant32, x, act32);
    hot_quant256(k.lin.quant256, x, act256);
    printf("quant     %a %a at level %s\n", (double)act32[0].d, (double)act256[0].d,
           isa_name(k.level));
}

HOT static void hot_sample(sampler *s, float *logits, const sample_in *in, sample_out *out)
{
    must(sample_step(s, logits, in, out, &dg));
}

static void sample_path(void)
{
    enum { VOCAB = 32768 };
    static float logits[VOCAB];
    static const int32_t ids[] = {1, 2, 3};
    sampler *s = NULL;
    sample_out out;
    cairn_request r;
    cairn_request_init(&r);
    r.sampling.temperature = 0.8f;
    r.sampling.top_k = 40;
    r.sampling.top_p = 0.95f;
    r.sampling.seed = 9;
    for (size_t i = 0; i < VOCAB; i++) logits[i] = 12.0f * (float)rng_unit(4, 1, i);
    const sample_in in = {&r.sampling, 0, ids, 3, 3, -1, NULL, NULL};
    must(sampler_new(VOCAB, 1, NULL, &s));
    hot_sample(s, logits, &in, &out);
    printf("sample    id %d\n", (int)out.id);
    sampler_free(s);
}

int main(void)
{
    text_paths();
    load_path(); /* after a first one, which makes tables for all */
    model_paths();
    kernel_paths();
    sample_path();
    return 0;
}
