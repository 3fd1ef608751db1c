/* The world of cache_world.h. */
#include "golden/cache_world.h"

#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "base/num.h"
#include "base/rng.h"
#include "cache/cache_disk.h"

static const cache_ns spaces[2] = {{1, 2}, {1, 3}}; /* the first is common to both */

static int32_t below(world *w, int32_t n)
{
    return (int32_t)(rng_u64(w->seed, w->i, w->draw++) % (uint64_t)n);
}

/* 1 to WORLD_CTX; every other time at the border of a block or beside it. */
static int32_t length(world *w)
{
    const int32_t any = 1 + below(w, WORLD_CTX), near = any / KV_BLOCK * KV_BLOCK + below(w, 3) - 1;
    return below(w, 2) && near >= 1 ? min_i32(near, WORLD_CTX) : any;
}

static void draw_paths(world *w)
{
    const int32_t vocab = w->m->shape.vocab;
    for (int32_t p = 0; p < w->n_path; p++) {
        const world_path *parent = &w->path[p ? below(w, p) : 0];
        const int32_t fork = p ? min_i32(length(w), WORLD_CTX - 1) : 0;
        memcpy(w->path[p].ids, parent->ids, (size_t)fork * sizeof *parent->ids);
        for (int32_t i = fork; i < WORLD_CTX; i++) w->path[p].ids[i] = below(w, vocab);
    }
    for (int32_t p = 0; p < w->n_path; p++)
        for (int32_t o = 0; o < w->n_path; o++) {
            int32_t n = 0;
            while (n < WORLD_CTX && w->path[p].ids[n] == w->path[o].ids[n]) n++;
            w->path[p].common[o] = n;
        }
}

static hash128 hash_row(const world *w, stepper *s, int32_t i_out)
{
    const float *row = stepper_logits(s, i_out);
    return hash128_of(row, (size_t)w->m->shape.vocab * sizeof *row);
}

static stepper *make_stepper(const world *w, int32_t max_rows, int32_t n_seq, stepper_room room)
{
    stepper *s = NULL;
    cairn_diag dg = {0};
    const stepper_opts o = {.max_rows = max_rows,
                            .max_out = max_rows,
                            .max_seqs = n_seq,
                            .ctx_len = WORLD_CTX,
                            .codec = stepper_codec(w->m)};
    if (stepper_new(w->m, &o, &s, &dg) != CAIRN_OK ||
        stepper_add_cache(s, WORLD_CTX, room, &dg) != CAIRN_OK)
        fail_msg("%s: %s", w->name, dg.message);
    return s;
}

static void run_fresh(world *w)
{
    stepper *s = make_stepper(w, WORLD_CTX, 1, (stepper_room){0});
    for (int32_t p = 0; p < w->n_path; p++) {
        seq_id q;
        assert_ok(cache_open(stepper_cache(s), WORLD_CTX, &q));
        stepper_begin(s);
        const int32_t out0 = stepper_add(s, q, w->path[p].ids, WORLD_CTX, WORLD_CTX, WORLD_CTX);
        stepper_run(s);
        for (int32_t i = 0; i < WORLD_CTX; i++) w->path[p].row[i] = hash_row(w, s, out0 + i);
        cache_close(stepper_cache(s), q);
    }
    stepper_free(s);
}

static void open_cache(world *w)
{
    cairn_diag dg = {0};
    const cache_disk_opts o = {.dir = w->dir.path,
                               .fingerprint = {7},
                               .numerics = 1,
                               .scheme = "test",
                               .max_bytes = w->tight ? 6 * w->one : 0};
    const uint64_t kept = (w->tight ? 2 : 8) * w->one;
    w->s = make_stepper(w, WORLD_STEP, WORLD_SEQS,
                        (stepper_room){w->tight ? 2 * w->one : 0, kept, kept});
    w->keeps = cache_keeps(stepper_cache(w->s));
    if (!w->keeps) return;
    assert_ok(cache_add_disk(stepper_cache(w->s), &o, &dg));
    assert_true(store_scanned(stepper_cache(w->s)->disk->store, 20000));
}

void world_begin(world *w)
{
    const kv_scheme codec = stepper_codec(w->m);
    w->i = UINT64_MAX;
    w->one = cache_bytes(&w->m->cache, &codec, WORLD_STEP, WORLD_CTX);
    assert_true(tmp_make(&w->dir));
    w->damages = below(w, 2);
    draw_paths(w);
    run_fresh(w);
    open_cache(w);
}

