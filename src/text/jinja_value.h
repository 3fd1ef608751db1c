/* Values of the template language: what Python objects are to Jinja2.  All live in the arena of one
   render; everything but namespaces, cyclers, joiners, loops and iterators is immutable, so parts
   are shared freely.  Every string is valid UTF-8.  Functions that can fail answer false and leave
   the message in the run. */
#ifndef TEXT_JINJA_VALUE_H
#define TEXT_JINJA_VALUE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

typedef struct jrun jrun;
typedef struct jnode jnode;

enum {
    J_MISSING, /* no value: an argument not given, a name not yet set */
    J_UNDEF,
    J_NONE,
    J_BOOL,
    J_INT,
    J_BIG, /* an integer past 64 bits */
    J_FLOAT,
    J_STR,
    J_LIST,
    J_TUPLE,
    J_DICT,
    J_VIEW, /* dict.keys(), values(), items() */
    J_RANGE,
    J_NS,
    J_FUNC,   /* a global function */
    J_METHOD, /* a method bound to its value */
    J_MACRO,
    J_LOOP,
    J_ITER, /* a generator: consumed by iterating */
    J_CYCLER,
    J_JOINER
};
enum {
    J_SAFE = 1,  /* J_STR: markupsafe's Markup */
    J_GROUP = 2, /* J_TUPLE: groupby's (grouper, list) */
    J_KEYS = 4,  /* J_VIEW: which */
    J_VALUES = 8,
    J_ITEMS = 16
};

typedef struct jv {
    uint8_t t, flag;
    uint32_t len; /* J_STR: bytes */
    union {
        int64_t i;
        double f;
        bool b;
        const char *s;
        const struct jbig *big;
        struct jundef *undef;
        struct jlist *list;
        struct jdict *dict;
        struct jrange *range;
        const struct jfn *fn;
        struct jbound *bound;
        struct jmacro *macro;
        struct jloop *loop;
        struct jiter *iter;
        struct jcycler *cycler;
        struct jjoiner *joiner;
        const void *ptr;
    } u;
} jv;

typedef struct jlist {
    uint32_t n;
    jv *v;
} jlist;
typedef struct jpair {
    jv k, v;
} jpair;
typedef struct jdict {
    uint32_t n, cap;
    jpair *kv; /* in order of insertion; looked up from first to last */
} jdict;
typedef struct jrange {
    int64_t start, step, n, stop;
} jrange;
typedef struct jundef {
    const char *hint; /* the whole message, or NULL */
    jv obj;           /* of which `name` was asked; J_MISSING: a plain name */
    jv name;
} jundef;
typedef struct jcycler {
    jlist items;
    uint32_t pos;
} jcycler;
typedef struct jjoiner {
    jv sep;
    bool used;
} jjoiner;

/* Arguments of a call, keywords beside. */
typedef struct jcall {
    jv *pos, *kw_name, *kw;
    uint32_t n_pos, n_kw;
} jcall;
/* A filter, test, method or global.  `fn` gets its arguments bound to `spec`: names separated by
   blanks, '?' after those that may be left out (J_MISSING then); `raw` gets them as written.
   Neither: it exists in Jinja2 and is not built here (or is forbidden by the sandbox). */
typedef struct jfn {
    const char *name;
    bool (*fn)(jrun *r, jv self, const jv *arg, jv *out);
    bool (*raw)(jrun *r, jv self, const jcall *c, jv *out);
    const char *spec;
} jfn;
typedef struct jbound {
    const jfn *fn;
    jv self;
} jbound;

enum { JFN_MAX_ARGS = 6 };

