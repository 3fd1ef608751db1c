/* What the engine takes beside the kernels: turns of decoding requests on the simulated backend, whose own
   time is taken off.  Its vocabulary is of 90 tokens: what sampling takes for each token of one is not in it.

     bench_engine [ROWS...]     1, 8, 32 by default */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "engine/engine_priv.h"
#include "unit/engine/sim_model.h"

enum { TURNS = 2000, PROMPT = 16, MAX_ROWS = 64 };

static sim_model sim;
static int32_t ids[PROMPT];

static uint64_t in_backend_ns;

static void timed_run(exec *x, const step *s)
{
    const uint64_t t0 = clock_ns();
    backend_sim.run(x, s);
    in_backend_ns += clock_ns() - t0;
}

static void on_event(void *ctx, const cairn_event *ev)
{
    (void)ctx;
    (void)ev;
}

static void must(cairn_status st, const cairn_diag *dg)
{
    if (st == CAIRN_OK) return;
    (void)fprintf(stderr, "%s\n", dg->message);
    exit(1);
}

static engine *start(int32_t rows)
{
    const engine_hooks hooks = {.manual = true};
    const cairn_engine_opts o = {.max_seqs = rows, .ctx_len = PROMPT + TURNS + 50};
    engine *e = NULL;
    cairn_diag dg = {0};
    must(engine_open(&sim.m, NULL, &o, &hooks, &e, &dg), &dg);
    for (int32_t i = 0; i < rows; i++) {
        const cairn_request r = {.ids = ids,
                                 .n_ids = PROMPT,
                                 .sampling = sample_neutral(),
                                 .n_logprobs = -1,
                                 .think_budget = -1};
        cairn_request_id id;
        must(engine_submit(e, &r, on_event, NULL, &id, &dg), &dg);
    }
    for (int i = 0; i < 20; i++) (void)engine_turn(e);
    return e;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void measure(int32_t rows)
{
    static uint64_t rest[TURNS];
    engine *e = start(rows);
    for (int i = 0; i < TURNS; i++) {
        const uint64_t before = in_backend_ns, t0 = clock_ns();
        (void)engine_turn(e);
        rest[i] = clock_ns() - t0 - (in_backend_ns - before);
    }
    if (e->n_active != rows)
        must(CAIRN_E_INTERNAL, &(cairn_diag){.message = "requests ended early"});
    engine_close(e);
    qsort(rest, TURNS, sizeof *rest, by_value);
    printf("%3d rows: %.1f us a turn beside the backend's, 99 of 100 below %.1f\n", (int)rows,
           (double)rest[TURNS / 2] * 1e-3, (double)rest[TURNS * 99 / 100] * 1e-3);
}

int main(int argc, char **argv)
{
    static const int32_t by_default[] = {1, 8, 32};
    sim_model_open(&sim, 1, SIM_SOUND);
    sim_model_layers(&sim, SIM_FULL);
    backend timed = backend_sim;
    timed.run = timed_run;
    sim.m.be = &timed;
    sim_prompt(1, ids, PROMPT);
    for (int i = 1; i < argc; i++)
        measure(max_i32(1, min_i32(MAX_ROWS, (int32_t)strtol(argv[i], NULL, 10))));
    for (int i = 0; argc == 1 && i < 3; i++) measure(by_default[i]);
    sim_model_close(&sim);
    return 0;
}
