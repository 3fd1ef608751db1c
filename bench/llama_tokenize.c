/* llama.cpp's tokenizer for comparisons: opens a GGUF's vocabulary and answers requests on standard
   input, each a line "FLAGS LENGTH" (1: add special tokens, 2: parse them) and that many bytes, with
   a line of ids.  Built by tests/text/compare_gguf.py. */
#include <stdio.h>
#include <stdlib.h>

#include "llama.h"

static void quiet(enum ggml_log_level level, const char *text, void *user)
{
    (void)text;
    (void)user;
    (void)level;
}

int main(int argc, char **argv)
{
    int flags, n;

    if (argc < 2) return 2;
    llama_log_set(quiet, NULL);
    struct llama_model_params p = llama_model_default_params();
    p.vocab_only = true;
    struct llama_model *m = llama_model_load_from_file(argv[1], p);
    if (!m) {
        printf("cannot open\n");
        return 1;
    }
    printf("open\n");
    fflush(stdout);
    const struct llama_vocab *v = llama_model_get_vocab(m);
    while (scanf("%d %d", &flags, &n) == 2 && getchar() == '\n') {
        char *text = malloc((size_t)n + 1);
        llama_token *ids = malloc(sizeof *ids * (size_t)(n + 16));
        if (!text || !ids || fread(text, 1, (size_t)n, stdin) != (size_t)n) return 1;
        int k = llama_tokenize(v, text, n, ids, n + 16, flags & 1, flags & 2);
        for (int i = 0; i < k; i++) printf("%d ", ids[i]);
        printf("\n");
        fflush(stdout);
        free(text);
        free(ids);
    }
    llama_model_free(m);
    return 0;
}
