/* API keys, kept as SHA-256 digests.  Comparing digests, all of them, to the end, takes the same time
   whatever the given key has in common with a real one. */
#include "serve/auth.h"

#include <string.h>
#include <strings.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/str.h"

static void digest_of(cairn_str s, uint8_t out[AUTH_DIGEST])
{
    sha256 h;

    sha256_init(&h);
    sha256_add(&h, s.ptr, s.len);
    sha256_end(&h, out);
}

cairn_status auth_init(auth *a, const char *const *keys, size_t n, cairn_diag *dg)
{
    *a = (auth){0};
    if (n == 0) return CAIRN_OK;
    for (size_t i = 0; i < n; i++)
        if (!keys[i] || !keys[i][0])
            return diag_set(dg, CAIRN_E_ARG, "API key %zu is empty", i + 1);
    a->digest = mem_calloc(n, sizeof *a->digest, MEM_SERVE);
    if (!a->digest) return diag_set(dg, CAIRN_E_NOMEM, "no memory for %zu API keys", n);
    for (size_t i = 0; i < n; i++) digest_of(str_of(keys[i]), a->digest[i]);
    a->n = n;
    return CAIRN_OK;
}

void auth_deinit(auth *a)
{
    mem_free(a->digest);
    *a = (auth){0};
}

bool auth_key_ok(const auth *a, cairn_str key)
{
    uint8_t d[AUTH_DIGEST];
    unsigned found = 0;

    digest_of(key, d);
    for (size_t i = 0; i < a->n; i++) {
        unsigned diff = 0;
        for (size_t j = 0; j < AUTH_DIGEST; j++) diff |= (unsigned)(d[j] ^ a->digest[i][j]);
        found |= diff == 0;
    }
    return found != 0;
}

/* The key that the request gives and that is one of ours; "": none is. */
static cairn_str key_of(const auth *a, const http_req *rq)
{
    static const char scheme[] = "Bearer ";
    const char *s = http_header(rq, "Authorization");
    cairn_str key;

    if (s && strncasecmp(s, scheme, sizeof scheme - 1) == 0) {
        key = str_trim(str_of(s + sizeof scheme - 1));
        if (auth_key_ok(a, key)) return key;
    }
    s = http_header(rq, "x-api-key");
    return s && auth_key_ok(a, str_of(s)) ? str_of(s) : (cairn_str){"", 0};
}

bool auth_ok(const auth *a, const http_req *rq)
{
    return a->n == 0 || key_of(a, rq).len > 0;
}

cairn_str auth_space(const auth *a, const http_req *rq, uint8_t digest[AUTH_DIGEST])
{
    const cairn_str key = a->n ? key_of(a, rq) : (cairn_str){"", 0};

    if (key.len == 0) return key;
    digest_of(key, digest);
    return (cairn_str){(const char *)digest, AUTH_DIGEST};
}
