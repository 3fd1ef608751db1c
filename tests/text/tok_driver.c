/* Side program of the comparison scripts: opens a tokenizer and answers requests, one JSON object a
   line.  {"s": text, "flags": n} → [ids]; {"ids": [...], "keep": bool} → {"text": …, "stream": …};
   {"time": text, "n": repetitions} → CPU seconds of the quickest; {"ids": [...], "cuts": true} → the pieces
   as they stream, for each number of ids what its end would add, and whether no piece splits a character;
   {"ids": [...], "repeat": n} → CPU seconds of streaming them n times over; {"ids": [...], "spans": true} →
   where each stands in the text.  Arguments: a GGUF, a
   tokenizer.json, a SentencePiece .model or a tiktoken file, and optionally a tokenizer_config.json. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "format/format.h"
#include "text/detok.h"

static int fail(const cairn_diag *dg)
{
    fprintf(stderr, "tok_driver: %s\n", dg->message);
    return 1;
}

static cairn_status open_any(int argc, char **argv, tok **out, cairn_diag *dg)
{
    file_map json;
    buf config;
    cairn_status st;

    if (str_ends(str_of(argv[1]), STR_LIT(".gguf"))) {
        source *src = NULL;
        TRY(gguf_open(argv[1], &src, dg));
        st = tok_open_gguf(&src->meta, argv[1], out, dg);
        source_close(src);
        return st;
    }
    TRY(file_map_open(argv[1], &json, dg));
    const cairn_str text = {(const char *)json.ptr, json.size};
    buf_init(&config, MEM_IO);
    if (argc > 2) TRY_GOTO(file_read(argv[2], (size_t)1 << 30, &config, dg), out);
    if (tok_is_tiktoken(text))
        st = tok_open_tiktoken(text, buf_view(&config), argv[1], argv[1], out, dg);
    else if (str_ends(str_of(argv[1]), STR_LIT(".model")))
        st = tok_open_sentencepiece(text, buf_view(&config), argv[1], out, dg);
    else
        st = tok_open_hf(text, buf_view(&config), argv[1], out, dg);
out:
    file_map_close(&json);
    buf_deinit(&config);
    return st;
}

static void write_ids(json_writer *w, const buf *ids)
{
    const int32_t *id = (const int32_t *)(const void *)ids->ptr;

    json_w_arr(w);
    for (size_t i = 0; i < ids->len / sizeof *id; i++) json_w_int(w, id[i]);
    json_w_end_arr(w);
}

static cairn_status answer_ids(const tok *t, json_val req, json_writer *w, cairn_diag *dg)
{
    buf ids;
    cairn_status st;

    buf_init(&ids, MEM_TEXT);
    st = tok_encode(t, json_str(json_get(req, "s")), (uint32_t)json_int(json_get(req, "flags"), 0),
                    &ids, dg);
    if (st == CAIRN_OK) write_ids(w, &ids);
    buf_deinit(&ids);
    return st;
}

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of this thread: other programs on the machine do not count. */
static double cpu_s(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}

static cairn_status answer_time(const tok *t, json_val req, json_writer *w, cairn_diag *dg)
{
    buf ids;
    cairn_status st = CAIRN_OK;
    int64_t n = json_int(json_get(req, "n"), 1);
    double best = 1e9;

    buf_init(&ids, MEM_TEXT);
    for (int64_t i = 0; i < n && st == CAIRN_OK; i++) {
        buf_clear(&ids);
        double start = cpu_s();
        st = tok_encode(t, json_str(json_get(req, "time")), 0, &ids, dg);
        double took = cpu_s() - start;
        if (took < best) best = took;
    }
    json_w_num(w, best);
    buf_deinit(&ids);
    return st;
}

