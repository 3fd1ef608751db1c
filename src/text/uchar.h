/* Character classes for splitting text, from Unicode's general categories. */
#ifndef TEXT_UCHAR_H
#define TEXT_UCHAR_H

#include <string.h>

#include "base/buf.h"
#include "cairn/status.h"

enum {
    UC_UPPER = 1,      /* Lu Lt */
    UC_LOWER = 2,      /* Ll */
    UC_OTHER = 4,      /* Lm Lo */
    UC_MARK = 8,       /* M */
    UC_NUMBER = 16,    /* N */
    UC_PUNCT = 32,     /* P */
    UC_SYMBOL = 64,    /* S */
    UC_SPACE = 128,    /* White_Space, with the two below */
    UC_NEWLINE = 256,  /* CR, LF */
    UC_CONTROL = 512,  /* Cc Cf Cs Co Cn that is no space */
    UC_CONNECT = 1024, /* Pc, besides UC_PUNCT */
    UC_LETTER = UC_UPPER | UC_LOWER | UC_OTHER
};

extern const uint16_t uc_ascii[128];
enum { UC_PAGES = 0x110000 / 256, UC_MOST_BLOCKS = 400 };
extern uint16_t uc_page[UC_PAGES], uc_block[UC_MOST_BLOCKS][256];
/* Fills the two tables above, once; before anything below is asked.  tok_new does it. */
void uc_prepare(void);
static inline uint32_t uc_class(uint32_t cp)
{
    return cp < 128 ? uc_ascii[cp] : uc_block[uc_page[cp >> 8]][cp & 255];
}
bool uc_is_punct(uint32_t cp); /* as pre-tokenizers split at it: ASCII symbols too */
/* A mark that the reference's normalizers strip; its tables are older than those above. */
bool uc_is_accent(uint32_t cp, bool nonspacing);
/* A character that the reference's normal forms neither move nor compose: they do not know it yet. */
bool uc_is_unformed(uint32_t cp);
uint32_t uc_lower(uint32_t cp); /* by one character, with what utf8proc's Unicode lacks */
bool uc_is_digit(uint32_t cp);  /* decimal digits */
enum { UC_ANY_SCRIPT = 0 };
/* Number of the script as the UnicodeScripts pre-tokenizer sees it: kana are Han. */
int uc_script(uint32_t cp);
bool uc_is_word(uint32_t cp); /* \w: letters, marks, decimal digits, connectors, joiners */

/* How many bytes from s[at] on are ASCII, in eights: 0, 8, 16 … */
static inline size_t uc_ascii_run(cairn_str s, size_t at)
{
    size_t from = at;

    for (uint64_t word; at + sizeof word <= s.len; at += sizeof word) {
        memcpy(&word, s.ptr + at, sizeof word);
        if (word & 0x8080808080808080u) break;
    }
    return at - from;
}

/* One character of valid UTF-8 at p (at least one byte is there): its length. */
static inline size_t uc_next(const char *p, uint32_t *cp)
{
    const unsigned char *u = (const unsigned char *)p;

    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    if (u[0] < 0xE0) {
        *cp = (uint32_t)(u[0] & 31) << 6 | (u[1] & 63);
        return 2;
    }
    if (u[0] < 0xF0) {
        *cp = (uint32_t)(u[0] & 15) << 12 | (uint32_t)(u[1] & 63) << 6 | (u[2] & 63);
        return 3;
    }
    *cp = (uint32_t)(u[0] & 7) << 18 | (uint32_t)(u[1] & 63) << 12 | (uint32_t)(u[2] & 63) << 6 |
          (u[3] & 63);
    return 4;
}
/* Start of the character that ends before `at` (> 0). */
static inline size_t uc_prev(const char *s, size_t at)
{
    do at--;
    while (at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80);
    return at;
}

/* The byte-level alphabet: each byte is one printable character. */
uint32_t bytelevel_char(uint8_t byte);
int bytelevel_byte(uint32_t cp); /* -1: not of the alphabet */
/* Writes the bytes that a text of the alphabet stands for, which are no more than it has: the end, NULL
   if it is none. */
char *bytelevel_bytes(cairn_str s, char *out);

void uchar_library(buf *out); /* name and version of the library of Unicode */

#endif
