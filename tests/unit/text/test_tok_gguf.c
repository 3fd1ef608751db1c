/* GGUF vocabularies through a metadata view made here: small enough that the ids follow by hand from
   llama.cpp's rules.  Real files are tests/text/compare_gguf.py's. */
#include "test.h"

#include "text/detok.h"

typedef struct entry {
    const char *key;
    meta_type type;
    int64_t i;
    const char *s;
    const char *const *strings; /* ARR of strings, or: */
    const double *numbers;      /* ARR of numbers */
    size_t n;
} entry;

typedef struct table {
    const entry *e;
    size_t n;
} table;

static bool get(const void *self, const char *key, meta *out)
{
    const table *t = self;

    for (size_t k = 0; k < t->n; k++) {
        const entry *e = &t->e[k];
        if (strcmp(e->key, key) != 0) continue;
        *out = (meta){.type = e->type, .impl = {e, NULL}};
        if (e->type == META_BOOL)
            out->u.b = e->i != 0;
        else if (e->type == META_INT)
            out->u.i = e->i;
        else if (e->type == META_STR)
            out->u.s = str_of(e->s);
        else
            out->u.n = e->n;
        return true;
    }
    return false;
}

static bool at(const void *self, const meta *arr, size_t i, meta *out)
{
    const entry *e = arr->impl[0];

    (void)self;
    if (e->strings)
        *out = (meta){.type = META_STR, .u.s = str_of(e->strings[i])};
    else if (strcmp(e->key, "tokenizer.ggml.token_type") == 0)
        *out = (meta){.type = META_INT, .u.i = (int64_t)e->numbers[i]};
    else
        *out = (meta){.type = META_FLOAT, .u.f = e->numbers[i]};
    return true;
}

static cairn_status open_table(const entry *e, size_t n, tok **out, cairn_diag *dg)
{
    const table t = {e, n};
    const meta_view v = {&t, get, at};

    return tok_open_gguf(&v, "tiny.gguf", out, dg);
}
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void check(const tok *t, const char *s, uint32_t flags, const int32_t *want, size_t n)
{
    buf ids = {.tag = MEM_TEXT};

    assert_ok(tok_encode(t, str_of(s), flags, &ids, NULL));
    assert_int_equal(ids.len, n * sizeof *want);
    assert_memory_equal(ids.ptr, want, ids.len);
    buf_deinit(&ids);
}
#define IDS(...) (const int32_t[]){__VA_ARGS__}, LEN(((int32_t[]){__VA_ARGS__}))

static const char *const spm_pieces[] = {"<unk>",   "<s>",    "</s>",      "<0xC3>", "<0xA9>",
                                         "\u2581",  "a",      "b",         "ab",     "ba",
                                         "\u2581a", "<tool>", "<|eot_id|>"};
static const double spm_types[] = {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 4, 3};
static const double spm_scores[] = {0, 0, 0, 0, 0, -9, -8, -7, -2, -1, -3, 0, 0};

static const entry spm[] = {
    {.key = "tokenizer.ggml.model", .type = META_STR, .s = "llama"},
    {.key = "tokenizer.ggml.tokens", .type = META_ARR, .strings = spm_pieces, .n = LEN(spm_pieces)},
    {.key = "tokenizer.ggml.token_type",
     .type = META_ARR,
     .numbers = spm_types,
     .n = LEN(spm_types)},
    {.key = "tokenizer.ggml.scores", .type = META_ARR, .numbers = spm_scores, .n = LEN(spm_scores)},
};

static void sentencepiece(void **state)
{
    tok *t = NULL;
    buf out = {.tag = MEM_TEXT};

    (void)state;
    assert_ok(open_table(spm, LEN(spm), &t, NULL));
    check(t, "aba", 0, IDS(10, 9));                  /* " aba": "ba" scores best */
    check(t, "aba", TOK_ADD_SPECIAL, IDS(1, 10, 9)); /* BOS unless the file says no */
    check(t, "b\u00e9", 0, IDS(5, 7, 3, 4));         /* bytes */
    check(t, "z", 0, IDS(5, 0));                     /* neither piece nor byte */
    check(t, "a<tool>a", 0, IDS(10, 11, 10));        /* user-defined: always, a space after */
    check(t, "a</s>a", TOK_PARSE_SPECIAL, IDS(10, 2, 10));
    assert_true(tok_is_eos(t, 2) && tok_is_eos(t, 12) && !tok_is_eos(t, 11));
    assert_ok(tok_decode(t, (const int32_t[]){1, 10, 9, 5, 11, 3, 4, 3}, 8, false, &out, NULL));
    assert_str(buf_view(&out), "aba <tool>\u00e9\ufffd"); /* the first space is dropped */
    buf_deinit(&out);
    tok_close(t);
    assert_int_equal(mem_used_all(), 0);
}

