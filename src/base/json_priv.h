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

/* An integer over 64 bits that was read as a float. */
typedef struct json_long {
    uint64_t at; /* its number among the text's numbers; in a document, its place */
    size_t from, len;
} json_long;

/* The text with "e0" after each long integer: as floats they may exceed 64 bits; `longs` gets a
   json_long for each.  Only called for texts that the parser refused. */
void json_widen(cairn_str text, buf *out, buf *longs);

/* Only called for texts that the parser refused. */
json_place json_locate(cairn_str text);

#ifdef __cplusplus
}
#endif
#endif
