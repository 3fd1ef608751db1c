/* Teacher-forced logits of llama.cpp: the other side of bench/compare-kl.  Linked with a libllama that
   bench/get-llama.cpp built; no part of cairn.
   usage: llama_logits MODEL.gguf IDS.txt OUT.f32 THREADS     (ids by white space; f32 [n, vocab]) */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>

static void quiet(enum ggml_log_level level, const char *text, void *ctx)
{
    (void)level, (void)text, (void)ctx;
}

int main(int argc, char **argv)
{
    static llama_token ids[8192];
    int n = 0;
    if (argc != 5) return 2;
    FILE *in = fopen(argv[2], "r");
    while (in && n < 8192 && fscanf(in, "%d", &ids[n]) == 1) n++;
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model *m = llama_model_load_from_file(argv[1], llama_model_default_params());
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = p.n_ubatch = 8192 < n ? n : 2048;
    p.n_threads = p.n_threads_batch = atoi(argv[4]);
    struct llama_context *c = m ? llama_init_from_model(m, p) : NULL;
    FILE *out = fopen(argv[3], "wb");
    if (!in || !c || !out || n == 0) {
        fprintf(stderr, "llama_logits: cannot run %s on %s\n", argv[1], argv[2]);
        return 1;
    }
    struct llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = ids[i];
        b.pos[i] = i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = 0;
        b.logits[i] = 1;
    }
    if (llama_decode(c, b) != 0) return 1;
    const size_t vocab = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(m));
    const float *all = llama_get_logits(c);
    const int bad = fwrite(all, sizeof(float) * vocab, (size_t)n, out) != (size_t)n || fclose(out);
    return bad;
}
