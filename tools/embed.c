/* Writes a C table of files: embed OUT.c FILE…  Each becomes an asset of serve/web_table.h, named by its base
   name, with its content type and an ETag that is a hash of its bytes (FNV-1a, 64 bits: it tells versions
   apart, and guards nothing). */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *end, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};
enum {
    N_TYPES = sizeof types / sizeof types[0],
    MAX_FILES = 62,      /* the page has some twenty */
    MAX_BYTES = 1 << 20, /* of a file: the page's are some KiB; more is a mistake */
    PER_LINE = 24        /* numbers: lines of 96 characters at most */
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static const char *type_of(const char *name)
{
    const size_t n = strlen(name);

    for (size_t i = 0; i < N_TYPES; i++) {
        const size_t k = strlen(types[i].end);
        if (n > k && strcmp(name + n - k, types[i].end) == 0) return types[i].type;
    }
    return NULL;
}

/* The bytes of file i as an array; their hash. */
static int put_bytes(FILE *out, const char *path, int i, uint64_t *hash)
{
    FILE *in = fopen(path, "rb");
    long n = 0;
    int c;

    if (!in) return fprintf(stderr, "embed: %s: %s\n", path, strerror(errno)), 1;
    *hash = UINT64_C(14695981039346656037);
    fprintf(out, "static const uint8_t file_%d[] = {", i);
    while ((c = getc(in)) != EOF && n < MAX_BYTES) {
        *hash = (*hash ^ (uint64_t)c) * UINT64_C(1099511628211);
        fprintf(out, "%s%d,", n++ % PER_LINE ? "" : "\n", c);
    }
    fprintf(out, "\n};\n");
    if (ferror(in) || n == 0 || n == MAX_BYTES) n = -1;
    fclose(in);
    if (n < 0) fprintf(stderr, "embed: %s: expected 1 byte to 1 MiB\n", path);
    return n < 0;
}

int main(int argc, char **argv)
{
    uint64_t hash[MAX_FILES];
    FILE *out;

    if (argc < 3 || argc - 2 > MAX_FILES) return fprintf(stderr, "usage: embed OUT.c FILE…\n"), 2;
    out = fopen(argv[1], "w");
    if (!out) return fprintf(stderr, "embed: %s: %s\n", argv[1], strerror(errno)), 1;
    fprintf(out, "/* Made by tools/embed.c. */\n#include \"serve/web_table.h\"\n\n");
    for (int i = 2; i < argc; i++) {
        if (!type_of(base_name(argv[i])))
            return fprintf(stderr, "embed: %s: expected .html, .css, .js or .svg\n", argv[i]), 1;
        if (put_bytes(out, argv[i], i, &hash[i - 2])) return 1;
    }
    fprintf(out, "const web_asset web_assets[] = {\n");
    for (int i = 2; i < argc; i++)
        fprintf(out, "    {\"%s\", \"%s\", \"\\\"%016llx\\\"\", file_%d, sizeof file_%d},\n",
                base_name(argv[i]), type_of(base_name(argv[i])), (unsigned long long)hash[i - 2], i,
                i);
    fprintf(out, "};\nconst size_t web_n_assets = %d;\n", argc - 2);
    return ferror(out) | fclose(out) ? 1 : 0;
}
