/* What is in a cache file, and where: the header written and checked, the places of its tensors.  Owns
   no file: bytes in, bytes out.  docs/cache-files.md is this format in words.

   Every size and place follows from the store's own configuration and from counts that are checked
   against their limits; nothing that a file says is used as an offset.  The first 32 bytes are the
   same in every version, so that any version can tell whole files of another from damaged ones. */
#include <endian.h>
#include <string.h>

#include "base/num.h"
#include "base/reader.h"
#include "cache/store_priv.h"

static const uint8_t magic[8] = {'c', 'a', 'i', 'r', 'n', 'k', 'v', '\n'};
enum { ORDER_MARK = 0x0a0b0c0d, MAX_FIRST_BLOCK = INT32_MAX / KV_BLOCK - STORE_MAX_BLOCKS };

static int32_t count_tensors(const store_conf *c, const store_meta *m)
{
    int32_t n = m->n_state + (m->companion_bytes != 0);
    for (int32_t g = 0; g < c->n_group; g++) n += __builtin_popcount(m->here[g]);
    return n;
}

static size_t head_bytes(const store_conf *c, const store_meta *m)
{
    return STORE_HEAD_FIXED + (size_t)c->n_group * 12 + (size_t)m->n_block * 16 +
           (size_t)m->n_tok * 4 + (size_t)m->n_state * 4 + (size_t)count_tensors(c, m) * 8;
}

store_walk store_walk_of(const store_conf *c, const store_meta *m)
{
    return (store_walk){
        .c = c, .m = m, .i_tensor = -1, .at = round_up(head_bytes(c, m), STORE_PAGE)};
}

/* Block by block, so that a part of a run lies in one piece; then states, then the companion. */
bool store_walk_next(store_walk *w)
{
    const int32_t n_cell = w->m->n_block * w->c->n_group;
    w->at += round_up(w->bytes, STORE_PAGE);
    w->bytes = 0;
    w->block = w->group = w->state = -1;
    for (; w->next < n_cell; w->next++) {
        const int32_t g = w->next % w->c->n_group, i = w->next / w->c->n_group;
        if (!(w->m->here[g] >> i & 1)) continue;
        w->block = i;
        w->group = g;
        w->bytes = w->c->block_bytes[g];
        break;
    }
    if (w->block < 0 && w->next < n_cell + w->m->n_state) {
        w->state = w->next - n_cell;
        w->bytes = w->c->state_bytes;
    } else if (w->block < 0) {
        if (w->next > n_cell + w->m->n_state || !w->m->companion_bytes) return false;
        w->bytes = (size_t)w->m->companion_bytes;
    }
    w->next++;
    w->i_tensor++;
    return true;
}

uint64_t store_file_bytes(const store_conf *c, const store_meta *m)
{
    store_walk w = store_walk_of(c, m);
    while (store_walk_next(&w)) {
    }
    return w.at;
}

static void put_bytes(uint8_t **p, const void *from, size_t n)
{
    memcpy(*p, from, n);
    *p += n;
}

static void put_u32(uint8_t **p, uint32_t v)
{
    put_bytes(p, &(uint32_t){htole32(v)}, 4);
}

static void put_u64(uint8_t **p, uint64_t v)
{
    put_bytes(p, &(uint64_t){htole64(v)}, 8);
}

static void put_key(uint8_t **p, store_key k)
{
    put_u64(p, k.lo);
    put_u64(p, k.hi);
}

size_t store_head_put(const store_conf *c, const store_meta *m, const uint64_t *sum,
                      uint8_t out[STORE_HEAD_MAX])
{
    const size_t n = head_bytes(c, m);
    const int32_t n_tensor = count_tensors(c, m);
    uint8_t *p = out;
    put_bytes(&p, magic, sizeof magic);
    put_bytes(&p, &(uint32_t){ORDER_MARK}, 4); /* in the order of this machine, as tensors are */
    put_u32(&p, STORE_VERSION);
    put_u32(&p, (uint32_t)n);
    put_u32(&p, 0);
    put_u64(&p, 0); /* the header's hash */
    put_bytes(&p, c->fingerprint, sizeof c->fingerprint);
    put_key(&p, c->scheme);
    put_u32(&p, c->numerics);
    put_u32(&p, (uint32_t)c->n_group);
    put_u64(&p, c->state_bytes);
    put_key(&p, m->root);
    put_key(&p, m->parent);
    put_u32(&p, (uint32_t)m->first_block);
    put_u32(&p, (uint32_t)m->n_block);
    put_u32(&p, (uint32_t)m->n_tok);
    put_u32(&p, (uint32_t)m->n_state);
    put_u32(&p, m->companion);
    put_u32(&p, 0);
    put_u64(&p, m->companion_bytes);
    for (int32_t g = 0; g < c->n_group; g++) put_u64(&p, c->block_bytes[g]);
    for (int32_t i = 0; i < m->n_block; i++) put_key(&p, m->key[i]);
    for (int32_t i = 0; i < m->n_tok; i++) put_u32(&p, (uint32_t)m->token[i]);
    for (int32_t g = 0; g < c->n_group; g++) put_u32(&p, m->here[g]);
    for (int32_t i = 0; i < m->n_state; i++) put_u32(&p, (uint32_t)m->state_pos[i]);
    for (int32_t i = 0; i < n_tensor; i++) put_u64(&p, sum[i]);
    p = out + STORE_SUM_AT;
    put_u64(&p, hash64(out, n, 0));
    return n;
}

