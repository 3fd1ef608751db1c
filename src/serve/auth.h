/* API keys.  Owns their digests, not the keys; comparing takes the same time wherever they differ.  One
   thread: keys may be exchanged while requests come. */
#ifndef SERVE_AUTH_H
#define SERVE_AUTH_H

#include "serve/http.h"
#include "serve/rate.h"

enum { AUTH_DIGEST = 32 };

typedef struct auth_key {
    uint8_t digest[AUTH_DIGEST];
    rate rate; /* of who has the key */
} auth_key;

typedef struct auth {
    auth_key *key;
    size_t n;
    rate anyone; /* of all together, where there are no keys */
} auth;

cairn_status auth_init(auth *a, const char *const *keys, size_t n, cairn_diag *dg);
void auth_deinit(auth *a);
/* Other keys from now on; what a key that stays has asked for lately is remembered.  After a failure the old
   ones are in force. */
cairn_status auth_replace(auth *a, const char *const *keys, size_t n, cairn_diag *dg);
/* True without keys; else one of them must be in "Authorization: Bearer …" or "x-api-key: …". */
bool auth_ok(const auth *a, const http_req *rq);
bool auth_key_ok(const auth *a, cairn_str key);
/* Whose count a request goes to.  NULL: it has no key, and one is wanted. */
rate *auth_rate(auth *a, const http_req *rq);
/* What tells the owners of keys apart: the digest of the request's own, or nothing without keys. */
cairn_str auth_space(const auth *a, const http_req *rq, uint8_t digest[AUTH_DIGEST]);

#endif
