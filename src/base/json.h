/* JSON.  Reading: the library's parser (simdjson) behind typed getters with good messages.
   Writing: a streaming writer.  Depth is limited to JSON_MAX_DEPTH. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"
#include "cairn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { JSON_MAX_DEPTH = 256 };

typedef struct json_doc json_doc;

typedef enum json_type {
    JSON_NONE, /* an absent value */
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,   /* fits int64 */
    JSON_UINT,  /* fits uint64 only */
    JSON_FLOAT, /* integers over 64 bits too, as in Python's float(…) */
    JSON_STR,
    JSON_ARR,
    JSON_OBJ
} json_type;

/* A value inside a document; copy freely, valid as long as the document.  {0} is JSON_NONE, and
   every getter accepts it. */
typedef struct json_val {
    const void *doc;
    uint64_t at;
} json_val;

typedef struct json_iter {
    json_val next;
    uint64_t end;
    bool object;
} json_iter;

/* Parses a copy of `text`; invalid UTF-8 is an error.  The message says where. */
cairn_status json_parse(cairn_str text, json_doc **out, cairn_diag *dg);
/* The same, but a number beyond a double's range is an infinity, as for Python's json; json_parse refuses
   it.  json_w_val writes one as 1e999. */
cairn_status json_parse_any(cairn_str text, json_doc **out, cairn_diag *dg);
void json_free(json_doc *d);
json_val json_root(const json_doc *d);

json_type json_typeof(json_val v);
const char *json_type_name(json_type t);
/* Member of an object, the last one of that name as in Python; JSON_NONE if absent or not an
   object.  Linear in the object's size: iterate over big ones. */
json_val json_get(json_val obj, const char *key);
json_val json_path(json_val obj, const char *dotted); /* "a.b.c" */
size_t json_size(json_val v); /* elements of an array or members of an object; else 0.  O(n) */
json_val json_at(json_val arr, size_t i); /* O(i): iterate instead */

json_iter json_each(json_val v); /* array or object; nothing else has elements */
bool json_next(json_iter *it, json_val *v);
bool json_next_member(json_iter *it, cairn_str *key, json_val *v);

/* Untyped reads: the value if it has the type, else `otherwise`. */
bool json_bool(json_val v, bool otherwise);
int64_t json_int(json_val v, int64_t otherwise);    /* a float without fraction counts */
uint64_t json_uint(json_val v, uint64_t otherwise); /* an integer of 0 or more */
double json_num(json_val v, double otherwise);      /* ints too */
cairn_str json_str(json_val v);                     /* empty if not a string */
/* The digits, as written, of an integer that fits no 64 bits (it is a JSON_FLOAT otherwise); empty
   for everything else. */
cairn_str json_digits(json_val v);

bool json_utf8_valid(cairn_str text); /* as the parser checks it: quick for a long text */

/* Checked reads: an absent or null member leaves *out alone and is fine; a wrong type or range is
   E_ARG "`key` must be …, found …". */
cairn_status json_want_bool(json_val obj, const char *key, bool *out, cairn_diag *dg);
cairn_status json_want_int(json_val obj, const char *key, int64_t lo, int64_t hi, int64_t *out,
                           cairn_diag *dg);
cairn_status json_want_num(json_val obj, const char *key, double lo, double hi, double *out,
                           cairn_diag *dg);
cairn_status json_want_str(json_val obj, const char *key, cairn_str *out, cairn_diag *dg);

/* Writing. */

typedef struct json_writer {
    buf *out;
    uint32_t depth;
    bool need_comma, after_key;
} json_writer;

json_writer json_write(buf *out);
void json_w_obj(json_writer *w);
void json_w_end_obj(json_writer *w);
void json_w_arr(json_writer *w);
void json_w_end_arr(json_writer *w);
void json_w_key(json_writer *w, const char *key);
void json_w_key_str(json_writer *w, cairn_str key);
void json_w_str(json_writer *w, cairn_str s); /* bytes that are not UTF-8 become U+FFFD */
void json_w_int(json_writer *w, int64_t v);
void json_w_uint(json_writer *w, uint64_t v);
void json_w_num(json_writer *w, double v); /* shortest that reads back; not finite becomes null */
void json_w_bool(json_writer *w, bool v);
void json_w_null(json_writer *w);
void json_w_val(json_writer *w, json_val v); /* a parsed value again, compact */
void json_w_raw(json_writer *w, cairn_str json);
/* "key": value */
void json_w_kstr(json_writer *w, const char *key, cairn_str s);
void json_w_kint(json_writer *w, const char *key, int64_t v);
void json_w_kuint(json_writer *w, const char *key, uint64_t v);
void json_w_knum(json_writer *w, const char *key, double v);
void json_w_kbool(json_writer *w, const char *key, bool v);

void json_library(
    buf *out); /* name, version and what it runs on this machine, of the library below */

#ifdef __cplusplus
}
#endif
#endif
