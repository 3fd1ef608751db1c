/* The store inside: its files' headers, its index, its queue, and who owns which part. */
#ifndef CACHE_STORE_PRIV_H
#define CACHE_STORE_PRIV_H

#include <limits.h>

#include "base/thread.h"
#include "cache/store.h"
#include "tensor/kvview.h"

enum {
    STORE_VERSION = 1,
    STORE_PAGE = 4096, /* tensors begin at multiples: pages of the system, sectors of the disk */
    STORE_HEAD_MAX = 16384, /* of a header, in every version */
    STORE_HEAD_FIXED = 144,
    STORE_SUM_AT = 24, /* the header's hash */
    STORE_MAX_TOKENS = STORE_MAX_BLOCKS * KV_BLOCK,
    STORE_MAX_TENSORS = STORE_MAX_BLOCKS * STORE_MAX_GROUPS + STORE_MAX_STATES + 1,
    STORE_NAME_BYTES = 48 /* 32 digits, "-16.cairnkv" and the end */
};
#define STORE_MAX_COMPANION ((uint64_t)1 << 32)
_Static_assert(STORE_HEAD_FIXED + 8 * STORE_MAX_GROUPS + 16 * STORE_MAX_BLOCKS +
                       4 * STORE_MAX_TOKENS + 4 * STORE_MAX_GROUPS + 4 * STORE_MAX_STATES +
                       8 * STORE_MAX_TENSORS <=
                   STORE_HEAD_MAX,
               "the largest header fits");

/* What all files of a store share; immutable. */
typedef struct store_conf {
    uint8_t fingerprint[16];
    hash128 scheme; /* of its text */
    uint32_t numerics, companion;
    int32_t n_group;
    size_t block_bytes[STORE_MAX_GROUPS];
    size_t state_bytes;
    bool unverified;
} store_conf;

/* What a file says of itself, or is about to. */
typedef struct store_meta {
    store_key root, parent;
    int32_t first_block, n_block, n_tok, n_state;
    uint32_t companion; /* codec */
    uint64_t companion_bytes;
    store_key key[STORE_MAX_BLOCKS];
    uint16_t here[STORE_MAX_GROUPS];
    int32_t state_pos[STORE_MAX_STATES];
    int32_t token[STORE_MAX_TOKENS];
} store_meta;

/* store_key.c */
typedef struct store_name {
    store_key end; /* of the last block */
    int32_t n_block;
} store_name;
void store_name_text(store_name n, char out[STORE_NAME_BYTES]);
bool store_name_parse(const char *text, store_name *out);
bool store_name_is_tmp(const char *text);
/* "dir/fingerprint" and what lies below; freed with mem_free. */
cairn_status store_folder_name(const char *dir, const uint8_t fingerprint[16], const char *below,
                               char **out, cairn_diag *dg);
bool store_hex64(const char *p, uint64_t *out); /* the first 16 characters; false: no such digits */
void store_keys_fill(store_meta *m);            /* key[], from parent and tokens */
bool store_keys_hold(const store_meta *m);      /* key[] is that */
static inline store_name store_name_of(const store_meta *m)
{
    return (store_name){m->key[m->n_block - 1], m->n_block};
}

/* store_file.c: what is in a file, and where.  Tensors in their order: */
typedef struct store_walk {
    const store_conf *c;
    const store_meta *m;
    int32_t next;
    int32_t i_tensor;            /* of this one */
    int32_t block, group, state; /* -1: it is none of these; all -1: the companion */
    uint64_t at;
    size_t bytes;
} store_walk;
store_walk store_walk_of(const store_conf *c, const store_meta *m);
bool store_walk_next(store_walk *w);
uint64_t store_file_bytes(const store_conf *c, const store_meta *m);
size_t store_head_put(const store_conf *c, const store_meta *m, const uint64_t *sum,
                      uint8_t out[STORE_HEAD_MAX]);
/* FOREIGN: whole, but made by another version, machine, model or scheme. */
typedef enum store_verdict { STORE_GOOD, STORE_FOREIGN, STORE_BAD } store_verdict;
/* The hash covers the whole header, of STORE_HEAD_MAX bytes at most, with its own eight bytes as zeros. */
bool store_head_is_whole(const uint8_t *p, size_t n, uint64_t want);
/* From the first n bytes of a file; sum[STORE_MAX_TENSORS].  `why` is static text unless GOOD. */
store_verdict store_head_parse(const store_conf *c, const uint8_t *p, size_t n, uint64_t file_bytes,
                               store_meta *m, uint64_t *sum, const char **why);

