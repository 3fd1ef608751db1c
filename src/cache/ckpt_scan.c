/* The start of checkpoints: what the folder holds, from names and headers alone.  Damaged files and those too
   old to be asked for are removed, unless another process has them in use; whole ones of another version or
   model count and age with ours.  Times that no clock that was right can have given count as now. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cache/ckpt_priv.h"

/* 2026-01-01: there was no such file before.  A machine without a battery begins in 1970 at each start. */
#define FIRST_NS (INT64_C(1767225600) * 1000000000)

typedef struct scan {
    ckpt *c;
    int64_t now_ns;
    uint32_t n_old;
    uint32_t n_kept; /* damaged, and could not be removed */
    const char *why; /* of the last damaged one */
} scan;

static store_verdict look(const ckpt_conf *c, int fd, const struct stat *st, hash128 key,
                          const char **why)
{
    uint8_t head[CKPT_HEAD_MAX];
    ckpt_meta m;
    *why = "no regular file";
    if (!S_ISREG(st->st_mode)) return STORE_BAD;
    const size_t got = store_read_some(fd, head, sizeof head, 0);
    const store_verdict v = ckpt_head_parse(c, head, got, (uint64_t)st->st_size, &m, why);
    if (v != STORE_GOOD) return v;
    *why = "the name of another key";
    return hash128_same(m.key, key) ? STORE_GOOD : STORE_BAD;
}

static bool is_a_time(const scan *s, int64_t ns)
{
    return ns >= FIRST_NS && ns <= s->now_ns;
}

static void scan_file(scan *s, const char *name, hash128 key)
{
    ckpt *c = s->c;
    struct stat st;
    const char *why = NULL;
    const int fd = store_open_file(c->folder, name);
    if (fd < 0) return; /* gone, or not for us */
    const bool known = fstat(fd, &st) == 0;
    const store_verdict v = known ? look(&c->conf, fd, &st, key, &why) : STORE_FOREIGN;
    const int64_t used_ns = known ? store_file_time(&st) : s->now_ns;
    const bool old = is_a_time(s, used_ns) && s->now_ns - used_ns > c->max_age_s * 1000000000;
    const bool gone = (v == STORE_BAD || old) && ckpt_remove_this(c->folder, name, fd);
    (void)close(fd);
    if (v == STORE_BAD) s->why = why;
    c->stats.n_corrupt += v == STORE_BAD && gone;
    s->n_kept += v == STORE_BAD && !gone;
    s->n_old += v != STORE_BAD && gone;
    if (!known || v == STORE_BAD || gone) return;
    c->stats.n_foreign += v == STORE_FOREIGN;
    const uint64_t bytes = (uint64_t)st.st_size;
    const int64_t as_of_ns = is_a_time(s, used_ns) ? used_ns : s->now_ns;
    c->entry[c->n_entry++] = (ckpt_entry){key, bytes, as_of_ns, used_ns, v == STORE_FOREIGN};
    c->stats.bytes += bytes;
    ckpt_make_room(c);
}

static void scan_folder(scan *s)
{
    const struct dirent *at;
    hash128 key;
    const int fd = openat(s->c->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) (void)close(fd);
    /* this thread alone has d: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while (d && (at = readdir(d)) != NULL) {
        if (ckpt_name_is_tmp(at->d_name))
            store_drop_tmp(s->c->folder, at->d_name);
        else if (ckpt_name_parse(at->d_name, &key))
            scan_file(s, at->d_name, key);
    }
    if (d) (void)closedir(d);
}

/* What has an impossible time gets that of now, in the order of what it had: else it would be the latest until the
   clock gets there, or old at once where it was set since. */
static void correct_times(const scan *s)
{
    ckpt *c = s->c;
    qsort(c->entry, c->n_entry, sizeof *c->entry, ckpt_by_time);
    for (uint32_t i = 0; i < c->n_entry; i++)
        if (is_a_time(s, c->entry[i].found_ns)) c->stamp_ns = c->entry[i].found_ns;
    for (uint32_t i = 0; i < c->n_entry; i++) {
        char name[CKPT_NAME_BYTES];
        ckpt_entry *e = &c->entry[i];
        if (is_a_time(s, e->found_ns)) continue;
        e->used_ns = ckpt_stamp(c);
        ckpt_name_text(e->key, name);
        store_touch_name(c->folder, name, e->used_ns);
    }
}

void ckpt_scan(ckpt *c)
{
    char reason[128];
    scan s = {.c = c, .now_ns = (clock_unix_s() + 1) * 1000000000}; /* of all that began by now */
    const int e = store_open_folder(c->path, &c->folder, &c->why);
    if (e != 0) {
        c->warned = true;
        log_event(LOG_WARN, "checkpoint.failed", "path=%s reason=\"%s\"", c->path,
                  c->why ? c->why : strerror_r(e, reason, sizeof reason));
        return;
    }
    mutex_lock(&c->mu);
    scan_folder(&s);
    correct_times(&s);
    mutex_unlock(&c->mu);
    log_event(s.why ? LOG_WARN : LOG_INFO, "checkpoint.scan",
              "path=%s files=%u foreign=%u old=%u removed=%u not_removed=%u why=\"%s\"", c->path,
              c->n_entry, c->stats.n_foreign, s.n_old, c->stats.n_corrupt, s.n_kept,
              s.why ? s.why : "");
}
