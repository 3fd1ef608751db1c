/* Fuzz target: tokenizer files that are not JSON.  The first byte chooses SentencePiece's model or
   tiktoken's ranks; the file, 0xFF 0xFE, a text.  Whatever the file says, encoding and decoding
   neither crash nor hang, the stream equals the whole, and no memory is left. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "text/detok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void back(const tok *t, const buf *ids)
{
    const int32_t *id = (const int32_t *)(const void *)ids->ptr;
    const size_t n = ids->len / sizeof *id;
    buf whole, parts;
    detok *d;
    cairn_str s;

    buf_init(&whole, MEM_TEXT);
    buf_init(&parts, MEM_TEXT);
    if (tok_decode(t, id, n, true, &whole, NULL) != CAIRN_OK) abort();
    if (detok_new(t, true, &d) != CAIRN_OK) abort();
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    cairn_str all = {(const char *)data + 1, size - 1}, none = {0}, text = {0}, file = all;
    size_t cut = str_find(all, STR_LIT("\xFF\xFE"), 0);
    cairn_diag dg;
    tok *t;
    buf ids;

    if (cut != SIZE_MAX) {
        file = str_sub(all, 0, cut);
        text = str_sub(all, cut + 2, all.len - cut - 2);
    }
    cairn_status st = data[0] & 1 ? tok_open_tiktoken(file, none, "fuzz", "fuzz", &t, &dg)
                                  : tok_open_sentencepiece(file, none, "fuzz", &t, &dg);
    if (st == CAIRN_OK) {
        buf_init(&ids, MEM_TEXT);
        for (uint32_t flags = 0; flags < 4; flags++) {
            buf_clear(&ids);
            if (tok_encode(t, text, flags, &ids, &dg) == CAIRN_OK) back(t, &ids);
        }
        buf_deinit(&ids);
        tok_close(t);
    }
    if (mem_used_all() != 0) abort();
    return 0;
}
