/* Command lines from one option table. */
#ifndef BASE_FLAGS_H
#define BASE_FLAGS_H

#include "base/buf.h"
#include "cairn/status.h"

typedef enum flag_type {
    FLAG_BOOL,
    FLAG_INT,
    FLAG_NUM,
    FLAG_STR,
    FLAG_WORD, /* one of the words before the colon of `help`: "fast|f32: arithmetic" */
    FLAG_LIST, /* may be given again: each adds to a flag_list */
    FLAG_SIZE  /* 512M, 8G, bytes */
} flag_type;

typedef struct flag_list {
    const char **item; /* [room], the caller's */
    size_t n, room;
} flag_list;

typedef struct flag {
    const char *name;  /* "--top-k"; "-k" alone is fine */
    const char *alias; /* "-t", or NULL */
    flag_type type;
    /* bool*, int64_t*, double*, const char** (STR, WORD), flag_list*, uint64_t* */
    void *out;
    const char *help; /* "N: what it does" */
    double lo, hi;    /* range of INT, NUM and SIZE; both 0: any */
    bool *given;      /* set when the flag appears; may be NULL */
} flag;

/* Parses argv[0…n-1] in place: flags anywhere, "--" ends them, "--name=value" too.  What is left
   goes to rest (capacity max_rest) in order.  E_ARG with a message that names the flag: unknown,
   missing value, out of range, not one of its words, or too many words. */
cairn_status flags_parse(const flag *table, size_t n_flags, int argc, char **argv,
                         const char **rest, size_t max_rest, size_t *n_rest, cairn_diag *dg);
/* A file of flags, a line each: `name value`, `name = value`, or `name` alone, without the dashes.  Empty
   lines and those that begin with # are none. */
typedef struct flags_file {
    const char *path; /* for messages */
    char *text;       /* cut into values in place; they point into it.  NULL: empty */
    size_t len;       /* bytes of it, without the NUL behind them */
    const char *word; /* the name whose values are words, not a flag's */
    const char **rest;
    size_t n_rest, max_rest;
} flags_file;
/* E_ARG with file and line. */
cairn_status flags_parse_file(const flag *table, size_t n_flags, flags_file *f, cairn_diag *dg);
void flags_help(const flag *table, size_t n_flags, buf *out);

#endif
