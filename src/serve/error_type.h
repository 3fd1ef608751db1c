/* How an API calls its errors. */
#ifndef SERVE_ERROR_TYPE_H
#define SERVE_ERROR_TYPE_H

#include <stddef.h>

typedef struct error_type {
    int status;
    const char *type;
} error_type;

/* The type of that HTTP status; of those that no entry has: the request was at fault. */
static inline const char *error_type_of(const error_type *list, size_t n, int status)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].status == status) return list[i].type;
    return "invalid_request_error";
}

#endif
