/* Responses that are kept, so that a later request can go on from one, and clients can ask for it.  In memory, by
   id and by whose they are: the owner of another key finds nothing, and takes no room from others: where it is short,
   who holds most lets go. */
#ifndef SERVE_RESPONSES_STORE_H
#define SERVE_RESPONSES_STORE_H

#include "base/buf.h"
#include "base/thread.h"
#include "serve/auth.h"

enum {
    /* Of all: hundreds of an agent's turns, as each keeps only what it added. */
    RESPONSES_MAX_BYTES = 32 << 20,
    RESPONSES_TTL_MS = 3600 * 1000, /* since the last use: the pauses of a person at work */
    RESPONSE_DIGITS = 32,           /* hexadecimal, of an id: 128 bits, nobody guesses one */
    RESPONSE_ID = 40,               /* bytes of an id, NUL included */
    /* Some 20,000 responses of no more than an answer's frame fit the limit: five steps to find one. */
    RESPONSES_BUCKETS = 4096
};

typedef struct owner { /* n 0: nobody's, as there are no keys */
    uint8_t digest[AUTH_DIGEST];
    size_t n;
} owner;

/* What a response was, and after which one it came.  Made by its maker, immutable once it is in the store. */
typedef struct kept_response {
    char id[RESPONSE_ID];
    owner by;
    buf body;          /* the response's JSON */
    buf items, output; /* JSON arrays: what its request added to the input; what was answered */
    struct kept_response *past; /* a reference of its own, or NULL */
    /* The store's, guarded by its mu: */
    struct kept_response *newer, *older; /* of its share */
    struct kept_response *next;          /* of its bucket */
    struct kept_share *share;
    uint64_t used_ms;
    uint32_t refs;
    size_t counted; /* bytes; 0: not in the store yet */
} kept_response;

typedef struct kept_share { /* of one owner, while anything of it is held */
    struct kept_share *next;
    owner by;
    kept_response *newest, *oldest; /* by use */
    size_t bytes;                   /* as the store's */
} kept_share;

typedef struct responses_store {
    mutex mu; /* guards the rest */
    kept_share *shares;
    kept_response *bucket[RESPONSES_BUCKETS]; /* by id */
    size_t n;                                 /* that can be found */
    size_t bytes;                             /* of all that are held, also by later ones alone */
    size_t max_bytes;
} responses_store;

void responses_store_init(responses_store *s);
void responses_store_deinit(responses_store *s); /* nobody may hold one */

/* Empty, with one reference; NULL: no memory. */
kept_response *kept_response_new(void);
/* Any thread, like the next.  Takes `k` and its reference.  What is too long for the store, or finds no memory, is let
   go. */
void responses_store_put(responses_store *s, kept_response *k, uint64_t now_ms);
/* A reference, for responses_store_let_go; NULL: there is none such. */
kept_response *responses_store_get(responses_store *s, cairn_str id, const owner *by,
                                   uint64_t now_ms);
/* NULL is fine; of one that was never put it is the end, and of the reference to its past. */
void responses_store_let_go(responses_store *s, kept_response *k);
/* It is found no more; later ones that came after it go on from it all the same. */
bool responses_store_delete(responses_store *s, cairn_str id, const owner *by, uint64_t now_ms);

#endif
