/* Owns the character classes and the byte-level alphabet.  The tables of Unicode are utf8proc's;
   ASCII is answered from a table made by the same rules (the test compares the two). */
#include "text/uchar.h"

#include <assert.h>
#include <string.h>
#include <utf8proc.h>

#include "base/thread.h"

enum {
    S = UC_SPACE,
    R = UC_SPACE | UC_NEWLINE,
    C = UC_CONTROL,
    P = UC_PUNCT,
    Y = UC_SYMBOL,
    N = UC_NUMBER,
    U = UC_UPPER,
    L = UC_LOWER,
    K = UC_PUNCT | UC_CONNECT
};

/* clang-format off */
const uint16_t uc_ascii[128] = {
    C, C, C, C, C, C, C, C, C, S, R, S, S, R, C, C,
    C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
    S, P, P, P, Y, P, P, P, P, P, P, Y, P, P, P, P,
    N, N, N, N, N, N, N, N, N, N, P, P, Y, Y, Y, P,
    P, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U,
    U, U, U, U, U, U, U, U, U, U, U, P, P, P, Y, K,
    Y, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    L, L, L, L, L, L, L, L, L, L, L, P, Y, P, Y, C,
};
/* clang-format on */

static uint32_t of_category(utf8proc_category_t c)
{
    switch (c) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return UC_UPPER;
    case UTF8PROC_CATEGORY_LL:
        return UC_LOWER;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return UC_OTHER;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return UC_MARK;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return UC_NUMBER;
    case UTF8PROC_CATEGORY_PC:
        return UC_PUNCT | UC_CONNECT;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return UC_PUNCT;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
        return UC_SYMBOL;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return UC_SPACE;
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
        return UC_CONTROL;
    }
    return UC_CONTROL;
}

uint16_t uc_page[UC_PAGES], uc_block[UC_MOST_BLOCKS][256];

static void fill_block(uint32_t page, uint16_t *block)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t cp = page * 256 + i;
        block[i] = (uint16_t)of_category(utf8proc_category((utf8proc_int32_t)cp));
        if (cp == 0x85) block[i] = UC_SPACE; /* the one space beyond ASCII that is a control */
    }
}

/* Equal blocks are kept once; of the planes without characters all pages are the first such. */
static void fill_tables(void)
{
    uint32_t n = 0;

    for (uint32_t page = 0; page < UC_PAGES; page++) {
        if (page == 0x340) page = 0xE00; /* planes 4 to 13 are unassigned, as plane 3's end */
        if (page == 0xE10) page = UC_PAGES - 1; /* private use, to the end */
        assert(n < UC_MOST_BLOCKS);
        fill_block(page, uc_block[n]);
        uint32_t same = 0;
        while (same < n && memcmp(uc_block[same], uc_block[n], sizeof uc_block[n]) != 0) same++;
        uc_page[page] = (uint16_t)same;
        if (same == n) n++;
    }
    for (uint32_t page = 0x340; page < 0xE00; page++) uc_page[page] = uc_page[UC_PAGES - 1];
    for (uint32_t page = 0xE10; page < UC_PAGES; page++) uc_page[page] = uc_page[UC_PAGES - 1];
}

void uc_prepare(void)
{
    static once done = ONCE_INIT;

    once_run(&done, fill_tables);
}

bool uc_is_digit(uint32_t cp)
{
    if (cp < 128) return cp >= '0' && cp <= '9';
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

bool uc_is_word(uint32_t cp)
{
    uint32_t c = uc_class(cp);

    if (c & (UC_LETTER | UC_MARK | UC_CONNECT)) return true;
    if (cp == 0x200C || cp == 0x200D) return true; /* Join_Control */
    if (c & UC_NUMBER) { /* decimal digits and letter numbers (Alphabetic), not fractions */
        utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)cp);
        return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL;
    }
    /* Letters in circles and squares are Alphabetic symbols. */
    return (cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) ||
           (cp >= 0x1F150 && cp <= 0x1F169) || (cp >= 0x1F170 && cp <= 0x1F189);
}

