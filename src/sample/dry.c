/* DRY, "don't repeat yourself" (P. E. Weidmann 2024, text-generation-webui pull request 5677): a token that
   would prolong a repeat of n ≥ allowed tokens loses multiplier · base^(n - allowed).  Repeats are found by the
   Z-algorithm (Gusfield 1997, section 1.4) over the window read backwards: linear in it.

   A repeat does not reach over a breaker, a string that is looked for in the text of the tokens wherever it
   lies in them; a token whose own text has one is never punished. */
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "sample/sample_priv.h"

enum {
    MAX_OVER = 1000
}; /* longer repeats are punished as one of so many more tokens than are allowed */
static const double MAX_PENALTY = 1e30; /* no logit is left beside it, and none becomes infinite */

/* The sequence from its end. */
typedef struct tail {
    const sampler *s;
    const cairn_sampling *how;
    const int32_t *end;
    int32_t n;
} tail;

static int32_t tail_id(const tail *t, int32_t i)
{
    return t->end[-1 - i];
}

static int32_t same_from(const tail *t, int32_t i, int32_t k)
{
    while (k < t->n && tail_id(t, i) == tail_id(t, k)) i++, k++;
    return k;
}

/* match[k]: of how many tokens up to the k-th from the end are as many at the end. */
static void find_matches(const tail *t, int32_t *match)
{
    int32_t from = 0, to = 0; /* the match that reaches furthest */
    for (int32_t k = 1; k < t->n; k++) {
        const int32_t known = k < to ? min_i32(match[k - from], to - k) : 0;
        match[k] = known;
        if (k + known < to) continue;
        to = same_from(t, known, k + known);
        from = k;
        match[k] = to - k;
    }
}

/* Whether b ends with byte `end` of the i-th token from the end, and begins in the window. */
static bool ends_there(const tail *t, cairn_str b, int32_t i, size_t end)
{
    cairn_str piece = tok_piece(t->s->tok, tail_id(t, i));
    while (b.len > 0) {
        while (end == 0) {
            if (++i == t->n) return false;
            piece = tok_piece(t->s->tok, tail_id(t, i));
            end = piece.len;
        }
        if (piece.ptr[--end] != b.ptr[--b.len]) return false;
    }
    return true;
}

static bool breaks_at(const tail *t, int32_t i)
{
    const size_t n = tok_piece(t->s->tok, tail_id(t, i)).len;
    for (size_t k = 0; k < t->how->n_dry_breakers; k++)
        for (size_t end = 1; end <= n; end++)
            if (ends_there(t, t->how->dry_breakers[k], i, end)) return true;
    return false;
}

/* How many of the last n tokens stand behind the last breaker. */
static int32_t unbroken(const tail *t, int32_t n)
{
    int32_t i = 0;
    while (i < n && !breaks_at(t, i)) i++;
    return i;
}

static bool has_breaker(const tail *t, int32_t id)
{
    const cairn_str piece = tok_piece(t->s->tok, id);
    for (size_t k = 0; k < t->how->n_dry_breakers; k++)
        if (str_find(piece, t->how->dry_breakers[k], 0) != SIZE_MAX) return true;
    return false;
}

static float penalty(const cairn_sampling *how, int32_t over)
{
    double power = 1, base = (double)how->dry_base;
    for (; over > 0; over >>= 1) {
        if (over & 1) power *= base;
        base = base < MAX_PENALTY ? base * base : base;
    }
    const double p = power * (double)how->dry_multiplier;
    return (float)(p < MAX_PENALTY ? p : MAX_PENALTY);
}

void dry_apply(sampler *s, float *x, const sample_in *in)
{
    const cairn_sampling *how = in->how;
    const int32_t allowed = how->dry_allowed_length, window = how->dry_window;
    if (how->dry_multiplier == 0.0f) return;
    const tail t = {s, how, in->ids + in->n_ids, window ? min_i32(window, in->n_ids) : in->n_ids};
    if (t.n <= allowed) return;
    int32_t longest = 0, *match = s->match;
    find_matches(&t, match);
    for (int32_t k = 1; k < t.n; k++) longest = max_i32(longest, match[k]);
    longest = min_i32(longest, allowed + MAX_OVER);
    if (s->tok) longest = unbroken(&t, longest);
    if (longest < allowed) return;
    /* the longest repeat that each token would prolong, plus one */
    for (int32_t k = 1; k < t.n; k++) {
        int32_t *n = &s->count[tail_id(&t, k - 1)];
        if (match[k] >= allowed) *n = max_i32(*n, min_i32(match[k], longest) + 1);
    }
    for (int32_t k = 1; k < t.n; k++) {
        const int32_t id = tail_id(&t, k - 1), n = s->count[id];
        s->count[id] = 0;
        if (n > 0 && !(s->tok && has_breaker(&t, id))) x[id] -= penalty(how, n - 1 - allowed);
    }
}
