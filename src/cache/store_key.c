/* Keys of blocks and names of files.  Owns no state.  A name is the key of an entry's last block and
   its number of blocks, so equal content has one name in every process. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "cache/store_priv.h"

#define SUFFIX   ".cairnkv"
#define TMP_MARK SUFFIX ".tmp-"

static hash128 hash_str(cairn_str s)
{
    return hash128_of(s.ptr, s.len);
}

store_key store_root(const store_origin *o)
{
    struct { /* without padding: all of it is hashed */
        uint8_t fingerprint[16];
        hash128 scheme, space, media, adapter;
        uint32_t numerics, version;
    } x = {.scheme = hash_str((cairn_str){o->scheme, strlen(o->scheme)}),
           .space = hash_str(o->space),
           .media = o->media,
           .adapter = o->adapter,
           .numerics = o->numerics,
           .version = STORE_VERSION};
    _Static_assert(sizeof x == 88, "no padding");
    memcpy(x.fingerprint, o->fingerprint, sizeof x.fingerprint);
    return hash128_of(&x, sizeof x);
}

store_key store_block_key(store_key parent, const int32_t *token, int32_t n_tok)
{
    struct {
        store_key parent;
        int32_t token[KV_BLOCK];
    } x;
    assert(n_tok > 0 && n_tok <= KV_BLOCK);
    x.parent = parent;
    memcpy(x.token, token, (size_t)n_tok * sizeof *token);
    return hash128_of(&x, sizeof x.parent + (size_t)n_tok * sizeof *token);
}

static store_key key_after(const store_meta *m, store_key parent, int32_t i)
{
    const int32_t at = i * KV_BLOCK, left = m->n_tok - at;
    return store_block_key(parent, m->token + at, left < KV_BLOCK ? left : KV_BLOCK);
}

void store_keys_fill(store_meta *m)
{
    for (int32_t i = 0; i < m->n_block; i++)
        m->key[i] = key_after(m, i ? m->key[i - 1] : m->parent, i);
}

bool store_keys_hold(const store_meta *m)
{
    bool hold = true;
    for (int32_t i = 0; i < m->n_block; i++)
        hold &= hash128_same(m->key[i], key_after(m, i ? m->key[i - 1] : m->parent, i));
    return hold;
}

void store_name_text(store_name n, char out[STORE_NAME_BYTES])
{
    (void)snprintf(out, STORE_NAME_BYTES, "%016llx%016llx-%d" SUFFIX, (unsigned long long)n.end.hi,
                   (unsigned long long)n.end.lo, n.n_block);
}

cairn_status store_folder_name(const char *dir, const uint8_t fingerprint[16], const char *below,
                               char **out, cairn_diag *dg)
{
    buf b;
    cairn_bytes path;
    buf_init(&b, MEM_CACHE);
    buf_printf(&b, "%s/", dir);
    for (int i = 0; i < 16; i++) buf_printf(&b, "%02x", fingerprint[i]);
    buf_puts(&b, below);
    const cairn_status st = buf_take(&b, &path);
    buf_deinit(&b); /* which a failure leaves as it is */
    if (st != CAIRN_OK) return diag_set(dg, st, "%s: no memory for a path", dir);
    *out = path.ptr;
    return CAIRN_OK;
}

bool store_hex64(const char *p, uint64_t *out)
{
    uint64_t v = 0;
    for (int i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef", *d = p[i] ? strchr(digits, p[i]) : NULL;
        if (!d) return false;
        v = v << 4 | (uint64_t)(d - digits);
    }
    *out = v;
    return true;
}

/* Only what store_name_text writes; anything else in the folder is somebody's. */
bool store_name_parse(const char *text, store_name *out)
{
    store_name n = {.n_block = 0};
    char again[STORE_NAME_BYTES];
    if (strlen(text) >= STORE_NAME_BYTES || !store_hex64(text, &n.end.hi) ||
        !store_hex64(text + 16, &n.end.lo))
        return false;
    const char *p = text + 32;
    if (*p++ != '-') return false;
    while (*p >= '0' && *p <= '9' && n.n_block <= STORE_MAX_BLOCKS)
        n.n_block = n.n_block * 10 + (*p++ - '0');
    if (n.n_block < 1 || n.n_block > STORE_MAX_BLOCKS) return false;
    store_name_text(n, again);
    if (strcmp(text, again) != 0) return false;
    *out = n;
    return true;
}

bool store_name_is_tmp(const char *text)
{
    char name[STORE_NAME_BYTES];
    store_name n;
    const char *mark = strstr(text, TMP_MARK);
    if (!mark || (size_t)(mark - text) + sizeof SUFFIX > sizeof name) return false;
    (void)snprintf(name, sizeof name, "%.*s" SUFFIX, (int)(mark - text), text);
    return store_name_parse(name, &n);
}
