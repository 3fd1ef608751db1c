/* Flags from a file: each line is a small command line of its own, read by the same table, so that a file can
   say what a command line can and is checked as strictly. */
#include <stdio.h>

#include "base/diag.h"
#include "base/flags.h"
#include "base/str.h"

enum { NAME_MAX_BYTES = 64 }; /* of a flag, dashes included */

/* The next line of *rest, without white space around it; NULL after the last. */
static char *next_line(char **rest)
{
    char *line = *rest;

    if (!line || !*line) return NULL;
    char *end = strchr(line, '\n');
    *rest = end ? end + 1 : NULL;
    if (end) *end = '\0';
    const cairn_str s = str_trim(str_of(line));
    line += s.ptr - line;
    line[s.len] = '\0';
    return line;
}

/* Cuts `name value` or `name = value` in two; the value of `name` alone is NULL. */
static char *cut_value(char *line)
{
    char *end = line + strcspn(line, " \t=");
    char *value = end + strspn(end, " \t");

    if (*value == '=') value += 1 + strspn(value + 1, " \t");
    if (!*end) return NULL;
    *end = '\0';
    return value;
}

static cairn_status take_line(const flag *table, size_t n_flags, flags_file *f, char *line,
                              cairn_diag *dg)
{
    char name[NAME_MAX_BYTES], *value = cut_value(line);
    char *argv[] = {name, value};
    const char *word;
    size_t n_word;

    if (strcmp(line, f->word) == 0) {
        if (!value || !*value)
            return diag_set(dg, CAIRN_E_ARG, "%s: found no value; expected one", line);
        if (f->n_rest == f->max_rest)
            return diag_set(dg, CAIRN_E_ARG, "%s: one too many; expected at most %zu", line,
                            f->max_rest);
        f->rest[f->n_rest++] = value;
        return CAIRN_OK;
    }
    if (!line[0] || line[0] == '-' || strlen(line) + 2 >= sizeof name)
        return diag_set(dg, CAIRN_E_ARG, "%.60s: expected a flag's name without its dashes", line);
    (void)snprintf(name, sizeof name, "--%s", line);
    return flags_parse(table, n_flags, value ? 2 : 1, argv, &word, 0, &n_word, dg);
}

/* A NUL would hide all that follows it, keys and hosts among them. */
static cairn_status check_text(const flags_file *f, cairn_diag *dg)
{
    const char *nul = f->text ? memchr(f->text, '\0', f->len) : NULL;
    size_t line = 1;

    if (!nul) return CAIRN_OK;
    for (const char *p = f->text; p < nul; p++) line += *p == '\n';
    return diag_set(dg, CAIRN_E_ARG, "%s:%zu: found a NUL byte; expected text", f->path, line);
}

cairn_status flags_parse_file(const flag *table, size_t n_flags, flags_file *f, cairn_diag *dg)
{
    char *rest = f->text, *line;

    f->n_rest = 0;
    TRY(check_text(f, dg));
    for (size_t i = 1; (line = next_line(&rest)) != NULL; i++) {
        if (!*line || *line == '#') continue;
        const cairn_status st = take_line(table, n_flags, f, line, dg);
        if (st != CAIRN_OK) return diag_prefix(dg, st, "%s:%zu", f->path, i);
    }
    return CAIRN_OK;
}
