/* See store_rig.h. */
#include "store_rig.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"

const size_t rig_block_bytes[RIG_GROUPS] = {5000, 4096, 300};

store_opts rig_opts(const char *dir)
{
    return (store_opts){.dir = dir,
                        .fingerprint = "a model's print",
                        .numerics = 2,
                        .scheme = "f16",
                        .n_group = RIG_GROUPS,
                        .block_bytes = rig_block_bytes,
                        .state_bytes = RIG_STATE,
                        .retry_ms = 1};
}

store_key rig_root(void)
{
    const store_origin o = {.fingerprint = "a model's print", .numerics = 2, .scheme = "f16"};
    return store_root(&o);
}

int32_t rig_token(uint64_t path, int32_t pos)
{
    const uint64_t of = pos / KV_BLOCK < (int32_t)(path % 8) * 2 ? 0 : path;
    return (int32_t)(rng_u64(of, 1, (uint64_t)pos) % 50000);
}

store_key rig_key(uint64_t path, int32_t n_tok)
{
    store_key k = rig_root();
    for (int32_t at = 0; at < n_tok; at += KV_BLOCK) {
        int32_t token[KV_BLOCK];
        const int32_t n = n_tok - at < KV_BLOCK ? n_tok - at : KV_BLOCK;
        for (int32_t i = 0; i < n; i++) token[i] = rig_token(path, at + i);
        k = store_block_key(k, token, n);
    }
    return k;
}

static uint64_t word(uint64_t seed, size_t i)
{
    uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 27;
}

void rig_fill(void *to, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t w = word(seed, i);
        memcpy((char *)to + i, &w, n - i < 8 ? n - i : 8);
    }
}

bool rig_is_filled(const void *p, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t w = word(seed, i);
        if (memcmp((const char *)p + i, &w, n - i < 8 ? n - i : 8) != 0) return false;
    }
    return true;
}

uint64_t rig_block_seed(store_key key, int32_t group)
{
    return key.lo ^ key.hi ^ (uint64_t)group;
}

uint64_t rig_state_seed(uint64_t path, int32_t pos)
{
    return rig_key(path, pos).lo;
}

rig_run *rig_make(uint64_t path, int32_t first_block, int32_t n_tok,
                  const uint16_t here[RIG_GROUPS], const int32_t *state_pos, int32_t n_state)
{
    rig_run *r = test_calloc(1, sizeof *r);
    const int32_t from = first_block * KV_BLOCK, n_block = (n_tok + KV_BLOCK - 1) / KV_BLOCK;
    store_key k = rig_key(path, from);
    r->path = path;
    r->run = (store_run){.root = rig_root(),
                         .parent = k,
                         .first_block = first_block,
                         .n_block = n_block,
                         .token = r->token,
                         .n_tok = n_tok,
                         .block = (const uint8_t *const *)r->cell,
                         .state = r->state,
                         .n_state = n_state};
    for (int32_t i = 0; i < n_tok; i++) r->token[i] = rig_token(path, from + i);
    for (int32_t i = 0; i < n_block; i++) {
        const int32_t at = i * KV_BLOCK, left = n_tok - at;
        k = r->key[i] = store_block_key(k, r->token + at, left < KV_BLOCK ? left : KV_BLOCK);
        for (int32_t g = 0; g < RIG_GROUPS; g++) {
            if (!(here[g] >> i & 1)) continue;
            uint8_t *p = r->cell[i * RIG_GROUPS + g] = test_malloc(rig_block_bytes[g]);
            rig_fill(p, rig_block_bytes[g], rig_block_seed(k, g));
        }
    }
    for (int32_t i = 0; i < n_state; i++) {
        void *p = test_malloc(RIG_STATE);
        rig_fill(p, RIG_STATE, rig_state_seed(path, state_pos[i]));
        r->state[i] = (store_state){state_pos[i], p};
    }
    return r;
}

rig_run *rig_whole(uint64_t path, int32_t first_block, int32_t n_tok)
{
    const uint16_t here[RIG_GROUPS] = {0xffff, 0xffff, 0xffff};
    return rig_make(path, first_block, n_tok, here, &(int32_t){first_block * KV_BLOCK + n_tok}, 1);
}

void rig_free(rig_run *r)
{
    for (int32_t i = 0; i < RIG_MAX_CELLS; i++)
        if (r->cell[i]) test_free(r->cell[i]);
    for (int32_t i = 0; i < r->run.n_state; i++) test_free((void *)(uintptr_t)r->state[i].bytes);
    test_free(r);
}

typedef struct wants { /* all that is asked for, with canaries where nothing is */
    uint8_t *cell[RIG_MAX_CELLS];
    uint8_t *storage;
} wants;

static wants make_wants(int32_t n_block, const uint16_t *here)
{
    wants w = {.storage = test_malloc(RIG_MAX_CELLS * rig_block_bytes[0])};
    for (int32_t i = 0; i < n_block * RIG_GROUPS; i++)
        if (here[i % RIG_GROUPS] >> (i / RIG_GROUPS) & 1)
            w.cell[i] = w.storage + (size_t)i * rig_block_bytes[0];
    return w;
}

