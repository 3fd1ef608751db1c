/* Owns the walk through a precompiled map.  A unit has its label in bits 0 … 7 (and 31, which says that
   it is a value), "a value hangs here" in bit 8, and the offset to its children above, stretched by
   eight bits where bit 9 is set.  Invariant: no index is used unchecked. */
#include "text/charsmap.h"

#include "base/diag.h"
#include "base/str.h"
#include "base/utf8.h"

enum { MAX_MAP = 64 << 20 }; /* bytes; SentencePiece's own have a quarter of a megabyte */

cairn_status charsmap_init(charsmap *m, cairn_str blob, arena *a, const char *where, cairn_diag *dg)
{
    uint32_t size;

    *m = (charsmap){0};
    if (blob.len == 0) return CAIRN_OK;
    if (blob.len > MAX_MAP)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: a character map of %zu bytes; expected at most %d",
                        where, blob.len, MAX_MAP);
    if (blob.len < sizeof size) goto corrupt;
    memcpy(&size, blob.ptr, sizeof size);
    if (size > blob.len - sizeof size || size % sizeof *m->unit) goto corrupt;
    char *p = arena_alloc(a, blob.len + 1);
    if (!p) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a character map");
    memcpy(p, blob.ptr + sizeof size, blob.len - sizeof size);
    m->unit = (const uint32_t *)(const void *)p;
    m->n = size / sizeof *m->unit;
    m->to = (cairn_str){p + size, blob.len - sizeof size - size};
    if (utf8_valid(m->to)) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_CORRUPT, "%s: a character map of other bytes; expected UTF-8",
                    where);
corrupt:
    return diag_set(dg, CAIRN_E_CORRUPT,
                    "%s: a character map of %zu bytes is cut short; expected all of it", where,
                    blob.len);
}

static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 0x200) >> 6);
}

static bool inside_char(cairn_str s, size_t at)
{
    return at < s.len && ((uint8_t)s.ptr[at] & 0xC0) == 0x80;
}

/* The replacement at `at`; false if the map has none there. */
static bool text_at(const charsmap *m, uint32_t at, cairn_str *to)
{
    if (at >= m->to.len || inside_char(m->to, at)) return false;
    const char *end = memchr(m->to.ptr + at, 0, m->to.len - at);
    if (!end) return false;
    *to = (cairn_str){m->to.ptr + at, (size_t)(end - m->to.ptr) - at};
    return true;
}

size_t charsmap_find(const charsmap *m, cairn_str s, bool first, cairn_str *to)
{
    size_t best = 0;

    if (m->n == 0) return 0;
    uint32_t at = offset_of(m->unit[0]);
    for (size_t i = 0; i < s.len && s.ptr[i]; i++) {
        uint32_t byte = (uint8_t)s.ptr[i];
        at ^= byte;
        if (at >= m->n) break;
        uint32_t unit = m->unit[at];
        if ((unit & 0x800000FF) != byte) break;
        at ^= offset_of(unit);
        if (!(unit & 0x100) || inside_char(s, i + 1)) continue;
        if (at < m->n && text_at(m, m->unit[at] & 0x7FFFFFFF, to)) best = i + 1;
        if (first && best) break;
    }
    return best;
}
