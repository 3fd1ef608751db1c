/* Messages begin with the file that is at fault, "PATH, line N: …" or "PATH: …": for clients from its name on. */
#ifndef SERVE_WITHOUT_FOLDERS_H
#define SERVE_WITHOUT_FOLDERS_H

#include <string.h>

static inline const char *without_folders(const char *message)
{
    const char *end = strstr(message, ", line "), *from = message;

    if (!end) end = strstr(message, ": ");
    for (const char *s = message; end && s < end; s++)
        if (*s == '/') from = s + 1;
    return from;
}

#endif
