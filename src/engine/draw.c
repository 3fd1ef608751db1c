/* A sampler is scratch of 26 bytes a token of the vocabulary, so there are only a few: lane t of n draws rows t,
   t + n, … with the t-th. */
#include "engine/draw.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/num.h"
#include "engine/method.h"

enum {
    LANES_MOST = 8 /* a row a lane where eight requests run; of more rows each still has few */
};
/* Of all samplers: 26 bytes times a vocabulary of 262,144 leave four. */
#define LANE_BYTES (UINT64_C(32) << 20)

struct drawer {
    const tok *tok;
    int32_t max_rows, n_lanes, n; /* n: rows of the step */
    draw_row *row;                /* [max_rows] */
    sampler *sampler[LANES_MOST];
};

int32_t drawer_lanes(int32_t n_threads, int32_t max_rows, uint64_t sampler_bytes)
{
    const uint64_t fit = LANE_BYTES / sampler_bytes;
    const int32_t useful = min_i32(min_i32(n_threads, max_rows), LANES_MOST);
    return fit < (uint64_t)useful ? max_i32(1, (int32_t)fit) : useful;
}

static cairn_status add_lane(drawer *d, const drawer_opts *o)
{
    const cairn_status st = sampler_new(o->vocab, o->n_pos, o->tok, &d->sampler[d->n_lanes]);
    if (st == CAIRN_OK) d->n_lanes++;
    return st;
}

static cairn_status fill(drawer *d, const drawer_opts *o)
{
    d->row = mem_calloc((size_t)o->max_rows, sizeof *d->row, MEM_ENGINE);
    if (!d->row || add_lane(d, o) != CAIRN_OK) return CAIRN_E_NOMEM;
    const int32_t n = drawer_lanes(o->n_threads, o->max_rows, sampler_bytes(d->sampler[0]));
    while (d->n_lanes < n)
        if (add_lane(d, o) != CAIRN_OK) return CAIRN_E_NOMEM;
    return CAIRN_OK;
}

cairn_status drawer_new(const drawer_opts *o, drawer **out)
{
    assert(o->max_rows > 0 && o->n_threads > 0);
    drawer *d = mem_calloc(1, sizeof *d, MEM_ENGINE);
    if (!d) return CAIRN_E_NOMEM;
    d->tok = o->tok;
    d->max_rows = o->max_rows;
    if (fill(d, o) != CAIRN_OK) {
        drawer_free(d);
        return CAIRN_E_NOMEM;
    }
    *out = d;
    return CAIRN_OK;
}

void drawer_free(drawer *d)
{
    if (!d) return;
    for (int32_t t = 0; t < d->n_lanes; t++) sampler_free(d->sampler[t]);
    mem_free(d->row);
    mem_free(d);
}

uint64_t drawer_bytes(const drawer *d)
{
    return sizeof *d + (uint64_t)d->max_rows * sizeof *d->row +
           (uint64_t)d->n_lanes * sampler_bytes(d->sampler[0]);
}

void drawer_begin(drawer *d)
{
    d->n = 0;
}

void drawer_add(drawer *d, request *r, float *logits)
{
    assert(d->n < d->max_rows);
    draw_row *w = &d->row[d->n++];
    w->r = r;
    w->logits = logits;
}

static void draw_lane(void *ctx, int32_t i_lane, int32_t i_thread)
{
    drawer *d = ctx;
    const method_env env = {d->tok, d->sampler[i_lane]};
    (void)i_thread;
    for (int32_t i = i_lane; i < d->n; i += d->n_lanes) {
        draw_row *w = &d->row[i];
        w->st = w->r->plan.method->accept(&env, w->r, w->logits, &w->out, &w->dg);
    }
}

void drawer_run(drawer *d, stepper *s)
{
    const int32_t lanes = min_i32(d->n, d->n_lanes);
    if (lanes > 1)
        stepper_each(s, lanes, draw_lane, d);
    else if (lanes == 1)
        draw_lane(d, 0, 0);
}

const draw_row *drawer_draw(const drawer *d, int32_t i)
{
    assert(i < d->n);
    return &d->row[i];
}

sampler *drawer_sampler(const drawer *d)
{
    return d->sampler[0];
}
