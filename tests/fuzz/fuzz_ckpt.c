/* libFuzzer target: the reader of checkpoints.  The input is a file; its hashes are made right, or else no input
   but a seed would pass them. */
#include <stdlib.h>
#include <string.h>

#include "cache/ckpt_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const ckpt_conf conf = {.numerics = 2, .sampler = 1, .vocab = 1000};

static void must(bool holds)
{
    if (!holds) __builtin_trap();
}

static void mend_hashes(uint8_t *p, size_t n)
{
    if (n < CKPT_HEAD) return;
    memcpy(p + CKPT_HEAD - 8, &(uint64_t){hash64(p + CKPT_HEAD, n - CKPT_HEAD, 0)}, 8);
    memset(p + STORE_SUM_AT, 0, 8);
    memcpy(p + STORE_SUM_AT, &(uint64_t){hash64(p, CKPT_HEAD, 0)}, 8);
}

/* What was read is within its limits, and is written as it was. */
static void check(const uint8_t *p, size_t n, const ckpt_meta *m)
{
    buf again;
    int32_t *ids = malloc((size_t)m->n_new * sizeof *ids);
    must(ids && m->n_prompt > 0 && m->n_new > 0 && m->n_new <= CKPT_MAX_NEW);
    must(n == CKPT_HEAD + 4 * (size_t)m->n_new && m->sampler.n_bytes <= CKPT_SAMPLER_BYTES);
    if (ckpt_ids_parse(&conf, m, p + CKPT_HEAD, ids)) {
        for (int32_t i = 0; i < m->n_new; i++) must(ids[i] >= 0 && ids[i] < conf.vocab);
        buf_init(&again, MEM_MISC);
        ckpt_encode(&conf, m, ids, &again);
        must(again.len == n && memcmp(again.ptr, p, n) == 0);
        buf_deinit(&again);
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    const char *why = NULL;
    ckpt_meta m;
    uint8_t *copy = malloc(n + 1);
    if (!copy) return 0;
    memcpy(copy, p, n);
    for (int mended = 0; mended < 2; mended++) {
        if (mended) mend_hashes(copy, n);
        const store_verdict v = ckpt_head_parse(&conf, copy, n, n, &m, &why);
        must(v == STORE_GOOD || why);
        if (v == STORE_GOOD) check(copy, n, &m);
    }
    free(copy);
    return 0;
}
