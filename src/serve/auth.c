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
    a->key = mem_calloc(n, sizeof *a->key, MEM_SERVE);
    if (!a->key) return diag_set(dg, CAIRN_E_NOMEM, "no memory for %zu API keys", n);
    for (size_t i = 0; i < n; i++) digest_of(str_of(keys[i]), a->key[i].digest);
    a->n = n;
    return CAIRN_OK;
}

void auth_deinit(auth *a)
{
    mem_free(a->key);
    *a = (auth){0};
}

/* The entry of that digest, or NULL: all are looked at, to the end. */
static auth_key *find(const auth *a, const uint8_t digest[AUTH_DIGEST])
{
    auth_key *found = NULL;

    for (size_t i = 0; i < a->n; i++) {
        unsigned diff = 0;
        for (size_t j = 0; j < AUTH_DIGEST; j++)
            diff |= (unsigned)(digest[j] ^ a->key[i].digest[j]);
        if (diff == 0) found = &a->key[i];
    }
    return found;
}

cairn_status auth_replace(auth *a, const char *const *keys, size_t n, cairn_diag *dg)
{
    auth next;

    TRY(auth_init(&next, keys, n, dg));
    for (size_t i = 0; i < n; i++) {
        const auth_key *old = find(a, next.key[i].digest);
        if (old) next.key[i].rate = old->rate;
    }
    next.anyone = a->anyone;
    auth_deinit(a);
    *a = next;
    return CAIRN_OK;
}

static auth_key *entry_of(const auth *a, cairn_str key)
{
    uint8_t d[AUTH_DIGEST];

    digest_of(key, d);
    return find(a, d);
}

bool auth_key_ok(const auth *a, cairn_str key)
{
    return entry_of(a, key) != NULL;
}

/* The entry of the key that the request gives; NULL: it gives none of ours. */
static auth_key *key_of(const auth *a, const http_req *rq)
{
    static const char scheme[] = "Bearer ";
    const char *s = http_header(rq, "Authorization");
    auth_key *found = NULL;

    if (s && strncasecmp(s, scheme, sizeof scheme - 1) == 0)
        found = entry_of(a, str_trim(str_of(s + sizeof scheme - 1)));
    s = found ? NULL : http_header(rq, "x-api-key");
    return s ? entry_of(a, str_of(s)) : found;
}

bool auth_ok(const auth *a, const http_req *rq)
{
    return a->n == 0 || key_of(a, rq);
}

rate *auth_rate(auth *a, const http_req *rq)
{
    auth_key *k = a->n ? key_of(a, rq) : NULL;

    return k ? &k->rate : a->n ? NULL : &a->anyone;
}

cairn_str auth_space(const auth *a, const http_req *rq, uint8_t digest[AUTH_DIGEST])
{
    const auth_key *k = a->n ? key_of(a, rq) : NULL;

    if (!k) return (cairn_str){"", 0};
    memcpy(digest, k->digest, AUTH_DIGEST);
    return (cairn_str){(const char *)digest, AUTH_DIGEST};
}
