/* The kernel's way to write a set of numbers: "0-3,8". */
#ifndef BASE_CPULIST_H
#define BASE_CPULIST_H

#include <stdbool.h>

/* The next range of the list at *at, which moves behind it.  false: no more, no list, or numbers from `most` on. */
bool cpulist_next(const char **at, long most, long *first, long *last);

#endif
