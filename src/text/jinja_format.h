/* One value into text by a specification: what "…" % values and "…".format(…) share. */
#ifndef TEXT_JINJA_FORMAT_H
#define TEXT_JINJA_FORMAT_H

#include "text/jinja_run.h"

enum {
    JFORMAT_MAX_WIDTH = 1 << 20, /* far below the limit of a whole output */
    JFORMAT_MAX_PRECISION =
        300 /* with 309 digits before the point, jformat_float's buffer holds it */
};

typedef struct jspec {
    char type, sign, align, fill[4];
    size_t fill_len;
    bool alt, zero;
    char comma;          /* what stands between groups; 0: nothing */
    int64_t width, prec; /* prec -1: none */
} jspec;

/* Appended to b, whose own flag says whether memory sufficed. */
void jformat_number(const jspec *sp, bool negative, const char *prefix, cairn_str digits, buf *b);
bool jformat_int(jrun *r, const jspec *sp, jv v, buf *b); /* v: whole */
void jformat_float(const jspec *sp, double x, buf *b);
bool jformat_as(jrun *r, char how, jv v, buf *b); /* Python's str, repr or ascii: s, r or a */
void jformat_text(const jspec *sp, cairn_str s, char align, buf *b);
/* Ends a part that went into b: a failure of the part is one of the whole. */
void jformat_drop(buf *part, buf *b);
/* Digits of f from *i on, which moves behind them; false: over the limit. */
bool jformat_digits(cairn_str f, size_t *i, int64_t limit, int64_t *out);
bool jformat_too_large(jrun *r); /* records it; false */
/* The text of b as a value, unless `ok` is false or memory did not suffice; b is gone after. */
bool jformat_finish(jrun *r, bool ok, buf *b, jv *out);

#endif
