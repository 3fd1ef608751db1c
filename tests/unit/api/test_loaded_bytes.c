/* The memory that weights will take is known before they are read, and is what loading then takes: what the
   device counts, what the process holds beyond its files, and where a limit begins to refuse. */
#include "test.h"
#include "tmp.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "cairn/model.h"
#include "gguf_head.h"
#include "tensor/dtype.h"

enum {
    HIDDEN = 1024,
    FFN = 16384,
    HEADS = 8,
    VOCAB = 320,
    ALIGN = 32,
    U32 = 4, /* GGUF's numbers of types */
    FLOAT32 = 6,
    STRING = 8,
    SLACK = 3 << 20 /* a huge page that is used in part, the model's own structs */
};

typedef struct shape {
    const char *name;
    uint64_t rows, cols; /* rows 0: a vector of F32 */
} shape;

static const shape shapes[] = {
    {"token_embd.weight", VOCAB, HIDDEN},
    {"output.weight", VOCAB, HIDDEN},
    {"output_norm.weight", 0, HIDDEN},
    {"blk.0.attn_norm.weight", 0, HIDDEN},
    {"blk.0.ffn_norm.weight", 0, HIDDEN},
    {"blk.0.attn_q.weight", HIDDEN, HIDDEN},
    {"blk.0.attn_k.weight", HIDDEN, HIDDEN},
    {"blk.0.attn_v.weight", HIDDEN, HIDDEN},
    {"blk.0.attn_output.weight", HIDDEN, HIDDEN},
    {"blk.0.ffn_gate.weight", FFN, HIDDEN},
    {"blk.0.ffn_up.weight", FFN, HIDDEN},
    {"blk.0.ffn_down.weight", HIDDEN, FFN},
};
enum { N_SHAPE = sizeof shapes / sizeof shapes[0] };

static const struct {
    const char *name;
    uint32_t value;
} numbers[] = {
    {"llama.block_count", 1},           {"llama.embedding_length", HIDDEN},
    {"llama.feed_forward_length", FFN}, {"llama.attention.head_count", HEADS},
    {"llama.context_length", 4096},
};
enum { N_NUMBER = sizeof numbers / sizeof numbers[0] };

static const struct {
    const char *name;
    dtype type;
    uint32_t gguf;
    bool grows; /* tiles take over a tenth more than the file */
} kinds[] = {
    {"IQ2_XXS", DT_IQ2_XXS, 16, true}, {"IQ3_S", DT_IQ3_S, 21, true}, {"IQ1_S", DT_IQ1_S, 19, true},
    {"TQ1_0", DT_TQ1_0, 34, true},     {"Q4_K", DT_Q4_K, 12, false},  {"Q6_K", DT_Q6_K, 14, false},
};
enum { N_KIND = sizeof kinds / sizeof kinds[0] };

/* A model whose matrices are of one type and whose weights are zeros that take no room on the disk. */
static void write_model(const char *path, size_t kind)
{
    uint64_t at = 0;
    cairn_diag dg = {0};
    buf b;
    buf_init(&b, MEM_MISC);
    gguf_put_head(&b, 3, N_SHAPE, N_NUMBER + 2);
    gguf_put_key(&b, "general.architecture", STRING);
    gguf_put_str(&b, "llama");
    gguf_put_key(&b, "llama.attention.layer_norm_rms_epsilon", FLOAT32);
    gguf_put_int(&b, 0x3727c5ac, 4); /* 1e-5 */
    for (size_t i = 0; i < N_NUMBER; i++) {
        gguf_put_key(&b, numbers[i].name, U32);
        gguf_put_int(&b, numbers[i].value, 4);
    }
    for (size_t i = 0; i < N_SHAPE; i++) {
        const shape *s = &shapes[i];
        size_t size;
        assert_true(dtype_bytes(s->rows ? kinds[kind].type : DT_F32,
                                s->cols * (s->rows ? s->rows : 1), &size));
        gguf_put_str(&b, s->name);
        gguf_put_int(&b, s->rows ? 2 : 1, 4);
        gguf_put_int(&b, s->cols, 8);
        if (s->rows) gguf_put_int(&b, s->rows, 8);
        gguf_put_int(&b, s->rows ? kinds[kind].gguf : 0, 4);
        gguf_put_int(&b, at, 8);
        at += (size + ALIGN - 1) / ALIGN * ALIGN;
    }
    while (b.len % ALIGN) buf_byte(&b, '\0');
    assert_ok(file_replace(path, b.ptr, b.len, &dg));
    assert_int_equal(truncate(path, (off_t)(b.len + at)), 0);
    buf_deinit(&b);
}