static const char *const bpe_pieces[] = {"a",        "b", "\u0120", "ab",
                                         "\u0120ab", "1", "12",     "<|im_end|>"};
static const double bpe_types[] = {1, 1, 1, 1, 1, 1, 1, 3};
static const char *const bpe_merges[] = {"a b", "\u0120 ab", "1 2"};

static entry bpe_keys[] = {
    {.key = "tokenizer.ggml.model", .type = META_STR, .s = "gpt2"},
    {.key = "tokenizer.ggml.pre", .type = META_STR, .s = "smollm"},
    {.key = "tokenizer.ggml.tokens", .type = META_ARR, .strings = bpe_pieces, .n = LEN(bpe_pieces)},
    {.key = "tokenizer.ggml.token_type",
     .type = META_ARR,
     .numbers = bpe_types,
     .n = LEN(bpe_types)},
    {.key = "tokenizer.ggml.merges", .type = META_ARR, .strings = bpe_merges, .n = 2},
    {.key = "tokenizer.ggml.bos_token_id", .type = META_INT, .i = 7},
    {.key = "tokenizer.ggml.add_bos_token", .type = META_BOOL, .i = 1},
};

static void byte_level(void **state)
{
    tok *t = NULL;
    cairn_diag dg = {0};

    (void)state;
    assert_ok(open_table(bpe_keys, LEN(bpe_keys), &t, &dg));
    check(t, "ab ab11", TOK_ADD_SPECIAL, IDS(7, 3, 4, 5, 5));
    check(t, "ab<|im_end|>", TOK_PARSE_SPECIAL, IDS(3, 7));
    assert_true(tok_is_eos(t, 7));
    assert_true(tok_specials(t).add_bos);
    tok_close(t);
}

static void refuses(void **state)
{
    tok *t = NULL;
    cairn_diag dg = {0};
    entry e[LEN(bpe_keys)];

    (void)state;
    memcpy(e, bpe_keys, sizeof e);
    e[1].s = "martian";
    assert_int_equal(open_table(e, LEN(e), &t, &dg), CAIRN_E_UNSUPPORTED);
    assert_says(&dg, "\"martian\"");
    memcpy(e, bpe_keys, sizeof e);
    e[0].s = "runes";
    assert_int_equal(open_table(e, LEN(e), &t, &dg), CAIRN_E_UNSUPPORTED);
    assert_says(
        &dg, "\"runes\"; expected one of gpt2, whitespace, gemma4, llama, bert, t5, rwkv, plamo2");
    memcpy(e, bpe_keys, sizeof e);
    e[4].n = 3; /* "1 2": no 2 */
    assert_int_equal(open_table(e, LEN(e), &t, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "tiny.gguf: tokenizer.ggml.merges: found merge 2 \"1\" \"2\"; expected both");
    assert_int_equal(open_table(e, 4, &t, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "tokenizer.ggml.merges: found nothing; expected an array");
    assert_int_equal(open_table(spm, 3, &t, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, "tokenizer.ggml.scores: found nothing; expected an array");
    assert_int_equal(open_table(NULL, 0, &t, &dg), CAIRN_E_NOTFOUND);
    assert_null(t);
    assert_int_equal(mem_used_all(), 0);
}

static cairn_status open_both(void *ctx)
{
    tok *t = NULL;

    (void)ctx;
    TRY(open_table(spm, LEN(spm), &t, NULL));
    tok_close(t);
    TRY(open_table(bpe_keys, LEN(bpe_keys), &t, NULL));
    tok_close(t);
    return CAIRN_OK;
}

static void memory_runs_out(void **state)
{
    (void)state;
    assert_true(fault_loop(open_both, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sentencepiece),
                                       cmocka_unit_test(byte_level), cmocka_unit_test(refuses),
                                       cmocka_unit_test(memory_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
