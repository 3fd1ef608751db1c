/* Log lines go to one sink, set before other threads start and immutable from then on.  Without a
   sink nothing is formatted. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 1024 }; /* longer lines are cut: a log is not for data */

static log_level log_max = LOG_WARN;
static log_sink log_to;
static void *log_ctx;

void log_set(log_level max, log_sink sink, void *ctx)
{
    log_max = max;
    log_to = sink;
    log_ctx = ctx;
}

void log_event(log_level level, const char *event, const char *fmt, ...)
{
    if (!log_to || level > log_max) return;
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20) *p = ' '; /* one event, one line */
    log_to(log_ctx, level, event, line);
}