static void compare(world *w, const world_seq *q, int32_t pos, int32_t i_out)
{
    w->n_rows++;
    if (hash128_same(hash_row(w, w->s, i_out), w->path[q->path].row[pos])) return;
    fail_msg("%s, seed %llu%s, thing %llu: position %d of path %d, %d taken up, differs from a "
             "fresh run",
             w->name, (unsigned long long)w->seed, w->tight ? " (tight)" : "",
             (unsigned long long)w->i, pos, q->path, q->hit);
}

/* One step of a sequence, and of some others beside it. */
static void step_some(world *w, const world_seq *who)
{
    enum { BESIDE = 5 }; /* rows of each at most */
    int32_t rows[WORLD_SEQS] = {0}, out0[WORLD_SEQS], left = WORLD_STEP;
    stepper_begin(w->s);
    for (int32_t i = 0; i < WORLD_SEQS; i++) {
        const world_seq *q = &w->seq[i];
        if (!q->open || q->len == q->n_pos || (q != who && below(w, 2))) continue;
        const int32_t most =
            min_i32(q->n_pos - q->len, q == who ? left - BESIDE * (WORLD_SEQS - 1) : BESIDE);
        rows[i] = 1 + below(w, most);
        left -= rows[i];
        out0[i] =
            stepper_add(w->s, q->id, w->path[q->path].ids + q->len, rows[i], rows[i], WORLD_CTX);
    }
    stepper_run(w->s);
    for (int32_t i = 0; i < WORLD_SEQS; i++) {
        world_seq *q = &w->seq[i];
        for (int32_t k = 0; k < rows[i]; k++) compare(w, q, q->len + k, out0[i] + k);
        q->len += rows[i];
        q->furthest = max_i32(q->furthest, q->len);
        if (rows[i]) cache_publish(stepper_cache(w->s), q->id, w->path[q->path].ids);
    }
}

static bool open_path(world *w, world_seq *q, int32_t path, int32_t n_ids, int32_t n_pos)
{
    const cache_ask a = {spaces[q->space], spaces[0], w->path[path].ids, n_ids, n_pos};
    const cairn_status st = cache_open_on(stepper_cache(w->s), &a, &q->id);
    assert_true(st == CAIRN_OK || st == CAIRN_E_BUSY);
    if (st != CAIRN_OK) return false;
    for (; !cache_ready(stepper_cache(w->s), q->id); cache_arrive(stepper_cache(w->s)))
        (void)usleep(20);
    q->open = true;
    q->path = path;
    q->n_pos = n_pos;
    q->len = q->furthest = q->hit = cache_len(stepper_cache(w->s), q->id);
    assert_true(q->len < n_ids);
    w->n_hits += q->len > 0;
    return true;
}

static void close_one(world *w, world_seq *q, bool mark)
{
    cache *c = stepper_cache(w->s);
    if (mark) cache_mark(c, q->id, w->path[q->path].ids, CACHE_TURN);
    cache_close(c, q->id);
    q->open = false;
}

/* Drafts that are refused; what follows is another path. */
static void go_back(world *w, world_seq *q)
{
    const int32_t least = max_i32(q->hit, q->furthest - WORLD_STEP);
    if (least >= q->len || cache_state(stepper_cache(w->s), q->id)) return;
    q->len = least + below(w, q->len - least + 1);
    cache_rewind(stepper_cache(w->s), q->id, q->len);
    const int32_t other = below(w, w->n_path);
    if (w->path[q->path].common[other] >= q->len) q->path = other;
}

static void pin_one(world *w, const world_seq *q)
{
    const char *why;
    if (w->n_pin == WORLD_PINS || q->len == 0) return;
    const cairn_status st =
        cache_pin(stepper_cache(w->s), q->id, w->path[q->path].ids, &w->pin[w->n_pin], &why);
    w->n_pin += st == CAIRN_OK;
}

static void close_all(world *w)
{
    for (int32_t i = 0; i < WORLD_SEQS; i++)
        if (w->seq[i].open) close_one(w, &w->seq[i], false);
    while (w->n_pin) cache_unpin(stepper_cache(w->s), w->pin[--w->n_pin]);
}

static void flush(world *w)
{
    struct store_flushed f;
    cache_flush(stepper_cache(w->s), 20000, &f);
    assert_int_equal(f.pending + f.failed, 0);
}

