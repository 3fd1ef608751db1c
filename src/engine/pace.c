/* Running estimates of what steps cost: of decoding rows by their number, of a prompt's row by its depth.

   A step that decodes may take `bound` times what it takes without prompts, and that for each prompt that waits,
   up to `bound` of them: many prompts slow each other, and streams alike, whereas a bound on streams alone left
   prompts to wait for seconds while streams hardly noticed (docs/load.md).  What prompts do not take of that is
   saved, up to half a second, for short ones, which may then take at once what many may: in the long run streams
   are slowed no more than said, and beside a long prompt at no time.

   What a step takes without prompts is measured in such steps alone, so one is made where there is no estimate, and
   now and then, since sequences grow.  What rows cost follows from the rest of a mixed step; how many there are
   changes what one costs, and the estimates settle where both agree.  No bit of an answer depends on any of it
   (docs/numerics.md). */
#include "engine/pace.h"

#include "base/num.h"

enum {
    SLOWNESS = 8,  /* a new figure counts for an eighth: a few odd steps move little */
    QUICKNESS = 2, /* a lower one of a step without prompts for half: there are few of those */
    RENEW = 32,    /* mixed steps in a row: 1 % of the time goes to measuring */
    SHALLOW = 1024,
    STEP_NS = 500000000, /* of a step that no stream waits for: arrivals do */
    FULL_ROWS = 64,      /* but products have their full rate only from here on */
    SHORT_ROWS = 1024,   /* a longer prompt's steps would be more than one gap of a hundred */
    SAVED_NS = 500000000 /* for short prompts: a pause in a text that nobody takes for its end */
};
#define AIM 0.85 /* of the bound, so that nearly every step keeps it, not one of two */

/* Each its own up to 16, then eight to an octave: what is left of difference is within an eighth. */
static int32_t count_of(int32_t n_decode)
{
    int32_t k = 0;
    while (n_decode >> k > 16) k++;
    return k == 0 ? n_decode - 1 : 16 + (k - 1) * 8 + (n_decode >> k) - 8;
}

static int32_t depth_of(int32_t pos)
{
    int32_t k = 0;
    while (k < PACE_DEPTHS - 1 && pos / SHALLOW >> k > 0) k++;
    return k;
}

static int32_t decoding(const sched_item *item, int32_t n)
{
    int32_t n_decode = 0;
    for (int32_t i = 0; i < n; i++) n_decode += item[i].decoding;
    return n_decode;
}

/* Of the nearest depth that is known; 0: none is. */
static uint64_t nearest(const uint64_t *row_ns, int32_t depth)
{
    for (int32_t k = 0; k < PACE_DEPTHS; k++) {
        if (depth >= k && row_ns[depth - k]) return row_ns[depth - k];
        if (depth + k < PACE_DEPTHS && row_ns[depth + k]) return row_ns[depth + k];
    }
    return 0;
}

/* Nothing known: a row of a prompt is no dearer than one that decodes alone. */
static uint64_t cost(const pace *p, int32_t n_decode, int32_t pos)
{
    const int32_t depth = depth_of(pos);
    const uint64_t own = nearest(p->row_ns[n_decode > 0], depth);
    if (own || n_decode == 0) return own;
    const uint64_t alone = nearest(p->row_ns[0], depth);
    return alone ? alone : p->decode_ns[count_of(n_decode)];
}

typedef struct crowd {
    int32_t n;      /* prompts that wait and are as urgent as one of the streams */
    bool all_short; /* they, and those that are less urgent */
} crowd;

static crowd crowd_of(const sched_item *item, int32_t n)
{
    int32_t least_urgent = -CAIRN_MAX_PRIORITY;
    crowd c = {.all_short = true};
    for (int32_t i = 0; i < n; i++)
        if (item[i].decoding) least_urgent = max_i32(least_urgent, item[i].priority);
    for (int32_t i = 0; i < n; i++) {
        if (item[i].decoding || item[i].pending == 0) continue;
        c.n += item[i].priority <= least_urgent;
        c.all_short &= item[i].fresh <= SHORT_ROWS;
    }
    return c;
}

