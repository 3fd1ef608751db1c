/* Any text as a file of flags: taken or refused with its place, values inside the text. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/flags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool b = false;
    int64_t n = 0;
    double x = 0;
    uint64_t bytes = 0;
    const char *s = NULL, *word = NULL, *item[4], *rest[4];
    flag_list list = {item, 0, 4};
    const flag table[] = {
        {"--bool", NULL, FLAG_BOOL, &b, "", 0, 0, NULL},
        {"--int", NULL, FLAG_INT, &n, "N: ", -5, 5, NULL},
        {"--num", NULL, FLAG_NUM, &x, "X: ", 0, 1, NULL},
        {"--size", NULL, FLAG_SIZE, &bytes, "B: ", 1, 0x1p40, NULL},
        {"--str", NULL, FLAG_STR, &s, "S: ", 0, 0, NULL},
        {"--word", NULL, FLAG_WORD, &word, "a|b: ", 0, 0, NULL},
        {"--list", NULL, FLAG_LIST, &list, "L: ", 0, 0, NULL},
    };
    char *text = mem_alloc(size + 1, MEM_MISC);
    cairn_diag dg = {0};
    flags_file f = {
        .path = "f", .text = text, .len = size, .word = "model", .rest = rest, .max_rest = 4};

    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    const cairn_status st = flags_parse_file(table, sizeof table / sizeof table[0], &f, &dg);
    if (st != CAIRN_OK && strncmp(dg.message, "f:", 2) != 0) abort();
    if (s && (s < text || s > text + size)) abort();
    for (size_t i = 0; st == CAIRN_OK && i < f.n_rest; i++)
        if (rest[i] < text || rest[i] > text + size || !rest[i][0]) abort();
    mem_free(text);
    return 0;
}
