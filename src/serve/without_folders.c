/* What is a path in a message, and what only has a slash: templates may say anything. */
#include "serve/without_folders.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The path that a message begins with ends there; it may hold blanks, and be relative. */
static const char *without_first_folders(const char *message)
{
    const char *end = strstr(message, ", line "), *from = message;

    if (!end) end = strstr(message, ": ");
    for (const char *s = message; end && s < end; s++)
        if (*s == '/') from = s + 1;
    return from;
}

/* Bytes of the folders that begin at s, where a word does: only an absolute path, or one from "." or "..", and not
   what a template may speak of, as "/no_think" or "</think>". */
static size_t folders_at(const char *s)
{
    const size_t len = strcspn(s, " \t\r\n\"'`()[]<>,;"), dots = strspn(s, ".");
    size_t n = 0, slashes = 0;

    if (s[0] != '/' && (dots == 0 || dots > 2 || s[dots] != '/')) return 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] != '/') continue;
        n = i + 1;
        slashes++;
    }
    return dots || slashes > 1 ? n : 0;
}

const char *without_folders_in(const char *message, bare_message *out)
{
    const char *s = without_first_folders(message);
    bool begins = true; /* of a word */
    size_t n = 0;

    while (*s && n + 1 < sizeof out->text) {
        if (begins) s += folders_at(s);
        if (!*s) break;
        begins = strchr(" \t\r\n\"'`([=,;:", *s) != NULL;
        out->text[n++] = *s++;
    }
    out->text[n] = '\0';
    return out->text;
}