/* What so many prompts may take of a step that decodes, which takes `base` without them.  Who comes waits
   for its end, so what one prompt may not take, many may only within STEP_NS. */
static uint64_t for_prompts(const pace *p, uint64_t base, double many)
{
    const double one = p->bound * AIM;
    const double all = one * (many < 1 ? 1 : many < p->bound ? many : p->bound);
    const double most = STEP_NS / (double)base, times = all < most ? all : one > most ? one : most;
    return times > 1 ? (uint64_t)((double)base * (times - 1)) : 0;
}

sched_room pace_room(const pace *p, sched_item *item, int32_t n, int32_t max_rows)
{
    const int32_t n_decode = decoding(item, n);
    sched_room room = {max_rows, 0, SCHED_LEAST};
    for (int32_t i = 0; i < n; i++) item[i].row_ns = cost(p, n_decode, item[i].pos);
    if (n_decode == 0) {
        room.ns = STEP_NS;
        room.least = FULL_ROWS;
        return room;
    }
    const uint64_t base = p->decode_ns[count_of(n_decode)];
    if (!base || p->n_mixed >= RENEW) {
        room.max_rows = n_decode;
        return room;
    }
    const crowd c = crowd_of(item, n);
    room.ns = for_prompts(p, base, c.n);
    if (c.n > 0 && c.all_short) {
        const uint64_t most = for_prompts(p, base, p->bound);
        room.ns = p->saved_ns < most - room.ns ? room.ns + p->saved_ns : most;
    }
    return room;
}

uint64_t pace_prompt_ns(const pace *p, int32_t n)
{
    return (uint64_t)n * cost(p, 0, n / 2);
}

/* Steps are late for many reasons and early for none, so a higher figure moves little, however high. */
static uint64_t follow(uint64_t old, uint64_t now, uint64_t down)
{
    if (!old) return now ? now : 1;
    const uint64_t next =
        now > old ? old + (now - old < old ? now - old : old) / SLOWNESS : old - (old - now) / down;
    return next ? next : 1;
}

/* A step that decodes took `rest` beyond its base. */
static void save(pace *p, const sched_item *item, int32_t n, uint64_t base, uint64_t rest)
{
    const uint64_t has = p->saved_ns + for_prompts(p, base, crowd_of(item, n).n);
    const uint64_t left = has > rest ? has - rest : 0;
    p->saved_ns = left < SAVED_NS ? left : SAVED_NS;
}

void pace_took(pace *p, const sched_item *item, int32_t n, uint64_t ns)
{
    const int32_t n_decode = decoding(item, n);
    uint64_t expected = 0, rows = 0;
    for (int32_t i = 0; i < n; i++) {
        if (item[i].decoding) continue;
        rows += (uint64_t)item[i].rows;
        expected += item[i].row_ns * (uint64_t)item[i].rows;
    }
    if (rows == 0) {
        p->n_mixed = 0;
        uint64_t *own = &p->decode_ns[count_of(n_decode)];
        *own = follow(*own, ns, QUICKNESS);
        save(p, item, n, *own, 0);
        return;
    }
    if (n_decode > 0) p->n_mixed++;
    const uint64_t base = n_decode > 0 ? p->decode_ns[count_of(n_decode)] : 0;
    const uint64_t rest = ns > base ? ns - base : 0;
    if (base) save(p, item, n, base, rest);
    /* What was expected of each, by the same factor more or less. */
    for (int32_t i = 0; i < n; i++) {
        if (item[i].decoding || item[i].rows == 0) continue;
        const double mine = expected ? (double)item[i].row_ns * (double)rest / (double)expected
                                     : (double)rest / (double)rows;
        uint64_t *own = &p->row_ns[n_decode > 0][depth_of(item[i].pos)];
        *own = follow(*own, (uint64_t)mine, SLOWNESS);
    }
}
