/* One op that reads a cache, over a whole sequence in steps of any size, in any company. */
#ifndef OPS_SEQ_H
#define OPS_SEQ_H

#include "ops/ops_rig.h"

enum { SEQ_MAX_LEN = 700 };

/* The op's operand 0 and result are a row each of those asked for, operand 1 goes into the cache. */
typedef struct seq_case {
    const char *name;
    op o; /* operands 0, 1 and, unless absent, 2; result 3 */
    int32_t cols[4];
    bool third_asked; /* operand 2 is a row each of those asked for, as operand 0 */
    kv_pair codec;    /* latent: the same twice */
    int32_t n_kv, dk, dv, window;
    int32_t start; /* positions before it, whole blocks, are f16 */
    bool latent;
    bool both; /* a sequence runs as a whole, whatever the variant's chunk */
    int32_t len;
} seq_case;

typedef struct variant {
    const char *name;
    isa_level level;
    int32_t threads, chunk;
    bool company;  /* a second sequence rides along */
    int32_t every; /* rows wanted: every n-th; 0: all rows, by ROWS_ALL */
} variant;

/* in[i]: [len][cols[i]] of the sequence and of the stranger's; out: [len][cols[3]], rows not asked for
   untouched.  Unused cache slots hold NaN, blocks out of the window are gone. */
void seq_play(const seq_case *c, const variant *t, const float *const in[3],
              const float *const other[3], float *out);
/* By every variant of the levels below `levels`: each must give the bits of `want`, which the plain
   kernels made of the whole sequence. */
void seq_compare(const seq_case *c, const float *const in[3], const float *const other[3],
                 const float *want, int32_t levels);
/* n numbers in (-amp, amp). */
float *seq_fill(uint64_t seed, size_t n, float amp);
kv_pair seq_plain(kv_kind k);
/* n elements of one head as the cache gives them back; values of TurboQuant rotated as they lie. */
void seq_stored(kv_codec c, const float *x, int32_t n, float *out);

#endif