static cairn_status answer_text(const tok *t, json_val req, json_writer *w, cairn_diag *dg)
{
    buf ids, text, stream;
    detok *d = NULL;
    cairn_str part;
    bool keep = json_bool(json_get(req, "keep"), false);
    json_iter it = json_each(json_get(req, "ids"));
    json_val v;
    cairn_status st;

    buf_init(&ids, MEM_TEXT);
    buf_init(&text, MEM_TEXT);
    buf_init(&stream, MEM_TEXT);
    TRY_GOTO(detok_new(t, keep, &d), out);
    while (json_next(&it, &v)) {
        int32_t id = (int32_t)json_int(v, -1);
        buf_put(&ids, &id, sizeof id);
        TRY_GOTO(detok_feed(d, id, &part), out);
        buf_str(&stream, part);
    }
    TRY_GOTO(detok_end(d, &part), out);
    buf_str(&stream, part);
    TRY_GOTO(tok_decode(t, (const int32_t *)(const void *)ids.ptr, ids.len / sizeof(int32_t), keep,
                        &text, dg),
             out);
    json_w_obj(w);
    json_w_kstr(w, "text", buf_view(&text));
    json_w_kstr(w, "stream", buf_view(&stream));
    json_w_end_obj(w);
out:
    detok_free(d);
    buf_deinit(&ids);
    buf_deinit(&text);
    buf_deinit(&stream);
    return st;
}

/* Streams the first n ids; what the end adds, and the last piece alone, as strings. */
static cairn_status stream_first(const tok *t, bool keep, const int32_t *ids, size_t n, buf *piece,
                                 buf *end)
{
    cairn_str s = {0};
    detok *d;

    TRY(detok_new(t, keep, &d));
    cairn_status st = CAIRN_OK;
    for (size_t i = 0; i < n && st == CAIRN_OK; i++) st = detok_feed(d, ids[i], &s);
    if (st == CAIRN_OK) {
        buf_str(piece, s);
        st = detok_end(d, &s);
    }
    if (st == CAIRN_OK) buf_str(end, s);
    detok_free(d);
    return st;
}

static cairn_status answer_cuts(const tok *t, json_val req, const buf *ids, json_writer *w)
{
    const bool keep = json_bool(json_get(req, "keep"), false);
    const size_t n = ids->len / sizeof(int32_t);
    cairn_status st = CAIRN_OK;
    bool whole = true;
    buf piece, end, ends;
    json_writer e;

    buf_init(&piece, MEM_TEXT);
    buf_init(&end, MEM_TEXT);
    buf_init(&ends, MEM_TEXT);
    e = json_write(&ends);
    json_w_obj(w);
    json_w_key(w, "pieces");
    json_w_arr(w);
    json_w_arr(&e);
    for (size_t k = 0; k <= n && st == CAIRN_OK; k++) {
        buf_clear(&piece);
        buf_clear(&end);
        st = stream_first(t, keep, (const int32_t *)(const void *)ids->ptr, k, &piece, &end);
        whole = whole && utf8_valid(buf_view(&piece)) && utf8_valid(buf_view(&end));
        json_w_str(w, buf_view(&piece));
        json_w_str(&e, buf_view(&end));
    }
    json_w_end_arr(w);
    json_w_end_arr(&e);
    json_w_key(w, "ends");
    json_w_raw(w, buf_view(&ends));
    json_w_key(w, "whole");
    json_w_bool(w, whole);
    json_w_end_obj(w);
    buf_deinit(&piece);
    buf_deinit(&end);
    buf_deinit(&ends);
    return st;
}

static cairn_status answer_repeat(const tok *t, json_val req, const buf *ids, json_writer *w)
{
    const int32_t *id = (const int32_t *)(const void *)ids->ptr;
    const int64_t times = json_int(json_get(req, "repeat"), 1);
    const size_t n = ids->len / sizeof *id;
    cairn_status st = CAIRN_OK;
    cairn_str s;
    detok *d;

    TRY(detok_new(t, false, &d));
    const double start = cpu_s();
    for (int64_t k = 0; k < times; k++)
        for (size_t i = 0; i < n && st == CAIRN_OK; i++) st = detok_feed(d, id[i], &s);
    if (st == CAIRN_OK) st = detok_end(d, &s);
    json_w_num(w, cpu_s() - start);
    detok_free(d);
    return st;
}