/* Printable Latin-1 stands for itself; the other 68 bytes, in order, are U+0100 …. */
static bool itself(uint32_t b)
{
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

uint32_t bytelevel_char(uint8_t byte)
{
    uint32_t b = byte;

    if (itself(b)) return b;
    if (b <= 0x20) return 0x100 + b;
    if (b <= 0xA0) return 0x100 + 33 + (b - 0x7F);
    return 0x100 + 67; /* 0xAD */
}

int bytelevel_byte(uint32_t cp)
{
    if (cp < 0x100) return itself(cp) ? (int)cp : -1;
    if (cp <= 0x120) return (int)(cp - 0x100);
    if (cp <= 0x142) return (int)(cp - 0x121 + 0x7F);
    return cp == 0x143 ? 0xAD : -1;
}

char *bytelevel_bytes(cairn_str s, char *out)
{
    size_t len;
    uint32_t cp;

    for (size_t at = 0; at < s.len; at += len) {
        len = uc_next(s.ptr + at, &cp);
        const int byte = bytelevel_byte(cp);
        if (byte < 0) return NULL;
        *out++ = (char)byte;
    }
    return out;
}

static const struct {
    uint32_t first;
    int script;
} scripts[] = {
#include "text/script_table.inc"
};

int uc_script(uint32_t cp)
{
    size_t lo = 0, hi = sizeof scripts / sizeof scripts[0];

    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (scripts[mid].first <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return scripts[lo].script;
}

static const struct {
    uint32_t first, last;
    bool nonspacing;
} marks[] = {
#include "text/mark_table.inc"
};

bool uc_is_accent(uint32_t cp, bool nonspacing)
{
    size_t lo = 0, hi = sizeof marks / sizeof marks[0];

    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (marks[mid].first <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return cp >= marks[lo].first && cp <= marks[lo].last && (marks[lo].nonspacing || !nonspacing);
}

/* Punctuation by the tables of Unicode 8, which is what the reference's pre-tokenizers ask: these are
   younger. */
bool uc_is_punct(uint32_t cp)
{
    static const uint32_t younger[][2] = {
        {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},
        {0xC84, 0xC84},     {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},
        {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x1144B, 0x1144F},
        {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9},
        {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
        {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45},
        {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF},
        {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};

    if (cp < 128) return uc_class(cp) & (UC_PUNCT | UC_SYMBOL);
    if (cp == 0x166D || cp == 0x111C9) return true; /* no longer */
    if (!(uc_class(cp) & UC_PUNCT)) return false;
    for (size_t i = 0; i < sizeof younger / sizeof younger[0]; i++)
        if (cp >= younger[i][0] && cp <= younger[i][1]) return false;
    return true;
}

uint32_t uc_lower(uint32_t cp)
{
    static const uint32_t younger[][2] = {{0x1C89, 0x1C8A}, {0xA7CB, 0x264},  {0xA7CC, 0xA7CD},
                                          {0xA7CE, 0xA7CF}, {0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D5},
                                          {0xA7DA, 0xA7DB}, {0xA7DC, 0x19B}};

    if (cp >= 0x10D50 && cp <= 0x10D65) return cp + 0x20;
    if (cp >= 0x16EA0 && cp <= 0x16EB8) return cp + 0x1B;
    if (cp >= 0x1C89 && cp <= 0xA7DC)
        for (size_t i = 0; i < sizeof younger / sizeof younger[0]; i++)
            if (cp == younger[i][0]) return younger[i][1];
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

/* By the tables of Unicode 9, which are what the reference's normal forms ask. */
bool uc_is_unformed(uint32_t cp)
{
    static const uint32_t younger[][2] = {
        {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
        {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
        {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
        {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
        {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
        {0x11930, 0x11930}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
        {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99},
        {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42},
        {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
        {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};

    if (cp < younger[0][0]) return false;
    for (size_t i = 0; i < sizeof younger / sizeof younger[0]; i++)
        if (cp >= younger[i][0] && cp <= younger[i][1]) return true;
    return false;
}

void uchar_library(buf *out)
{
    buf_printf(out, "utf8proc %s (Unicode %s)", utf8proc_version(), utf8proc_unicode_version());
}
