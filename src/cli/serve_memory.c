/* How a server divides one budget: its own buffers first, then every model's weights, then equal shares for caches.
   Models open one after another, and each counts what was allocated before it; so what the guard of one is told is
   the sum of the shares up to it. */
#include "cli/serve_memory.h"

#include "base/diag.h"
#include "base/machine.h"

enum {
    HOST_PART = 8, /* of the budget: weights and caches need it more */
    SMALL_PART = 4 /* of a small one, up to HOST_LEAST: a prompt must still come in */
};
#define HOST_MOST  (UINT64_C(1280) << 20) /* bodies of 32 MiB, the most that is read anyway */
#define HOST_LEAST (UINT64_C(40) << 20)   /* bodies of 1 MiB */

static uint64_t whole(uint64_t budget)
{
    uint64_t free, total;
    if (budget) return budget;
    machine_memory(&free, &total);
    return free / 10 * 9;
}

uint64_t serve_host_bytes(uint64_t budget)
{
    const uint64_t all = whole(budget), part = all / HOST_PART;
    const uint64_t least = all / SMALL_PART < HOST_LEAST ? all / SMALL_PART : HOST_LEAST;
    return part > HOST_MOST ? HOST_MOST : part < least ? least : part;
}

static cairn_status count_weights(const char *word, uint64_t *out, cairn_diag *dg)
{
    cairn_model *m = NULL;
    cairn_model_opts o;
    cairn_model_info info;
    cairn_model_opts_init(&o);
    cairn_model_info_init(&info);
    o.no_weights = o.no_text = true;
    TRY(cli_open_model(word, &o, &m, dg));
    cairn_model_get_info(m, &info);
    cairn_model_close(m);
    *out = info.loaded_bytes;
    return CAIRN_OK;
}

cairn_status serve_share_memory(const cli_words *words, uint64_t budget, uint64_t *upto,
                                cairn_diag *dg)
{
    const uint64_t all = whole(budget), host = serve_host_bytes(budget);
    uint64_t weights = 0, sum = host;
    if (words->n == 1) {
        upto[0] = budget;
        return CAIRN_OK;
    }
    for (size_t i = 0; i < words->n; i++) {
        TRY(count_weights(words->word[i], &upto[i], dg));
        weights += upto[i];
    }
    if (weights + host >= all)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "the weights of %zu models take %llu bytes and the server %llu; expected "
                        "less than the budget of %llu",
                        words->n, (unsigned long long)weights, (unsigned long long)host,
                        (unsigned long long)all);
    for (size_t i = 0; i < words->n; i++) {
        sum += upto[i] + (all - weights - host) / words->n;
        upto[i] = sum;
    }
    return CAIRN_OK;
}