static store_key get_key(reader *r)
{
    const uint64_t lo = reader_u64(r);
    return (store_key){lo, reader_u64(r)};
}

bool store_head_is_whole(const uint8_t *p, size_t n, uint64_t want)
{
    uint8_t copy[STORE_HEAD_MAX];
    memcpy(copy, p, n);
    memset(copy + STORE_SUM_AT, 0, 8);
    return hash64(copy, n, 0) == want;
}

/* Up to the model's own fields, which are compared with ours and never used. */
static bool is_ours(const store_conf *c, reader *r)
{
    const uint8_t *fingerprint = reader_bytes(r, sizeof c->fingerprint);
    bool same = fingerprint && memcmp(fingerprint, c->fingerprint, sizeof c->fingerprint) == 0;
    same &= hash128_same(get_key(r), c->scheme);
    same &= reader_u32(r) == c->numerics;
    same &= reader_u32(r) == (uint32_t)c->n_group;
    same &= reader_u64(r) == c->state_bytes;
    return same && !r->bad;
}

/* A count within [low, high]; otherwise r is bad. */
static int32_t get_count(reader *r, int32_t low, int32_t high)
{
    const uint32_t v = reader_u32(r);
    if (v < (uint32_t)low || v > (uint32_t)high) r->bad = true;
    return r->bad ? low : (int32_t)v;
}

static void get_counts(const store_conf *c, reader *r, store_meta *m)
{
    m->root = get_key(r);
    m->parent = get_key(r);
    m->first_block = get_count(r, 0, MAX_FIRST_BLOCK);
    m->n_block = get_count(r, 1, STORE_MAX_BLOCKS);
    m->n_tok = get_count(r, (m->n_block - 1) * KV_BLOCK + 1, m->n_block * KV_BLOCK);
    m->n_state = get_count(r, 0, c->state_bytes ? STORE_MAX_STATES : 0);
    m->companion = reader_u32(r);
    if (reader_u32(r) != 0) r->bad = true;
    m->companion_bytes = reader_u64(r);
    if (m->companion_bytes > STORE_MAX_COMPANION ||
        (m->companion == 0) != (m->companion_bytes == 0))
        r->bad = true;
    if (m->first_block == 0 && !hash128_same(m->root, m->parent)) r->bad = true;
}

static void get_lists(const store_conf *c, reader *r, store_meta *m)
{
    int32_t low = m->first_block * KV_BLOCK;
    const int32_t end = low + m->n_tok;
    for (int32_t i = 0; i < m->n_tok; i++) m->token[i] = (int32_t)reader_u32(r);
    for (int32_t g = 0; g < c->n_group; g++)
        m->here[g] = (uint16_t)get_count(r, 0, (1 << m->n_block) - 1);
    for (int32_t i = 0; i < m->n_state; i++) low = m->state_pos[i] = get_count(r, low + 1, end);
}

static store_verdict say(store_verdict v, const char *text, const char **why)
{
    *why = text;
    return v;
}

static store_verdict parse_body(const store_conf *c, reader *r, size_t n, store_meta *m,
                                uint64_t *sum, const char **why)
{
    if (!is_ours(c, r)) return say(STORE_FOREIGN, "another model or cache scheme", why);
    *m = (store_meta){.n_block = 1};
    get_counts(c, r, m);
    for (int32_t g = 0; g < c->n_group; g++)
        if (reader_u64(r) != c->block_bytes[g])
            return say(STORE_FOREIGN, "blocks of another size", why);
    for (int32_t i = 0; i < m->n_block; i++) m->key[i] = get_key(r);
    if (r->bad) return say(STORE_BAD, "counts out of range", why);
    get_lists(c, r, m);
    if (r->bad || head_bytes(c, m) != n) return say(STORE_BAD, "lists out of range", why);
    for (int32_t i = 0; i < count_tensors(c, m); i++) sum[i] = reader_u64(r);
    if (!store_keys_hold(m)) return say(STORE_BAD, "keys of other tokens", why);
    return STORE_GOOD;
}

store_verdict store_head_parse(const store_conf *c, const uint8_t *p, size_t n, uint64_t file_bytes,
                               store_meta *m, uint64_t *sum, const char **why)
{
    reader r = reader_of(p, n);
    const uint8_t *begin = reader_bytes(&r, sizeof magic);
    if (!begin || memcmp(begin, magic, sizeof magic) != 0) return say(STORE_BAD, "no magic", why);
    const uint8_t *order = reader_bytes(&r, 4);
    const bool native = order && memcmp(order, &(uint32_t){ORDER_MARK}, 4) == 0;
    const uint32_t version = reader_u32(&r), len = reader_u32(&r), zero = reader_u32(&r);
    const uint64_t sum_said = reader_u64(&r);
    if (r.bad || len < r.at || len > STORE_HEAD_MAX || len > n)
        return say(STORE_BAD, "cut off", why);
    if (!store_head_is_whole(p, len, sum_said))
        return say(STORE_BAD, "the header's hash differs", why);
    if (!native) return say(STORE_FOREIGN, "another byte order", why);
    if (version != STORE_VERSION) return say(STORE_FOREIGN, "another format version", why);
    if (zero != 0) return say(STORE_BAD, "reserved bytes", why);
    r.len = len;
    const store_verdict v = parse_body(c, &r, len, m, sum, why);
    if (v == STORE_GOOD && store_file_bytes(c, m) != file_bytes)
        return say(STORE_BAD, "another size than its header's", why);
    return v;
}
