/* Owns the question whether a normalised text still begins where the text did, which a Metaspace asks that
   prepends to the first word only.  `tokenizers` keeps for each character which one of the text it came from,
   and a replacement stands where the last character was that it replaces; here just the head is kept: what
   has come from the text's first character. */
#include "text/tok_priv.h"
#include "text/uchar.h"

/* May the step replace several characters by one text? */
static bool takes_several(const norm_step *s)
{
    uint32_t cp;

    return s->kind == NORM_REPLACE &&
           (s->re || (s->from.len && uc_next(s->from.ptr, &cp) < s->from.len));
}

/* How much of s a Replace takes from its start. */
static cairn_status taken(const norm_step *step, cairn_str s, size_t *n, cairn_diag *dg)
{
    regex_iter it;
    size_t from = 0, to = 0;
    bool found = false;

    *n = 0;
    if (!step->re) {
        if (str_starts(s, step->from)) *n = step->from.len;
        return CAIRN_OK;
    }
    TRY(regex_begin(&it, step->re, s));
    const cairn_status st = regex_next(&it, &found, &from, &to, dg);
    regex_end(&it);
    if (st == CAIRN_OK && found && from == 0) *n = to;
    return st;
}

/* A text on its way through the steps: a result lies in x, the next one then in y. */
typedef struct passage {
    cairn_str s;
    buf x, y;
} passage;

static cairn_status pass(passage *p, const norm_step *step, cairn_diag *dg)
{
    const bool in_x = p->x.ptr && p->s.ptr == p->x.ptr;

    return norm_run(step, 1, p->s, in_x ? &p->y : &p->x, in_x ? &p->x : &p->y, &p->s, dg);
}

static void passage_begin(passage *p, cairn_str s)
{
    p->s = s;
    buf_init(&p->x, MEM_TEXT);
    buf_init(&p->y, MEM_TEXT);
}

static void passage_end(passage *p)
{
    buf_deinit(&p->x);
    buf_deinit(&p->y);
}

cairn_status norm_keeps_start(const norm_step *step, size_t n, cairn_str s, bool *keeps,
                              cairn_diag *dg)
{
    passage head, all;
    cairn_status st = CAIRN_OK;
    size_t several = 0, took;
    uint32_t cp;

    for (size_t i = 0; i < n; i++)
        if (takes_several(&step[i])) several = i + 1;
    passage_begin(&head, str_sub(s, 0, uc_next(s.ptr, &cp)));
    passage_begin(&all, s);
    for (size_t i = 0; i < n && head.s.len; i++) {
        if (takes_several(&step[i])) {
            TRY_GOTO(taken(&step[i], all.s, &took, dg), out);
            if (took > head.s.len) head.s.len = 0;
        }
        TRY_GOTO(pass(&head, &step[i], dg), out);
        if (i + 1 < several) TRY_GOTO(pass(&all, &step[i], dg), out);
    }
    *keeps = head.s.len > 0;
out:
    passage_end(&head);
    passage_end(&all);
    return st;
}
