/* The files of serve/web/, as tools/embed.c writes them into the program at build time. */
#ifndef SERVE_WEB_TABLE_H
#define SERVE_WEB_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct web_asset { /* immutable, as long as the program */
    const char *name, *type;
    const char *etag; /* with its quotes */
    const uint8_t *ptr;
    size_t len;
} web_asset;

extern const web_asset web_assets[];
extern const size_t web_n_assets;

#endif
