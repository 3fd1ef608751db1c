/* A list by use: the oldest goes where bytes or its hour are over.  A response refers to the one that it came after,
   so a conversation is held once however many turns it has; its bytes count until the last of it goes.  Looking
   through the list costs less than a hash of its own would: a few thousand entries fit the limit. */
#include "serve/responses_store.h"

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

static void list(responses_store *s, kept_response *k)
{
    k->older = s->newest;
    k->newer = NULL;
    *(s->newest ? &s->newest->newer : &s->oldest) = k;
    s->newest = k;
    s->n++;
}

static void unlist(responses_store *s, kept_response *k)
{
    *(k->newer ? &k->newer->older : &s->newest) = k->older;
    *(k->older ? &k->older->newer : &s->oldest) = k->newer;
    s->n--;
}

/* One reference less, and what nobody refers to then: a whole conversation at times. */
static void drop(responses_store *s, kept_response *k)
{
    while (k && --k->refs == 0) {
        kept_response *past = k->past;
        s->bytes -= k->counted;
        buf_deinit(&k->body);
        buf_deinit(&k->items);
        buf_deinit(&k->output);
        mem_free(k);
        k = past;
    }
}

static void evict(responses_store *s, kept_response *k)
{
    unlist(s, k);
    drop(s, k);
}

/* Another thread may have read a later clock and got the lock before: its entry is not old. */
static void expire(responses_store *s, uint64_t now_ms)
{
    while (s->oldest && now_ms >= s->oldest->used_ms + RESPONSES_TTL_MS) evict(s, s->oldest);
}

void responses_store_put(responses_store *s, kept_response *k, uint64_t now_ms)
{
    buf_fit(&k->body);
    buf_fit(&k->items);
    buf_fit(&k->output);
    mutex_lock(&s->mu);
    expire(s, now_ms);
    k->counted = bytes_of(k);
    s->bytes += k->counted;
    k->used_ms = now_ms;
    list(s, k);
    while (s->oldest && s->bytes > s->max_bytes) evict(s, s->oldest);
    mutex_unlock(&s->mu);
}

static kept_response *find(responses_store *s, cairn_str id, const owner *by)
{
    for (kept_response *k = s->newest; k; k = k->older)
        if (str_is(id, k->id) && k->by.n == by->n && memcmp(k->by.digest, by->digest, by->n) == 0)
            return k;
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
        unlist(s, k);
        list(s, k);
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
    while (s->oldest) evict(s, s->oldest);
    mutex_deinit(&s->mu);
}
