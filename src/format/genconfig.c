/* Owns the reading of the token ids and sampling numbers that config.json and generation_config.json
   hold.  The numbers are only checked: requests bring their own.  The reference (transformers) refuses
   ids that are no whole numbers when it loads, a sampling number out of its range when it samples; here
   both are refused when the model opens. */
#include "format/genconfig.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/file.h"
#include "format/hfconfig.h"

enum { MOST_ID = 1 << 24 }; /* no model's vocabulary is larger */

typedef struct reader {
    const char *path;
    meta_view v;
    tok *t;
    cairn_diag *dg;
    int n_eos;
} reader;

static cairn_status wrong(const reader *r, const char *key, const meta *m, const char *expected)
{
    char found[META_TEXT_LEN];
    meta_text(m, found);
    return diag_set(r->dg, CAIRN_E_CORRUPT, "%s: %s: found %s; expected %s", r->path, key, found,
                    expected);
}

static bool is_id(const meta *m, int64_t least)
{
    return m->type == META_INT && m->u.i >= least && m->u.i < MOST_ID;
}

static cairn_status check_eos(const reader *r)
{
    static const char expected[] = "a token id or a list of them";
    meta m, one;

    if (!meta_get(&r->v, "eos_token_id", &m) || is_id(&m, 0)) return CAIRN_OK;
    if (m.type != META_ARR) return wrong(r, "eos_token_id", &m, expected);
    json_iter it = hfconfig_each(&m);
    while (hfconfig_next(&it, &one))
        if (!is_id(&one, 0)) return wrong(r, "eos_token_id", &one, expected);
    return CAIRN_OK;
}

/* Ids beyond the tokenizer's vocabulary have no text to end: configs of cut-down models keep some. */
static cairn_status add_eos(reader *r, const meta *m)
{
    const int32_t id = (int32_t)m->u.i;
    if (id >= tok_vocab(r->t) || tok_is_eos(r->t, id)) return CAIRN_OK;
    if (r->n_eos++ == GENCONFIG_MAX_EOS)
        return diag_set(r->dg, CAIRN_E_LIMIT,
                        "%s: eos_token_id: found over %d ids; expected at most %d", r->path,
                        GENCONFIG_MAX_EOS, GENCONFIG_MAX_EOS);
    return tok_add_eos(r->t, id);
}

/* After check_eos. */
static cairn_status read_eos(reader *r)
{
    meta m, one;

    if (!meta_get(&r->v, "eos_token_id", &m)) return CAIRN_OK;
    if (m.type != META_ARR) return add_eos(r, &m);
    json_iter it = hfconfig_each(&m);
    while (hfconfig_next(&it, &one)) TRY(add_eos(r, &one));
    return CAIRN_OK;
}

/* Read for nothing but this check.  -1 stands for no padding in old checkpoints, and the reference
   takes it. */
static cairn_status check_id(const reader *r, const char *key, int64_t least)
{
    char expected[META_TEXT_LEN];
    meta m;

    if (!meta_get(&r->v, key, &m)) return CAIRN_OK;
    if (is_id(&m, least)) return CAIRN_OK;
    (void)snprintf(expected, sizeof expected, "a token id (%d to %d)", (int)least, MOST_ID - 1);
    return wrong(r, key, &m, expected);
}

/* What the reference's logits processors demand, but for values that stand for "off": a temperature or
   top_k of 0 (transformers), a top_k of -1 (vLLM). */
static cairn_status check_sampling(reader *r)
{
    static const struct {
        const char *key;
        double lo, hi;
        bool whole, open; /* open: lo itself is not allowed */
        const char *expected;
    } field[] = {
        {"temperature", 0, 1e6, false, false, "a number of 0 or more"},
        {"top_p", 0, 1, false, false, "a number from 0 to 1"},
        {"min_p", 0, 1, false, false, "a number from 0 to 1"},
        {"top_k", -1, 0x1p31 - 1, true, false, "a whole number of 0 or more"},
        {"repetition_penalty", 0, 1e6, false, true, "a number over 0"},
    };
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        meta m;
        if (!meta_get(&r->v, field[i].key, &m)) continue;
        const bool is_int = m.type == META_INT;
        const double x = is_int ? (double)m.u.i : m.type == META_FLOAT ? m.u.f : -2;
        if ((is_int || (m.type == META_FLOAT && !field[i].whole)) && x >= field[i].lo &&
            x <= field[i].hi && (!field[i].open || x > field[i].lo))
            continue;
        return wrong(r, field[i].key, &m, field[i].expected);
    }
    return CAIRN_OK;
}

static cairn_status check_ids(const reader *r)
{
    TRY(check_eos(r));
    TRY(check_id(r, "bos_token_id", 0));
    return check_id(r, "pad_token_id", -1);
}

cairn_status genconfig_check_ids(const char *path, const hfconfig *c, cairn_diag *dg)
{
    return check_ids(&(reader){.path = path, .v = hfconfig_meta(c), .dg = dg});
}

cairn_status genconfig_read(const char *dir, const char *name, tok *t, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    hfconfig *c = NULL;
    buf path;

    buf_init(&path, MEM_TEXT);
    if (!path_join(&path, dir, name)) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: path", dir);
        goto out;
    }
    if (!file_exists(path.ptr)) goto out;
    TRY_GOTO(hfconfig_open(path.ptr, &c, dg), out);
    reader r = {.path = path.ptr, .v = hfconfig_meta(c), .t = t, .dg = dg};
    TRY_GOTO(check_ids(&r), out);
    TRY_GOTO(read_eos(&r), out);
    st = check_sampling(&r);
out:
    hfconfig_close(c);
    buf_deinit(&path);
    return st;
}
