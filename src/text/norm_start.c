/* Owns the question how much of a normalised text stands where the text's first character did, which a Metaspace
   asks that prepends to the first word only: `tokenizers` keeps for each character which one of the text it
   came from, and takes every word for the first that begins with what came from the first character.  A
   replacement stands where the last character was that it replaces.  Here just the head is kept. */
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

/* The text's end is not the head's. */
static cairn_status pass_head(passage *p, const norm_step *step, cairn_diag *dg)
{
    norm_step s = *step;

    if (s.kind == NORM_STRIP) s.right = false;
    return pass(p, &s, dg);
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

/* The head is the first character of the whole text. */
static cairn_status take_head(passage *head, const passage *all)
{
    uint32_t cp;

    buf_clear(&head->x);
    if (all->s.len) buf_str(&head->x, str_sub(all->s, 0, uc_next(all->s.ptr, &cp)));
    head->s = buf_view(&head->x);
    return buf_status(&head->x);
}

/* A charsmap that drops the first characters loses count of them, and the next one stands in their place. */
static bool moves_up(const norm_step *s, const passage *head)
{
    return s->kind == NORM_PRECOMPILED && head->s.len == 0;
}

cairn_status norm_head(const norm_step *step, size_t n, cairn_str s, size_t *n_head, cairn_diag *dg)
{
    passage head, all;
    cairn_status st = CAIRN_OK;
    size_t whole = 0, took; /* the whole text is asked for before this step */

    for (size_t i = 0; i < n; i++)
        if (takes_several(&step[i]) || step[i].kind == NORM_PRECOMPILED) whole = i + 1;
    passage_begin(&head, s);
    passage_begin(&all, s);
    TRY_GOTO(take_head(&head, &all), out);
    for (size_t i = 0; i < n && head.s.len; i++) {
        if (takes_several(&step[i])) {
            TRY_GOTO(taken(&step[i], all.s, &took, dg), out);
            if (took > head.s.len) head.s.len = 0;
        }
        TRY_GOTO(pass_head(&head, &step[i], dg), out);
        const bool moved = moves_up(&step[i], &head);
        if (i + 1 < whole || moved) TRY_GOTO(pass(&all, &step[i], dg), out);
        if (moved) TRY_GOTO(take_head(&head, &all), out);
    }
    *n_head = head.s.len;
out:
    passage_end(&head);
    passage_end(&all);
    return st;
}
