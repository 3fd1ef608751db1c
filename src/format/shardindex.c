/* Reads an index of shards.  A parsed document takes some 13 times its text and that of a model of
   10^12 parameters has 20 MB, so the map of weights is read piece by piece; what stands beside it is
   small and parsed whole.  Invariant: no name of a file leads out of the folder. */
#include "format/shardindex.h"

#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "format/format_priv.h"
#include "format/jsonsplit.h"

enum {
    MAX_SHARDS = 1000, /* the largest public set has 163 */
    MAX_BESIDE = 4 << 20,
};

static cairn_status no_memory(const shard_index *x, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to read it", x->path);
}

static bool is_plain_name(cairn_str s)
{
    return s.len > 0 && s.len < 256 && s.ptr[0] != '.' && !memchr(s.ptr, '/', s.len) &&
           !memchr(s.ptr, 0, s.len);
}

static cairn_status keep(shard_index *x, cairn_str s, cairn_str *out, cairn_diag *dg)
{
    if (s.len > x->names_left)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "%s: weight_map: found names of over %d bytes; expected fewer", x->path,
                        FORMAT_MAX_NAME_BYTES);
    x->names_left -= s.len;
    out->ptr = arena_strdup(&x->mem, s);
    out->len = s.len;
    return out->ptr ? CAIRN_OK : no_memory(x, dg);
}

static cairn_status find_shard(shard_index *x, cairn_str file, uint32_t *out, cairn_diag *dg)
{
    cairn_str kept;
    if (map_get(&x->by_shard, file, out)) return CAIRN_OK;
    if (x->n_shard == MAX_SHARDS)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: weight_map: found over %d files; expected fewer",
                        x->path, MAX_SHARDS);
    TRY(keep(x, file, &kept, dg));
    *out = (uint32_t)x->n_shard;
    x->shard[x->n_shard++] = kept;
    return map_put(&x->by_shard, kept, *out) == CAIRN_OK ? CAIRN_OK : no_memory(x, dg);
}

static cairn_status add(shard_index *x, cairn_str tensor, json_val v, cairn_diag *dg)
{
    shard_tensor t;
    if (json_typeof(v) != JSON_STR || !is_plain_name(json_str(v)))
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: weight_map: %.*s: found %s%.*s; expected the name of a file beside it",
                        x->path, STR_ARG(tensor),
                        json_typeof(v) == JSON_STR ? "" : json_type_name(json_typeof(v)),
                        STR_ARG(json_str(v)));
    TRY(find_shard(x, json_str(v), &t.shard, dg));
    TRY(keep(x, tensor, &t.name, dg));
    x->tensor[x->n_tensor++] = t;
    return map_put(&x->where, t.name, t.shard) == CAIRN_OK ? CAIRN_OK : no_memory(x, dg);
}

static cairn_status add_members(shard_index *x, json_val piece, size_t n_max, cairn_diag *dg)
{
    json_iter it = json_each(piece);
    cairn_str key;
    json_val v;
    while (json_next_member(&it, &key, &v)) {
        if (x->n_tensor == n_max) /* more than its commas say: malformed */
            return diag_set(dg, CAIRN_E_CORRUPT, "%s: weight_map: expected %zu members, found more",
                            x->path, n_max);
        TRY(add(x, key, v, dg));
    }
    return CAIRN_OK;
}

static cairn_status read_map(shard_index *x, cairn_str text, cairn_diag *dg)
{
    const size_t n = jsonsplit_count(text);
    jsonsplit split = {.text = text};
    cairn_status st = CAIRN_OK;
    buf piece;

    if (n > FORMAT_MAX_TENSORS)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: weight_map: found %zu tensors; expected at most %d",
                        x->path, n, FORMAT_MAX_TENSORS);
    x->tensor = arena_alloc(&x->mem, (n + 1) * sizeof *x->tensor);
    x->shard = arena_alloc(&x->mem, MAX_SHARDS * sizeof *x->shard);
    if (!x->tensor || !x->shard || map_reserve(&x->where, n) != CAIRN_OK) return no_memory(x, dg);
    buf_init(&piece, MEM_SCRATCH);
    while (!split.done && st == CAIRN_OK) {
        json_doc *doc = NULL;
        const size_t at = split.at;
        st = jsonsplit_next(&split, &piece, dg);
        if (st == CAIRN_OK) st = json_parse(buf_view(&piece), &doc, dg);
        if (st != CAIRN_OK) {
            (void)diag_prefix(dg, st, "%s: weight_map from byte %zu", x->path, at);
            break;
        }
        st = add_members(x, json_root(doc), n, dg);
        json_free(doc);
    }
    buf_deinit(&piece);
    return st;
}

