/* A model's fingerprint is a hash of the hashes of its files.  Of their bytes, not of names or times: a file
   that was changed in place must not find what was computed with its former weights. */
#include "engine/fingerprint.h"

#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/file.h"

static cairn_status add_file(const char *path, buf *sums, cairn_diag *dg)
{
    file_map bytes;
    TRY(file_map_open(path, &bytes, dg));
    const hash128 h = hash128_of(bytes.ptr, bytes.size);
    file_map_close(&bytes);
    buf_put(sums, &h, sizeof h);
    return CAIRN_OK;
}

/* Whether a tensor before the i-th lies in the same file. */
static bool seen_before(const source *s, size_t i)
{
    const char *file = s->tensor[i].file;
    for (size_t k = i; k-- > 0;) {
        const char *other = s->tensor[k].file;
        if (other && (other == file || strcmp(other, file) == 0)) return true;
    }
    return false;
}

static cairn_status add_config(const char *folder, buf *sums, cairn_diag *dg)
{
    buf path;
    buf_init(&path, MEM_ENGINE);
    const char *at = path_join(&path, folder, "config.json");
    cairn_status st = buf_status(&path);
    if (st == CAIRN_OK && file_exists(at)) st = add_file(at, sums, dg);
    buf_deinit(&path);
    return st;
}

cairn_status fingerprint_of(const model *m, hash128 *out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    const source *s = m->src;
    buf sums;
    buf_init(&sums, MEM_ENGINE);
    for (size_t i = 0; i < s->n_tensor; i++)
        if (s->tensor[i].file && !seen_before(s, i))
            TRY_GOTO(add_file(s->tensor[i].file, &sums, dg), out);
    if (file_is_dir(s->path)) TRY_GOTO(add_config(s->path, &sums, dg), out);
    st = buf_status(&sums);
    if (st != CAIRN_OK)
        (void)diag_set(dg, st, "no memory for the model's fingerprint");
    else
        *out = hash128_of(sums.ptr, sums.len);
out:
    buf_deinit(&sums);
    return st;
}
