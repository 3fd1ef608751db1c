/* HTTP heads and chunked bodies on any bytes, whole and cut in two: no crash, the same findings, and
   what is taken holds what the strict reader promises. */
#include <stdlib.h>
#include <string.h>

#include "serve/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool ok)
{
    if (!ok) abort();
}

/* The text after the head: chunked bodies, in two parts cut at `cut`. */
static size_t read_chunks(const char *p, size_t n, size_t cut, http_chunks *k)
{
    size_t at = 0, total = 0;

    for (int part = 0; part < 2; part++) {
        const size_t end = part ? n : cut;
        while (at < end && k->state != CHUNK_END && k->state != CHUNK_BAD) {
            cairn_str run;
            const size_t used = http_chunks_feed(k, p + at, end - at, &run);
            need(used <= end - at && run.len <= used);
            if (used == 0) break;
            total += run.len;
            at += used;
        }
    }
    return total;
}

static head_result read_head(http_head *h, char *p, size_t n, size_t cut)
{
    const head_result r = http_head_feed(h, p, cut);

    return r == HEAD_MORE ? http_head_feed(h, p, n) : r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t n = size ? size - 1 : 0, cut = size ? data[0] % (n + 1) : 0;
    char *p = malloc(n + 1), *q = malloc(n + 1);
    http_head whole = {0}, parts = {0};
    http_chunks one = {0}, two = {0};

    need(p && q);
    if (n) memcpy(p, data + 1, n);
    if (n) memcpy(q, data + 1, n);
    need(read_chunks(p, n, n, &one) == read_chunks(p, n, cut, &two) && one.state == two.state);
    const head_result a = read_head(&whole, p, n, n), b = read_head(&parts, q, n, cut);
    need(a == b && whole.status == parts.status && whole.len == parts.len);
    if (a == HEAD_REFUSED) need(whole.status >= 400 && whole.why);
    if (a == HEAD_DONE) {
        need(whole.len <= n && whole.len <= HEAD_MAX_BYTES && whole.n_field <= HEAD_MAX_FIELDS);
        need(whole.method[0] && (p[whole.path] == '/' || p[whole.path] == '*'));
        need(!(whole.chunked && (whole.has_length || whole.old)));
        need(whole.old || http_head_find(&whole, p, "host"));
        need(memcmp(p, q, n) == 0 && memcmp(whole.field, parts.field, sizeof whole.field) == 0);
    }
    free(p);
    free(q);
    return 0;
}
