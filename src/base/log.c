/* Log lines go to one sink, set before other threads start and immutable from then on.  Without a
   sink nothing is formatted.

   The format is read here and not by printf, so that what a %s brings, which may be anything, cannot look like another
   field or another line: a caller has nothing to think of. */
#include "base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum {
    LINE_MAX_BYTES = 1024, /* longer lines are cut: a log is not for data */
    UNIT_BYTES = 5         /* an escape or a character, and its NUL */
};

static log_level log_max = LOG_WARN;
static log_sink log_to;
static void *log_ctx;

void log_set(log_level max, log_sink sink, void *ctx)
{
    log_max = max;
    log_to = sink;
    log_ctx = ctx;
}

typedef struct log_line {
    char text[LINE_MAX_BYTES];
    size_t n;
    bool quoted; /* inside a value in quotes, whose end has room in any case */
    bool full;   /* nothing more, but that end */
} log_line;

static void put(log_line *l, const char *p, size_t n)
{
    if (l->full || n + l->quoted >= sizeof l->text - l->n) {
        l->full = true;
        return;
    }
    memcpy(l->text + l->n, p, n);
    l->n += n;
}

static void put_quote(log_line *l)
{
    if (!l->quoted && l->n + 2 >= sizeof l->text) l->full = true; /* the end would have no room */
    if (l->full && !l->quoted) return;
    l->text[l->n++] = '"';
    l->quoted = !l->quoted;
}

/* Ends of lines, and what turns the direction of writing: a reader would see another line than there is. */
static bool misleads(uint32_t cp)
{
    return (cp >= 0x2028 && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069) || cp == 0x200E ||
           cp == 0x200F || cp == 0x061C;
}

/* Bytes of the character at p that can stand as it is between quotes; 0: it is escaped. */
static size_t clean(const char *p, size_t n)
{
    uint32_t cp;
    const int len = utf8_decode(p, n, &cp);
    const bool control = cp < 0x20 || (cp >= 0x7F && cp < 0xA0);

    return len < 0 || control || misleads(cp) || cp == '"' || cp == '\\' ? 0 : (size_t)len;
}

static void put_escaped(log_line *l, const char *p, size_t n)
{
    for (size_t i = 0, len; i < n && !l->full; i += len ? len : 1) {
        char unit[UNIT_BYTES];

        len = clean(p + i, n - i);
        if (len) {
            put(l, p + i, len);
        } else if (p[i] == '"' || p[i] == '\\') {
            const char two[] = {'\\', p[i]};
            put(l, two, sizeof two);
        } else {
            (void)snprintf(unit, sizeof unit, "\\x%02x", (unsigned)(uint8_t)p[i]);
            put(l, unit, UNIT_BYTES - 1);
        }
    }
}

/* Neither empty, nor a number, nor with anything that a reader of fields could trip over. */
static bool is_word(const char *p, size_t n)
{
    bool digits = true;

    for (size_t i = 0; i < n; i++) {
        if (p[i] <= ' ' || p[i] > '~' || strchr("\"\\=", p[i])) return false;
        digits = digits && p[i] >= '0' && p[i] <= '9';
    }
    return !digits;
}

/* A %s: inside quotes, as a value, or (a piece of the caller's own) neither. */
static void put_string(log_line *l, const char *p, size_t n)
{
    if (l->quoted) {
        put_escaped(l, p, n);
    } else if (l->n && l->text[l->n - 1] == '=' && !is_word(p, n)) {
        put_quote(l);
        if (l->quoted) put_escaped(l, p, n);
        if (l->quoted) put_quote(l);
    } else {
        const size_t room = sizeof l->text - 1 - l->n;
        if (!l->full) put(l, p, n < room ? n : room);
    }
}

/* After the %: what tests/unit/base/test_log.c has, and no more.  Behind it. */
static const char *put_value(log_line *l, const char *f, va_list *ap)
{
    char digits[24] = "";
    const char *s = NULL;
    size_t n = 0;

    if (strncmp(f, "016llx", 6) == 0) {
        (void)snprintf(digits, sizeof digits, "%016llx", va_arg(*ap, unsigned long long));
        f += 6;
    } else if (strncmp(f, "llu", 3) == 0) {
        (void)snprintf(digits, sizeof digits, "%llu", va_arg(*ap, unsigned long long));
        f += 3;
    } else if (strncmp(f, "lld", 3) == 0) {
        (void)snprintf(digits, sizeof digits, "%lld", va_arg(*ap, long long));
        f += 3;
    } else if (strncmp(f, "zu", 2) == 0) {
        (void)snprintf(digits, sizeof digits, "%zu", va_arg(*ap, size_t));
        f += 2;
    } else if (*f == 'u') {
        (void)snprintf(digits, sizeof digits, "%u", va_arg(*ap, unsigned));
        f++;
    } else if (*f == 'd') {
        (void)snprintf(digits, sizeof digits, "%d", va_arg(*ap, int));
        f++;
    } else if (strncmp(f, ".*s", 3) == 0) {
        n = (size_t)va_arg(*ap, int);
        s = va_arg(*ap, const char *);
        n = s ? strnlen(s, n) : 0;
        s = s ? s : "";
        f += 3;
    } else {
        assert(*f == 's');
        s = va_arg(*ap, const char *);
        n = strlen(s);
        f++;
    }
    if (s)
        put_string(l, s, n);
    else
        put(l, digits, strlen(digits));
    return f;
}

void log_event(log_level level, const char *event, const char *fmt, ...)
{
    if (!log_to || level > log_max) return;
    log_line l = {.n = 0};
    va_list ap;
    va_start(ap, fmt);
    for (const char *f = fmt; *f;) {
        if (*f == '%') {
            f = put_value(&l, f + 1, &ap);
        } else if (*f++ == '"') {
            put_quote(&l);
        } else {
            put(&l, f - 1, 1);
        }
    }
    va_end(ap);
    if (l.quoted) put_quote(&l);
    l.text[l.n] = '\0';
    for (char *p = l.text; *p; p++)
        if ((unsigned char)*p < 0x20) *p = ' '; /* one event, one line */
    log_to(log_ctx, level, event, l.text);
}