/* store_io.c (reading) and store_save.c (writing): files, open and named. */
typedef struct store_scratch { /* of one thread */
    store_meta meta;
    uint64_t sum[STORE_MAX_TENSORS];
    uint8_t head[STORE_HEAD_MAX];
    uint8_t pad[STORE_PAGE];
} store_scratch;
/* Reads and checks the header of a file named n into x. */
store_verdict store_load_head(const store_conf *c, int fd, store_name n, store_scratch *x,
                              const char **why);
/* What d wants of the file whose header x holds. */
cairn_status store_load(const store_conf *c, int fd, store_scratch *x, const store_dest *d,
                        cairn_diag *dg);
int store_open_file(int folder, const char *name); /* -1 with errno */
/* For writing too: file systems over a network lock nothing else exclusively. */
int store_open_to_lock(int folder, const char *name);
struct stat;
/* In ns; at an end of their range where it is past it. */
int64_t store_file_time(const struct stat *st);
void store_touch_file(int fd, int64_t stamp_ns);                       /* where that is allowed */
void store_touch_name(int folder, const char *name, int64_t stamp_ns); /* the same */

typedef struct store_item { /* a run in the queue, or done */
    struct store_item *next;
    void *user;
    uint64_t bytes;   /* of its file */
    int64_t stamp_ns; /* the time that its file gets */
    store_result result;
    bool urgent;
    const void *companion;
    const uint8_t **block; /* [n_block][n_group] */
    const void *state[STORE_MAX_STATES];
    store_meta meta;
} store_item;
/* Asked before each tensor, outside of locks; false: give up. */
typedef bool (*store_gate)(void *ctx);
enum {
    STORE_STOPPED = -1,
    STORE_FORMER_BAD = -2,
    STORE_NO_MEMORY = -3,
    STORE_TOO_MUCH = -4,
    STORE_FORMER_NEW = -5
};
/* The file that has the item's name now, open, its header in x; fd -1: there is none of which anything is wanted. */
typedef struct store_former {
    int fd;
    store_scratch *x;
    uint64_t dev, ino; /* of what has the name; 0: nothing has */
    bool any;          /* whatever has it when the new one is there goes */
} store_former;
/* What a file of the run has together with what the former has; false: they do not belong together. */
bool store_merge(const store_meta *run, const store_meta *former, store_meta *out);
/* Writes the file that x->meta says, from the item and the former one, beside, then names it.  0, an errno,
   STORE_STOPPED, STORE_FORMER_BAD: the former is damaged, or STORE_FORMER_NEW: another process gave the name to another
   file meanwhile.  Nothing is left behind unless 0. */
int store_save(const store_conf *c, int folder, const store_item *it, store_former former,
               store_scratch *x, store_gate gate, void *ctx);
/* Opens the folder, which must be ours alone to write, in one that no others may write; makes it.  0 or an errno,
   for which `why` may have better words than the system. */
int store_open_folder(const char *path, int *out, const char **why);
/* The open folder still is the one of its path. */
bool store_is_in_place(int folder, const char *path);
/* Bytes that were read of the n at `at`; less at the file's end or after an error. */
size_t store_read_some(int fd, void *to, size_t n, uint64_t at);
int store_write_all(int fd, const void *from, size_t n, uint64_t at); /* 0 or an errno */
/* A locked file beside the one called `name`, to be written and read: 0 or an errno. */
int store_make_tmp(int folder, const char *name, char tmp[NAME_MAX], int *out);
void store_drop_tmp(int folder, const char *name); /* unless a living process writes it */

