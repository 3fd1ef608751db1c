/* Runs with contents that follow from their tokens, so that any block read can be told right from wrong:
   what the store's tests, crash test and limits share. */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include "test.h"
#include "tmp.h"

#include "base/buf.h"
#include "cache/store_priv.h"

enum { RIG_GROUPS = 3, RIG_STATE = 7000, RIG_MAX_CELLS = STORE_MAX_BLOCKS * RIG_GROUPS };
extern const size_t rig_block_bytes[RIG_GROUPS];

typedef struct rig_run {
    store_run run;
    uint64_t path;
    int32_t token[STORE_MAX_TOKENS];
    store_key key[STORE_MAX_BLOCKS];
    uint8_t *cell[RIG_MAX_CELLS];
    store_state state[STORE_MAX_STATES];
} rig_run;

store_opts rig_opts(const char *dir); /* three groups, states, 1 s of no retry */
store_key rig_root(void);
/* Paths share their first 2·(path % 8) blocks with path 0. */
int32_t rig_token(uint64_t path, int32_t pos);
/* Of a path's first n_tok tokens. */
store_key rig_key(uint64_t path, int32_t n_tok);
void rig_fill(void *to, size_t n, uint64_t seed);
bool rig_is_filled(const void *p, size_t n, uint64_t seed);
uint64_t rig_block_seed(store_key key, int32_t group);
uint64_t rig_state_seed(uint64_t path, int32_t pos);

/* here: bit i of group g, n_state positions given; everything allocated. */
rig_run *rig_make(uint64_t path, int32_t first_block, int32_t n_tok,
                  const uint16_t here[RIG_GROUPS], const int32_t *state_pos, int32_t n_state);
rig_run *rig_whole(uint64_t path, int32_t first_block,
                   int32_t n_tok); /* all blocks, a state at the end */
void rig_free(rig_run *r);

/* Whether the entry that holds r's last block gives all that r has, all right.  A wrong byte fails the test. */
cairn_status rig_read_back(store *s, const rig_run *r);
/* Asks for all that an entry's info promises. */
cairn_status rig_read_all(store *s, store_id id, uint64_t path);
bool rig_found(store *s, const rig_run *r, store_id *id);
/* Puts, flushes, polls: DURABLE is expected. */
void rig_put_durable(store *s, rig_run *r);

typedef struct rig { /* a store in a folder of its own */
    tmp_dir dir;
    store *s;
} rig;
rig rig_begin(void);
void rig_reopen(rig *g, const store_opts *o);
void rig_end(rig *g);

store *rig_open(const store_opts *o); /* scanned */
enum { RIG_PATH = 500 };
void rig_path(const tmp_dir *d, const rig_run *r, char path[RIG_PATH]); /* of a run's file */
/* Puts r by a store of these options; its file's path and bytes. */
buf rig_file(const tmp_dir *d, const store_opts *o, rig_run *r, char path[RIG_PATH]);
void rig_save(const char *path, const buf *b);

#endif
