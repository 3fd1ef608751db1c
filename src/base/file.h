/* Files and paths: map, read whole with a limit, replace in one step, make folders.  Owns no handle
   past a call but a map's; messages name the path and the system's reason. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include "cairn/status.h"

typedef struct file_map {
    const uint8_t *ptr; /* NULL when the file is empty */
    size_t size;
} file_map;

/* Read-only private mapping.  E_NOTFOUND, E_IO with path and reason. */
cairn_status file_map_open(const char *path, file_map *out, cairn_diag *dg);
void file_map_close(file_map *m);
/* Lets the pages wholly inside [p, p+n) leave memory; they come back from the file when touched. */
void file_map_drop(const void *p, size_t n);

/* Whole regular file into out (appended); E_LIMIT over max bytes, before any is read.  Pipes, devices
   and directories are refused: the files of a model are none of these. */
cairn_status file_read(const char *path, size_t max, buf *out, cairn_diag *dg);
/* The same for what a user names: "-" is standard input, and pipes and devices are read too, up to
   FILE_STREAM_MAX. */
cairn_status file_read_input(const char *path, size_t max, buf *out, cairn_diag *dg);
/* A stream does not tell its length beforehand; an endless one must end in an error soon. */
enum { FILE_STREAM_MAX = 64 << 20 };
/* Writes beside, fsyncs, renames: readers see the old file or the new one. */
cairn_status file_replace(const char *path, const void *p, size_t n, cairn_diag *dg);
bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* Makes a rename or a new name in the folder of `path` survive a crash, where that can be had. */
void file_sync_folder(const char *path);
/* Creates an absolute folder with all above it, mode 0700; fine if it is there. */
cairn_status path_make_dirs(const char *path, cairn_diag *dg);
/* Bytes of all files below; links are not followed. */
uint64_t path_tree_size(const char *path);
void path_remove_tree(const char *path); /* with all below, as far as it goes */
/* "dir/name" into b, NUL-terminated. */
const char *path_join(buf *b, const char *dir, const char *name);
/* $XDG_CACHE_HOME/cairn or ~/.cache/cairn, created (mode 0700). */
cairn_status path_cache_dir(buf *b, cairn_diag *dg);

#endif
