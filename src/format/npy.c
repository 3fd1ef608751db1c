/* Writes NumPy files: .npy (version 1.0) and stored .npz of several of them.  Little-endian, C order.
   A failed write leaves no file behind. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/num.h"
#include "format/format.h"

enum { MAX_DIM = 8 };

/* Magic, version and header text; padded so that the data begins at a multiple of 64. */
static void npy_header(buf *b, const char *descr, const size_t *dim, size_t n_dim)
{
    const size_t start = b->len;
    buf_put(b, "\x93NUMPY\x01\x00\x00\x00", 10);
    buf_printf(b, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (size_t i = 0; i < n_dim; i++)
        buf_printf(b, "%s%zu%s", i ? " " : "", dim[i], i + 1 < n_dim || n_dim == 1 ? "," : "");
    buf_puts(b, "), }");
    while ((b->len - start) % 64 != 63 && buf_status(b) == CAIRN_OK) buf_byte(b, ' ');
    buf_byte(b, '\n');
    if (buf_status(b) != CAIRN_OK) return;
    const size_t text = b->len - start - 10;
    b->ptr[start + 8] = (char)(text & 255);
    b->ptr[start + 9] = (char)(text >> 8);
}

static cairn_status no_memory(const char *path, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to write it", path);
}

/* Closes and reports; on failure the file goes, unless it is a device or a pipe. */
static cairn_status finish(FILE *f, const char *path, bool ok, cairn_diag *dg)
{
    const int err = ok ? 0 : errno;
    struct stat s;
    const bool regular = fstat(fileno(f), &s) == 0 && S_ISREG(s.st_mode);
    if (fclose(f) == 0 && ok) return CAIRN_OK;
    const int why = err ? err : errno;
    if (regular) (void)unlink(path);
    return diag_set(dg, CAIRN_E_IO, "%s: writing: %s", path, strerrordesc_np(why));
}

static bool put(FILE *f, const void *p, size_t n)
{
    return n == 0 || fwrite(p, 1, n, f) == n;
}

cairn_status npy_write_f32(const char *path, const float *p, const size_t *dim, size_t n_dim,
                           cairn_diag *dg)
{
    size_t size = sizeof *p;
    cairn_status st = CAIRN_OK;
    FILE *f;
    buf head;

    if (n_dim > MAX_DIM)
        return diag_set(dg, CAIRN_E_ARG, "%s: %zu dimensions; expected at most %d", path, n_dim,
                        MAX_DIM);
    for (size_t i = 0; i < n_dim; i++)
        if (!mul_size(size, dim[i], &size))
            return diag_set(dg, CAIRN_E_ARG,
                            "%s: its size overflows; expected less than 2^64 bytes", path);
    buf_init(&head, MEM_IO);
    npy_header(&head, "<f4", dim, n_dim);
    if (buf_status(&head) != CAIRN_OK) {
        st = no_memory(path, dg);
        goto out;
    }
    f = fopen(path, "wb");
    if (!f) {
        st = diag_set(dg, CAIRN_E_IO, "%s: opening for writing: %s", path, strerrordesc_np(errno));
        goto out;
    }
    st = finish(f, path, put(f, head.ptr, head.len) && put(f, p, size), dg);
out:
    buf_deinit(&head);
    return st;
}

/* CRC-32 as ZIP has it: reflected polynomial 0xEDB88320. */
static uint32_t crc32_add(uint32_t crc, const void *p, size_t n)
{
    const uint8_t *b = p;
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ UINT32_C(0xEDB88320) : c >> 1;
        table[i] = c;
    }
    crc = ~crc;
    for (size_t i = 0; i < n; i++) crc = table[(crc ^ b[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static void put_le(buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) buf_byte(b, (char)(v >> 8 * i & 255));
}

/* One array of the archive. */
typedef struct npz_entry {
    const char *name, *descr;
    const void *data;
    size_t size, dim[2], n_dim;
    uint32_t crc, at; /* filled in while writing */
} npz_entry;

/* The fields that a local header and the directory share, from "version needed" to the lengths. */
static void zip_common(buf *b, const npz_entry *e, size_t size)
{
    put_le(b, 20, 2);   /* version needed */
    put_le(b, 0, 2);    /* flags */
    put_le(b, 0, 2);    /* stored */
    put_le(b, 0, 2);    /* time */
    put_le(b, 0x21, 2); /* 1 January 1980: the same bytes for the same arrays */
    put_le(b, e->crc, 4);
    put_le(b, size, 4);
    put_le(b, size, 4);
    put_le(b, strlen(e->name), 2);
    put_le(b, 0, 2); /* no extra field */
}

static void zip_directory(buf *b, const npz_entry *e, size_t size)
{
    put_le(b, 0x02014b50, 4);
    put_le(b, 3 << 8 | 20, 2); /* made by: Unix, for the mode below */
    zip_common(b, e, size);
    put_le(b, 0, 2); /* comment */
    put_le(b, 0, 2); /* disk */
    put_le(b, 0, 2); /* internal attributes */
    put_le(b, UINT32_C(0100644) << 16, 4);
    put_le(b, e->at, 4);
    buf_puts(b, e->name);
}

static void zip_end(buf *b, size_t n, size_t dir_size, size_t dir_at)
{
    put_le(b, 0x06054b50, 4);
    put_le(b, 0, 4); /* disks */
    put_le(b, n, 2);
    put_le(b, n, 2);
    put_le(b, dir_size, 4);
    put_le(b, dir_at, 4);
    put_le(b, 0, 2); /* comment */
}

/* Local header, .npy header, data; its directory entry goes to dir, its length to *at. */
static bool npz_put(FILE *f, npz_entry *e, buf *scratch, buf *dir, size_t *at)
{
    buf head;

    buf_init(&head, MEM_IO);
    buf_clear(scratch);
    npy_header(scratch, e->descr, e->dim, e->n_dim);
    const size_t size = scratch->len + e->size;
    e->crc = crc32_add(crc32_add(0, scratch->ptr, scratch->len), e->data, e->size);
    e->at = (uint32_t)*at;
    put_le(&head, 0x04034b50, 4);
    zip_common(&head, e, size);
    buf_puts(&head, e->name);
    zip_directory(dir, e, size);
    const bool ok = buf_status(scratch) == CAIRN_OK && buf_status(&head) == CAIRN_OK &&
                    buf_status(dir) == CAIRN_OK && put(f, head.ptr, head.len) &&
                    put(f, scratch->ptr, scratch->len) && put(f, e->data, e->size);
    *at += head.len + size;
    buf_deinit(&head);
    return ok;
}

static bool npz_put_all(FILE *f, npz_entry *e, size_t n)
{
    size_t at = 0;
    buf scratch, dir;
    bool ok = true;

    buf_init(&scratch, MEM_IO);
    buf_init(&dir, MEM_IO);
    for (size_t i = 0; ok && i < n; i++) ok = npz_put(f, &e[i], &scratch, &dir, &at);
    const size_t dir_size = dir.len;
    zip_end(&dir, n, dir_size, at);
    ok = ok && buf_status(&dir) == CAIRN_OK && put(f, dir.ptr, dir.len);
    buf_deinit(&scratch);
    buf_deinit(&dir);
    return ok;
}

cairn_status npz_write_top(const char *path, const int32_t *ids, const float *logits,
                           const float *lse, size_t n, size_t k, cairn_diag *dg)
{
    size_t cells, bytes;
    FILE *f;

    /* Plain ZIP counts in 32 bits; with room for the headers. */
    if (!mul_size(n, k, &cells) || !mul_size(cells, 4, &bytes) ||
        bytes > (UINT32_MAX - 65536) / 3 || n > UINT32_MAX / 16)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "%s: %zu rows of %zu; expected less than 4 GiB, what an .npz holds", path,
                        n, k);
    npz_entry e[] = {
        {.name = "ids.npy", .descr = "<i4", .data = ids, .size = bytes, .dim = {n, k}, .n_dim = 2},
        {.name = "logits.npy",
         .descr = "<f4",
         .data = logits,
         .size = bytes,
         .dim = {n, k},
         .n_dim = 2},
        {.name = "lse.npy", .descr = "<f4", .data = lse, .size = 4 * n, .dim = {n}, .n_dim = 1},
    };
    f = fopen(path, "wb");
    if (!f)
        return diag_set(dg, CAIRN_E_IO, "%s: opening for writing: %s", path,
                        strerrordesc_np(errno));
    errno = ENOMEM; /* what it was when no write failed */
    return finish(f, path, npz_put_all(f, e, sizeof e / sizeof *e), dg);
}
