/* Status with a message.  `return diag_set(dg, CAIRN_E_CORRUPT, "…", …)` is how a function fails. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "cairn/status.h"

/* Formats into dg (NULL is fine) and returns st.  Control characters become '?', so that the
   message stays one line. */
cairn_status diag_set(cairn_diag *dg, cairn_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the message that is there (NULL is fine) and returns st, the status that
   came with it. */
cairn_status diag_prefix(cairn_diag *dg, cairn_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Analysers do not look into diag.c; this shows them that it answers st.  (Its definitions wear
   parentheses to be left alone.) */
#ifdef __clang_analyzer__
#define diag_set(dg, st, ...)    (diag_set(dg, st, __VA_ARGS__), (st))
#define diag_prefix(dg, st, ...) (diag_prefix(dg, st, __VA_ARGS__), (st))
#endif

#define TRY(expr)                                                                                  \
    do {                                                                                           \
        cairn_status try_st_ = (expr);                                                             \
        if (try_st_ != CAIRN_OK) return try_st_;                                                   \
    } while (0)
/* Needs a local `cairn_status st` and a label. */
#define TRY_GOTO(expr, label)                                                                      \
    do {                                                                                           \
        st = (expr);                                                                               \
        if (st != CAIRN_OK) goto label;                                                            \
    } while (0)

#endif
