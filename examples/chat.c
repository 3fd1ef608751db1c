/* A conversation, by the public interface alone: each line of standard input is a message, and the
   model's own chat template makes the prompt of all that was said.

   usage: chat MODEL
   A reply is kept as the model wrote it; cairn/reply.h parts thoughts and tool calls from it. */
#define _POSIX_C_SOURCE 200809L
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "cairn/cairn.h"
#include "session.h"

typedef struct text { /* grows as `to` is written */
    FILE *to;
    char *ptr;
    size_t len;
} text;

typedef struct chat {
    cairn_engine *engine;
    text messages; /* a JSON array, but for its end */
    text reply;    /* the engine's thread writes it while ours waits for `done` */
    sem_t done;
} chat;

static bool text_open(text *t)
{
    t->to = open_memstream(&t->ptr, &t->len);
    return t->to != NULL;
}

static void text_close(text *t)
{
    if (t->to) fclose(t->to);
    free(t->ptr);
    *t = (text){0};
}

static void say(chat *c, const char *role, const char *s, size_t n)
{
    fprintf(c->messages.to, "%c{\"role\":\"%s\",\"content\":\"", c->messages.len ? ',' : '[', role);
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] < 0x20)
            fprintf(c->messages.to, "\\u%04x", (unsigned)s[i]);
        else
            fprintf(c->messages.to, s[i] == '"' || s[i] == '\\' ? "\\%c" : "%c", s[i]);
    }
    fputs("\"}", c->messages.to);
    fflush(c->messages.to);
}

/* The ids of the prompt; the caller frees them. */
static cairn_status make_prompt(chat *c, cairn_ids *ids, cairn_diag *dg)
{
    cairn_render_opts o;

    cairn_render_opts_init(&o);
    fputc(']', c->messages.to);
    fflush(c->messages.to);
    o.messages = (cairn_str){c->messages.ptr, c->messages.len};
    const cairn_status st =
        cairn_text_prompt(cairn_model_text(cairn_engine_model(c->engine)), &o, ids, dg);
    fseek(c->messages.to, -1, SEEK_CUR); /* the next message takes the bracket's place */
    fflush(c->messages.to);
    return st;
}

static void on_event(void *ctx, const cairn_event *ev)
{
    chat *c = ctx;

    fwrite(ev->text.ptr, 1, ev->text.len, stdout);
    fflush(stdout);
    fwrite(ev->text.ptr, 1, ev->text.len, c->reply.to);
    if (ev->kind != CAIRN_EV_DONE) return;
    if (ev->finish == CAIRN_FINISH_ERROR) fprintf(stderr, "chat: %s\n", ev->message);
    fflush(c->reply.to);
    sem_post(&c->done);
}

static cairn_status answer(chat *c, cairn_diag *dg)
{
    cairn_request_id id;
    cairn_request r;
    cairn_ids ids;
    cairn_status st = make_prompt(c, &ids, dg);

    if (st != CAIRN_OK) return st;
    cairn_request_init(&r);
    r.ids = ids.ptr;
    r.n_ids = ids.len;
    r.max_tokens = 256;
    r.sampling.temperature = 0.7f;
    r.sampling.min_p = 0.05f;
    st = text_open(&c->reply) ? cairn_engine_submit(c->engine, &r, on_event, c, &id, dg)
                              : CAIRN_E_NOMEM;
    if (st == CAIRN_OK) {
        while (sem_wait(&c->done) != 0) {
        } /* interrupted by a signal */
        say(c, "assistant", c->reply.ptr, c->reply.len);
        puts("");
    }
    text_close(&c->reply);
    cairn_ids_free(&ids);
    return st;
}

static cairn_status converse(cairn_engine *e, cairn_diag *dg)
{
    chat c = {.engine = e};
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    cairn_status st = text_open(&c.messages) ? CAIRN_OK : CAIRN_E_NOMEM;

    if (sem_init(&c.done, 0, 0) != 0) abort(); /* cannot fail for a count of 0 */
    while (st == CAIRN_OK && (n = getline(&line, &room, stdin)) > 0) {
        say(&c, "user", line, (size_t)n - (line[n - 1] == '\n'));
        st = answer(&c, dg);
    }
    free(line);
    sem_destroy(&c.done);
    text_close(&c.messages);
    return st;
}

int main(int argc, char **argv)
{
    cairn_diag dg = {0};
    session s = {0};

    if (argc != 2) {
        fputs("usage: chat MODEL\n", stderr);
        return 2;
    }
    cairn_status st = session_open(&s, argv[1], &dg);
    if (st == CAIRN_OK) st = cairn_text_check_template(cairn_model_text(s.model), &dg);
    if (st == CAIRN_OK) st = converse(s.engine, &dg);
    return session_close(&s, "chat", st, &dg);
}
