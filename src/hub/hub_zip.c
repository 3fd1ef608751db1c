/* Reading one member of a zip file through libzip.  Memory does not grow with the member. */
#include "hub/hub_zip.h"

#include <zip.h>

#include "base/diag.h"

enum { CHUNK = 1 << 18, BIG = 1 << 20 }; /* a wheel's own files are a few KB */

static cairn_status find_big(zip_t *z, const char *path, zip_uint64_t *at, cairn_diag *dg)
{
    const zip_int64_t n = zip_get_num_entries(z, 0);
    unsigned found = 0;
    for (zip_int64_t i = 0; i < n; i++) {
        zip_stat_t s;
        if (zip_stat_index(z, (zip_uint64_t)i, 0, &s) != 0 || !(s.valid & ZIP_STAT_SIZE)) continue;
        if (s.size < BIG) continue;
        found++;
        *at = (zip_uint64_t)i;
    }
    if (found == 1) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_CORRUPT, "%s: %u big files in it; expected one", path, found);
}

static cairn_status find(zip_t *z, const char *path, const char *member, zip_uint64_t *at,
                         cairn_diag *dg)
{
    if (!member) return find_big(z, path, at, dg);
    const zip_int64_t i = zip_name_locate(z, member, 0);
    if (i < 0) return diag_set(dg, CAIRN_E_CORRUPT, "%s: expected a member %s", path, member);
    *at = (zip_uint64_t)i;
    return CAIRN_OK;
}

static cairn_status copy(zip_file_t *f, const char *path, uint64_t size, hub_part *p,
                         cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    uint64_t done = 0;
    void *chunk = mem_alloc(CHUNK, MEM_IO);
    if (!chunk) return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to read it", path);
    while (st == CAIRN_OK) {
        const zip_int64_t n = zip_fread(f, chunk, CHUNK);
        if (n < 0)
            st = diag_set(dg, CAIRN_E_CORRUPT, "%s: damaged: %s; expected a whole wheel", path,
                          zip_file_strerror(f));
        if (n <= 0) break;
        done += (uint64_t)n;
        st = hub_part_add(p, chunk, (size_t)n, dg);
    }
    mem_free(chunk);
    if (st == CAIRN_OK && done != size)
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: %llu bytes; expected %llu", path,
                      (unsigned long long)done, (unsigned long long)size);
    return st;
}

cairn_status hub_zip_append(const char *path, const char *member, hub_part *p, cairn_diag *dg)
{
    int e = 0;
    zip_uint64_t at = 0;
    zip_stat_t s;
    zip_t *z = zip_open(path, ZIP_RDONLY, &e);
    if (!z) {
        zip_error_t why;
        zip_error_init_with_code(&why, e);
        (void)diag_set(dg, CAIRN_E_CORRUPT, "%s: not a zip file: %s; expected a wheel", path,
                       zip_error_strerror(&why));
        zip_error_fini(&why);
        return CAIRN_E_CORRUPT;
    }
    cairn_status st = find(z, path, member, &at, dg);
    if (st == CAIRN_OK && (zip_stat_index(z, at, 0, &s) != 0 || !(s.valid & ZIP_STAT_SIZE)))
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: %s has no size; expected one", path, member);
    if (st == CAIRN_OK && s.size > p->limit - p->size)
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: %llu bytes in it; expected at most %llu", path,
                      (unsigned long long)s.size, (unsigned long long)(p->limit - p->size));
    if (st == CAIRN_OK) {
        zip_file_t *f = zip_fopen_index(z, at, 0);
        st = f ? copy(f, path, s.size, p, dg)
               : diag_set(dg, CAIRN_E_CORRUPT, "%s: %s: %s; expected to read it", path, member,
                          zip_strerror(z));
        if (f) (void)zip_fclose(f);
    }
    zip_discard(z);
    return st;
}

void hub_zip_library(buf *out)
{
    buf_printf(out, "libzip %s", zip_libzip_version());
}
