/* Reads the kernel's small text files: no buffer of its own, no allocation. */
#include "base/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool proc_read(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const size_t n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    return fclose(f) == 0;
}

bool proc_figure(const char *text, const char *label, uint64_t *out)
{
    const size_t n = strlen(label);
    for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        if (strncmp(p, label, n) != 0) continue;
        p += n;
        while (*p == ' ' || *p == '\t') p++;
        if (*p < '0' || *p > '9') return false;
        errno = 0;
        *out = strtoull(p, NULL, 10);
        return errno == 0;
    }
    return false;
}
