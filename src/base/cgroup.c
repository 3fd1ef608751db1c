/* Control groups, versions 1 and 2, one beside the other as well.  /proc/self/cgroup names our group
   of each hierarchy, /proc/self/mountinfo where which part of a hierarchy can be seen: in a container
   often only a part, and by a path of its own.  A limit may stand at any level; the tightest counts.
   Whatever cannot be read limits nothing. */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/proc.h"

enum {
    PATH_MAX_LEN = 1024,
    LEVELS_MAX = 64,
    GROUPS_TEXT_MAX = 8192 /* a line for each of a dozen hierarchies */
};

static bool group_file(const char *dir, const char *name, char *out, size_t size)
{
    char path[PATH_MAX_LEN + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return proc_read(path, out, size);
}

static bool group_figure(const char *dir, const char *name, uint64_t *out)
{
    char text[64];
    return group_file(dir, name, text, sizeof text) && proc_figure(text, "", out);
}

/* Version 2: memory.max, beyond which the group is killed, and memory.high, beyond which it is slowed until it hardly
   moves: a budget that is to be filled ends at the lower.  Version 1 has one limit. */
static bool memory_limit(const char *dir, uint64_t *max, uint64_t *now)
{
    uint64_t high = UINT64_MAX;
    *max = UINT64_MAX;
    if (group_figure(dir, "memory.current", now)) {
        (void)group_figure(dir, "memory.max", max);
        (void)group_figure(dir, "memory.high", &high);
        if (high < *max) *max = high;
        return *max != UINT64_MAX;
    }
    return group_figure(dir, "memory.limit_in_bytes", max) &&
           group_figure(dir, "memory.usage_in_bytes", now);
}

static void read_memory(const char *dir, cgroup_limits *g)
{
    char stat[8192];
    uint64_t max, now, active = 0, inactive = 0;
    if (!memory_limit(dir, &max, &now)) return;
    if (group_file(dir, "memory.stat", stat, sizeof stat)) {
        /* file pages come back from the file, so they are room */
        (void)proc_figure(stat, "active_file ", &active);
        (void)proc_figure(stat, "inactive_file ", &inactive);
    }
    const uint64_t file = active + inactive;
    const uint64_t held = now > file ? now - file : 0, left = max > held ? max - held : 0;
    if (max < g->memory_max) g->memory_max = max;
    if (left < g->memory_left) g->memory_left = left;
}

/* Version 2: "QUOTA PERIOD" or "max PERIOD"; version 1: a file each, −1 for none. */
static void read_quota(const char *dir, cgroup_limits *g)
{
    char text[64];
    uint64_t quota = 0, period = 0;
    if (group_file(dir, "cpu.max", text, sizeof text)) {
        const char *gap = strchr(text, ' ');
        if (!gap || !proc_figure(text, "", &quota) || !proc_figure(gap, " ", &period)) return;
    } else if (!group_figure(dir, "cpu.cfs_quota_us", &quota) ||
               !group_figure(dir, "cpu.cfs_period_us", &period)) {
        return;
    }
    if (period == 0) return;
    const double cores = (double)quota / (double)period;
    if (g->cores == 0 || cores < g->cores) g->cores = cores;
}

/* The group `path` below the mount point and all above it; levels that are not there are passed
   over, the mount point comes last. */
static void walk_up(const char *mount, const char *path, cgroup_limits *g)
{
    char dir[PATH_MAX_LEN];
    const size_t root = strlen(mount);
    const int n = snprintf(dir, sizeof dir, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    if (n < 0 || (size_t)n >= sizeof dir) return;
    for (int level = 0; level < LEVELS_MAX; level++) {
        read_memory(dir, g);
        read_quota(dir, g);
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < root) return;
        *slash = '\0';
    }
}

/* The next word of a line at *at, ended in place; NULL: none. */
static char *next_word(char **at)
{
    char *word = *at;
    if (!word || !*word) return NULL;
    char *gap = strchr(word, ' ');
    *at = gap ? gap + 1 : NULL;
    if (gap) *gap = '\0';
    return word;
}

/* Whether the list "a,b,c" has the word. */
static bool lists(const char *list, size_t n, const char *word)
{
    const size_t len = strlen(word);
    for (const char *p = list, *end = list + n; p < end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const size_t size = (size_t)((comma ? comma : end) - p);
        if (size == len && memcmp(p, word, len) == 0) return true;
        p += size + 1;
    }
    return false;
}

/* Our group's path in the hierarchy that has the controller (version 2: ""), from the text of
   /proc/self/cgroup, "ID:CONTROLLERS:PATH" a line; false: no such. */
static bool group_path(const char *groups, const char *controller, char *out, size_t size)
{
    for (const char *line = groups; line && *line;) {
        const char *end = strchr(line, '\n');
        const size_t n = end ? (size_t)(end - line) : strlen(line);
        const char *names = memchr(line, ':', n);
        const char *path = names ? memchr(names + 1, ':', n - (size_t)(names + 1 - line)) : NULL;
        line = end ? end + 1 : NULL;
        if (!path) continue;
        names++;
        const size_t n_names = (size_t)(path - names);
        if (*controller ? !lists(names, n_names, controller) : n_names != 0) continue;
        path++;
        const size_t n_path = end ? (size_t)(end - path) : strlen(path);
        if (n_path >= size) return false;
        memcpy(out, path, n_path);
        out[n_path] = '\0';
        return true;
    }
    return false;
}

/* What of the path lies below the part of the hierarchy that is mounted. */
static const char *below(const char *path, const char *mounted)
{
    const size_t n = strlen(mounted);
    if (strcmp(mounted, "/") == 0 || strncmp(path, mounted, n) != 0) return path;
    return path[n] == '/' ? path + n : path[n] == '\0' ? "/" : path;
}

/* One line: ID PARENT DEVICE ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS. */
static void read_mount(const char *root, char *line, const char *groups, cgroup_limits *g)
{
    static const char *const controllers[] = {"memory", "cpu"};
    char *word[5], path[PATH_MAX_LEN], point[PATH_MAX_LEN];
    char *rest = strstr(line, " - ");
    if (!rest) return;
    rest += 3;
    for (int i = 0; i < 5; i++)
        if (!(word[i] = next_word(&line))) return;
    const char *type = next_word(&rest), *source = next_word(&rest);
    const int n = snprintf(point, sizeof point, "%s%s", root, word[4]);
    if (!source || !type || n < 0 || (size_t)n >= sizeof point) return;
    if (strcmp(type, "cgroup2") == 0 && group_path(groups, "", path, sizeof path))
        walk_up(point, below(path, word[3]), g);
    if (strcmp(type, "cgroup") != 0 || !rest) return;
    for (int i = 0; i < 2; i++)
        if (lists(rest, strlen(rest), controllers[i]) &&
            group_path(groups, controllers[i], path, sizeof path))
            walk_up(point, below(path, word[3]), g);
}

cgroup_limits cgroup_read(const char *root)
{
    cgroup_limits g = {UINT64_MAX, UINT64_MAX, 0};
    char groups[GROUPS_TEXT_MAX], path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!proc_read(path, groups, sizeof groups)) return g;
    (void)snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *f = fopen(path, "re");
    if (!f) return g;
    char line[4096]; /* a longer one is cut, and is then no mount of ours */
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        read_mount(root, line, groups, &g);
    }
    (void)fclose(f);
    return g;
}
