/* A model by hand around the simulated backend: four layers, two of them windowed, no weights. */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

#include "backend/sim/sim.h"
#include "engine/engine.h"
#include "engine/forward.h"

enum { SIM_VOCAB = 90, SIM_CTX = 4096, SIM_WINDOW = 100, SIM_HIDDEN = 4 };

typedef struct sim_model {
    model m;
    weight table, head; /* shapes only */
    rope_spec rope;     /* its switch_len may be set before an engine opens */
    mutex running;
} sim_model;

/* Layers of another model than the one that sim_model_open makes: before an engine opens. */
typedef enum sim_layers { SIM_ALL_KINDS, SIM_FULL, SIM_WINDOWED, SIM_RECURRENT } sim_layers;
void sim_model_layers(sim_model *s, sim_layers kind);

void sim_model_open(sim_model *s, uint64_t seed, sim_flaw flaw);
void sim_model_close(sim_model *s);
/* Ids of a prompt by seed. */
void sim_prompt(uint64_t seed, int32_t *ids, int32_t n);
/* Greedy continuation of a prompt, by a stepper of its own: what every engine must answer. */
void sim_greedy(sim_model *s, const int32_t *ids, int32_t n, int32_t *out, int32_t n_out);

#endif
