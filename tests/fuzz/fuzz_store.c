/* libFuzzer target: the reader of cache files.  The input is a file; its header's hash is made right, or else
   no input but a seed would pass it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/store_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { GROUPS = 2, BLOCK_0 = 100, BLOCK_1 = 5000, STATE = 300 };
static const store_conf conf = {.n_group = GROUPS,
                                .numerics = 2,
                                .block_bytes = {BLOCK_0, BLOCK_1},
                                .state_bytes = STATE,
                                .companion = 1};

static void mend_hash(uint8_t *p, size_t n)
{
    uint32_t len;
    if (n < 32) return;
    memcpy(&len, p + 16, 4);
    if (len < 32 || len > n) return;
    memset(p + 24, 0, 8);
    memcpy(p + 24, &(uint64_t){hash64(p, len, 0)}, 8);
}

static void must(bool holds)
{
    if (!holds) __builtin_trap();
}

/* What the walk says lies in the file, in rising order and without overlap. */
static void check_places(const store_meta *m, uint64_t bytes)
{
    uint64_t end = 0;
    store_walk w = store_walk_of(&conf, m);
    while (store_walk_next(&w)) {
        must(w.at >= end && w.at % STORE_PAGE == 0 && w.at + w.bytes <= bytes && w.bytes > 0);
        must(w.i_tensor < STORE_MAX_TENSORS);
        end = w.at + w.bytes;
    }
}

static void read_all(int fd, store_scratch *x)
{
    static uint8_t block[STORE_MAX_BLOCKS][BLOCK_0 + BLOCK_1], state[STATE], companion[64];
    uint8_t *cell[STORE_MAX_BLOCKS * GROUPS] = {NULL};
    const store_meta *m = &x->meta;
    for (int32_t i = 0; i < m->n_block * GROUPS; i++)
        if (m->here[i % GROUPS] >> (i / GROUPS) & 1)
            cell[i] = block[i / GROUPS] + (i % GROUPS ? BLOCK_0 : 0);
    store_dest d = {.token = m->token, .n_tok = m->n_tok, .block = cell};
    if (m->n_state) {
        d.state = state;
        d.state_pos = m->state_pos[m->n_state - 1];
    }
    if (m->companion == conf.companion && m->companion_bytes <= sizeof companion) {
        d.companion = companion;
        d.companion_bytes = (size_t)m->companion_bytes;
    }
    const cairn_status st = store_load(&conf, fd, x, &d, NULL);
    must(st == CAIRN_OK || st == CAIRN_E_CORRUPT);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static store_scratch x;
    const char *why = NULL;
    uint8_t *copy = malloc(n + 1);
    if (!copy) return 0;
    memcpy(copy, p, n);
    for (int mended = 0; mended < 2; mended++) {
        if (mended) mend_hash(copy, n);
        const store_verdict v = store_head_parse(&conf, copy, n, n, &x.meta, x.sum, &why);
        must(v == STORE_GOOD || why);
        if (v != STORE_GOOD) continue;
        const int fd = memfd_create("fuzz", MFD_CLOEXEC);
        must(fd >= 0 && write(fd, copy, n) == (ssize_t)n);
        check_places(&x.meta, n);
        must(store_load_head(&conf, fd, store_name_of(&x.meta), &x, &why) == STORE_GOOD);
        read_all(fd, &x);
        (void)close(fd);
    }
    free(copy);
    return 0;
}