static inline jv jv_of(uint8_t t)
{
    return (jv){.t = t};
}
static inline jv jv_none(void)
{
    return (jv){.t = J_NONE};
}
static inline jv jv_bool(bool b)
{
    return (jv){.t = J_BOOL, .u.b = b};
}
static inline jv jv_int(int64_t i)
{
    return (jv){.t = J_INT, .u.i = i};
}
static inline jv jv_float(double f)
{
    return (jv){.t = J_FLOAT, .u.f = f};
}
/* The bytes are borrowed; lengths are limited well below 4 GiB. */
static inline jv jv_str(cairn_str s)
{
    return (jv){.t = J_STR, .len = (uint32_t)s.len, .u.s = s.ptr};
}
static inline jv jv_lit(const char *z)
{
    return jv_str(str_of(z));
}
static inline cairn_str jv_text(jv v)
{
    return (cairn_str){v.u.s, v.len};
}
static inline bool jv_is_str(jv v, const char *z)
{
    return v.t == J_STR && str_is(jv_text(v), z);
}
static inline bool jv_is_seq(jv v) /* has a jlist */
{
    return v.t == J_LIST || v.t == J_TUPLE || v.t == J_VIEW;
}
static inline bool jv_is_int(jv v) /* bool is an int; of those that fit 64 bits */
{
    return v.t == J_INT || v.t == J_BOOL;
}
static inline int64_t jv_as_int(jv v)
{
    return v.t == J_BOOL ? (int64_t)v.u.b : v.u.i;
}
static inline bool jv_is_whole(jv v)
{
    return jv_is_int(v) || v.t == J_BIG;
}
static inline bool jv_is_num(jv v)
{
    return jv_is_whole(v) || v.t == J_FLOAT;
}
double jv_as_num(jv v); /* of a number; infinity for an integer beyond every float */
/* The same, where such an integer is Python's OverflowError. */
bool jv_to_num(jrun *r, jv v, double *out);

/* Making (jinja_value.c). */
void *jalloc(jrun *r, size_t size); /* NULL: the run has failed */
bool jv_copy(jrun *r, cairn_str s, jv *out);
bool jv_give(jrun *r, buf *b, bool ok, jv *out);         /* what was written as a string; ends b */
bool jv_new_list(jrun *r, uint8_t t, size_t n, jv *out); /* n elements to be filled in */
bool jlist_push(jrun *r, jv *list, uint32_t *cap, jv x); /* while the list is being made */
bool jv_new_dict(jrun *r, uint8_t t, size_t cap, jv *out);
bool jdict_put(jrun *r, jdict *d, jv k, jv v);          /* false too when k cannot be a key */
bool jdict_get(jrun *r, const jdict *d, jv k, jv *out); /* false: absent */
bool jdict_get_str(const jdict *d, cairn_str k, jv *out);
bool jv_hashable(jrun *r, jv v); /* else fails */
bool jv_undef(jrun *r, jv obj, jv name, jv *out);
bool jv_undef_hint(jrun *r, const char *hint, jv *out);

/* Asking. */
const char *jv_type_name(jv v); /* as Python's type(v).__name__ */
bool jv_truth(jv v);
bool jv_len(jrun *r, jv v, int64_t *out);
bool jv_to_text(jrun *r, jv v, cairn_str *out); /* str(v) */
bool jv_print(jrun *r, jv v, buf *b);           /* the same, appended */
bool jv_repr(jrun *r, jv v, buf *b, uint32_t depth);
void jnum_repr(double x, buf *b);
bool jfail_undef(jrun *r, jv v);

/* Operators (jinja_op.c). */
bool jv_eq(jrun *r, jv a, jv b, bool *out);
bool jv_cmp(jrun *r, jv a, jv b, int op, bool *out); /* op: TK_LT … TK_GE, TK_EQ, TK_NE */
bool jv_contains(jrun *r, jv item, jv in, bool *out);
bool jv_binary(jrun *r, int op, jv a, jv b, jv *out);
bool jv_unary(jrun *r, int op, jv a, jv *out);
bool jv_is_same(jv a, jv b); /* Python's `is` */

/* Parts (jinja_attr.c). */
bool jv_getattr(jrun *r, jv obj, jv name, const jfn *const *known, jv *out);
bool jv_getitem(jrun *r, jv obj, jv key, jv *out);
bool jv_can_slice(jv v);
bool jv_slice_part(jrun *r, jv v, int64_t otherwise, int64_t *out); /* None: otherwise */
bool jv_slice(jrun *r, jv obj, jv lo, jv hi, jv step, jv *out);
/* The method of that name for a value's type; *known false: no such attribute. */
const jfn *jmethod_find(uint8_t t, cairn_str name);

