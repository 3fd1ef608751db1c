/* Quantised checkpoints that are wrong: each way ends in one line that names file, tensor, what was found
   and what was expected.  That right ones are right is tests/golden's affair. */
#include "test.h"

#include "quant_list.h"

#define Q4     "{\"quantization\": {\"bits\": 4, \"group_size\": 64}}\n"
#define MX(m)  "{\"quantization\": {\"mode\": \"" m "\"}}\n"
#define W      "a.weight U32 6 16\n"
#define S      "a.scales BF16 6 2\n"
#define B      "a.biases BF16 6 2\n"
#define HF(x)  "{\"quantization_config\": {\"quant_method\": " x "}}\n"
#define FP8    HF("\"fp8\", \"weight_block_size\": [128, 128]")
#define CT     HF("\"compressed-tensors\"")
#define GPTQ   HF("\"gptq\", \"bits\": 4, \"group_size\": 64")
#define AWQ    HF("\"awq\", \"bits\": 4, \"group_size\": 64")
#define PLAIN  "a.weight BF16 64 192\n"
#define GPTQ_W "a.qweight I32 16 8\na.scales F16 2 8\n"

static const struct {
    const char *text;
    const char *says; /* NULL: fine */
} cases[] = {
    {Q4 W S B, NULL},
    {Q4 W B "a.scales U8 6 2", "a.scales: type is U8; expected BF16, F16 or F32"},
    {Q4 W S, "a.biases is missing"},
    {Q4 S B, "a.weight is missing"},
    {Q4 W, "a.scales is missing"},
    {Q4 W S "a.biases F16 6 2", "a.biases: type is F16; expected BF16"},
    {Q4 W "a.scales BF16 6 3\n" B, "a.scales: shape is [6, 3]; expected [6, 2]"},
    {Q4 W "a.scales BF16 5 2\n" B, "a.scales: shape is [5, 2]; expected [6, 2]"},
    {Q4 W S "a.biases BF16 12", "a.biases: shape is [12]; expected [6, 2]"},
    {Q4 "a.weight U32 6 15\n" S B, "row is 15 words; expected groups of 64 codes of 4 bits"},
    {Q4 "a.weight U32 96\n" S B, "number of dimensions is 1"},
    {Q4 "a.weight U32 0 16\na.scales BF16 0 2\na.biases BF16 0 2", "matrix is 0 × 128"},
    {Q4 "a.weight BF16 6 16\n" S B, "a.weight: type is BF16; expected U32"},
    {"{\"quantization\": {\"bits\": 7, \"group_size\": 64}}\n" W S B, "7 bits in groups of 64"},
    {"{\"quantization\": {\"bits\": 4, \"group_size\": 48}}\n" W S B, "4 bits in groups of 48"},
    {"{\"quantization\": {\"bits\": -4, \"group_size\": 64}}\n" W S B, "bits is -4"},
    {"{\"quantization\": {\"bits\": 4.5, \"group_size\": 64}}\n" W S B, "bits is no whole number"},
    {"{\"quantization\": {\"bits\": 4, \"mode\": \"q9\"}}\n" W S B, "mode is \"q9\""},
    {"{\"quantization\": {\"bits\": 4, \"a\": false}}\n" W S B, "is false; expected its bits"},
    {"{\"quantization\": {\"bits\": 8, \"a\": {\"bits\": 4}}}\n" W S B, NULL},
    {"{\"quantization_config\": {\"bits\": 4, \"group_size\": 64}}\n" W S B, NULL},
    {MX("mxfp4") W "a.scales U8 6 4", NULL},
    {MX("mxfp4") W "a.scales BF16 6 4", "a.scales: type is BF16; expected U8 for mxfp4"},
    {MX("mxfp4") W B "a.scales U8 6 4", "a.biases: tensor is there; expected none for mxfp4"},
    {MX("mxfp8") "a.weight U32 6 16\na.scales U8 6 4", "shape is [6, 4]; expected [6, 2]"},
    {MX("nvfp4") W "a.scales U8 6 8", NULL},
    {"{\"quantization\": {\"mode\": \"nvfp4\", \"bits\": 4, \"group_size\": 32}}\n" W
     "a.scales U8 6 4",
     "4 bits in groups of 16 for nvfp4"},
    {HF("\"bitsandbytes\"") W, "quant_method: found \"bitsandbytes\"; expected fp8"},
    {HF("3") W, "quant_method"},
    {"{\"quantization_config\": {}}\n" W, "found neither quant_method nor bits"},
    {FP8 "a.weight F8_E4M3 130 200\na.weight_scale_inv F32 2 2", NULL},
    {FP8 "a.weight F8_E4M3 130 200\na.weight_scale_inv F32 1 2", "[1, 2]; expected [2, 2]"},
    {FP8 "a.weight F8_E4M3 130 200", "a.weight_scale_inv is missing"},
    {FP8 "a.weight F8_E4M3 130 200\na.weight_scale_inv U8 2 2", "type is U8; expected F32"},
    {FP8 "a.weight F8_E4M3 130\na.weight_scale_inv F32 2", "dimensions is 1"},
    {HF("\"fp8\"") "a.weight F8_E4M3 130 200\na.weight_scale_inv F32 2 2",
     "weight_block_size is missing"},
    {HF("\"fp8\", \"weight_block_size\": [0, 128]") "a.weight F8_E4M3 130 200\n"
                                                    "a.weight_scale_inv F32 2 2",
     "two whole numbers"},
    {CT "a.weight_packed I32 64 24\na.weight_scale BF16 64 3\na.weight_shape I64 2", NULL},
    {CT "a.weight_packed I32 64 24\na.weight_scale BF16 64 3", "a.weight_shape is missing"},
    {CT "a.weight_packed I32 64 24\na.weight_shape I64 2", "a.weight_scale is missing"},
    {CT "a.weight_packed I32 64 24\na.weight_scale BF16 64 5\na.weight_shape I64 2",
     "groups that divide 192 columns"},
    {CT "a.weight_packed I32 64 25\na.weight_scale BF16 64 3\na.weight_shape I64 2",
     "64 rows and columns that fill 25 words"},
    {CT "a.weight I8 64 192\na.weight_scale BF16 64 1", NULL},
    {CT "a.weight I8 64 192\na.weight_scale BF16 63 1", "weight_block_size is missing"},
    {GPTQ GPTQ_W "a.qzeros I32 2 1\na.g_idx I32 128", NULL},
    {GPTQ GPTQ_W "a.qzeros I32 2 2", "a.qzeros: shape is [2, 2]; expected [2, 1]"},
    {GPTQ GPTQ_W, "a.qzeros is missing"},
    {GPTQ GPTQ_W "a.qzeros I32 2 1\na.g_idx I32 127", "a.g_idx: shape is [127]; expected [128]"},
    {HF("\"gptq\", \"bits\": 3") GPTQ_W "a.qzeros I32 2 1", "bits is 3; expected 2, 4 or 8"},
    {HF("\"gptq\", \"bits\": 4, \"group_size\": 0") GPTQ_W "a.qzeros I32 2 1", "group_size is 0"},
    {AWQ "a.qweight I32 128 1\na.scales F16 2 8\na.qzeros I32 2 1", NULL},
    {AWQ "a.qweight I32 128 1\na.scales F16 2 9\na.qzeros I32 2 1", "[2, 9]; expected [2, 8]"},
    {HF("\"mxfp4\"") "a_blocks U8 2 4 3 16\na_scales U8 2 4 3", NULL},
    {HF("\"mxfp4\"") "a_blocks U8 2 4 3 16\na_scales U8 2 4 2", "[2, 4, 2]; expected [2, 4, 3]"},
    {HF("\"mxfp4\"") "a_blocks U8 2 4 3 15\na_scales U8 2 4 3", "[.., rows, groups, 16]"},
    {GPTQ PLAIN, "quantization_config: says gptq, but no tensor is quantised so; expected"},
    {HF("\"awq\", \"bits\": \"x\"") PLAIN, "says awq, but no tensor"},
    {FP8 PLAIN, "says fp8, but no tensor"},
    {HF("\"mxfp4\"") PLAIN, "says mxfp4, but no tensor"},
    {"{\"quantization\": {\"bits\": 3, \"group_size\": 64}}\n" PLAIN,
     "quantization: says MLX, but no tensor"},
    {CT PLAIN, NULL},
    {HF("\"compressed-tensors\", \"config_groups\": {\"group_0\": {}}") PLAIN,
     "says compressed-tensors, but no tensor"},
    {GPTQ GPTQ_W "a.qzeros I32 2 1\na.weight BF16 8 128", "quantised and plain"},
};
static const int64_t shape[2] = {64, 192};