/* One block after another of the path must be what its key says. */
static void check_blocks(const wants *w, uint64_t path, int32_t first_block, int32_t n_tok)
{
    for (int32_t i = 0; i < RIG_MAX_CELLS; i++) {
        if (!w->cell[i]) continue;
        const int32_t end = (i / RIG_GROUPS + 1) * KV_BLOCK;
        const store_key k = rig_key(path, first_block * KV_BLOCK + (end < n_tok ? end : n_tok));
        assert_true(rig_is_filled(w->cell[i], rig_block_bytes[i % RIG_GROUPS],
                                  rig_block_seed(k, i % RIG_GROUPS)));
    }
}

static cairn_status read_state(store *s, store_id id, const int32_t *token, int32_t n_tok,
                               uint64_t path, int32_t pos)
{
    uint8_t state[RIG_STATE];
    const store_dest d = {.token = token, .n_tok = n_tok, .state = state, .state_pos = pos};
    const cairn_status st = store_read(s, id, &d, NULL);
    if (st == CAIRN_OK) assert_true(rig_is_filled(state, RIG_STATE, rig_state_seed(path, pos)));
    return st;
}

cairn_status rig_read_all(store *s, store_id id, uint64_t path)
{
    store_info f;
    int32_t token[STORE_MAX_TOKENS];
    if (!store_get_info(s, id, &f)) return CAIRN_E_NOTFOUND;
    for (int32_t i = 0; i < f.n_tok; i++) token[i] = rig_token(path, f.first_block * KV_BLOCK + i);
    wants w = make_wants(f.n_block, f.here);
    const store_dest d = {.token = token, .n_tok = f.n_tok, .block = w.cell};
    cairn_status st = store_read(s, id, &d, NULL);
    if (st == CAIRN_OK) check_blocks(&w, path, f.first_block, f.n_tok);
    for (int32_t i = 0; st == CAIRN_OK && i < f.n_state; i++)
        st = read_state(s, id, token, f.n_tok, path, f.state_pos[i]);
    test_free(w.storage);
    return st;
}

bool rig_found(store *s, const rig_run *r, store_id *id)
{
    store_id all[64];
    store_info f;
    const int32_t n = store_find(s, r->run.root, r->key[r->run.n_block - 1], all, 64);
    for (int32_t i = 0; i < n; i++) {
        *id = all[i];
        if (store_get_info(s, all[i], &f) && f.n_block == r->run.n_block &&
            f.first_block == r->run.first_block)
            return true;
    }
    return false;
}

cairn_status rig_read_back(store *s, const rig_run *r)
{
    store_id id;
    uint16_t here[RIG_GROUPS] = {0};
    if (!rig_found(s, r, &id)) return CAIRN_E_NOTFOUND;
    for (int32_t i = 0; i < RIG_MAX_CELLS; i++)
        if (r->cell[i]) here[i % RIG_GROUPS] |= (uint16_t)(1u << (i / RIG_GROUPS));
    wants w = make_wants(r->run.n_block, here);
    const store_dest d = {.token = r->token, .n_tok = r->run.n_tok, .block = w.cell};
    cairn_status st = store_read(s, id, &d, NULL);
    if (st == CAIRN_OK) check_blocks(&w, r->path, r->run.first_block, r->run.n_tok);
    for (int32_t i = 0; st == CAIRN_OK && i < r->run.n_state; i++)
        st = read_state(s, id, r->token, r->run.n_tok, r->path, r->state[i].pos);
    test_free(w.storage);
    return st;
}

void rig_put_durable(store *s, rig_run *r)
{
    store_flushed f;
    store_done d;
    assert_ok(store_put(s, &r->run, r));
    store_flush(s, TEST_WAIT_MS, &f);
    assert_int_equal(f.pending + f.failed + f.dropped, 0);
    assert_true(store_poll(s, &d));
    assert_ptr_equal(d.user, r);
    assert_int_equal(d.result, STORE_DURABLE);
}

store *rig_open(const store_opts *o)
{
    store *s = NULL;
    assert_ok(store_open(o, &s, NULL));
    assert_true(store_scanned(s, TEST_WAIT_MS));
    return s;
}

void rig_reopen(rig *g, const store_opts *o)
{
    store_close(g->s);
    g->s = NULL;
    g->s = rig_open(o);
}

rig rig_begin(void)
{
    rig g = {.s = NULL};
    assert_true(tmp_make(&g.dir));
    const store_opts o = rig_opts(g.dir.path);
    rig_reopen(&g, &o);
    return g;
}

void rig_end(rig *g)
{
    store_close(g->s);
    assert_true(tmp_drop(&g->dir));
}

void rig_path(const tmp_dir *d, const rig_run *r, char path[RIG_PATH])
{
    char name[STORE_NAME_BYTES];
    const store_opts o = rig_opts(d->path);
    size_t n = (size_t)snprintf(path, RIG_PATH, "%s/", d->path);
    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(path + n, RIG_PATH - n, "%02x", o.fingerprint[i]);
    store_name_text((store_name){r->key[r->run.n_block - 1], r->run.n_block}, name);
    (void)snprintf(path + n, RIG_PATH - n, "/%s", name);
}

buf rig_file(const tmp_dir *d, const store_opts *o, rig_run *r, char path[RIG_PATH])
{
    buf b;
    store *s = rig_open(o);
    rig_put_durable(s, r);
    store_close(s);
    rig_path(d, r, path);
    buf_init(&b, MEM_MISC);
    assert_ok(file_read(path, 1 << 24, &b, NULL));
    return b;
}

void rig_save(const char *path, const buf *b)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, b->ptr, b->len) == (ssize_t)b->len && close(fd) == 0);
}
