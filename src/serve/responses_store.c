/* A table by id, and a list by use for each owner: the oldest of them goes when its hour is over, and where bytes are
   short the oldest of the owner who holds most, so that nobody's conversations go for another's.  A response refers to
   the one that it came after, so a conversation is held once however many turns it has; its bytes count until the last
   of it goes. */
#include "serve/responses_store.h"

#include "base/hash.h"
#include "base/str.h"

void responses_store_init(responses_store *s)
{
    *s = (responses_store){.max_bytes = RESPONSES_MAX_BYTES};
    mutex_init(&s->mu);
}

kept_response *kept_response_new(void)
{
    kept_response *k = mem_calloc(1, sizeof *k, MEM_SERVE);

    if (!k) return NULL;
    k->refs = 1;
    buf_init(&k->body, MEM_SERVE);
    buf_init(&k->items, MEM_SERVE);
    buf_init(&k->output, MEM_SERVE);
    return k;
}

static size_t bytes_of(const kept_response *k)
{
    return sizeof *k + k->body.cap + k->items.cap + k->output.cap;
}

static kept_response **bucket_of(responses_store *s, cairn_str id)
{
    return &s->bucket[hash64(id.ptr, id.len, 0) % RESPONSES_BUCKETS];
}

static bool same_owner(const owner *a, const owner *b)
{
    return a->n == b->n && memcmp(a->digest, b->digest, a->n) == 0;
}

/* NULL: no memory. */
static kept_share *share_of(responses_store *s, const owner *by)
{
    kept_share *h = s->shares;

    while (h && !same_owner(&h->by, by)) h = h->next;
    if (h) return h;
    h = mem_calloc(1, sizeof *h, MEM_SERVE);
    if (!h) return NULL;
    h->by = *by;
    h->next = s->shares;
    s->shares = h;
    return h;
}

static void drop_share(responses_store *s, kept_share *h)
{
    kept_share **p = &s->shares;

    while (*p && *p != h) p = &(*p)->next;
    if (*p) *p = h->next;
    mem_free(h);
}

/* The newest of its owner. */
static void list(kept_response *k)
{
    kept_share *h = k->share;

    k->older = h->newest;
    k->newer = NULL;
    *(h->newest ? &h->newest->newer : &h->oldest) = k;
    h->newest = k;
}

static void unlist(kept_response *k)
{
    *(k->newer ? &k->newer->older : &k->share->newest) = k->older;
    *(k->older ? &k->older->newer : &k->share->oldest) = k->newer;
}

/* One reference less, and what nobody refers to then: a whole conversation at times. */
static void drop(responses_store *s, kept_response *k)
{
    while (k && --k->refs == 0) {
        kept_response *past = k->past;
        s->bytes -= k->counted;
        if (k->share && (k->share->bytes -= k->counted) == 0) drop_share(s, k->share);
        buf_deinit(&k->body);
        buf_deinit(&k->items);
        buf_deinit(&k->output);
        mem_free(k);
        k = past;
    }
}

static void evict(responses_store *s, kept_response *k)
{
    kept_response **p = bucket_of(s, str_of(k->id));

    while (*p != k) p = &(*p)->next;
    *p = k->next;
    unlist(k);
    s->n--;
    drop(s, k);
}

/* Another thread may have read a later clock and got the lock before: its entry is not old. */
static void expire(responses_store *s, uint64_t now_ms)
{
    kept_share *next;

    for (kept_share *h = s->shares; h; h = next) {
        bool last = false;
        next = h->next;
        while (!last && h->oldest && now_ms >= h->oldest->used_ms + RESPONSES_TTL_MS) {
            last = h->oldest == h->newest; /* the share may go with it */
            evict(s, h->oldest);
        }
    }
}

/* Whose oldest goes; NULL: nothing can be found. */
static kept_share *largest(const responses_store *s)
{
    kept_share *most = NULL;

    for (kept_share *h = s->shares; h; h = h->next)
        if (h->oldest && (!most || h->bytes > most->bytes)) most = h;
    return most;
}

void responses_store_put(responses_store *s, kept_response *k, uint64_t now_ms)
{
    kept_response **p = bucket_of(s, str_of(k->id));
    const kept_share *most;

    buf_fit(&k->body);
    buf_fit(&k->items);
    buf_fit(&k->output);
    mutex_lock(&s->mu);
    expire(s, now_ms);
    k->share = share_of(s, &k->by);
    if (k->share) {
        k->counted = bytes_of(k);
        k->share->bytes += k->counted;
        s->bytes += k->counted;
        k->used_ms = now_ms;
        list(k);
        k->next = *p;
        *p = k;
        s->n++;
        while (s->bytes > s->max_bytes && (most = largest(s))) evict(s, most->oldest);
    } else {
        drop(s, k);
    }
    mutex_unlock(&s->mu);
}

static kept_response *find(responses_store *s, cairn_str id, const owner *by)
{
    for (kept_response *k = *bucket_of(s, id); k; k = k->next)
        if (str_is(id, k->id) && same_owner(&k->by, by)) return k;
    return NULL;
}

kept_response *responses_store_get(responses_store *s, cairn_str id, const owner *by,
                                   uint64_t now_ms)
{
    kept_response *k;

    mutex_lock(&s->mu);
    expire(s, now_ms);
    k = find(s, id, by);
    if (k) {
        unlist(k);
        list(k);
        k->used_ms = now_ms;
        k->refs++;
    }
    mutex_unlock(&s->mu);
    return k;
}

void responses_store_let_go(responses_store *s, kept_response *k)
{
    if (!k) return;
    mutex_lock(&s->mu);
    drop(s, k);
    mutex_unlock(&s->mu);
}

bool responses_store_delete(responses_store *s, cairn_str id, const owner *by, uint64_t now_ms)
{
    kept_response *k;

    mutex_lock(&s->mu);
    expire(s, now_ms);
    k = find(s, id, by);
    if (k) evict(s, k);
    mutex_unlock(&s->mu);
    return k != NULL;
}

void responses_store_deinit(responses_store *s)
{
    const kept_share *h;

    while ((h = largest(s))) evict(s, h->oldest);
    mutex_deinit(&s->mu);
}