/* The value of the member if it is the map; its name is written plainly in every file there is. */
static bool is_map(cairn_str member, cairn_str *value)
{
    static const char name[] = "\"weight_map\"";
    const cairn_str s = str_trim(member);
    if (!str_starts(s, STR_LIT(name))) return false;
    const cairn_str rest = str_trim(str_sub(s, sizeof name - 1, s.len - (sizeof name - 1)));
    if (!rest.len || rest.ptr[0] != ':') return false;
    *value = str_trim(str_sub(rest, 1, rest.len - 1));
    return true;
}

/* The object without its map, whose place a 0 takes (or its value where it is no object). */
static cairn_status cut_map(const shard_index *x, cairn_str text, cairn_str *value, buf *beside,
                            cairn_diag *dg)
{
    jsonsplit split = {.text = text};
    buf_byte(beside, '{');
    while (!split.done) {
        cairn_str member, v;
        const cairn_status st = jsonsplit_member(&split, &member, dg);
        if (st != CAIRN_OK) return diag_prefix(dg, st, "%s", x->path);
        if (is_map(member, &v) && v.len && v.ptr[0] == '{') {
            *value = v;
            buf_puts(beside, "\"weight_map\":0");
        } else if (beside->len + member.len <= MAX_BESIDE) {
            buf_str(beside, member);
        } else {
            return diag_set(dg, CAIRN_E_LIMIT,
                            "%s: found over %d bytes beside weight_map; expected fewer", x->path,
                            MAX_BESIDE);
        }
        buf_byte(beside, split.done ? '}' : ',');
    }
    return buf_status(beside) == CAIRN_OK ? CAIRN_OK : no_memory(x, dg);
}

static cairn_status check_beside(const shard_index *x, cairn_str text, bool has_map, cairn_diag *dg)
{
    json_doc *doc = NULL;
    cairn_status st = json_parse(text, &doc, dg);
    if (st != CAIRN_OK) return diag_prefix(dg, st, "%s: without its weight_map", x->path);
    if (!has_map)
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: weight_map: found %s; expected an object", x->path,
                      json_type_name(json_typeof(json_get(json_root(doc), "weight_map"))));
    json_free(doc);
    return st;
}

cairn_status shard_index_parse(const char *path, cairn_str text, shard_index *out, cairn_diag *dg)
{
    shard_index *x = out;
    cairn_str value = {NULL, 0};
    buf beside;

    *x = (shard_index){.path = path, .names_left = FORMAT_MAX_NAME_BYTES};
    arena_init(&x->mem, MEM_SCRATCH);
    map_init(&x->where, MEM_SCRATCH);
    map_init(&x->by_shard, MEM_SCRATCH);
    text = str_trim(text);
    if (!text.len || text.ptr[0] != '{')
        return diag_set(dg, CAIRN_E_CORRUPT, "%s: found something else; expected a JSON object",
                        path);
    buf_init(&beside, MEM_SCRATCH);
    cairn_status st = cut_map(x, text, &value, &beside, dg);
    if (st == CAIRN_OK) st = check_beside(x, buf_view(&beside), value.len > 0, dg);
    buf_deinit(&beside);
    return st == CAIRN_OK ? read_map(x, value, dg) : st;
}

void shard_index_deinit(shard_index *x)
{
    map_deinit(&x->where);
    map_deinit(&x->by_shard);
    arena_deinit(&x->mem);
}
