/* Status codes, diagnostics and plain views shared by every public header. */
#ifndef CAIRN_STATUS_H
#define CAIRN_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CAIRN_API      __attribute__((visibility("default")))
#define CAIRN_MUST_USE __attribute__((warn_unused_result))
#else
#define CAIRN_API
#define CAIRN_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* name, text.  0 is success; everything else is a failure. */
#define CAIRN_STATUS_LIST(X)                                                                       \
    X(OK, "ok")                                                                                    \
    X(E_NOMEM, "out of memory")                                                                    \
    X(E_ARG, "invalid argument")                                                                   \
    X(E_IO, "input/output error")                                                                  \
    X(E_NOTFOUND, "not found")                                                                     \
    X(E_CORRUPT, "malformed data")                                                                 \
    X(E_UNSUPPORTED, "unsupported")                                                                \
    X(E_LIMIT, "over a limit")                                                                     \
    X(E_BUSY, "busy")                                                                              \
    X(E_CANCELLED, "cancelled")                                                                    \
    X(E_INTERNAL, "internal error")

typedef enum cairn_status {
#define CAIRN_STATUS_ENUM(name, text) CAIRN_##name,
    CAIRN_STATUS_LIST(CAIRN_STATUS_ENUM)
#undef CAIRN_STATUS_ENUM
        CAIRN_STATUS_COUNT
} cairn_status;

/* Static text for a status; never NULL. */
CAIRN_API const char *cairn_status_text(cairn_status st);

/* What went wrong: where (file, tensor, field), what was found, what was expected.  One line,
   NUL-terminated, empty on success.  Owned by the caller; any function accepts NULL for it. */
typedef struct cairn_diag {
    cairn_status status;
    char message[500];
} cairn_diag;

/* A borrowed run of bytes; not NUL-terminated. */
typedef struct cairn_str {
    const char *ptr;
    size_t len;
} cairn_str;

/* Bytes that a function gives to its caller; release with cairn_bytes_free. */
typedef struct cairn_bytes {
    char *ptr;
    size_t len;
} cairn_bytes;

/* Token ids that a function gives to its caller; release with cairn_ids_free. */
typedef struct cairn_ids {
    int32_t *ptr;
    size_t len;
} cairn_ids;

CAIRN_API void cairn_bytes_free(cairn_bytes *b); /* empty or NULL is fine; leaves it empty */
CAIRN_API void cairn_ids_free(cairn_ids *ids);

CAIRN_API const char *cairn_version(void);

#ifdef __cplusplus
}
#endif
#endif
