/* Reads the head of a request line by line.  Our own, because a lenient reader is a hole: what a proxy
   before us and we frame differently, an attacker can use to slip a request past the proxy
   (ARCHITECTURE.md says what the libraries accept).

   So: CRLF ends lines, nothing folds, names are tokens up to the colon, framing headers come once and
   alone, and whatever is not plainly right is refused.  Leniency kept from RFC 9112: one empty line
   before a request, an absolute target, and white space around values. */
#include "serve/http_head.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

static head_result refuse(http_head *h, int32_t status, const char *why)
{
    h->status = status;
    h->why = why;
    return HEAD_REFUSED;
}

/* Characters of methods and header names. */
static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || str_is_digit(c) ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* In place; false: a malformed escape, or a NUL. */
static bool percent_decode(char *s)
{
    char *to = s;

    for (; *s; s++) {
        char c = *s;
        if (c == '%') {
            const int hi = str_hex_digit(s[1]), lo = hi < 0 ? -1 : str_hex_digit(s[2]);
            if (lo < 0 || (hi == 0 && lo == 0)) return false;
            c = (char)(hi * 16 + lo);
            s += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

/* The path of "/path?query", "http://host/path" or "*"; NULL if it is none of these.  *query: what
   follows the question mark, or NULL. */
static char *path_of(char *target, char **query)
{
    *query = NULL;
    if (strcmp(target, "*") == 0) return target;
    if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
        target = strchr(strchr(target, ':') + 3, '/');
        if (!target) return NULL;
    }
    if (*target != '/') return NULL;
    *query = strchr(target, '?');
    if (*query) *(*query)++ = '\0';
    return target;
}

static head_result read_version(http_head *h, const char *v)
{
    if (strncmp(v, "HTTP/", 5) != 0 || !str_is_digit(v[5]) || v[6] != '.' || !str_is_digit(v[7]) ||
        v[8])
        return refuse(h, 400, "the request line must end with the version");
    if (v[5] != '1' || v[7] > '1') return refuse(h, 505, "only HTTP/1.1 and HTTP/1.0 are spoken");
    h->old = v[7] == '0';
    h->close = h->old;
    return HEAD_MORE;
}

/* METHOD SP target SP version */
static head_result read_request_line(http_head *h, char *p)
{
    char *line = p + h->line, *target, *version, *path, *query;
    size_t n = 0;

    while (is_token(line[n])) n++;
    if (n == 0 || line[n] != ' ')
        return refuse(h, 400, "the request line must begin with a method and a space");
    if (n >= sizeof h->method) return refuse(h, 501, "no such method");
    memcpy(h->method, line, n);
    target = line + n + 1;
    version = strchr(target, ' ');
    if (!version) return refuse(h, 400, "the request line must hold method, target and version");
    *version++ = '\0';
    for (const char *s = target; *s; s++)
        if (*s <= 0x20 || *s == 0x7F || (unsigned char)*s >= 0x80)
            return refuse(h, 400, "the request target holds a byte that must be escaped");
    if (read_version(h, version) != HEAD_MORE) return HEAD_REFUSED;
    path = path_of(target, &query);
    if (!path || !percent_decode(path))
        return refuse(h, 400, "the request target must be a path or a URL, rightly escaped");
    h->path = (uint32_t)(path - p);
    h->query = query ? (uint32_t)(query - p) : 0;
    h->begun = true;
    return HEAD_MORE;
}

static head_result read_length(http_head *h, const char *v)
{
    uint64_t n = 0;

    if (h->has_length) return refuse(h, 400, "more than one Content-Length");
    if (!*v) return refuse(h, 400, "Content-Length must be a number");
    for (; *v; v++) {
        if (!str_is_digit(*v)) return refuse(h, 400, "Content-Length must be a number");
        n = n > UINT64_MAX / 20 ? UINT64_MAX : n * 10 + (uint64_t)(*v - '0');
    }
    h->has_length = true;
    h->length = n;
    return HEAD_MORE;
}

static head_result read_coding(http_head *h, const char *v)
{
    if (h->chunked) return refuse(h, 400, "more than one Transfer-Encoding");
    if (strcasecmp(v, "chunked") != 0)
        return refuse(h, 501, "the only Transfer-Encoding taken is chunked");
    h->chunked = true;
    return HEAD_MORE;
}

static head_result read_host(http_head *h, const char *v)
{
    for (; *v; v++)
        if (!is_token(*v) && !strchr(":[]();=,", *v))
            return refuse(h, 400, "Host must be a name or an address, with a port or without");
    return HEAD_MORE;
}

static head_result read_expect(http_head *h, const char *v)
{
    if (strcasecmp(v, "100-continue") != 0) return refuse(h, 417, "no such expectation");
    h->expects = true;
    return HEAD_MORE;
}

static head_result read_connection(http_head *h, const char *v)
{
    while (*v) {
        const size_t n = strcspn(v, ",");
        if (str_trim((cairn_str){v, n}).len == 5 &&
            strncasecmp(str_trim((cairn_str){v, n}).ptr, "close", 5) == 0)
            h->close = true;
        v += n + (v[n] == ',');
    }
    return HEAD_MORE;
}

/* Headers that decide where requests begin and end. */
static const struct {
    const char *name;
    head_result (*read)(http_head *h, const char *value);
} known[] = {
    {"Content-Length", read_length}, {"Transfer-Encoding", read_coding}, {"Host", read_host},
    {"Expect", read_expect},         {"Connection", read_connection},
};

static head_result read_field(http_head *h, char *p, uint32_t end)
{
    char *name = p + h->line, *value = name;

    if (*name == ' ' || *name == '\t') return refuse(h, 400, "a header line begins with a space");
    while (is_token(*value)) value++;
    if (value == name || *value != ':')
        return refuse(h, 400, "a header line must hold a name, a colon at once, and a value");
    if (h->n_field == HEAD_MAX_FIELDS) return refuse(h, 431, "too many headers");
    *value++ = '\0';
    while (*value == ' ' || *value == '\t') value++;
    for (char *last = p + end; last > value && (last[-1] == ' ' || last[-1] == '\t');)
        *--last = '\0';
    h->field[h->n_field++] = (head_field){h->line, (uint32_t)(value - p)};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcasecmp(name, known[i].name) == 0) return known[i].read(h, value);
    return HEAD_MORE;
}

/* The empty line has come: what must hold of all headers together. */
static head_result finish(http_head *h, const char *p)
{
    int32_t n_host = 0;

    for (int32_t i = 0; i < h->n_field; i++)
        n_host += strcasecmp(p + h->field[i].name, "Host") == 0;
    if (n_host > 1) return refuse(h, 400, "more than one Host");
    if (n_host == 0 && !h->old) return refuse(h, 400, "HTTP/1.1 needs a Host");
    if (h->chunked && h->has_length)
        return refuse(h, 400, "Content-Length and Transfer-Encoding together");
    if (h->chunked && h->old) return refuse(h, 400, "HTTP/1.0 knows no Transfer-Encoding");
    if (h->old) h->expects = false;
    h->len = h->at;
    return HEAD_DONE;
}

/* p[h->line, end) is a line without its CRLF, which ends at h->at. */
static head_result read_line(http_head *h, char *p, uint32_t end)
{
    head_result r;

    p[end] = '\0';
    if (h->line == end && h->begun) return finish(h, p);
    if (h->line == end && end > 0)
        return refuse(h, 400, "the request line is empty"); /* one empty line may come before it */
    r = h->line == end ? HEAD_MORE : h->begun ? read_field(h, p, end) : read_request_line(h, p);
    h->line = h->at;
    return r;
}

head_result http_head_feed(http_head *h, char *p, size_t n)
{
    head_result r = h->status ? HEAD_REFUSED : HEAD_MORE;

    while (r == HEAD_MORE && h->at < n) {
        const unsigned char c = (unsigned char)p[h->at];
        if (h->at == HEAD_MAX_BYTES)
            return h->begun ? refuse(h, 431, "the headers are too long")
                            : refuse(h, 414, "the request line is too long");
        if (c == '\r' && h->at + 1 == n) break; /* the next byte decides */
        if (c == '\r' && p[h->at + 1] == '\n') {
            h->at += 2;
            r = read_line(h, p, h->at - 2);
        } else if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return refuse(h, 400, "a control byte in the head; lines end with CR and LF");
        } else {
            h->at++;
        }
    }
    return r;
}

const char *http_head_find(const http_head *h, const char *p, const char *name)
{
    for (int32_t i = 0; i < h->n_field; i++)
        if (strcasecmp(p + h->field[i].name, name) == 0) return p + h->field[i].value;
    return NULL;
}
