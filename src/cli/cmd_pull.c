/* pull: fetch a model once and check it.  Its path goes to standard output. */
#include "base/diag.h"
#include "base/file.h"
#include "cli/cli.h"
#include "hub/hub_registry.h"

static cairn_status pull(const char *name, buf *path, cairn_diag *dg)
{
    const hub_entry *e = hub_find(name);
    if (!e) return diag_set(dg, CAIRN_E_NOTFOUND, "%s: no model of this name", name);
    TRY(hub_path(e, path, dg));
    if (!file_exists(path->ptr))
        return diag_set(dg, CAIRN_E_NOTFOUND, "%s: not fetched; expected %s", name, path->ptr);
    return CAIRN_OK;
}

int cmd_pull(const command *c, int argc, char **argv)
{
    cli_words words;
    int code;
    cairn_diag dg = {0};
    buf path;
    if (!cli_flags(c, NULL, 0, argc, argv, 1, 1, &words, &code)) return code;
    buf_init(&path, MEM_MISC);
    cairn_status st = pull(words.word[0], &path, &dg);
    buf_byte(&path, '\n');
    if (st == CAIRN_OK) st = buf_status(&path);
    if (st == CAIRN_OK) st = cli_write_out(path.ptr, path.len, &dg);
    buf_deinit(&path);
    return st == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}
