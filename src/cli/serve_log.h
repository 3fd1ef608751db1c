/* Where the log of `serve` goes: standard error, a line an event. */
#ifndef CLI_SERVE_LOG_H
#define CLI_SERVE_LOG_H

#include "base/buf.h"
#include "base/log.h"

/* `level`: --log-level's word or NULL. */
void serve_log_start(const char *level, bool verbose, bool json);
/* One event as a JSON object; `line` is key=value pairs, of which each is a member.  For tests too. */
void serve_log_write_json(buf *out, log_level level, const char *event, const char *line,
                          uint64_t unix_ms);

#endif
