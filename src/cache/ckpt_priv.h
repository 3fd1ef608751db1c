/* Checkpoints inside: their files' layout, who owns what. */
#ifndef CACHE_CKPT_PRIV_H
#define CACHE_CKPT_PRIV_H

#include "base/buf.h"
#include "base/thread.h"
#include "cache/ckpt.h"
#include "cache/store_priv.h"

enum {
    CKPT_VERSION = 1,
    CKPT_HEAD = 168,
    CKPT_HEAD_MAX = 4096, /* in every version */
    CKPT_NAME_BYTES = 48  /* 32 digits, ".cairnck" and the end */
};

/* What all files of a model share; immutable. */
typedef struct ckpt_conf {
    uint8_t fingerprint[16];
    uint32_t numerics, sampler;
    int32_t vocab;
} ckpt_conf;

typedef struct ckpt_meta {
    hash128 key;
    int32_t n_prompt, n_new;
    uint64_t seed, ids_sum;
    bool seed_given;
    ckpt_sampler sampler;
} ckpt_meta;

/* ckpt_file.c */
void ckpt_encode(const ckpt_conf *c, const ckpt_meta *m, const int32_t *ids, buf *out);
/* From the first n bytes of a file; `why` is static text unless GOOD. */
store_verdict ckpt_head_parse(const ckpt_conf *c, const uint8_t *p, size_t n, uint64_t file_bytes,
                              ckpt_meta *m, const char **why);
/* What follows the header: ids[m->n_new].  False: damaged. */
bool ckpt_ids_parse(const ckpt_conf *c, const ckpt_meta *m, const uint8_t *p, int32_t *ids);
void ckpt_name_text(hash128 key, char out[CKPT_NAME_BYTES]);
bool ckpt_name_parse(const char *text, hash128 *key);
bool ckpt_name_is_tmp(const char *text);

/* ckpt_hold.c: names and locks. */
typedef enum ckpt_whose { CKPT_NONE, CKPT_OURS, CKPT_THEIRS, CKPT_UNKNOWN } ckpt_whose;
/* OURS: `*out` is the file, locked, the caller's to close, or -1 where it is none that can be opened.  Else -1.
   UNKNOWN: the system did not say, for what errno has. */
ckpt_whose ckpt_hold(int folder, const char *name, int *out);
bool ckpt_has_name(int folder, const char *name, int fd);
enum { CKPT_ELSEWHERE = -1 };
/* The locked file `tmp`, open as *fd, takes the name unless another process holds that; `held`: the file by which
   this one does, or -1.  0, an errno or CKPT_ELSEWHERE.  *fd holds the name from now on, which an error may leave
   in doubt after a crash, or is closed and -1. */
int ckpt_land(int folder, const char *tmp, const char *name, int *fd, int held);
/* Unless another process holds it.  False: it is there still, and should not be. */
bool ckpt_remove(int folder, const char *name, int held);
bool ckpt_remove_this(int folder, const char *name, int fd); /* it was that one, and is gone */

/* A file that is there; its place among others tells nothing. */
typedef struct ckpt_entry {
    hash128 key;
    uint64_t bytes;
    int64_t used_ns;  /* the time that it has: when it was written, as far as a clock knows */
    int64_t found_ns; /* the one that the start found, possible or not; 0: written since */
    bool foreign;
} ckpt_entry;

struct ckpt_attempt {
    ckpt_attempt *next;        /* of all */
    ckpt_attempt *next_queued; /* valid where `queued` */
    ckpt_meta meta;            /* n_new: of the last save */
    int32_t *ids;              /* [max_new]; those before meta.n_new never change */
    int32_t max_new;
    bool let_go;        /* by the caller */
    bool queued;        /* to be written */
    bool writing;       /* now, by the writer, who reads ids without the lock */
    bool stale;         /* superseded or completed: nothing more is written */
    bool completed;     /* or another answer is wanted: what is being written must not stay */
    bool saved, failed; /* how the last write went */
    bool elsewhere;     /* another process holds the key's file: nothing is written meanwhile */
    int held;           /* the key's file, locked, of one of the key's attempts; -1 */
    uint64_t born;      /* the last barrier before it */
    uint64_t barrier;   /* of the clean-up that removes its key's file; 0: none is asked for */
    uint64_t tried;     /* the last round that tried to */
    bool dirty;         /* in vain */
};

struct ckpt {
    ckpt_conf conf; /* immutable, as limits, path and hooks are */
    char *path;
    uint32_t max_files;
    uint64_t max_bytes;
    int64_t max_age_s;
    void (*landing)(void *ctx);
    void *ctx;
    thread writer;
    buf file;  /* the writer's */
    buf found; /* the caller's thread's */

    mutex mu;
    cond work, done; /* of mu: for the writer; for a flush */
    /* guarded by mu */
    uint32_t n_lost; /* last saves of attempts that ended, since a flush said so */
    int folder;      /* -1: not open */
    const char *why; /* it could not be opened, in better words than the system's; NULL */
    ckpt_attempt *all, *first, *last;
    ckpt_entry *entry; /* [n_entry], room for one more than max_files */
    uint32_t n_entry;
    uint64_t barrier, cleaned; /* the last one asked for, the last one tried */
    uint64_t round;            /* of clean-ups */
    int64_t stamp_ns;          /* the latest time given to a file */
    bool busy;                 /* the writer is at a file */
    bool stop, warned, reopen;
    ckpt_stats stats;
};

/* ckpt.c; with mu held */
ckpt_entry *ckpt_entry_of(const ckpt *c, hash128 key); /* NULL: no file is known */
void ckpt_entry_drop(ckpt *c, ckpt_entry *e);
ckpt_attempt *ckpt_holder_of(const ckpt *c, hash128 key); /* NULL: none of them holds its file */
int64_t ckpt_stamp(ckpt *c);                      /* a time for a file, later than all before */
void ckpt_free_if_over(ckpt *c, ckpt_attempt *a); /* nobody needs it any more */

/* ckpt_write.c */
void *ckpt_run_writer(void *c);                 /* its thread */
int ckpt_by_time(const void *a, const void *b); /* entries, for qsort: the oldest first */
void ckpt_make_room(ckpt *c);         /* the oldest files go; with mu held, let go meanwhile */
bool ckpt_cleanup_due(const ckpt *c); /* with mu held */

/* ckpt_scan.c: the start, before there is a writer */
void ckpt_scan(ckpt *c);

#endif
