/* One model for a program's tests, as they run one after the other. */
#include "sim_rig.h"

#include "test.h"

sim_model sim;
int32_t ids[SIM_CTX];

static uint64_t sim_time(void *ctx)
{
    (void)ctx;
    return sim_now_ns(sim.m.dev) + 1;
}
const engine_hooks sim_hooks = {sim_time, NULL, true};

int rig_setup(void **state)
{
    (void)state;
    sim_model_open(&sim, 9, SIM_SOUND);
    sim_prompt(9, ids, SIM_CTX);
    return 0;
}

int rig_teardown(void **state)
{
    (void)state;
    sim_model_close(&sim);
    return 0;
}

engine *rig_open(cairn_engine_opts o)
{
    engine *e = NULL;
    cairn_diag dg = {0};
    if (engine_open(&sim.m, NULL, &o, &sim_hooks, &e, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return e;
}

void rig_submit(engine *e, watch *w, cairn_request r)
{
    cairn_diag dg = {0};
    memset(w, 0, sizeof *w);
    if (engine_submit(e, &r, watch_event, w, &w->id, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
}
