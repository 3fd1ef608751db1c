/* pull: fetch a model once and check it; list and remove what was fetched, and what is no use.

   The path goes to standard output, everything said on the way to standard error: a note for each
   step, and on a terminal a line of progress that is written over. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "cli/cli.h"
#include "hub/hub_gc.h"
#include "hub/hub_pull.h"

static const double redraw_s = 0.1;

typedef struct screen {
    bool terminal;
    bool open; /* a progress line stands unfinished */
    double drawn_s;
} screen;

static void end_line(screen *s)
{
    if (s->open) (void)fputs("\r\033[K", stderr);
    s->open = false;
}

static void on_note(void *ctx, const char *line)
{
    end_line(ctx);
    (void)fprintf(stderr, "cairn: %s\n", line);
}

static void on_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    screen *s = ctx;
    const double now = clock_s();
    if (!s->terminal || now - s->drawn_s < redraw_s) return;
    s->drawn_s = now;
    s->open = true;
    (void)fprintf(stderr, "\r\033[K%.40s  %.1f of %.1f MB (%.0f%%)", what, (double)done / 1e6,
                  (double)total / 1e6, total ? 100.0 * (double)done / (double)total : 100.0);
}

static cairn_status pull(const char *name, buf *out, cairn_diag *dg)
{
    screen s = {.terminal = isatty(STDERR_FILENO) == 1};
    const hub_report r = {.ctx = &s, .note = on_note, .progress = on_progress};
    const cairn_status st = hub_pull(name, &r, out, dg);
    end_line(&s);
    buf_byte(out, '\n');
    return st;
}

static cairn_status gc(bool yes, bool force, buf *out, cairn_diag *dg)
{
    const hub_gc_opts o = {yes, force};
    hub_gc_result r;
    TRY(hub_gc(&o, out, &r, dg));
    buf_printf(out, "%zu %s, %.1f MB %s\n", r.n, r.n == 1 ? "entry" : "entries",
               (double)r.bytes / 1e6,
               yes   ? "freed"
               : r.n ? "would be freed; --yes deletes them"
                     : "would be freed");
    return CAIRN_OK;
}

int cmd_pull(const command *c, int argc, char **argv)
{
    bool json = false, yes = false, force = false;
    const flag table[] = {
        {"--json", NULL, FLAG_BOOL, &json, "with ls: one JSON object", 0, 0, NULL},
        {"--yes", NULL, FLAG_BOOL, &yes, "with gc: delete what it lists", 0, 0, NULL},
        {"--force", NULL, FLAG_BOOL, &force,
         "with gc: snapshots with files that the kept ones lack, too", 0, 0, NULL},
    };
    cli_words words;
    int code;
    cairn_diag dg = {0};
    cairn_status st;
    buf out;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 2, &words, &code))
        return code;
    const char *verb = words.word[0];
    const bool ls = strcmp(verb, "ls") == 0, rm = strcmp(verb, "rm") == 0;
    const bool is_gc = strcmp(verb, "gc") == 0;
    if (words.n != (rm ? 2 : 1)) return cli_usage(c, "pull: expected NAME, ls, gc, or rm NAME");
    if (json && !ls) return cli_usage(c, "pull: found --json; expected it with ls alone");
    if ((yes || force) && !is_gc)
        return cli_usage(c, "pull: found --yes or --force; expected them with gc alone");
    buf_init(&out, MEM_MISC);
    if (ls)
        st = hub_list(json, &out, &dg);
    else if (rm)
        st = hub_remove(words.word[1], &dg);
    else if (is_gc)
        st = gc(yes, force, &out, &dg);
    else
        st = pull(verb, &out, &dg);
    if (st == CAIRN_OK) st = cli_print(&out, &dg);
    buf_deinit(&out);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
