/* Prints the recorded and rewritten program of every golden's model, one op a line: CI compares what
   gcc's and clang's builds print, since an order of evaluation that C leaves open would show here. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mkweights.h"
#include "model/model.h"
#include "tensor/fuse.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int print_program(const char *dir)
{
    char made[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    cairn_model_opts o = {.struct_size = sizeof o, .no_weights = true};
    model *m = NULL;
    arena a;
    prog p;
    buf b;
    arena_init(&a, MEM_MODEL);
    buf_init(&b, MEM_MISC);
    int bad = mkweights_temp(dir, made, &dg) != CAIRN_OK;
    bad = bad || model_open(made, &o, &m, &dg) != CAIRN_OK;
    bad = bad || model_record(m, FUSE_ALL, false, &a, &p, &dg) != CAIRN_OK;
    if (!bad) prog_print(&p, &b);
    printf("%s\n%s", dir, bad ? dg.message : b.ptr);
    model_close(m);
    mkweights_remove(made);
    buf_deinit(&b);
    arena_deinit(&a);
    return bad;
}

int main(void)
{
    static const char root[] = "tests/golden/hf";
    char *name[256];
    size_t n = 0;
    int bad = 0;
    DIR *d = opendir(root);
    for (struct dirent *e = d ? readdir(d) : NULL; e && n < 256; e = readdir(d))
        if (e->d_name[0] != '.') name[n++] = strdup(e->d_name);
    if (d) closedir(d);
    qsort(name, n, sizeof *name, by_name);
    for (size_t i = 0; i < n; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", root, name[i]);
        bad |= print_program(path);
        free(name[i]);
    }
    return bad || n == 0;
}
