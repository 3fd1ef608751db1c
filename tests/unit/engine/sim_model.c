/* The model of sim_model.h. */
#include "sim_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/step.h"
#include "model/family.h"

static const cache_layer_spec layers[] = {{1, 4, 4, .n_state = 4},
                                          {1, 4, 4, .window = SIM_WINDOW},
                                          {1, 4, 4, .window = SIM_WINDOW},
                                          {1, 4, 4, .window = 0}};

static const cache_layer_spec full[] = {{1, 4, 4, .window = 0}, {1, 4, 4, .window = 0}};
static const cache_layer_spec windowed[] = {{1, 4, 4, .window = SIM_WINDOW},
                                            {1, 4, 4, .window = 0}};
static const cache_layer_spec recurrent[] = {{1, 4, 4, .window = 0, .n_state = 4}};

void sim_model_layers(sim_model *s, sim_layers kind)
{
    static const cachespec spec[] = {[SIM_ALL_KINDS] = {4, layers},
                                     [SIM_FULL] = {2, full},
                                     [SIM_WINDOWED] = {2, windowed},
                                     [SIM_RECURRENT] = {1, recurrent}};
    s->m.cache = spec[kind];
    s->m.shape.n_layer = spec[kind].n_layer;
}

/* A benchmark uses this file too, without cmocka. */
static void must(cairn_status st)
{
    if (st != CAIRN_OK) abort();
}

static val forward(fwd *f, const model *m)
{
    const sim_model *s = m->impl;
    val x = embed(f, &s->table, 1);
    tap(f, x, 0);
    for (int32_t i = 0; i < m->cache.n_layer; i++) {
        f->layer = i;
        const val q = rope(f, x, SIM_HIDDEN, &s->rope);
        const attention a = {
            .h = {1, 1, SIM_HIDDEN}, .scale = 1, .window = m->cache.layer[i].window};
        const val y = attend(f, q, x, x, &a);
        x = add(f, x, y);
        tap(f, x, i + 1);
    }
    f->layer = -1;
    return linear(f, x, &s->head);
}

static const family fake = {.name = "sim", .forward = forward};

void sim_model_open(sim_model *s, uint64_t seed, sim_flaw flaw)
{
    static const float freq[2] = {1, 0.5f};
    static source src = {.path = "sim"};
    const dev_opts o = {0};
    *s = (sim_model){
        .m = {.be = &backend_sim,
              .src = &src,
              .family = &fake,
              .impl = s,
              .shape = {4, SIM_HIDDEN, 1, 1, SIM_HIDDEN, SIM_VOCAB, SIM_CTX},
              .cache = {4, layers}},
        .table = {.name = "table.weight", .rows = SIM_VOCAB, .cols = SIM_HIDDEN, .gather = true},
        .head = {.name = "x.12.head.weight",
                 .rows = SIM_VOCAB,
                 .cols = SIM_HIDDEN,
                 .size = 4000,
                 .matmul = true},
        .rope = {.n_freq = 2, .inv_freq = freq, .inv_freq_long = freq, .mscale = 1}};
    must(backend_sim.open(&o, &s->m.dev, NULL));
    sim_set(s->m.dev, seed, flaw);
    mutex_init(&s->running);
    s->m.running = &s->running;
}

void sim_model_close(sim_model *s)
{
    mutex_deinit(&s->running);
    backend_sim.close(s->m.dev);
}

void sim_prompt(uint64_t seed, int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_u64(seed, 77, (uint64_t)i) % SIM_VOCAB);
}

void sim_greedy(sim_model *s, const int32_t *ids, int32_t n, int32_t *out, int32_t n_out)
{
    static int32_t all[SIM_CTX];
    const stepper_opts o = {.max_rows = SIM_CTX, .max_out = 1, .max_seqs = 1, .ctx_len = SIM_CTX};
    stepper *st = NULL;
    seq_id q;
    must(stepper_new(&s->m, &o, &st, NULL));
    must(stepper_add_cache(st, SIM_CTX, (stepper_room){0}, NULL));
    memcpy(all, ids, (size_t)n * sizeof *ids);
    for (int32_t k = 0; k < n_out; k++) { /* whole, every time: no cache is trusted */
        must(cache_open(stepper_cache(st), SIM_CTX, &q));
        stepper_begin(st);
        (void)stepper_add(st, q, all, n + k, 1, n + k);
        stepper_run(st);
        const float *x = stepper_logits(st, 0);
        int32_t best = 0;
        for (int32_t i = 1; i < SIM_VOCAB; i++)
            if (x[i] > x[best]) best = i;
        all[n + k] = out[k] = best;
        cache_close(stepper_cache(st), q);
    }
    stepper_free(st);
}
