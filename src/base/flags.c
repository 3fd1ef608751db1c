/* Command lines.  One table drives parsing and help; a flag given twice keeps the last value.
   Words that are not flags keep their order; "-" alone is a word (standard input). */
#include "base/flags.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

static bool names(const flag *f, cairn_str word)
{
    return str_is(word, f->name) || (f->alias && str_is(word, f->alias));
}

static cairn_status bad_range(const flag *f, const char *text, cairn_diag *dg)
{
    if (f->type == FLAG_INT)
        return diag_set(dg, CAIRN_E_ARG, "%s: found \"%s\"; expected %.0f to %.0f", f->name, text,
                        f->lo, f->hi);
    return diag_set(dg, CAIRN_E_ARG, "%s: found \"%s\"; expected %g to %g", f->name, text, f->lo,
                    f->hi);
}

static bool any_range(const flag *f)
{
    return f->lo == 0 && f->hi == 0;
}

static bool in_range(const flag *f, double v)
{
    return any_range(f) || (v >= f->lo && v <= f->hi);
}

/* Decimal digits from the first character on: the library's readers also take white space, hexadecimal
   numbers and words. */
static bool plain_number(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    return (str_is_digit(*p) || *p == '.') && !strpbrk(text, "xX");
}

static cairn_status set_int(const flag *f, const char *text, cairn_diag *dg)
{
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (end == text || *end || !plain_number(text))
        return diag_set(dg, CAIRN_E_ARG, "%s: found \"%s\"; expected an integer", f->name, text);
    if (errno && any_range(f))
        return diag_set(dg, CAIRN_E_ARG, "%s: found \"%s\"; expected an integer of 64 bits",
                        f->name, text);
    if (errno || !in_range(f, (double)v)) return bad_range(f, text, dg);
    *(int64_t *)f->out = v;
    return CAIRN_OK;
}

static cairn_status set_num(const flag *f, const char *text, cairn_diag *dg)
{
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || !plain_number(text))
        return diag_set(dg, CAIRN_E_ARG, "%s: found \"%s\"; expected a number", f->name, text);
    if (!in_range(f, v)) return bad_range(f, text, dg);
    *(double *)f->out = v;
    return CAIRN_OK;
}

/* "512M", "1.5G", "4096", "8GiB": units are powers of 1024. */
static cairn_status set_size(const flag *f, const char *text, cairn_diag *dg)
{
    static const char units[] = "KMGT";
    char *end;
    double v = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    const bool digit_first = str_is_digit(text[0]);
    if (unit) {
        for (const char *u = units; u <= unit; u++) v *= 1024;
        end++;
        if (end[0] == 'i' && end[1] == 'B') end++;
    }
    if (*end == 'B') end++;
    if (!digit_first || *end || !(v < 0x1p63) || !plain_number(text))
        return diag_set(dg, CAIRN_E_ARG, "%s: found \"%s\"; expected a size such as 512M or 8G",
                        f->name, text);
    if (!in_range(f, v)) return bad_range(f, text, dg);
    *(uint64_t *)f->out = (uint64_t)v;
    return CAIRN_OK;
}

static cairn_status set_word(const flag *f, const char *text, cairn_diag *dg)
{
    const size_t n = strcspn(f->help, ":"), len = strlen(text);
    for (const char *p = f->help; p < f->help + n; p += strcspn(p, "|:") + 1)
        if (len == strcspn(p, "|:") && memcmp(p, text, len) == 0) {
            *(const char **)f->out = text;
            return CAIRN_OK;
        }
    return diag_set(dg, CAIRN_E_ARG, "%s: found \"%s\"; expected one of %.*s", f->name, text,
                    (int)n, f->help);
}

static cairn_status add_item(const flag *f, const char *text, cairn_diag *dg)
{
    flag_list *l = f->out;
    if (l->n == l->room)
        return diag_set(dg, CAIRN_E_ARG, "%s: given more than %zu times", f->name, l->room);
    l->item[l->n++] = text;
    return CAIRN_OK;
}

static cairn_status set_value(const flag *f, const char *text, cairn_diag *dg)
{
    switch (f->type) {
    case FLAG_BOOL:
        *(bool *)f->out = true;
        return CAIRN_OK;
    case FLAG_INT:
        return set_int(f, text, dg);
    case FLAG_NUM:
        return set_num(f, text, dg);
    case FLAG_SIZE:
        return set_size(f, text, dg);
    case FLAG_STR:
        *(const char **)f->out = text;
        return CAIRN_OK;
    case FLAG_WORD:
        return set_word(f, text, dg);
    case FLAG_LIST:
        return add_item(f, text, dg);
    }
    return CAIRN_E_INTERNAL;
}

static const flag *find(const flag *table, size_t n, cairn_str word)
{
    for (size_t i = 0; i < n; i++)
        if (names(&table[i], word)) return &table[i];
    return NULL;
}

/* One flag at argv[*i], which moves past its value. */
static cairn_status take_flag(const flag *table, size_t n_flags, int argc, char **argv, int *i,
                              cairn_diag *dg)
{
    const char *word = argv[*i];
    const char *eq = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    const cairn_str name = {word, eq ? (size_t)(eq - word) : strlen(word)};
    const flag *f = find(table, n_flags, name);
    const char *value = eq ? eq + 1 : NULL;
    if (!f)
        return diag_set(dg, CAIRN_E_ARG, "%.*s: unknown option; expected one of those in --help",
                        STR_ARG(name));
    if (f->type == FLAG_BOOL) {
        if (value) return diag_set(dg, CAIRN_E_ARG, "%s: found a value; expected none", f->name);
    } else if (!value) {
        if (*i + 1 >= argc)
            return diag_set(dg, CAIRN_E_ARG, "%s: needs a value; expected %s", f->name, f->help);
        value = argv[++*i];
    }
    TRY(set_value(f, value, dg));
    if (f->given) *f->given = true;
    return CAIRN_OK;
}

cairn_status flags_parse(const flag *table, size_t n_flags, int argc, char **argv,
                         const char **rest, size_t max_rest, size_t *n_rest, cairn_diag *dg)
{
    bool ended = false;
    size_t n = 0;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (!ended && word[0] == '-' && word[1]) {
            TRY(take_flag(table, n_flags, argc, argv, &i, dg));
        } else if (n == max_rest) {
            return diag_set(dg, CAIRN_E_ARG, "\"%s\": one word too many; expected at most %zu",
                            word, max_rest);
        } else {
            rest[n++] = word;
        }
    }
    *n_rest = n;
    return CAIRN_OK;
}

void flags_help(const flag *table, size_t n_flags, buf *out)
{
    enum { COLUMN = 28 };
    for (size_t i = 0; i < n_flags; i++) {
        const flag *f = &table[i];
        const char *colon = f->type == FLAG_BOOL ? NULL : strstr(f->help, ": ");
        const size_t start = out->len;
        buf_printf(out, "  %s", f->name);
        if (f->alias) buf_printf(out, ", %s", f->alias);
        if (colon) buf_printf(out, " %.*s", (int)(colon - f->help), f->help);
        const size_t used = out->len - start;
        buf_printf(out, "%*s%s\n", used + 2 < COLUMN ? (int)(COLUMN - used) : 2, "",
                   colon ? colon + 2 : f->help);
    }
}
