/* The variables that Hugging Face's own tools read, with the same meaning. */
#include "hub/hub_env.h"

#include <stdlib.h>

#include "base/diag.h"

/* nothing changes the environment: setenv is banned */
static const char *var(const char *name)
{
    const char *v = getenv(name); /* NOLINT(concurrency-mt-unsafe) */
    return v && v[0] ? v : NULL;
}

cairn_status hub_env_endpoint(buf *b, cairn_diag *dg)
{
    const char *v = var("HF_ENDPOINT");
    buf_clear(b);
    buf_puts(b, v ? v : "https://huggingface.co");
    while (b->len && b->ptr[b->len - 1] == '/') buf_cut(b, b->len - 1);
    return buf_status(b) == CAIRN_OK ? CAIRN_OK
                                     : diag_set(dg, CAIRN_E_NOMEM, "no memory for a URL");
}

const char *hub_env_token(void)
{
    return var("HF_TOKEN");
}

cairn_status hub_env_cache(buf *b, cairn_diag *dg)
{
    const char *hub = var("HF_HUB_CACHE"), *hf = var("HF_HOME");
    const char *xdg = var("XDG_CACHE_HOME"), *home = var("HOME");
    buf_clear(b);
    if (hub)
        buf_puts(b, hub);
    else if (hf)
        buf_printf(b, "%s/hub", hf);
    else if (xdg && xdg[0] == '/')
        buf_printf(b, "%s/huggingface/hub", xdg);
    else if (home)
        buf_printf(b, "%s/.cache/huggingface/hub", home);
    if (buf_status(b) != CAIRN_OK) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a path");
    if (b->len && b->ptr[0] == '/') return CAIRN_OK;
    return diag_set(
        dg, CAIRN_E_NOTFOUND,
        "no model cache: expected HF_HUB_CACHE, HF_HOME or HOME to be an absolute path");
}
