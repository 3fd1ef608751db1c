/* What is in a checkpoint's file, and its name.  Owns no file: bytes in, bytes out; docs/cache-files.md is this
   format in words.  The first 32 bytes are laid out as in every cache file, so that any version can tell whole
   files of another from damaged ones; integers are little-endian on every machine. */
#include <endian.h>
#include <stdio.h>

#include "base/reader.h"
#include "cache/ckpt_priv.h"

static const uint8_t magic[8] = {'c', 'a', 'i', 'r', 'n', 'c', 'k', '\n'};
enum { SEED_GIVEN = 1 /* flag */ };
#define SUFFIX   ".cairnck"
#define TMP_MARK SUFFIX ".tmp-"

static void put_u32(buf *b, uint32_t v)
{
    buf_put(b, &(uint32_t){htole32(v)}, 4);
}

static void put_u64(buf *b, uint64_t v)
{
    buf_put(b, &(uint64_t){htole64(v)}, 8);
}

static void put_head(const ckpt_conf *c, const ckpt_meta *m, buf *out)
{
    buf_put(out, magic, sizeof magic);
    put_u32(out, 0);
    put_u32(out, CKPT_VERSION);
    put_u32(out, CKPT_HEAD);
    put_u32(out, 0);
    put_u64(out, 0); /* the header's hash */
    buf_put(out, c->fingerprint, sizeof c->fingerprint);
    put_u64(out, m->key.lo);
    put_u64(out, m->key.hi);
    put_u32(out, c->numerics);
    put_u32(out, (uint32_t)m->n_prompt);
    put_u32(out, (uint32_t)m->n_new);
    put_u32(out, m->seed_given ? SEED_GIVEN : 0);
    put_u64(out, m->seed);
    put_u32(out, m->sampler.version);
    put_u32(out, m->sampler.n_bytes);
    buf_put(out, m->sampler.bytes, sizeof m->sampler.bytes);
    put_u64(out, 0); /* that of the ids */
}

void ckpt_encode(const ckpt_conf *c, const ckpt_meta *m, const int32_t *ids, buf *out)
{
    buf_clear(out);
    put_head(c, m, out);
    for (int32_t i = 0; i < m->n_new; i++) put_u32(out, (uint32_t)ids[i]);
    if (buf_status(out) != CAIRN_OK) return;
    const uint64_t ids_sum = htole64(hash64(out->ptr + CKPT_HEAD, out->len - CKPT_HEAD, 0));
    memcpy(out->ptr + CKPT_HEAD - 8, &ids_sum, 8);
    const uint64_t sum = htole64(hash64(out->ptr, CKPT_HEAD, 0));
    memcpy(out->ptr + STORE_SUM_AT, &sum, 8);
}

static store_verdict say(store_verdict v, const char *text, const char **why)
{
    *why = text;
    return v;
}

static store_verdict parse_body(const ckpt_conf *c, reader *r, ckpt_meta *m, const char **why)
{
    const uint8_t *fingerprint = reader_bytes(r, sizeof c->fingerprint);
    *m = (ckpt_meta){.key.lo = reader_u64(r)};
    m->key.hi = reader_u64(r);
    if (!fingerprint || memcmp(fingerprint, c->fingerprint, sizeof c->fingerprint) != 0 ||
        reader_u32(r) != c->numerics)
        return say(STORE_FOREIGN, "another model or numerics", why);
    const uint32_t n_prompt = reader_u32(r), n_new = reader_u32(r), flags = reader_u32(r);
    m->seed = reader_u64(r);
    m->sampler.version = reader_u32(r);
    m->sampler.n_bytes = reader_u32(r);
    const uint8_t *state = reader_bytes(r, sizeof m->sampler.bytes);
    m->ids_sum = reader_u64(r);
    if (r->bad || n_prompt < 1 || n_prompt > INT32_MAX - CKPT_MAX_NEW || n_new < 1 ||
        n_new > CKPT_MAX_NEW || flags > SEED_GIVEN || m->sampler.n_bytes > CKPT_SAMPLER_BYTES)
        return say(STORE_BAD, "counts out of range", why);
    if (m->sampler.version != c->sampler) return say(STORE_FOREIGN, "another sampler", why);
    memcpy(m->sampler.bytes, state, sizeof m->sampler.bytes);
    m->n_prompt = (int32_t)n_prompt;
    m->n_new = (int32_t)n_new;
    m->seed_given = flags & SEED_GIVEN;
    return STORE_GOOD;
}

store_verdict ckpt_head_parse(const ckpt_conf *c, const uint8_t *p, size_t n, uint64_t file_bytes,
                              ckpt_meta *m, const char **why)
{
    reader r = reader_of(p, n);
    const uint8_t *begin = reader_bytes(&r, sizeof magic);
    if (!begin || memcmp(begin, magic, sizeof magic) != 0) return say(STORE_BAD, "no magic", why);
    const uint32_t zero = reader_u32(&r), version = reader_u32(&r), len = reader_u32(&r);
    const uint32_t zero_too = reader_u32(&r);
    const uint64_t sum = reader_u64(&r);
    if (r.bad || len < r.at || len > CKPT_HEAD_MAX || len > n)
        return say(STORE_BAD, "cut off", why);
    if (!store_head_is_whole(p, len, sum)) return say(STORE_BAD, "the header's hash differs", why);
    if (version != CKPT_VERSION) return say(STORE_FOREIGN, "another format version", why);
    if (zero || zero_too || len != CKPT_HEAD) return say(STORE_BAD, "reserved bytes", why);
    r.len = len;
    const store_verdict v = parse_body(c, &r, m, why);
    if (v == STORE_GOOD && file_bytes != CKPT_HEAD + 4 * (uint64_t)m->n_new)
        return say(STORE_BAD, "another size than its header's", why);
    return v;
}

bool ckpt_ids_parse(const ckpt_conf *c, const ckpt_meta *m, const uint8_t *p, int32_t *ids)
{
    const size_t n = (size_t)m->n_new;
    reader r = reader_of(p, 4 * n);
    if (hash64(p, 4 * n, 0) != m->ids_sum) return false;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = reader_u32(&r);
        if (id >= (uint32_t)c->vocab) return false;
        ids[i] = (int32_t)id;
    }
    return true;
}

void ckpt_name_text(hash128 key, char out[CKPT_NAME_BYTES])
{
    (void)snprintf(out, CKPT_NAME_BYTES, "%016llx%016llx" SUFFIX, (unsigned long long)key.hi,
                   (unsigned long long)key.lo);
}

/* Only what ckpt_name_text writes; anything else in the folder is somebody's. */
bool ckpt_name_parse(const char *text, hash128 *key)
{
    hash128 k;
    if (!store_hex64(text, &k.hi) || !store_hex64(text + 16, &k.lo)) return false;
    if (strcmp(text + 32, SUFFIX) != 0) return false;
    *key = k;
    return true;
}

bool ckpt_name_is_tmp(const char *text)
{
    char name[CKPT_NAME_BYTES];
    hash128 key;
    const char *mark = strstr(text, TMP_MARK);
    if (!mark || (size_t)(mark - text) + sizeof SUFFIX > sizeof name) return false;
    (void)snprintf(name, sizeof name, "%.*s" SUFFIX, (int)(mark - text), text);
    return ckpt_name_parse(name, &key);
}
