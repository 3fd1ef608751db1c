/* One step of a model: rows of several sequences in, logits out.  A stepper owns the programs of one
   model (compiled for a few row counts), one cache and the step's buffers.  Owned by one thread;
   nothing is allocated once it has its cache. */
#ifndef ENGINE_STEP_H
#define ENGINE_STEP_H

#include "cache/cache.h"
#include "model/model.h"
#include "tensor/batch.h"
#include "tensor/prog.h"

typedef struct stepper stepper;

/* Rows of a step where nobody says otherwise: matrix products have long reached their full rate, and
   no request waits for longer than this many rows of another. */
enum { STEP_ROWS = 512 };
/* Rows of a step beyond one a sequence whose logits prompts may want in all: as many as a tile of the kernels has, so
   that weights are read for sixteen at once; 16 MiB for a vocabulary of 262,144. */
enum { STEP_SCORED = 16 };
/* max_out of an engine. */
int32_t stepper_outs(int32_t max_seqs, int32_t max_rows);

typedef struct stepper_opts {
    int32_t max_rows; /* of a step */
    int32_t max_out;  /* rows of a step whose logits are wanted */
    int32_t max_seqs;
    int32_t ctx_len; /* positions of one sequence at most */
    kv_scheme codec;
    bool taps;
    bool hidden;         /* what the head reads takes the place of logits, in stepper_logits too */
    const uint8_t *stop; /* of its steps (tensor/batch.h); may be NULL */
} stepper_opts;

kv_scheme stepper_codec(const model *m);       /* the model's, or the one of its compute mode */
kv_scheme stepper_plain_codec(const model *m); /* the latter */

cairn_status stepper_new(const model *m, const stepper_opts *o, stepper **out, cairn_diag *dg);
void stepper_free(stepper *s);
/* What the cache may take (cache_opts); max_bytes 0: what max_seqs sequences take. */
typedef struct stepper_room {
    uint64_t max_bytes, prefix_room, prefix_bytes;
} stepper_room;
/* The cache, once: `ctx_len` at most the stepper's. */
cairn_status stepper_add_cache(stepper *s, int32_t ctx_len, stepper_room room, cairn_diag *dg);
cache *stepper_cache(stepper *s);
size_t stepper_scratch(const stepper *s); /* bytes of programs and step buffers */
/* The row counts, rising, that its program is compiled for: a step runs by the least that holds it. */
enum { STEPPER_SHAPES = 4 };
typedef struct stepper_shape {
    int32_t rows[STEPPER_SHAPES], n;
} stepper_shape;
stepper_shape stepper_shape_of(const stepper *s);
/* Smallest length at which a rotary table switches; 0: none does. */
int32_t stepper_switch_len(const stepper *s);

/* A step: begin, add sequences (each at most once), run. */
void stepper_begin(stepper *s);
/* The next n rows of a sequence, of which the last n_out want logits.  `known_len`: its length as
   far as known (at least that of these rows). Answers the index of its first logits. */
int32_t stepper_add(stepper *s, seq_id q, const int32_t *ids, int32_t n, int32_t n_out,
                    int32_t known_len);
/* And commits the rows to the cache.  Steppers of one model may run on several threads: their steps
   take turns.  False, only where it can be stopped: it was, and no row counts as computed. */
bool stepper_run(stepper *s);
/* The same for a program that needs no cache. */
void step_run(const model *m, exec *x, const step *s);
/* For those who measure: the program, the step that ran last, and backend.time_ops of every program. */
const prog *stepper_prog(const stepper *s);
const step *stepper_step(const stepper *s);
void stepper_time_ops(stepper *s, uint64_t *ns);
void stepper_busy(stepper *s, bool on); /* hint: steps follow closely */
/* fn for tasks 0 … n - 1 on the backend's threads; returns when all are done.  Between steps: of steppers of one model,
   each waits for the others' as for their steps. */
void stepper_each(stepper *s, int32_t n, dev_task fn, void *ctx);
/* [vocab], or [hidden], of the i-th wanted row, in the order of the adds; the caller may change them; valid until
   the next run. */
float *stepper_logits(stepper *s, int32_t i_out);
/* [hidden] of row i of the step. */
const float *stepper_tap(const stepper *s, int32_t i_tap, int32_t i_row);

#endif
