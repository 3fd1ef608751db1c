/* A file in the making: appended piece by piece, hashed on the way, renamed once it is right. */
#ifndef HUB_HUB_PART_H
#define HUB_HUB_PART_H

#include <dirent.h>

#include "base/hash.h"
#include "hub/hub_pull.h"

typedef struct hub_part {
    int fd;
    uint64_t size, limit; /* bytes in it; bytes it may hold */
    sha256 hash;          /* of those in it */
    buf path;
} hub_part;

#define HUB_KEEP_ALL UINT64_MAX

/* Opens or creates; keeps the first `keep` bytes (all: HUB_KEEP_ALL) if it has that many and they
   are within the limit, else none.  On failure nothing is left to close. */
cairn_status hub_part_open(hub_part *p, const char *path, uint64_t keep, uint64_t limit,
                           cairn_diag *dg);
/* E_CORRUPT when it grows over its limit. */
cairn_status hub_part_add(hub_part *p, const void *bytes, size_t n, cairn_diag *dg);
cairn_status hub_part_restart(hub_part *p, cairn_diag *dg); /* empties it */
cairn_status hub_part_sync(hub_part *p, cairn_diag *dg);
/* Checks size and SHA-256 (64 hex digits; NULL: the size alone) and gives it its name; what is wrong
   is deleted.  Closes it either way. */
cairn_status hub_part_finish(hub_part *p, uint64_t size, const char *sha, const char *name,
                             cairn_diag *dg);
void hub_part_close(hub_part *p); /* keeps the file; closed is fine */

/* One fetch of a thing at a time: waits, with a note, while another process holds the file.  The
   lock goes with its process, so that none is ever stale. */
cairn_status hub_lock(const char *path, const char *what, const hub_report *r, int *fd,
                      cairn_diag *dg);
void hub_unlock(int fd);

/* The next name in an open folder, valid until the next call; NULL at the end or for NULL. */
const char *hub_next_name(DIR *d);
/* E_IO when the folder's file system has less than `need` bytes left. */
cairn_status hub_room(const char *folder, uint64_t need, cairn_diag *dg);

#endif
