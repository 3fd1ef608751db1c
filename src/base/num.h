/* Checked size arithmetic. */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
/* Rounds n up to a multiple of `to` (a power of two); the caller knows that it fits. */
static inline size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) & ~(to - 1);
}
static inline int32_t min_i32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}
static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline int32_t max_i32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}
static inline int32_t ceil_div(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

#endif
