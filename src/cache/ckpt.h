/* Checkpoints of generations: what a running request has drawn so far, in small files beside those of the
   disk tier (docs/cache-files.md), so that the same request goes on after a crash.  Rows are not in them:
   the disk tier has them, or they are computed again, to the same bits.

   One attempt at a time belongs to a key.  What it saves is written by a thread of this module's own, the
   newest state alone; that thread too removes the file of an attempt that was completed, after whatever was
   still being written of it.  Nothing that a disk does is an error of the caller's, who is one thread. */
#ifndef CACHE_CKPT_H
#define CACHE_CKPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "cairn/status.h"

enum {
    CKPT_SAMPLER_BYTES = 64, /* of state that does not follow from the ids */
    CKPT_MAX_FILES = 1024,   /* left over: some weeks of clients that do not come back */
    CKPT_MAX_NEW = 1 << 24   /* ids of a generation; no context is larger */
};

typedef struct ckpt ckpt;
typedef struct ckpt_attempt ckpt_attempt;

/* State of a sampler beside the ids; version 0: there is none. */
typedef struct ckpt_sampler {
    uint32_t version, n_bytes;
    uint8_t bytes[CKPT_SAMPLER_BYTES];
} ckpt_sampler;

typedef struct ckpt_opts {
    const char *dir; /* absolute: the disk tier's; read during open */
    uint8_t fingerprint[16];
    uint32_t numerics; /* version */
    uint32_t sampler;  /* version of state that is understood; 0: none */
    int32_t vocab;
    uint32_t max_files; /* 0: CKPT_MAX_FILES */
    uint64_t max_bytes; /* 0: 256 MiB */
    int64_t max_age_s;  /* of what the start finds; 0: 7 days */
    /* For tests: on the writer's thread, before a file gets its name; NULL: none. */
    void (*landing)(void *ctx);
    void *ctx;
} ckpt_opts;
/* Scans the folder.  E_NOMEM alone. */
cairn_status ckpt_open(const ckpt_opts *o, ckpt **out, cairn_diag *dg);
/* Without a flush: what is queued is lost.  NULL is fine. */
void ckpt_close(ckpt *c);

typedef struct ckpt_ask {
    hash128 key; /* of all that decides the answer */
    int32_t n_prompt, max_new;
    uint64_t seed;
    bool seed_given; /* else any will do: that of an attempt that did not end is taken up */
} ckpt_ask;

typedef struct ckpt_found {
    int32_t n_new; /* ids that were drawn; 0: there is no checkpoint */
    uint64_t seed; /* the ask's, or the one that they were drawn with */
    ckpt_sampler sampler;
} ckpt_found;
/* The key's new attempt: writes of a former one that are queued are cancelled.  `ids`, [max_new], takes what a
   former one had drawn by its last checkpoint, unless it runs still and the seed is not given: then somebody
   wants another answer, and the former's file goes.  NULL: no memory, and the request goes on without. */
ckpt_attempt *ckpt_begin(ckpt *c, const ckpt_ask *a, int32_t *ids, ckpt_found *out);
/* All it has drawn, n_new ids of which the first ones are those of the call before; copied.  Allocates
   nothing.  An attempt whose key has a newer one saves nothing any more. */
void ckpt_save(ckpt *c, ckpt_attempt *a, const int32_t *ids, int32_t n_new,
               const ckpt_sampler *sampler);
/* The attempt is over.  Completed: its key has no checkpoint from now on, and its file will be removed; else
   what was saved stays for the next attempt.  NULL is fine. */
void ckpt_end(ckpt *c, ckpt_attempt *a, bool completed);

typedef struct ckpt_flushed {
    uint32_t durable, pending,
        failed;        /* attempts by their last save; pending: and files to be removed */
    uint32_t cleanups; /* files of completed attempts that could not be removed */
} ckpt_flushed;
/* Waits until all that was saved is on disk, or could not be put there, for wait_ms at most. */
void ckpt_flush(ckpt *c, uint32_t wait_ms, ckpt_flushed *out);

typedef struct ckpt_stats {
    uint64_t bytes;
    uint32_t n_file;
    uint64_t n_written, n_failed, n_found;
    uint32_t n_corrupt,
        n_foreign;    /* files met that were damaged, and removed; of another version or model */
    uint64_t barrier; /* of the last clean-up that was asked for */
} ckpt_stats;
void ckpt_get_stats(ckpt *c, ckpt_stats *out);

#endif