/* One byte another one, the end cut off, or the whole file gone. */
static void damage_file(world *w, const char *path)
{
    FILE *f = fopen(path, "r+b");
    if (!f) return; /* the store's own thread removed it */
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const int32_t size = (int32_t)ftell(f), at = below(w, max_i32(size, 1)), how = below(w, 4);
    if (how == 0) {
        assert_true(unlink(path) == 0 || errno == ENOENT); /* it may do so now */
    } else if (how == 1) {
        assert_int_equal(ftruncate(fileno(f), at), 0);
    } else {
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        const int c = fgetc(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        (void)fputc(c ^ 1 << below(w, 8), f);
    }
    (void)fclose(f);
}

/* Some of the files under a folder; readdir's order is the disk's own, so a seed damages others elsewhere. */
static void damage(world *w, const char *folder)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[700];
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_type == DT_DIR && e->d_name[0] != '.') damage(w, path);
        if (e->d_type == DT_REG && below(w, 2)) damage_file(w, path);
    }
    (void)closedir(d);
}

static void die(world *w, bool flushed)
{
    struct store_stats st;
    close_all(w);
    if (flushed) flush(w);
    if (cache_disk_stats(stepper_cache(w->s), &st)) w->n_read += st.n_read;
    stepper_free(w->s);
}

/* The process ends, having flushed or not, and another one begins on the folder. */
static void restart(world *w, bool flushed, bool damaged)
{
    die(w, flushed);
    if (damaged) damage(w, w->dir.path);
    open_cache(w);
}

static void when_closed(world *w, world_seq *q, int32_t r)
{
    q->space = below(w, 6) == 0;
    if (r < 4)
        restart(w, below(w, 4), w->damages && below(w, 3) == 0);
    else if (r < 8 && w->damages)
        damage(w, w->dir.path); /* under the store */
    else if (r < 12)
        cache_forget(stepper_cache(w->s));
    else {
        const int32_t n_ids = length(w), n_pos = min_i32(WORLD_CTX, n_ids + below(w, 40));
        if (open_path(w, q, below(w, w->n_path), n_ids, n_pos)) step_some(w, q);
    }
}

static void when_open(world *w, world_seq *q, int32_t r)
{
    cache *c = stepper_cache(w->s);
    if (r < 3)
        pin_one(w, q);
    else if (r < 5 && w->n_pin)
        cache_unpin(c, w->pin[--w->n_pin]);
    else if (r < 15)
        close_one(w, q, below(w, 4));
    else if (r < 25)
        go_back(w, q);
    else if (r < 35)
        cache_mark(c, q->id, w->path[q->path].ids, r & 1 ? CACHE_TURN : CACHE_STEP);
    else if (r < 37)
        flush(w);
    else if (q->len < q->n_pos)
        step_some(w, q);
    else
        close_one(w, q, below(w, 4));
}

void world_do(world *w, uint64_t i)
{
    w->i = i;
    w->draw = 0;
    world_seq *q = &w->seq[below(w, WORLD_SEQS)];
    (q->open ? when_open : when_closed)(w, q, below(w, 100));
    const int32_t r = below(w, 10);
    if (r < 4) (void)cache_write_behind(stepper_cache(w->s), r < 3);
}

/* Goes on until the path's end. */
static void finish(world *w, world_seq *q)
{
    while (q->len < q->n_pos) step_some(w, q);
}

/* Another process, in another folder: what is dropped has no writer any more. */
static void begin_elsewhere(world *w)
{
    die(w, false);
    assert_true(tmp_drop(&w->dir));
    assert_true(tmp_make(&w->dir));
    open_cache(w);
}

void world_end(world *w)
{
    enum { TURN = 200 };
    world_seq *q = &w->seq[0];
    const uint64_t before = w->n_read;
    if (w->damages)
        begin_elsewhere(w);
    else
        restart(w, false, false);
    q->space = 0;
    assert_true(open_path(w, q, 0, TURN, TURN));
    finish(w, q);
    close_one(w, q, true);
    for (int32_t files = 0; files < 2 && w->keeps; files++) {
        if (files) restart(w, true, false);
        assert_true(open_path(w, q, 0, WORLD_CTX, WORLD_CTX));
        if (q->hit < TURN / KV_BLOCK * KV_BLOCK)
            fail_msg("%s, seed %llu%s: %d of %d rows were taken up %s", w->name,
                     (unsigned long long)w->seed, w->tight ? " (tight)" : "", q->hit, TURN,
                     files ? "from files" : "from memory");
        finish(w, q);
        close_one(w, q, false);
    }
    restart(w, true, false);
    assert_true(w->n_read > before || !w->keeps);
    stepper_free(w->s);
    assert_true(tmp_drop(&w->dir));
}
