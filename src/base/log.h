/* Log lines: an event's name, then key=value, value a plain word or in quotes: there \" \\ and \xNN (a byte) stand
   for what would end it, end the line or command a terminal.  Sinks are callbacks; nothing is printed otherwise. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

typedef enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;
typedef void (*log_sink)(void *ctx, log_level level, const char *event, const char *line);

void log_set(log_level max, log_sink sink, void *ctx); /* at start-up, before other threads */
/* A %s after = is quoted where it has to be, one inside quotes escaped, any other put as it is; of printf's rest %d %u %zu
   %lld %llu %016llx %.*s are there.  Cut at 1,023 bytes, behind a whole character. */
void log_event(log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
