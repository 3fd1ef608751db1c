/* Where in a body a value stands, as errors name it.  What does not fit is cut. */
#ifndef SERVE_BODY_PATH_H
#define SERVE_BODY_PATH_H

#include <stddef.h>

typedef struct body_path { /* zeroed: the body itself */
    char s[64];
} body_path;

body_path path_key(body_path p, const char *key); /* a.key */
body_path path_number(body_path p, size_t i);     /* a.0, as Anthropic writes it */
body_path path_element(body_path p, size_t i);    /* a[0], as OpenAI does */

#endif
