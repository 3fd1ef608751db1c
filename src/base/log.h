/* Log lines: an event's name, then key=value.  Sinks are callbacks; nothing is printed otherwise. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

typedef enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;
typedef void (*log_sink)(void *ctx, log_level level, const char *event, const char *line);

void log_set(log_level max, log_sink sink, void *ctx); /* at start-up, before other threads */
void log_event(log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
