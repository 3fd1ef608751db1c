/* API keys.  Owns their digests, not the keys; comparing takes the same time wherever they differ.
   Immutable once made: any thread may ask. */
#ifndef SERVE_AUTH_H
#define SERVE_AUTH_H

#include "serve/http.h"

enum { AUTH_DIGEST = 32 };

typedef struct auth {
    uint8_t (*digest)[AUTH_DIGEST];
    size_t n;
} auth;

cairn_status auth_init(auth *a, const char *const *keys, size_t n, cairn_diag *dg);
void auth_deinit(auth *a);
/* True without keys; else one of them must be in "Authorization: Bearer …" or "x-api-key: …". */
bool auth_ok(const auth *a, const http_req *rq);
bool auth_key_ok(const auth *a, cairn_str key);
/* What tells the owners of keys apart: the digest of the request's own, or nothing without keys. */
cairn_str auth_space(const auth *a, const http_req *rq, uint8_t digest[AUTH_DIGEST]);

#endif