/* store_index.c: entries by the keys of their blocks, and their order of use.  Guarded by mu. */
typedef struct store_entry {
    struct store_entry *next; /* among those to be removed */
    store_key root, parent;
    store_name name;
    uint64_t bytes;
    int64_t mtime_ns; /* of the scan, or what its file was or is to be given since */
    uint32_t newer, older;
    int32_t first_block, n_block, n_tok, n_state; /* n_block 0: foreign, of known size alone */
    uint16_t here[STORE_MAX_GROUPS];
    bool used;  /* since the scan met it */
    bool stale; /* its file is to be given mtime_ns by the scan */
    int32_t *state_pos;
    store_key key[]; /* [n_block], then the positions */
} store_entry;
enum { STORE_NONE = UINT32_MAX, STORE_MAX_ENTRIES = 1 << 18 }; /* 128 KiB each fill 32 GiB */
typedef struct store_index {
    store_entry **slot;
    uint32_t *gen, *free_slot, *bucket;
    uint32_t *chain; /* [slot][block] the next of its bucket */
    uint32_t cap, n_free, n_bucket, newest, oldest;
    uint32_t n, n_foreign;
    uint64_t bytes;
} store_index;
void index_init(store_index *ix);
void index_deinit(store_index *ix);
bool index_reserve(store_index *ix); /* room for one more; false: no memory, or too many */
store_entry *index_entry(const store_meta *m, uint64_t bytes); /* NULL: no memory */
store_entry *index_foreign(store_name n, uint64_t bytes);      /* NULL: no memory */
uint32_t index_add(store_index *ix, store_entry *e); /* takes e, as the latest; room was reserved */
store_entry *index_take(store_index *ix, uint32_t slot); /* moves it to the caller */
uint32_t index_named(const store_index *ix, store_key root, store_name n); /* STORE_NONE: absent */
bool index_has_name(const store_index *ix, store_name n);                  /* on whatever path */
/* A place that holds the block, slot · STORE_MAX_BLOCKS + *block, the latest first; the next one is found
   `from` the former, the first from STORE_NONE. */
uint32_t index_find(const store_index *ix, store_key root, store_key key, uint32_t from,
                    int32_t *block);
uint32_t index_slot(const store_index *ix, store_id id);
store_id index_id(const store_index *ix, uint32_t slot);
/* The latest entry of what precedes a run; STORE_NONE: there is none, or nothing precedes it. */
uint32_t index_before(const store_index *ix, store_key root, store_key parent, int32_t first_block);
uint64_t index_path_bytes(const store_index *ix, uint32_t slot); /* of it and what precedes it */
/* It becomes the latest, and what precedes it later still: a path is lost from its end. */
void index_touch(store_index *ix, uint32_t slot);
/* The order of use that the files' times tell; those of the future are of now, and what was read since is later. */
void index_sort(store_index *ix, int64_t now_ns);
int32_t index_longest(const store_index *ix);

struct store {
    store_conf conf; /* immutable, as path, limits and retry_ms are */
    char *path;
    uint64_t max_bytes, queue_bytes;
    uint32_t retry_ms;
    thread writer;
    store_scratch *reading; /* the thread that calls store_read */
    store_scratch *writing; /* the writer's */
    store_scratch *former;  /* the same */

    mutex mu;
    cond work, done; /* of mu: for the writer; for a flush */
    /* guarded by mu */
    store_index index;
    int folder;                      /* -1: not open */
    store_item *first, *last, *busy; /* queue; the one being written */
    store_item *ended, *last_ended;
    store_entry *doomed; /* whose files are to be removed */
    int64_t touched_ns;  /* the latest time given to a file */
    uint64_t retry_at_ns;
    uint32_t n_retry, n_urgent; /* n_urgent: of the queue and the one being written */
    bool idle, flushing, stop, scanned, warned, reopen;
    uint32_t n_lost; /* entries whose files were damaged or gone, since store_count_lost */
    store_flushed since;
    store_stats stats;
};

/* store_queue.c: with mu held */
void *store_run_writer(void *s); /* the writer's thread, without */
void store_end(store *s, store_item *it, store_result r);
void store_doom(store *s, uint32_t slot);       /* its file will be removed */
void store_make_room(store *s, uint64_t bytes); /* the least used go */
bool store_read_only(const store *s);           /* for now */
bool store_has_folder(store *s);                /* opens it; the lock is let go meanwhile */
int64_t store_stamp(store *s);                  /* a time for a file, later than all before */

/* store_scan.c: on the writer's thread, without mu */
void store_scan(store *s);

#endif