/* Iterating (jinja_iter.c). */
enum {
    IT_END,
    IT_BAD /* not iterable: an error when pulled */,
    IT_SEQ,
    IT_STR,
    IT_DICT,
    IT_RANGE,
    IT_REVERSE,
    IT_FORWARD,
    IT_LATER, /* fn makes the iterator */
    IT_LOOP,
    IT_GEN
};
typedef struct jiter {
    uint8_t kind;
    bool done;
    jv src;
    size_t pos;
    struct jiter *in; /* what a generator pulls from */
    /* IT_GEN: one step; answers 1 (an item), 0 (skip this one), -1 (failed). */
    int (*step)(jrun *r, struct jiter *it, jv item, jv *out);
    const jfn *fn;
    jcall call;
    jv key;
    bool negate, set_up;
} jiter;
bool jiter_init(jrun *r, jv v, jiter *it);   /* fails if v cannot be iterated */
int jiter_next(jrun *r, jiter *it, jv *out); /* 1, 0 at the end, -1 failed */
bool jv_can_iter(jv v);
bool jv_to_list(jrun *r, jv v, uint8_t t, jv *out);
bool jv_generator(jrun *r, jv src, const jiter *like, jv *out);

/* Text (jinja_text.c). */
size_t jtext_space(const char *p, size_t n);      /* bytes of white space at p, or 0 */
size_t jtext_space_back(const char *p, size_t n); /* … that end at p + n */
cairn_str jtext_strip(cairn_str s, const cairn_str *chars, bool left, bool right);
size_t jtext_count(cairn_str s);                 /* characters */
size_t jtext_offset(cairn_str s, size_t i_char); /* byte offset of a character; len at the end */
enum { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_SWAP };
void jtext_case(cairn_str s, int how, buf *b);
enum { IS_ALPHA, IS_DIGIT, IS_DECIMAL, IS_NUMERIC, IS_ALNUM, IS_SPACE, IS_UPPER, IS_LOWER };
bool jtext_is(cairn_str s, int what);
size_t jtext_word(const char *p, size_t n); /* bytes of a letter, number or _ at p, or 0 */
/* Decimal digits of every script become ASCII ones, as int() and float() read them. */
bool jtext_digits(jrun *r, cairn_str *s);
bool jtext_printable(uint32_t cp);
/* Next line of s from *pos as str.splitlines cuts it; false at the end. */
bool jtext_line(cairn_str s, size_t *pos, bool keep, cairn_str *line);
void jtext_escape(cairn_str s, buf *b); /* HTML, as markupsafe */

/* Formatting (jinja_format_*.c, jinja_json.c). */
bool jformat_percent(jrun *r, cairn_str fmt, jv args, jv *out);
bool jformat_braces(jrun *r, cairn_str fmt, const jcall *c, jv *out);
bool jv_tojson(jrun *r, jv v, const jv *arg, jv *out);
bool jv_pprint(jrun *r, jv v, const jv *arg, jv *out); /* jinja_pprint.c */
bool jv_urlize(jrun *r, jv v, const jv *arg, jv *out); /* jinja_filter_link.c */
bool jv_put_escaped(jrun *r, jv v, buf *b);            /* jinja_filter_html.c */

/* Attributes by dotted text, as map and sort take them (jinja_filter_seq.c). */
bool jattr_prepare(jrun *r, jv attribute, jv *parts); /* J_MISSING or None: the item itself */
bool jattr_get(jrun *r, jv x, jv parts, jv otherwise, jv *out);
bool jkey_fold(jrun *r, jv *k); /* texts to lower case */

/* Tables. */
const jfn *jfilter_find(cairn_str name); /* jinja_filter.c */
const jfn *jtest_find(cairn_str name);   /* jinja_test.c */
const jfn *jglobal_find(cairn_str name); /* jinja_global.c */
extern const jfn jfilters_text[], jfilters_seq[], jfilters_gen[], jfilters_num[], jfilters_html[],
    jfilters_wide[];
extern const jfn jmethods_str_cut[], jmethods_str_form[], jmethods_str_ask[], jmethods_list[],
    jmethods_range[], jmethods_dict[];
bool jfn_call(jrun *r, const jfn *fn, const char *what, jv self, const jcall *c, jv *out);

#endif
