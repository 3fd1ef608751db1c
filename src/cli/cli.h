/* What the commands share: opening things, reading ids, saying what went wrong. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/buf.h"    /* IWYU pragma: export */
#include "base/flags.h"  /* IWYU pragma: export */
#include "cairn/cairn.h" /* IWYU pragma: export */

#define CLI_DEFAULT_MODEL "smollm2"

enum { CLI_MAX_WORDS = 1024 /* a folder's files, of embed */ };

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_INTERRUPTED = 130 /* as shells say of SIGINT */
};

typedef struct command {
    const char *name;
    const char *words; /* of the usage line */
    const char *help;  /* one line */
    int (*run)(const struct command *c, int argc, char **argv);
} command;

int cmd_run(const command *c, int argc, char **argv);
int cmd_serve(const command *c, int argc, char **argv);
int cmd_fit(const command *c, int argc, char **argv);
int cmd_info(const command *c, int argc, char **argv);
int cmd_tokenize(const command *c, int argc, char **argv);
int cmd_detokenize(const command *c, int argc, char **argv);
int cmd_render(const command *c, int argc, char **argv);
int cmd_doctor(const command *c, int argc, char **argv);
int cmd_logits(const command *c, int argc, char **argv);
int cmd_bench(const command *c, int argc, char **argv);
int cmd_embed(const command *c, int argc, char **argv);
int cmd_score(const command *c, int argc, char **argv);
int cmd_check_numerics(const command *c, int argc, char **argv);
int cmd_pull(const command *c, int argc, char **argv);

/* "cairn: MESSAGE" on standard error. */
int cli_failed(const cairn_diag *dg); /* returns EXIT_FAILED */
int cli_usage(const command *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* returns EXIT_USAGE */

/* Words that stand beside the flags. */
typedef struct cli_words {
    const char *word[CLI_MAX_WORDS];
    size_t n;
} cli_words;

/* Flags that several commands have. */
#define CLI_COMPUTE(to)                                                                            \
    {                                                                                              \
        "--compute", NULL, FLAG_WORD, to, "fast|f32: arithmetic (default fast)", 0, 0, NULL        \
    }
#define CLI_KV(to)                                                                                 \
    {                                                                                              \
        "--kv-cache", NULL, FLAG_STR, to,                                                          \
            "SPEC: what caches hold: f16, bf16, f32, q8, q4, k8v4, turbo:k8v3, FILE.json (f16)",   \
            0, 0, NULL                                                                             \
    }
#define CLI_THREADS(to)                                                                            \
    {                                                                                              \
        "--threads", "-t", FLAG_INT, to, "N: threads", 1, CAIRN_MAX_THREADS, NULL                  \
    }

/* Parses the flags of a command; `--help` prints them.  False: *exit_code says how to end. */
bool cli_flags(const command *c, const flag *table, size_t n_flags, int argc, char **argv,
               size_t min_words, size_t max_words, cli_words *out, int *exit_code);

/* `word` is a path or a registered name; NULL: CLI_DEFAULT_MODEL. */
cairn_status cli_open_model(const char *word, const cairn_model_opts *o, cairn_model **out,
                            cairn_diag *dg);
/* E_ARG, naming --ctx, where the model has a context and it is less; 0 is fine. */
cairn_status cli_check_ctx(const cairn_model *m, const char *word, int64_t ctx, cairn_diag *dg);
cairn_status cli_open_text(const char *word, cairn_text **out, cairn_diag *dg);
/* The engine knows no file names, and a server's clients should not see them: the model's is put before a
   message that does not begin with it.  What is wrong with standard output is no matter of the model. */
cairn_status cli_blame(const char *model, cairn_status st, cairn_diag *dg);
/* --compute's word; NULL: fast. */
cairn_compute cli_compute(const char *word);
/* A JSON array of token ids. */
cairn_status cli_read_ids(const char *path, cairn_ids *out, cairn_diag *dg);
cairn_status cli_write_out(const void *p, size_t n, cairn_diag *dg); /* standard output */
/* Writes what was built, or says that building it failed; b is left empty. */
cairn_status cli_print(buf *b, cairn_diag *dg);

#endif
