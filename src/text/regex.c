/* Owns the binding to Oniguruma, the library whose dialect the split rules of tokenizer.json are
   written in.  Patterns and texts are not trusted: pattern length, and the retries of a search are
   limited.  A regex is read-only once made; each search has its own region and
   parameters, which the library writes to. */
#include <oniguruma.h>
#include <stdio.h>

#include "base/thread.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

enum {
    MAX_PATTERN = 1 << 16,
    /* Backtracking steps: of one match, as Oniguruma's own default; of all attempts of one search.
       About a second at most. */
    RETRY_MATCH = 10 * 1000 * 1000,
    RETRY_SEARCH = 50 * 1000 * 1000,
};

struct regex {
    regex_t *re;
    char shown[60]; /* of the pattern, for messages */
};

static const OnigUChar *bytes_of(const char *p)
{
    return (const OnigUChar *)p;
}

static void init_once(void)
{
    OnigEncoding use[] = {ONIG_ENCODING_UTF8};

    onig_initialize(use, 1);
}

cairn_status regex_new(cairn_str pattern, const char *where, regex **out, cairn_diag *dg)
{
    static once ready = ONCE_INIT;
    OnigErrorInfo info;
    OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];

    once_run(&ready, init_once);
    if (pattern.len > MAX_PATTERN)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: a pattern of %zu bytes; expected at most %d", where,
                        pattern.len, MAX_PATTERN);
    regex *r = mem_calloc(1, sizeof *r, MEM_TEXT);
    if (!r) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a pattern");
    (void)snprintf(r->shown, sizeof r->shown, "%.*s", STR_ARG(pattern));
    int rc = onig_new(&r->re, bytes_of(pattern.ptr), bytes_of(pattern.ptr + pattern.len),
                      ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
    if (rc != ONIG_NORMAL) {
        r->re = NULL;
        onig_error_code_to_str(text, rc, &info);
        diag_set(dg, CAIRN_E_UNSUPPORTED, "%s: pattern \"%.*s\": %s", where, STR_ARG(pattern),
                 text);
        regex_free(r);
        return CAIRN_E_UNSUPPORTED;
    }
    *out = r;
    return CAIRN_OK;
}

void regex_free(regex *r)
{
    if (!r) return;
    if (r->re) onig_free(r->re);
    mem_free(r);
}

cairn_status regex_begin(regex_iter *it, const regex *re, cairn_str s)
{
    *it = (regex_iter){.re = re, .s = s, .last_end = SIZE_MAX};
    it->region = onig_region_new();
    OnigMatchParam *param = it->param = onig_new_match_param();
    if (!it->region || !param) {
        regex_end(it);
        return CAIRN_E_NOMEM;
    }
    onig_initialize_match_param(param);
    onig_set_retry_limit_in_match_of_match_param(param, RETRY_MATCH);
    onig_set_retry_limit_in_search_of_match_param(param, RETRY_SEARCH);
    return CAIRN_OK;
}

cairn_status regex_next(regex_iter *it, bool *found, size_t *from, size_t *to, cairn_diag *dg)
{
    const OnigUChar *s = bytes_of(it->s.ptr), *end = s + it->s.len;
    OnigRegion *region = it->region;

    for (*found = false; it->at <= it->s.len;) {
        onig_region_clear(region);
        int rc = onig_search_with_param(it->re->re, s, end, s + it->at, end, region,
                                        ONIG_OPTION_NONE, it->param);
        if (rc == ONIG_MISMATCH) break;
        if (rc < 0) {
            OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
            onig_error_code_to_str(text, rc);
            return diag_set(dg, rc == ONIGERR_MEMORY ? CAIRN_E_NOMEM : CAIRN_E_LIMIT,
                            "pattern \"%s\": found %zu bytes of text that it cannot search (%s); "
                            "expected a pattern of fewer steps",
                            it->re->shown, it->s.len, (const char *)text);
        }
        size_t b = (size_t)region->beg[0], e = (size_t)region->end[0];
        if (b == e && e == it->last_end) { /* empty, at the last one's end: step over a character */
            uint32_t cp;
            it->at += it->at < it->s.len ? uc_next(it->s.ptr + it->at, &cp) : 1;
            continue;
        }
        it->at = it->last_end = e;
        *from = b;
        *to = e;
        *found = true;
        return CAIRN_OK;
    }
    it->at = it->s.len + 1;
    return CAIRN_OK;
}

void regex_end(regex_iter *it)
{
    if (it->region) onig_region_free(it->region, 1);
    if (it->param) onig_free_match_param(it->param);
    it->region = it->param = NULL;
}

void regex_library(buf *out)
{
    buf_printf(out, "oniguruma %s", onig_version());
}
