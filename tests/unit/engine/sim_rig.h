/* What tests of an engine without its thread begin with: a simulated model, a prompt, the model's own clock. */
#ifndef TESTS_SIM_RIG_H
#define TESTS_SIM_RIG_H

#include "sim_model.h"
#include "watch.h"

extern sim_model sim; /* open from rig_setup to rig_teardown */
extern int32_t ids[SIM_CTX];
extern const engine_hooks sim_hooks; /* of engine_open */

int rig_setup(void **state); /* of cmocka, like the next */
int rig_teardown(void **state);
engine *rig_open(cairn_engine_opts o); /* or the test fails */
/* Zeroes `w`, which follows the request from then on. */
void rig_submit(engine *e, watch *w, cairn_request r);

#endif