static void each_case(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cairn_diag dg = {0};
        char text[1024];
        quant_list l;
        (void)snprintf(text, sizeof text, "%s", cases[i].text);
        const cairn_status st = quant_list_open(text, 0x38, shape, &l, &dg);
        if (cases[i].says && (st == CAIRN_OK || !strstr(dg.message, cases[i].says)))
            fail_msg("case %zu: \"%s\"; expected \"%s\"", i, dg.message, cases[i].says);
        if (!cases[i].says && (st != CAIRN_OK || l.b->src.n_tensor != 1))
            fail_msg("case %zu: %s (%zu tensors)", i, dg.message, l.b->src.n_tensor);
        if (cases[i].says) assert_null(strchr(dg.message, '\n'));
        quant_list_close(&l);
    }
}

/* Scales that are no numbers are found before a model runs. */
static void bad_scales(void **state)
{
    static const struct {
        const char *text;
        uint8_t fill;
    } bad[] = {{Q4 W S B, 0xff},
               {MX("mxfp4") W "a.scales U8 6 4", 0xff},
               {MX("nvfp4") W "a.scales U8 6 8", 0x7f},
               {FP8 "a.weight F8_E4M3 130 200\na.weight_scale_inv F32 2 2", 0xff},
               {GPTQ GPTQ_W "a.qzeros I32 2 1\na.g_idx I32 128", 0x22}}; /* groups out of range */
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cairn_diag dg = {0};
        char text[1024];
        quant_list l;
        (void)snprintf(text, sizeof text, "%s", bad[i].text);
        assert_ok(quant_list_open(text, bad[i].fill, shape, &l, &dg));
        const tensor_desc *t = &l.b->tensor[0];
        assert_int_equal(t->type, DT_PACKED);
        assert_int_equal(packed_check(t->packed, t->name.ptr, &dg), CAIRN_E_CORRUPT);
        assert_says(&dg, "list: tensor a.");
        quant_list_close(&l);
    }
}

static cairn_status join_once(void *ctx)
{
    char text[1024];
    quant_list l;
    (void)ctx;
    (void)snprintf(text, sizeof text, "%s", GPTQ GPTQ_W "a.qzeros I32 2 1\na.g_idx I32 128");
    const cairn_status st = quant_list_open(text, 0, shape, &l, NULL);
    quant_list_close(&l);
    return st;
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(fault_loop(join_once, NULL) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_case), cmocka_unit_test(bad_scales),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
