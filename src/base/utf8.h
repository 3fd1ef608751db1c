/* UTF-8: decode, encode, validate.  Categories, case and normal forms are utf8proc's. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "cairn/status.h"

/* Decodes one character at p (n > 0 bytes left).  Returns its length 1–4 and writes the code point;
   an invalid or cut sequence returns the negative length of its longest valid prefix (at least 1,
   Unicode's "maximal subpart") and writes U+FFFD. */
int utf8_decode(const char *p, size_t n, uint32_t *cp);
int utf8_encode(uint32_t cp, char out[4]); /* length; surrogates and > 10FFFF encode U+FFFD */
bool utf8_valid(cairn_str s);
/* Bytes at the end of s that start a character not yet complete (0–3). */
size_t utf8_tail(cairn_str s);

#endif
