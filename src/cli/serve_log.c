/* The log as people read it, or as programs do: with --log-json a line is an object with time, level, event and a
   member for each key=value of the event. */
#include "cli/serve_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"

static const char *const levels[] = {"error", "warn", "info", "debug"};

static void on_text(void *ctx, log_level level, const char *event, const char *line)
{
    (void)ctx;
    (void)level;
    (void)fprintf(stderr, "cairn: %s %s\n", event, line);
}

/* Where a key begins: lower-case letters and underscores up to "=". */
static bool is_key(const char *p)
{
    const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz_");

    return n > 0 && p[n] == '=';
}

/* As base/log.h has it: up to a space, or in quotes, these included. */
static size_t value_len(const char *p)
{
    size_t n = 1;

    if (*p != '"') return strcspn(p, " ");
    while (p[n] && p[n] != '"') n += p[n] == '\\' && p[n + 1] ? 2 : 1;
    return n + (p[n] == '"');
}

static char hex_of(const char *two)
{
    const char digits[] = {two[0], two[1], '\0'};

    return (char)strtoul(digits, NULL, 16);
}

/* What stands between the quotes of v, without escapes. */
static void unquote(buf *out, cairn_str v)
{
    const size_t end = v.len - (v.len > 1 && v.ptr[v.len - 1] == '"');

    for (size_t i = 1; i < end; i++) {
        const bool escaped = v.ptr[i] == '\\' && i + 1 < end;
        i += escaped;
        if (escaped && v.ptr[i] == 'x' && end - i >= 3) {
            buf_byte(out, hex_of(v.ptr + i + 1));
            i += 2;
        } else {
            buf_byte(out, v.ptr[i]);
        }
    }
}

/* A number as JSON has it is one, anything else a string. */
static void put_value(json_writer *w, cairn_str v)
{
    size_t digits = 0;
    buf text;

    while (digits < v.len && str_is_digit(v.ptr[digits])) digits++;
    if (digits && digits == v.len && digits < 16 && (v.ptr[0] != '0' || digits == 1)) {
        json_w_raw(w, v);
        return;
    }
    buf_init(&text, MEM_SERVE);
    if (v.len && v.ptr[0] == '"')
        unquote(&text, v);
    else
        buf_str(&text, v);
    json_w_str(w, buf_view(&text));
    buf_deinit(&text);
}

static void put_time(json_writer *w, uint64_t unix_ms)
{
    const time_t s = (time_t)(unix_ms / 1000);
    char text[40];
    struct tm tm;

    const size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));
    (void)snprintf(text + n, sizeof text - n, ".%03uZ", (unsigned)(unix_ms % 1000));
    json_w_kstr(w, "time", str_of(text));
}

void serve_log_write_json(buf *out, log_level level, const char *event, const char *line,
                          uint64_t unix_ms)
{
    json_writer w = json_write(out);

    json_w_obj(&w);
    put_time(&w, unix_ms);
    json_w_kstr(&w, "level", str_of(levels[level]));
    json_w_kstr(&w, "event", str_of(event));
    while (is_key(line)) {
        const size_t n_key = strcspn(line, "="), n = value_len(line + n_key + 1);
        const cairn_str key = {line, n_key};
        if (str_is(key, "time") || str_is(key, "level") || str_is(key, "event")) break;
        json_w_key_str(&w, key);
        put_value(&w, (cairn_str){line + n_key + 1, n});
        line += n_key + 1 + n;
        line += *line == ' ';
    }
    if (*line) json_w_kstr(&w, "message", str_of(line));
    json_w_end_obj(&w);
    buf_byte(out, '\n');
}

/* One write a line: several threads have news. */
static void on_json(void *ctx, log_level level, const char *event, const char *line)
{
    struct timespec now;
    buf b;

    (void)ctx;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    buf_init(&b, MEM_SERVE);
    serve_log_write_json(&b, level, event, line,
                         (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
    if (buf_status(&b) == CAIRN_OK) (void)fwrite(b.ptr, 1, b.len, stderr);
    buf_deinit(&b);
}

void serve_log_start(const char *level, bool verbose, bool json)
{
    log_level max = verbose ? LOG_INFO : LOG_WARN;

    for (size_t i = 0; level && i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(level, levels[i]) == 0) max = (log_level)i;
    log_set(max, json ? on_json : on_text, NULL);
}
