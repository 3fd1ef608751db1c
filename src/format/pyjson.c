/* The two ways in which files written by Python leave JSON: numbers that are not finite, and whole
   numbers of any length.  Owns no grammar: it only needs to know what is inside a string. */
#include "format/pyjson.h"

#include <math.h>

#include "base/str.h"

/* Digits that always fit 64 bits. */
enum { SAFE_DIGITS = 18 };
/* How far a colon is looked for after a word. */
enum { NAME_LOOK = 64 };

/* Bytes of the string literal that begins at i, both quotes included. */
static size_t literal_len(cairn_str s, size_t i)
{
    size_t k = i + 1;
    while (k < s.len && s.ptr[k] != '"') k += s.ptr[k] == '\\' ? 2 : 1;
    return (k < s.len ? k + 1 : s.len) - i;
}

/* Bytes of the number at i; `whole` when it has neither fraction nor exponent. */
static size_t number_len(cairn_str s, size_t i, bool *whole)
{
    size_t k = i;
    *whole = true;
    for (; k < s.len; k++) {
        const char c = s.ptr[k];
        if (c == '.' || c == 'e' || c == 'E')
            *whole = false;
        else if (!str_is_digit(c) && c != '-' && c != '+')
            break;
    }
    return k - i;
}

static const struct {
    const char *word;
    double value;
} nonfinite[] = {
    {"NaN", (double)NAN}, {"Infinity", (double)INFINITY}, {"-Infinity", -(double)INFINITY}};
enum { N_NONFINITE = sizeof nonfinite / sizeof nonfinite[0] };

/* A member's name must not become one by our doing. */
static bool is_name(cairn_str s, size_t i)
{
    const cairn_str rest = str_trim(str_sub(s, i, s.len - i < NAME_LOOK ? s.len - i : NAME_LOOK));
    return rest.len && rest.ptr[0] == ':';
}

/* Bytes of a number that is not finite at i; 0: none. */
static size_t nonfinite_len(cairn_str s, size_t i)
{
    for (size_t w = 0; w < N_NONFINITE; w++) {
        const size_t n = strlen(nonfinite[w].word);
        if (str_starts(str_sub(s, i, s.len - i), str_of(nonfinite[w].word)))
            return is_name(s, i + n) ? 0 : n;
    }
    return 0;
}

bool pyjson_nonfinite(cairn_str s, double *out)
{
    if (s.len < 2 || s.ptr[0] != PYJSON_MARK) return false;
    for (size_t w = 0; w < N_NONFINITE; w++)
        if (str_is(str_sub(s, 1, s.len - 1), nonfinite[w].word)) {
            *out = nonfinite[w].value;
            return true;
        }
    return false;
}

void pyjson_to_json(cairn_str in, buf *out)
{
    size_t n;
    for (size_t i = 0; i < in.len; i += n) {
        const char c = in.ptr[i];
        bool whole = false;
        if (c == '"') {
            n = literal_len(in, i);
            buf_put(out, in.ptr + i, n);
        } else if ((c == 'N' || c == 'I' || c == '-') && (n = nonfinite_len(in, i)) > 0) {
            buf_puts(out, "\"\\u0000");
            buf_put(out, in.ptr + i, n);
            buf_byte(out, '"');
        } else if (str_is_digit(c) || c == '-') {
            n = number_len(in, i, &whole);
            buf_put(out, in.ptr + i, n);
            if (whole && n > SAFE_DIGITS + 1) buf_puts(out, ".0");
        } else {
            n = 1;
            buf_byte(out, c);
        }
    }
}
