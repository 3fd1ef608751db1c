/* A checkpoint of headers alone from a few lines of text, joined: for tests of the quantised formats.
   First line: config.json.  Each further line: NAME TYPE DIM DIM …; tensors get bytes of their own, so that
   a sanitizer sees reads past them. */
#ifndef TESTS_QUANT_LIST_H
#define TESTS_QUANT_LIST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "format/format.h"
#include "format/hfconfig.h"
#include "format/quant.h"

enum { QUANT_LIST_BYTES = 1 << 20, QUANT_LIST_TENSORS = 24 };

typedef struct quant_list {
    hfconfig *config;
    source_build *b;
    uint8_t *data[QUANT_LIST_TENSORS];
} quant_list;

static inline void quant_list_close(quant_list *l)
{
    if (l->b) source_close(&l->b->src);
    hfconfig_close(l->config);
    for (int i = 0; i < QUANT_LIST_TENSORS; i++) free(l->data[i]);
}

/* False: not a line of the kind, or too large. */
static inline bool quant_list_line(char *line, tensor_desc *t)
{
    char *save, *word = strtok_r(line, " ", &save);
    uint64_t n = 1;
    *t = (tensor_desc){.file = "list", .type = DT_COUNT};
    if (!word || strlen(word) > FORMAT_MAX_NAME) return false;
    t->name = str_of(word);
    word = strtok_r(NULL, " ", &save);
    for (int i = 0; word && i < DT_COUNT; i++)
        if (i != DT_PACKED && !dtype_is_quant((dtype)i) && strcmp(word, dtype_name((dtype)i)) == 0)
            t->type = (dtype)i;
    if (t->type == DT_COUNT) return false;
    while ((word = strtok_r(NULL, " ", &save)) != NULL) {
        if (t->n_dim == 4) return false;
        t->dim[t->n_dim] = strtoll(word, NULL, 10);
        if (t->dim[t->n_dim] < 0) return false;
        if (__builtin_mul_overflow(n, (uint64_t)t->dim[t->n_dim++], &n)) return false;
    }
    return dtype_bytes(t->type, n, &t->size) && t->size <= QUANT_LIST_BYTES;
}

/* `text` is overwritten.  E_ARG: not such a text.  Bytes of tensors are `fill`, but for I64 ones (shapes),
   which hold `pair`. */
static inline cairn_status quant_list_open(char *text, uint8_t fill, const int64_t *pair,
                                           quant_list *l, cairn_diag *dg)
{
    char *save, *line = strtok_r(text, "\n", &save);
    memset(l, 0, sizeof *l);
    if (!line) return CAIRN_E_ARG;
    TRY(hfconfig_parse("config.json", str_of(line), &l->config, dg));
    TRY(source_build_new(SOURCE_SAFETENSORS, "list", &l->b, dg));
    for (int i = 0; i < QUANT_LIST_TENSORS && (line = strtok_r(NULL, "\n", &save)); i++) {
        tensor_desc t;
        if (!quant_list_line(line, &t)) return CAIRN_E_ARG;
        l->data[i] = malloc(t.size + 1);
        if (!l->data[i]) return CAIRN_E_NOMEM;
        memset(l->data[i], fill, t.size);
        if (t.type == DT_I64 && t.size == 16) memcpy(l->data[i], pair, 16);
        t.data = t.size ? l->data[i] + 1 : l->data[i];
        if (t.size) memmove(l->data[i] + 1, l->data[i], t.size); /* odd addresses */
        TRY(source_add(l->b, &t, dg));
    }
    const meta_view v = hfconfig_meta(l->config);
    return quant_join(l->b, &v, dg);
}

#endif
