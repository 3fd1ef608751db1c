#include "serve/left_out.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "serve/http.h"

/* A whole entry of the list: one's name may begin another's. */
static bool is_listed(const char *types, const char *type)
{
    const size_t n = strlen(type);

    for (const char *at = types; (at = strstr(at, type)); at += n)
        if ((at == types || at[-1] == ' ') && (!at[n] || at[n] == ',')) return true;
    return false;
}

void left_out_add(left_out *l, const char *type)
{
    const size_t n = strlen(l->types);

    static const char more[] = ", ...";

    if (is_listed(l->types, type)) return;
    if (n + 2 + strlen(type) + sizeof more <= sizeof l->types)
        (void)snprintf(l->types + n, sizeof l->types - n, "%s%s", n ? ", " : "", type);
    else if (!strstr(l->types, more))
        (void)snprintf(l->types + n, sizeof l->types - n, "%s", more);
}

cairn_status left_out_warn(const left_out *l, const char *what, chat_ask *a, chat_fault *f)
{
    const int before = a->warning ? (int)strlen(a->warning) - 1 : 0; /* without its last quote */
    char text[HTTP_MAX_REPLY_VALUE];

    if (!l->types[0]) return CAIRN_OK;
    (void)snprintf(text, sizeof text, "%.*s%s%s of type %s\"", before, a->warning ? a->warning : "",
                   before ? "; " : "299 cairn \"not here and left out: ", what, l->types);
    a->warning = arena_strdup(&a->mem, str_of(text));
    return a->warning ? CAIRN_OK
                      : chat_fault_set(f, CAIRN_E_NOMEM, "", "no memory for the request");
}
