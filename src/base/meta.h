/* A read-only view of a model file's metadata: GGUF key-values, or config.json by dotted path.  It
   lives here because text/, format/ and nn/ all read it and may not see each other. */
#ifndef BASE_META_H
#define BASE_META_H

#include "cairn/status.h"

typedef enum meta_type {
    META_NONE,
    META_NULL, /* written as null: `get` answers false, and says so here */
    META_BOOL,
    META_INT,
    META_FLOAT,
    META_STR,
    META_ARR,
    META_OBJ
} meta_type;

typedef struct meta {
    meta_type type;
    union {
        bool b;
        int64_t i; /* uint64 above INT64_MAX appears as META_FLOAT */
        double f;
        cairn_str s;
        size_t n; /* ARR: elements */
    } u;
    const void *impl[2]; /* the view's own */
} meta;

typedef struct meta_view {
    const void *self;
    bool (*get)(const void *self, const char *key, meta *out); /* false: absent (or JSON null) */
    bool (*at)(const void *self, const meta *arr, size_t i, meta *out); /* O(1) in GGUF */
} meta_view;

static inline bool meta_get(const meta_view *v, const char *key, meta *out)
{
    return v->get(v->self, key, out);
}
static inline bool meta_at(const meta_view *v, const meta *arr, size_t i, meta *out)
{
    return i < arr->u.n && v->at(v->self, arr, i, out);
}
/* Typed reads; an absent key or another type gives `otherwise`. INT reads as a number too, and a
   whole float as INT. */
int64_t meta_int(const meta_view *v, const char *key, int64_t otherwise);
bool meta_bool(const meta_view *v, const char *key, bool otherwise);
cairn_str meta_str(const meta_view *v, const char *key, cairn_str otherwise);
/* What a message says of a value: `true`, `-5`, `NaN`, `"text"`, `an array of 3`. */
enum { META_TEXT_LEN = 80 };
void meta_text(const meta *m, char out[META_TEXT_LEN]);
/* Checked reads.  A present key of the wrong type or range is E_CORRUPT "key: found …; expected …",
   and so is a number that is not finite; an absent one too when `required`, else *out stays. */
cairn_status meta_want_int(const meta_view *v, const char *key, bool required, int64_t lo,
                           int64_t hi, int64_t *out, cairn_diag *dg);
cairn_status meta_want_num(const meta_view *v, const char *key, bool required, double *out,
                           cairn_diag *dg);

#endif
