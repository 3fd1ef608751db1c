/* libFuzzer target: joining the tensors of quantised checkpoints, and reading rows of what comes out.
   Input: a byte that fills the tensors, then the text of quant_list.h. */
#include "quant_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void read_rows(const packed *s)
{
    float *row;
    if (s->cols > QUANT_LIST_BYTES || packed_check(s, "fuzz", NULL) != CAIRN_OK) return;
    row = malloc(sizeof *row * (size_t)s->cols);
    if (!row) return;
    packed_row_f32(s, 0, row);
    packed_row_f32(s, (size_t)s->rows - 1, row);
    if (packed_is_affine(s)) {
        uint8_t q[32];
        float d, m;
        packed_codes32(s, (size_t)s->rows - 1, (size_t)s->cols / 32 - 1, q);
        packed_scales(s, (size_t)s->rows - 1, packed_groups(s) - 1, &d, &m);
    }
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const int64_t shape[2] = {64, 192};
    quant_list l;
    char *text;
    if (n < 2 || n > 4096) return 0;
    text = malloc(n);
    if (!text) return 0;
    memcpy(text, p + 1, n - 1);
    text[n - 1] = 0;
    if (quant_list_open(text, p[0], shape, &l, NULL) == CAIRN_OK)
        for (size_t i = 0; i < l.b->src.n_tensor; i++)
            if (l.b->tensor[i].packed) read_rows(l.b->tensor[i].packed);
    quant_list_close(&l);
    free(text);
    return 0;
}