/* Bytes that this process holds and that no file backs. */
static uint64_t anonymous_bytes(void)
{
    char line[128];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %llu", &kb) == 1) break;
    assert_int_equal(fclose(f), 0);
    return (uint64_t)kb * 1024;
}

static cairn_model *open_model(const char *path, bool weights, cairn_compute compute,
                               cairn_model_info *i)
{
    cairn_model_opts o;
    cairn_model *m = NULL;
    cairn_diag dg = {0};
    cairn_model_opts_init(&o);
    o.no_text = true;
    o.no_weights = !weights;
    o.compute = compute;
    o.n_threads = 1;
    if (cairn_model_open(path, &o, &m, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    cairn_model_info_init(i);
    cairn_model_get_info(m, i);
    return m;
}

/* What vectors take in the file; the device does not count them. */
static uint64_t vector_bytes(void)
{
    uint64_t n = 0;
    for (size_t i = 0; i < N_SHAPE; i++) n += shapes[i].rows ? 0 : shapes[i].cols * sizeof(float);
    return n;
}

static void refused_below(const char *path, uint64_t need)
{
    cairn_model_opts o;
    cairn_model *m = NULL;
    cairn_diag dg = {0};
    cairn_model_opts_init(&o);
    o.no_text = true;
    o.n_threads = 1;
    o.memory_limit = need - 1;
    assert_int_equal(cairn_model_open(path, &o, &m, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "weights take");
    o.memory_limit = need;
    assert_ok(cairn_model_open(path, &o, &m, &dg));
    cairn_model_close(m);
}

static void one_kind(const char *path, size_t kind)
{
    cairn_model_info told, held;
    cairn_model_close(open_model(path, false, CAIRN_COMPUTE_FAST, &told));
    const uint64_t before = anonymous_bytes(), tags = mem_used(MEM_WEIGHTS);
    cairn_model *m = open_model(path, true, CAIRN_COMPUTE_FAST, &held);
    const uint64_t grown = anonymous_bytes() - before, mapped = mem_used(MEM_WEIGHTS) - tags;
    cairn_model_close(m);

    const uint64_t embedding =
        told.file_bytes - vector_bytes() - told.token_bytes; /* stays in the file */
    const uint64_t tiles = told.loaded_bytes - vector_bytes() - embedding;
    print_message("%s: file %llu, loaded %llu, tiles %llu, anonymous %llu\n", kinds[kind].name,
                  (unsigned long long)told.file_bytes, (unsigned long long)told.loaded_bytes,
                  (unsigned long long)tiles, (unsigned long long)grown);
    assert_int_equal(told.resident_bytes, 0);
    assert_int_equal(held.loaded_bytes, told.loaded_bytes);
    assert_int_equal(held.resident_bytes + vector_bytes(), told.loaded_bytes);
    assert_true(mapped >= tiles);
    assert_in_range(grown, tiles - SLACK, tiles + SLACK);
    assert_int_equal(told.loaded_bytes > told.file_bytes / 10 * 11, kinds[kind].grows);
    refused_below(path, told.loaded_bytes);

    cairn_model_close(open_model(path, false, CAIRN_COMPUTE_F32, &told));
    assert_int_equal(told.loaded_bytes, told.file_bytes); /* used in place */
}

static void what_is_told_is_what_loading_takes(void **state)
{
    tmp_dir dir;
    (void)state;
    assert_true(tmp_make(&dir));
    for (size_t k = 0; k < N_KIND; k++) {
        const char *path = tmp_path(&dir, "model.gguf");
        write_model(path, k);
        one_kind(path, k);
    }
    assert_true(tmp_drop(&dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_told_is_what_loading_takes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
