/* A real model's cache under random programs of open, step, rewind, mark, pin, close, forget, flush, restart and
   damage to files.  Prompts are paths of a small tree of tokens, so that they begin alike at and beside the borders
   of blocks; every row that a step computes must have the bits that a fresh run of its whole path has, without any
   cache to take from. */
#ifndef GOLDEN_CACHE_WORLD_H
#define GOLDEN_CACHE_WORLD_H

#include "base/hash.h"
#include "engine/step.h"
#include "tmp.h"

enum {
    WORLD_CTX = 264, /* four blocks and a bit */
    WORLD_STEP = 40, /* rows of a step at most */
    WORLD_SEQS = 3,  /* that run beside each other */
    WORLD_PATHS = 5, /* of tokens, at most */
    WORLD_PINS = 2
};

typedef struct world_path {
    int32_t ids[WORLD_CTX];
    int32_t common[WORLD_PATHS]; /* tokens that it begins with as others do */
    hash128 row[WORLD_CTX];      /* of the logits behind each token */
} world_path;

typedef struct world_seq {
    bool open;
    seq_id id;
    int32_t path, space, n_pos, len, furthest, hit;
} world_seq;

typedef struct world {
    const char *name; /* of model and codec, for messages */
    const model *m;
    int32_t n_path;
    bool tight; /* memory for two sequences and hardly any prefixes, a disk for few files */
    uint64_t seed, i, draw;
    uint64_t one; /* bytes of a whole sequence */
    tmp_dir dir;
    stepper *s;
    world_path path[WORLD_PATHS];
    world_seq seq[WORLD_SEQS];
    int32_t pin[WORLD_PINS], n_pin;
    bool keeps;   /* prefixes */
    bool damages; /* files, now and then */
    uint64_t n_rows, n_hits,
        n_read; /* rows compared; openings that took up something; files read */
} world;

/* Of name, m, n_path, seed and tight: its paths, and what a fresh run of each gives. */
void world_begin(world *w);
void world_do(world *w, uint64_t i); /* the i-th thing */
/* A prompt again from memory, and after a restart from files: both must have taken place. */
void world_end(world *w);

#endif