static cairn_status answer_spans(const tok *t, json_val req, const buf *ids, json_writer *w,
                                 cairn_diag *dg)
{
    const size_t n = ids->len / sizeof(int32_t);
    buf spans;

    buf_init(&spans, MEM_TEXT);
    size_t *at = buf_grow(&spans, 2 * n * sizeof *at);
    cairn_status st = at ? tok_spans(t, (const int32_t *)(const void *)ids->ptr, n,
                                     json_bool(json_get(req, "keep"), false), at, dg)
                         : CAIRN_E_NOMEM;
    json_w_arr(w);
    for (size_t i = 0; st == CAIRN_OK && i < 2 * n; i++) json_w_uint(w, at[i]);
    json_w_end_arr(w);
    buf_deinit(&spans);
    return st;
}

static cairn_status answer_stream(const tok *t, json_val req, json_writer *w, cairn_diag *dg)
{
    json_iter it = json_each(json_get(req, "ids"));
    cairn_status st;
    json_val v;
    buf ids;

    buf_init(&ids, MEM_TEXT);
    while (json_next(&it, &v)) {
        const int32_t id = (int32_t)json_int(v, -1);
        buf_put(&ids, &id, sizeof id);
    }
    if (json_bool(json_get(req, "cuts"), false))
        st = answer_cuts(t, req, &ids, w);
    else if (json_bool(json_get(req, "spans"), false))
        st = answer_spans(t, req, &ids, w, dg);
    else
        st = answer_repeat(t, req, &ids, w);
    buf_deinit(&ids);
    return st;
}

static cairn_status answer(const tok *t, cairn_str line, buf *out, cairn_diag *dg)
{
    json_doc *doc;
    json_writer w = json_write(out);
    cairn_status st;

    TRY(json_parse(line, &doc, dg));
    json_val req = json_root(doc);
    if (json_typeof(json_get(req, "s")) == JSON_STR)
        st = answer_ids(t, req, &w, dg);
    else if (json_typeof(json_get(req, "time")) == JSON_STR)
        st = answer_time(t, req, &w, dg);
    else if (json_typeof(json_get(req, "cuts")) == JSON_BOOL ||
             json_typeof(json_get(req, "spans")) == JSON_BOOL ||
             json_int(json_get(req, "repeat"), 0))
        st = answer_stream(t, req, &w, dg);
    else
        st = answer_text(t, req, &w, dg);
    json_free(doc);
    return st;
}

int main(int argc, char **argv)
{
    cairn_diag dg = {0};
    tok *t = NULL;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    const double start = cpu_s(), wall = seconds(CLOCK_MONOTONIC);
    buf out;

    if (argc < 2) return fail(&(cairn_diag){.message = "usage: tok_driver FILE [CONFIG]"});
    if (open_any(argc, argv, &t, &dg) != CAIRN_OK) return fail(&dg);
    fprintf(stderr, "opened in %.4f CPU s, %.4f s\n", cpu_s() - start,
            seconds(CLOCK_MONOTONIC) - wall);
    buf_init(&out, MEM_TEXT);
    while ((n = getline(&line, &cap, stdin)) > 0) {
        buf_clear(&out);
        if (answer(t, (cairn_str){line, (size_t)n}, &out, &dg) != CAIRN_OK) {
            buf_clear(&out);
            json_writer w = json_write(&out);
            json_w_str(&w, str_of(dg.message));
        }
        buf_byte(&out, '\n');
        fwrite(out.ptr, 1, out.len, stdout);
        fflush(stdout);
    }
    buf_deinit(&out);
    free(line);
    tok_close(t);
    return 0;
}
