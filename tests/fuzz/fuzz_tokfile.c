/* Fuzz target: tokenizer files that are not JSON.  The first byte chooses SentencePiece's model or
   tiktoken's ranks; the file, 0xFF 0xFE, a text.  Whatever the file says, encoding and decoding
   neither crash nor hang, the stream equals the whole, and no memory is left. */
#include <stdlib.h>

#include "base/str.h"
#include "tok_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
            if (tok_encode(t, text, flags, &ids, &dg) == CAIRN_OK) tok_back(t, &ids, true);
        }
        buf_deinit(&ids);
        tok_close(t);
    }
    if (mem_used_all() != 0) abort();
    return 0;
}
