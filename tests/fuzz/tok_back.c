/* The way back from ids to text, for the fuzz targets of tokenizers. */
#include "tok_back.h"

#include <stdlib.h>

#include "base/str.h"
#include "text/detok.h"

void tok_back(const tok *t, const buf *ids, bool keep)
{
    const int32_t *id = (const int32_t *)(const void *)ids->ptr;
    const size_t n = ids->len / sizeof *id;
    buf whole, parts;
    detok *d;
    cairn_str s;

    buf_init(&whole, MEM_TEXT);
    buf_init(&parts, MEM_TEXT);
    if (tok_decode(t, id, n, keep, &whole, NULL) != CAIRN_OK) abort();
    if (detok_new(t, keep, &d) != CAIRN_OK) abort();
    for (size_t i = 0; i < n; i++) {
        if (detok_feed(d, id[i], &s) != CAIRN_OK) abort();
        buf_str(&parts, s);
    }
    if (detok_end(d, &s) != CAIRN_OK) abort();
    buf_str(&parts, s);
    if (!str_eq(buf_view(&whole), buf_view(&parts))) abort();
    detok_free(d);
    buf_deinit(&whole);
    buf_deinit(&parts);
}
