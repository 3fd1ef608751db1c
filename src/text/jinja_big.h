/* Integers past 64 bits, as Python has them: sign and magnitude in words of 32 bits, immutable, in an
   arena.  Values that fit int64 are J_INT everywhere else; jbig_norm sees to it. */
#ifndef TEXT_JINJA_BIG_H
#define TEXT_JINJA_BIG_H

#include "text/jinja_value.h"

enum {
    JBIG_MAX_WORDS = 1 << 11, /* 65,536 bits */
    JBIG_MAX_DIGITS = 4300    /* Python refuses to print or read more */
};

typedef struct jbig {
    bool neg;
    uint32_t n;   /* words in use; the highest is not 0; n 0: zero */
    uint32_t d[]; /* lowest first */
} jbig;

/* Of digits in a base of 2 to 36, already checked.  NULL: no memory, or more than JBIG_MAX_WORDS. */
jbig *jbig_read(arena *a, cairn_str digits, unsigned base, bool neg);
/* J_INT where it fits, else J_BIG. */
jv jbig_value(const jbig *x);
bool jbig_fits(const jbig *x, int64_t *out);

/* Operands are J_INT, J_BOOL or J_BIG; the result is normalised.  op: TK_ADD, SUB, MUL, FLOORDIV, MOD,
   DIV (a float), POW with an exponent of 0 or more. */
bool jbig_op(jrun *r, int op, jv a, jv b, jv *out);
bool jbig_neg(jrun *r, jv a, jv *out);
int jbig_cmp(jv a, jv b);                       /* -1, 0, 1: two whole numbers, no allocation */
int jbig_cmp_num(jv whole, double f);           /* exact; f is finite */
double jbig_num(const jbig *x);                 /* nearest, ties to even; infinity when too large */
bool jbig_from_num(jrun *r, double f, jv *out); /* towards zero; f is finite */
/* Magnitude in a base of 2, 8, 10 or 16; no sign. */
bool jbig_digits(jrun *r, const jbig *x, unsigned base, bool upper, buf *b);

#endif
