/* Which rows of a step walk the cache together.  Rows of one segment do; so do those of several segments, of one
   query row each, whose block tables begin alike: a prefix that they share is then read once for all of them.
   Sets never enter the arithmetic: a split of a row is the same sums in whatever company.

   Layers with a window are left out, since it leaves a prefix behind; so are picked positions, which are each
   row's own. */
#include <string.h>

#include "backend/cpu/cpu_attend.h"
#include "tensor/backend.h"
#include "tensor/batch.h"
#include "tensor/kvview.h"
#include "tensor/plan.h"
#include "tensor/prog.h"

size_t attend_sets_size(int32_t max_rows)
{
    return (size_t)max_rows * (sizeof(row_set) + sizeof(int32_t));
}

void attend_query_rows(const attend_job *j, const segment *g, int32_t *row0, int32_t *n)
{
    const bool all = j->r->x->pl->p->value[j->o->in[0]].rows == ROWS_ALL;
    *row0 = all ? g->row0 : g->out0;
    *n = all ? g->n_rows : g->n_out;
}

/* Whole blocks that the one query row of a segment sees, if that is at least a split; else 0. */
static int32_t shared_room(const attend_job *j, const segment *g)
{
    int32_t row0, n;
    attend_query_rows(j, g, &row0, &n);
    if (n != 1 || j->o->u.attend.window > 0 || j->o->u.attend.both || j->at) return 0;
    int32_t seen = j->r->s->pos[cpu_step_row(j->r, j->o->in[0], row0)] + 1;
    if (j->kv->late) seen = min_i32(seen, j->kv->late_from);
    return seen < ATTEND_SPLIT ? 0 : seen / KV_BLOCK;
}

static uint8_t *const *table_of(const attend_job *j, const segment *g)
{
    return g->blocks[j->kv->group];
}

/* Some order in which tables that begin alike are neighbours; those with nothing to share come first. */
static int32_t compare(const attend_job *j, const segment *a, const segment *b)
{
    const int32_t na = shared_room(j, a), nb = shared_room(j, b), n = min_i32(na, nb);
    const int c = n ? memcmp(table_of(j, a), table_of(j, b), (size_t)n * sizeof(uint8_t *)) : 0;
    return c ? c : na - nb;
}

static bool begin_alike(const attend_job *j, const segment *a, const segment *b)
{
    const size_t n = ATTEND_SPLIT / KV_BLOCK * sizeof(uint8_t *);
    return shared_room(j, a) && shared_room(j, b) && memcmp(table_of(j, a), table_of(j, b), n) == 0;
}

bool attend_sets(attend_job *j, void *scratch)
{
    const step *s = j->r->s;
    row_set *set = scratch;
    int32_t *order = (int32_t *)(void *)(set + s->n_seg), n = 0, row0, n_rows;
    for (int32_t i = 0; i < s->n_seg; i++) {
        attend_query_rows(j, &s->seg[i], &row0, &n_rows);
        if (n_rows == 0) continue;
        int32_t at = n++;
        for (; at > 0 && compare(j, &s->seg[order[at - 1]], &s->seg[i]) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    j->order = order;
    j->set = set;
    j->n_set = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i > 0 && begin_alike(j, &s->seg[order[i - 1]], &s->seg[order[i]]))
            set[j->n_set - 1].n++;
        else
            set[j->n_set++] = (row_set){i, 1};
    }
    return j->n_set < n;
}

static bool same_split(const attend_job *j, const segment *a, const segment *b, int32_t c)
{
    for (int32_t p = c * ATTEND_SPLIT; p < (c + 1) * ATTEND_SPLIT; p += KV_BLOCK) {
        const int32_t group = kv_at(j->kv, p)->group, i = p / KV_BLOCK;
        if (a->blocks[group][i] != b->blocks[group][i]) return false;
    }
    return true;
}

int32_t attend_run_end(const attend_job *j, const unit *u, int32_t a, int32_t c)
{
    const segment *seg = j->r->s->seg;
    const int32_t last = (c + 1) * ATTEND_SPLIT - 1;
    int32_t b = a + 1;
    while (b < u->n_rows && u->hi[a] >= last && u->hi[b] >= last &&
           same_split(j, &seg[u->segs[a]], &seg[u->segs[b]], c))
        b++;
    return b;
}
