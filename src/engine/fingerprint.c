/* A model's fingerprint is a hash of the hashes of its files.  Of their bytes, not of names or times: a file
   that was changed in place must not find what was computed with its former weights. */
#include "engine/fingerprint.h"

#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "format/textfiles.h"

/* Between two looks whether to go on: a tenth of a second from a slow disk. */
enum { PIECE = 8 << 20 };

static cairn_status add_file(const char *path, fingerprint_ask ask, buf *sums, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    hash64_stream s;
    file_map bytes;
    TRY(file_map_open(path, &bytes, dg));
    hash128_begin(&s);
    for (size_t at = 0; at < bytes.size && st == CAIRN_OK; at += PIECE) {
        if (ask.fn && !ask.fn(ask.ctx))
            st = diag_set(dg, CAIRN_E_CANCELLED, "%s: reading it for its hash was cancelled", path);
        else
            hash128_add(&s, bytes.ptr + at, min_size(bytes.size - at, PIECE));
    }
    file_map_close(&bytes);
    const hash128 h = hash128_end(&s);
    if (st == CAIRN_OK) buf_put(sums, &h, sizeof h);
    return st;
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

/* Of those of the model's folder that are there. */
static cairn_status add_files(const model *m, const char *const *name, size_t n, buf *sums,
                              cairn_diag *dg)
{
    buf path;
    cairn_status st = CAIRN_OK;
    buf_init(&path, MEM_ENGINE);
    for (size_t i = 0; i < n && file_is_dir(m->src->path) && st == CAIRN_OK; i++) {
        buf_clear(&path);
        const char *at = path_join(&path, m->src->path, name[i]);
        st = buf_status(&path);
        if (st != CAIRN_OK || !file_exists(at)) continue;
        st = add_file(at, (fingerprint_ask){0}, sums, dg); /* kilobytes, a tokenizer's megabytes */
    }
    buf_deinit(&path);
    return st;
}

static cairn_status sum_of(const buf *sums, hash128 *out, cairn_diag *dg)
{
    const cairn_status st = buf_status(sums);
    if (st != CAIRN_OK) return diag_set(dg, st, "no memory for the model's fingerprint");
    *out = hash128_of(sums->ptr, sums->len);
    return CAIRN_OK;
}

cairn_status fingerprint_of(const model *m, fingerprint_ask ask, hash128 *out, cairn_diag *dg)
{
    static const char *const config = "config.json";
    cairn_status st = CAIRN_OK;
    const source *s = m->src;
    buf sums;
    buf_init(&sums, MEM_ENGINE);
    for (size_t i = 0; i < s->n_tensor; i++)
        if (s->tensor[i].file && !seen_before(s, i))
            TRY_GOTO(add_file(s->tensor[i].file, ask, &sums, dg), out);
    TRY_GOTO(add_files(m, &config, 1, &sums, dg), out);
    st = sum_of(&sums, out, dg);
out:
    buf_deinit(&sums);
    return st;
}

cairn_status fingerprint_of_text(const model *m, hash128 *out, cairn_diag *dg)
{
    static const char *const more[] = {"tokenizer_config.json", "added_tokens.json",
                                       "special_tokens_map.json", "generation_config.json"};
    const char *name[TEXTFILES_MAX_NAMES];
    const size_t n = textfiles_names(name);
    buf sums;
    buf_init(&sums, MEM_ENGINE);
    cairn_status st = add_files(m, name, n, &sums, dg);
    if (st == CAIRN_OK) st = add_files(m, more, sizeof more / sizeof more[0], &sums, dg);
    if (st == CAIRN_OK) st = sum_of(&sums, out, dg);
    buf_deinit(&sums);
    return st;
}
