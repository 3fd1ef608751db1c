/* Messages.  A message is one line of valid length: control characters become '?', and a character
   cut by the end of the buffer is dropped whole. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static void clean(char *z)
{
    for (char *p = z; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    const size_t n = strlen(z);
    z[n - utf8_tail((cairn_str){z, n})] = '\0';
}

cairn_status(diag_set)(cairn_diag *dg, cairn_status st, const char *fmt, ...)
{
    if (!dg) return st;
    char text[sizeof dg->message]; /* an argument may be the old message */
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    clean(text);
    dg->status = st;
    memcpy(dg->message, text, sizeof text);
    return st;
}

cairn_status(diag_prefix)(cairn_diag *dg, cairn_status st, const char *fmt, ...)
{
    if (!dg) return st;
    char text[sizeof dg->message];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const size_t n = strnlen(text, sizeof text - 1);
    (void)snprintf(text + n, sizeof text - n, ": %s", dg->message);
    clean(text);
    dg->status = st;
    memcpy(dg->message, text, sizeof text);
    return st;
}
