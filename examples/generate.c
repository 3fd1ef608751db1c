/* One answer on standard output, by the public interface alone.

   usage: generate MODEL PROMPT
   MODEL is a .gguf file, a folder with config.json, or the name of a fetched model. */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "session.h"

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

    if (!text) {
        (void)snprintf(dg->message, sizeof dg->message, "the model has no tokenizer");
        return CAIRN_E_NOTFOUND;
    }
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
    session s = {0};

    if (argc != 3) {
        fputs("usage: generate MODEL PROMPT\n", stderr);
        return 2;
    }
    cairn_status st = session_open(&s, argv[1], &dg);
    if (st == CAIRN_OK) st = answer(s.engine, argv[2], &dg);
    return session_close(&s, "generate", st, &dg);
}
