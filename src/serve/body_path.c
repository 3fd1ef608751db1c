/* Paths are values: each step makes a longer one. */
#include "serve/body_path.h"

#include <stdio.h>
#include <string.h>

body_path path_key(body_path p, const char *key)
{
    const size_t n = strlen(p.s);

    (void)snprintf(p.s + n, sizeof p.s - n, "%s%s", n ? "." : "", key);
    return p;
}

body_path path_number(body_path p, size_t i)
{
    char number[24];

    (void)snprintf(number, sizeof number, "%zu", i);
    return path_key(p, number);
}

body_path path_element(body_path p, size_t i)
{
    const size_t n = strlen(p.s);

    (void)snprintf(p.s + n, sizeof p.s - n, "[%zu]", i);
    return p;
}
