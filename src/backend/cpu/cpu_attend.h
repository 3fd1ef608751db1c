/* What the files of ATTEND, ATTEND_AT and PICK share: cpu_attend.c cuts the work, cpu_attend_sets.c finds rows
   that read the same blocks, cpu_attend_split.c does one split of one unit, cpu_attend_latent.c reads latent layers, cpu_pick.c chooses positions,
   cpu_encode.c writes the cache, cpu_turn.c rotates values. */
#ifndef CPU_ATTEND_H
#define CPU_ATTEND_H

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern_vec.h"
#include "base/num.h"

enum {
    TILE_VECS = 96, /* query vectors (rows × heads) a unit: queries, scores and a panel fit L2 */
    LANES = 16,
    SCORE_STRIPS = 2,                  /* of keys widened at a time */
    SCORE_PITCH = ATTEND_SPLIT + LANES /* floats between two vectors' scores; see row_pitch */
};

/* Segments order[first …], n of them: one with any number of query rows, or several of one each whose caches
   begin with the same blocks. */
typedef struct row_set {
    int32_t first, n;
} row_set;

typedef struct attend_job {
    const cpu_run *r;
    const op *o;
    const kv_layer *kv;
    const kern_vec *k;
    int32_t heads;        /* query heads a KV head */
    int32_t tile_rows;    /* query rows a unit, at most */
    int32_t n_split;      /* splits that partial results have room for */
    const int32_t *order; /* of segments */
    const row_set *set;
    int32_t n_set, n_unit;
    cpu_shares shares; /* of steps of few rows */
    const float *at;   /* ATTEND_AT: [query row][n_at] positions; or NULL */
    int32_t n_at;
} attend_job;

/* Where a unit's partial results lie: o[split][vector][dv_pad], m and l [vector][split_pad]. */
typedef struct partial {
    float *o, *m, *l;
} partial;

/* A split that this thread likely works on next: whose cache, the positions [lo, hi] to see in it, and where it
   begins.  seg NULL: there is none. */
typedef struct attend_next {
    const segment *seg;
    int32_t kvh, lo, hi, base;
} attend_next;

typedef struct unit {
    const segment *seg;  /* whose cache is read */
    const int32_t *segs; /* of a set of several: the segment of each row; or NULL */
    int32_t kvh, n_rows;
    int32_t first;                        /* query rows in all units of lower sets and tiles */
    int32_t row[TILE_VECS];               /* of the query value */
    int32_t c0, c1;                       /* first and last split */
    int32_t lo[TILE_VECS], hi[TILE_VECS]; /* of `at`: numbers of its entries */
    const float *at; /* positions of the one row; NULL: every number is its own */
} unit;

/* A thread's scratch, in this order. */
typedef struct attend_scratch {
    float *q, *s, *panel;
    float *turned,
        *lanes; /* latent: queries lane by lane, scores of a block position by position */
    partial part;
} attend_scratch;

static inline size_t pad16(int32_t n)
{
    return round_up((size_t)n, LANES);
}
/* Floats between rows of n that are read column by column: an odd number of lines, since rows that are a
   power of two apart would share a few sets of L1. */
static inline size_t row_pitch(int32_t n)
{
    return (pad16(n) / LANES | 1) * LANES;
}
static inline int32_t unit_vecs(const attend_job *j, const unit *u)
{
    return u->n_rows * j->heads;
}

static inline uint8_t *keys_at(const attend_job *j, const segment *g, int32_t kvh, int32_t pos)
{
    const kv_layer *kv = kv_at(j->kv, pos);
    size_t tile = (size_t)kvh * KV_BLOCK + (size_t)(pos % KV_BLOCK) / KV_TILE * KV_TILE;
    return g->blocks[kv->group][pos / KV_BLOCK] + kv->k_off + tile * kv_row_bytes(kv->k, kv->dk);
}
static inline uint8_t *values_at(const attend_job *j, const segment *g, int32_t kvh, int32_t pos)
{
    const kv_layer *kv = kv_at(j->kv, pos);
    size_t row = (size_t)kvh * KV_BLOCK + (size_t)(pos % KV_BLOCK);
    return g->blocks[kv->group][pos / KV_BLOCK] + kv->v_off + row * kv_value_row(kv);
}
static inline int32_t unit_pos(const unit *u, int32_t i)
{
    return u->at ? (int32_t)u->at[i] : i;
}

/* cpu_attend_sets.c.  Scratch that the sets of a step of so many rows take. */
size_t attend_sets_size(int32_t max_rows);
/* Fills j->order, j->set and j->n_set, in `scratch`; answers whether any set is of several segments. */
bool attend_sets(attend_job *j, void *scratch);
/* The end of the run of rows from `a` on that read the same blocks in split c, all of it. */
int32_t attend_run_end(const attend_job *j, const unit *u, int32_t a, int32_t c);
/* The rows of the query value that a segment brings. */
void attend_query_rows(const attend_job *j, const segment *g, int32_t *row0, int32_t *n);

/* Writes the step's rows of `keys` and `values` (or VAL_NONE: latent, or keys alone) into the cache; the
   thread's scratch holds one row of keys. */
void kv_encode(const cpu_run *r, const kv_layer *kv, val keys, val values);
/* In place, n a power of two from 64 on: cpu_turn.c. */
void kv_turn(float *x, size_t n);
void kv_turn_back(float *x, size_t n);
/* m over m->n_strip tiles of keys of m->n elements, at m->b (m->row and m->strip are set here): in the codec, or
   opened to f32 in `panel` [SCORE_STRIPS][m->n][KV_TILE] when it is coded or many vectors share them. */
void kv_scores(const kern_vec *k, kv_codec codec, kern_mm *m, float *panel);
/* The first n_cols elements of the values (latent: the keys) of positions number p0 … p1 - 1 to rows of f32,
   [p1 - p0][row_pitch(n_cols)]. */
void kv_open_rows(const attend_job *j, const unit *u, int32_t p0, int32_t p1, int32_t n_cols,
                  float *rows);
attend_scratch attend_thread_scratch(const attend_job *j, int32_t i_thread);
/* Split c of a unit with queries q [vector][dk] into part; the keys of `next` are fetched ahead. */
void attend_split(const attend_job *j, const unit *u, int32_t c, const attend_next *next,
                  const float *q, const attend_scratch *sc, const partial *part);

/* cpu_attend_latent.c.  Queries [vector][dk] of a unit to strips of 16 vectors, [strip][dk][16]. */
void latent_turn(const attend_job *j, const unit *u, const float *q, float *turned);
/* Scores of the unit's rows [a, b) and positions number p0 … p1 (of one split, KV_BLOCK at most) go
   to sc->s; q: turned. */
void latent_scores(const attend_job *j, const unit *u, int32_t a, int32_t b, int32_t p0, int32_t p1,
                   const float *q, const attend_scratch *sc);

#endif
