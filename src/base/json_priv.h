/* Between the files of base/json: where a text stops being JSON. */
#ifndef BASE_JSON_PRIV_H
#define BASE_JSON_PRIV_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct json_place {
    size_t at;        /* byte offset */
    const char *what; /* static text; NULL: nothing is wrong */
} json_place;

/* Of a JSON_UINT value. */
uint64_t json_uint_bits(json_val v);

/* A number that the parser takes in another form only. */
typedef struct json_long {
    uint64_t at;      /* its number among the text's numbers; in a document, its place */
    size_t from, len; /* of an integer over 64 bits, read as a float: its digits; else empty */
    int infinite;     /* −1, 1: beyond a double, read as 0 */
} json_long;

/* The text with "e0" after each integer over 64 bits, as floats may exceed them, and, if `any`, 0 for each
   number beyond a double; `longs` gets a json_long for each.  Only called for texts that the parser
   refused. */
void json_widen(cairn_str text, bool any, buf *out, buf *longs);

/* Only called for texts that the parser refused.  `any`: numbers beyond a double are fine. */
json_place json_locate(cairn_str text, bool any);

#ifdef __cplusplus
}
#endif
#endif
