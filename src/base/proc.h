/* Small text files of the kernel's. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file, cut to what fits, with a NUL after it; false: it is not there. */
bool proc_read(const char *path, char *out, size_t size);
/* The figure after `label` at a line's start; false if there is none ("max" and −1 are none). */
bool proc_figure(const char *text, const char *label, uint64_t *out);

#endif
