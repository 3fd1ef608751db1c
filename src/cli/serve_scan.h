/* Names of models: those of words, and those of files below a folder. */
#ifndef CLI_SERVE_SCAN_H
#define CLI_SERVE_SCAN_H

#include "cairn/status.h"

enum {
    SERVE_ID_MAX = 256,   /* bytes; a file's name */
    SERVE_MAX_KNOWN = 512 /* models: each is looked at when the server starts */
};

typedef struct serve_found {
    char *word, *id; /* what opens it, what requests name */
} serve_found;

typedef struct serve_list {
    serve_found item[SERVE_MAX_KNOWN];
    size_t n;
} serve_list;

/* A word of the command line; its id is that without folders and ".gguf". */
cairn_status serve_list_add(serve_list *l, const char *word, cairn_diag *dg);
/* Every .gguf file and every folder with a config.json below `dir`, in the order of their ids, which are their paths
   below it without ".gguf"; of a folder and a file with one id the folder.  What begins with a dot, later parts of
   split sets and towers for pictures are none. */
cairn_status serve_list_scan(serve_list *l, const char *dir, cairn_diag *dg);
const serve_found *serve_list_find(const serve_list *l, const char *id); /* NULL: none */
void serve_list_deinit(serve_list *l);

#endif
