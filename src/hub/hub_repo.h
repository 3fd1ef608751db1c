/* Hugging Face repositories in the cache that its tools share:
   models--ORG--NAME/{refs/REVISION, snapshots/COMMIT/FILE → blobs/HASH}. */
#ifndef HUB_HUB_REPO_H
#define HUB_HUB_REPO_H

#include "base/buf.h"
#include "cairn/status.h"
#include "hub/hub_pull.h"

enum { HUB_REPO_LEN = 200, HUB_REV_LEN = 72, HUB_FILE_LEN = 512, HUB_COMMIT_LEN = 40 };

typedef struct hub_ref {
    char repo[HUB_REPO_LEN]; /* "org/name" */
    char rev[HUB_REV_LEN];   /* "main" unless said */
    char file[HUB_FILE_LEN]; /* a .gguf in it, or "" */
} hub_ref;

/* "org/name[@REVISION][:FILE.gguf]".  E_ARG says what is wrong with it. */
cairn_status hub_ref_parse(const char *word, hub_ref *out, cairn_diag *dg);
/* Whether a file's name inside a repository may become a path below a folder: relative, no "..", no
   empty, hidden or odd parts. */
bool hub_file_name_ok(cairn_str name);
bool hub_is_hex(cairn_str s, size_t n);
/* The set of a split GGUF file: "x-00001-of-00003.gguf" and "x-00003-of-00003.gguf" are of one. */
bool hub_same_split(cairn_str a, cairn_str b);

/* The folder of a repository; replaces b. */
cairn_status hub_repo_dir(const hub_ref *ref, buf *b, cairn_diag *dg);
/* What to open of a fetched repository: its snapshot folder, or in it the .gguf named, or the only
   one where there is no config.json.  Replaces *path.  E_NOTFOUND says what to do. */
cairn_status hub_repo_resolve(const hub_ref *ref, buf *path, cairn_diag *dg);
/* Fetches what it takes to run it, then resolves. */
cairn_status hub_repo_pull(const hub_ref *ref, const hub_report *r, buf *path, cairn_diag *dg);

#endif
