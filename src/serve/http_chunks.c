/* The framing of a chunked body.  Strict, for http_head.c's reason: sizes are hexadecimal digits and
   nothing else, at most 16 of them; extensions and trailers are read past, within limits. */
#include "base/str.h"
#include "serve/http_head.h"

enum {
    MAX_DIGITS = 16,    /* 64 bits */
    MAX_EXT = 256,      /* of one chunk; nobody is known to send any */
    MAX_TRAILERS = 8192 /* all of them together */
};

static bool is_text(char c)
{
    const unsigned char u = (unsigned char)c;

    return (u >= 0x20 && u != 0x7F) || u == '\t';
}

static chunk_state after_size(http_chunks *k, char c)
{
    const int digit = str_hex_digit(c);

    if (digit >= 0 && k->n_digits < MAX_DIGITS) {
        k->left = k->left << 4 | (uint64_t)digit;
        k->n_digits++;
        return CHUNK_SIZE;
    }
    if (k->n_digits == 0 || digit >= 0) return CHUNK_BAD;
    k->n_ext = 0;
    return c == '\r' ? CHUNK_SIZE_LF : c == ';' ? CHUNK_EXT : CHUNK_BAD;
}

static chunk_state after_text(http_chunks *k, char c, uint32_t most, chunk_state here,
                              chunk_state at_cr)
{
    if (c == '\r') return at_cr;
    return is_text(c) && ++k->n_ext <= most ? here : CHUNK_BAD;
}

static chunk_state after(http_chunks *k, char c)
{
    switch (k->state) {
    case CHUNK_SIZE:
        return after_size(k, c);
    case CHUNK_EXT:
        return after_text(k, c, MAX_EXT, CHUNK_EXT, CHUNK_SIZE_LF);
    case CHUNK_SIZE_LF:
        k->n_digits = k->n_ext = 0;
        return c != '\n' ? CHUNK_BAD : k->left ? CHUNK_DATA : CHUNK_TRAILER;
    case CHUNK_DATA_CR:
        return c == '\r' ? CHUNK_DATA_LF : CHUNK_BAD;
    case CHUNK_DATA_LF:
        return c == '\n' ? CHUNK_SIZE : CHUNK_BAD;
    case CHUNK_TRAILER:
        return after_text(k, c, MAX_TRAILERS, CHUNK_TRAILER_LINE, CHUNK_LAST_LF);
    case CHUNK_TRAILER_LINE:
        return after_text(k, c, MAX_TRAILERS, CHUNK_TRAILER_LINE, CHUNK_TRAILER_LF);
    case CHUNK_TRAILER_LF:
        return c == '\n' ? CHUNK_TRAILER : CHUNK_BAD;
    case CHUNK_LAST_LF:
        return c == '\n' ? CHUNK_END : CHUNK_BAD;
    case CHUNK_DATA:
    case CHUNK_END:
    case CHUNK_BAD:
        break;
    }
    return CHUNK_BAD;
}

size_t http_chunks_feed(http_chunks *k, const char *p, size_t n, cairn_str *data)
{
    size_t at = 0;

    *data = (cairn_str){p, 0};
    while (at < n && k->state != CHUNK_END && k->state != CHUNK_BAD) {
        if (k->state != CHUNK_DATA) {
            k->state = after(k, p[at]);
            if (k->state != CHUNK_BAD) at++;
            continue;
        }
        if (data->len) break;
        *data = (cairn_str){p + at, n - at < k->left ? n - at : (size_t)k->left};
        at += data->len;
        k->left -= data->len;
        if (k->left == 0) k->state = CHUNK_DATA_CR;
    }
    return at;
}
