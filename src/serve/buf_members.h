/* The buffers of a struct as one table, so that none is forgotten: `at` are their offsets in it, n of them. */
#ifndef SERVE_BUF_MEMBERS_H
#define SERVE_BUF_MEMBERS_H

#include "base/buf.h"

static inline void buf_members_init(void *of, const size_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) buf_init((buf *)((char *)of + at[i]), MEM_SERVE);
}

static inline void buf_members_deinit(void *of, const size_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) buf_deinit((buf *)((char *)of + at[i]));
}

/* The first that is not OK. */
static inline cairn_status buf_members_status(const void *of, const size_t *at, size_t n)
{
    cairn_status st = CAIRN_OK;

    for (size_t i = 0; i < n && st == CAIRN_OK; i++)
        st = buf_status((const buf *)((const char *)of + at[i]));
    return st;
}

#endif
