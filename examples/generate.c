/* One answer on standard output, by the public interface alone.

   usage: generate MODEL PROMPT
   MODEL is a .gguf file, a folder with config.json, or the name of a fetched model. */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"

/* The engine's thread: a program that does more here hands the text to a thread of its own. */
static void on_event(void *ctx, const cairn_event *ev)
{
    fwrite(ev->text.ptr, 1, ev->text.len, stdout);
    fflush(stdout);
    if (ev->kind != CAIRN_EV_DONE) return;
    if (ev->finish == CAIRN_FINISH_ERROR) fprintf(stderr, "generate: %s\n", ev->message);
    sem_post(ctx);
}

static cairn_status answer(cairn_engine *e, const char *prompt, cairn_diag *dg)
{
    const cairn_text *text = cairn_model_text(cairn_engine_model(e));
    const cairn_str s = {prompt, strlen(prompt)};
    cairn_request_id id;
    cairn_request r;
    cairn_ids ids;
    sem_t done;

    cairn_status st = cairn_text_tokenize(text, s, CAIRN_TOK_ADD_SPECIAL, &ids, dg);
    if (st != CAIRN_OK) return st;
    cairn_request_init(&r);
    r.ids = ids.ptr;
    r.n_ids = ids.len;
    r.max_tokens = 64;
    sem_init(&done, 0, 0);
    st = cairn_engine_submit(e, &r, on_event, &done, &id, dg);
    if (st == CAIRN_OK) sem_wait(&done);
    sem_destroy(&done);
    cairn_ids_free(&ids);
    return st;
}

int main(int argc, char **argv)
{
    cairn_diag dg = {0};
    cairn_bytes path = {0};
    cairn_model *m = NULL;
    cairn_engine *e = NULL;

    if (argc != 3) {
        fputs("usage: generate MODEL PROMPT\n", stderr);
        return 2;
    }
    cairn_status st = cairn_model_resolve(argv[1], &path, &dg);
    if (st == CAIRN_OK) st = cairn_model_open(path.ptr, NULL, &m, &dg);
    if (st == CAIRN_OK && !cairn_model_text(m)) {
        fputs("generate: the model has no tokenizer\n", stderr);
        st = CAIRN_E_NOTFOUND;
    }
    if (st == CAIRN_OK) st = cairn_engine_open(m, NULL, &e, &dg);
    if (st == CAIRN_OK) st = answer(e, argv[2], &dg);
    if (st != CAIRN_OK && dg.message[0]) fprintf(stderr, "generate: %s\n", dg.message);
    cairn_engine_close(e);
    cairn_model_close(m);
    cairn_bytes_free(&path);
    return st == CAIRN_OK ? 0 : 1;
}
