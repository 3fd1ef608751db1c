/* cairn_doctor: opens a model's text files as the engine does and asks them what a good model's answer
   well.  Each check is one function over `exam`; what they find is a list of lines. */
#include <stdarg.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "cairn/doctor.h"
#include "format/chatfile.h"
#include "format/format.h"
#include "format/hfconfig.h"
#include "format/textfiles.h"

enum { MAX_FINDINGS = 64, MAX_LINE = 600, MAX_JSON = 256 << 20 };

typedef struct finding {
    bool bad;
    const char *code;
    char message[MAX_LINE];
} finding;

struct cairn_doctor {
    finding *v;
    size_t n;
};

typedef struct exam {
    cairn_doctor *d;
    const char *path;
    bool is_dir;
    textfiles f;      /* tok NULL: could not be opened */
    source *gguf;     /* or NULL */
    json_doc *tokens; /* tokenizer.json, or NULL */
    hfconfig *config, *generation;
    buf turn; /* [user "…", assistant "…"], rendered without a generation prompt */
    buf ask;  /* [user "…"] with one */
} exam;

static const char user_text[] = "Cairns mark the path.", bot_text[] = "So they do.";

__attribute__((format(printf, 4, 5))) static void note(exam *e, bool bad, const char *code,
                                                       const char *fmt, ...)
{
    if (e->d->n == MAX_FINDINGS) return;
    finding *f = &e->d->v[e->d->n++];
    va_list ap;
    va_start(ap, fmt);
    f->bad = bad;
    f->code = code;
    (void)vsnprintf(f->message, sizeof f->message, fmt, ap);
    va_end(ap);
}

static cairn_str piece(const exam *e, int32_t id)
{
    return id < 0 ? (cairn_str){"", 0} : tok_piece(e->f.tok, id);
}

/* The template over one conversation; false: it failed, and dg says why. */
static bool render(const exam *e, const char *messages, const char *tools, bool ask, buf *out,
                   cairn_diag *dg)
{
    json_doc *m = NULL, *t = NULL;
    cairn_status st = json_parse(str_of(messages), &m, dg);
    if (st == CAIRN_OK && tools) st = json_parse(str_of(tools), &t, dg);
    if (st == CAIRN_OK)
        st = chat_render(e->f.chat, json_root(m), t ? json_root(t) : (json_val){0}, (json_val){0},
                         ask, out, dg);
    json_free(m);
    json_free(t);
    return st == CAIRN_OK;
}

static void check_pretokenizer(exam *e)
{
    if (!e->gguf) return;
    const cairn_str model = meta_str(&e->gguf->meta, "tokenizer.ggml.model", STR_LIT(""));
    const cairn_str pre = meta_str(&e->gguf->meta, "tokenizer.ggml.pre", STR_LIT(""));
    if (!str_is(model, "gpt2")) return; /* others cut no words first */
    if (!pre.len)
        note(e, true, "pre-missing",
             "tokenizer.ggml.pre is missing: the file is older than May 2024, and words are cut by "
             "a "
             "guess; convert the model again");
    else if (str_is(pre, "default"))
        note(e, true, "pre-default",
             "tokenizer.ggml.pre is \"default\": whoever converted the model did not know its "
             "tokenizer");
}

static void check_hash(exam *e)
{
    static const struct {
        const char *sha, *name, *wrong;
    } known[] = {
#include "api/api_doctor_templates.inc"
    };
    const char *const sha = chat_sha256(e->f.chat);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(sha, known[i].sha) != 0) continue;
        if (known[i].wrong)
            note(e, true, "template-known-bad", "the chat template is %s's, which %s",
                 known[i].name, known[i].wrong);
        return;
    }
    if (*sha)
        note(e, false, "template-unknown",
             "the chat template (sha256 %.16s) is none of the %zu that are known", sha,
             sizeof known / sizeof known[0]);
}

static void check_template(exam *e)
{
    char user[200], both[300];
    cairn_diag dg = {0};

    if (!e->f.chat) {
        if (e->f.chat_diag.status != CAIRN_OK)
            note(e, true, "template-broken", "%s", e->f.chat_diag.message);
        else
            note(e, false, "template-missing", "no chat template: the model completes texts only");
        return;
    }
    check_hash(e);
    (void)snprintf(user, sizeof user, "[{\"role\":\"user\",\"content\":\"%s\"}]", user_text);
    (void)snprintf(
        both, sizeof both,
        "[{\"role\":\"user\",\"content\":\"%s\"},{\"role\":\"assistant\",\"content\":\"%s\"}]",
        user_text, bot_text);
    if (!render(e, user, NULL, true, &e->ask, &dg)) {
        note(e, true, "template-fails", "a plain user turn does not render: %s", dg.message);
        return;
    }
    if (str_find(buf_view(&e->ask), str_of(user_text), 0) == SIZE_MAX)
        note(e, true, "template-drops-user", "the template leaves out what the user says");
    if (!render(e, both, NULL, false, &e->turn, &dg)) {
        note(e, true, "template-fails", "a user and an assistant turn do not render: %s",
             dg.message);
        e->turn.len = 0;
    }
}

static void check_tools(exam *e)
{
    static const char tools[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"stack_stones\",\"description\":\"d\","
        "\"parameters\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\","
        "\"description\":\"d\"}},\"required\":[\"n\"]}}}]";
    char user[200];
    cairn_diag dg = {0};
    buf out;

    if (!e->f.chat || !e->ask.len) return;
    buf_init(&out, MEM_TEXT);
    (void)snprintf(user, sizeof user, "[{\"role\":\"user\",\"content\":\"%s\"}]", user_text);
    if (!render(e, user, tools, true, &out, &dg))
        note(e, false, "template-refuses-tools", "with tools: %s", dg.message);
    else if (str_find(buf_view(&out), STR_LIT("stack_stones"), 0) == SIZE_MAX)
        note(e, false, "template-without-tools", "the template does not tell the model its tools");
    buf_deinit(&out);
}

static void check_bos(exam *e)
{
    const tok_special s = tok_specials(e->f.tok);
    const cairn_str bos = piece(e, s.bos);
    const cairn_str text = buf_view(&e->ask);

    if (!bos.len || !str_starts(text, bos)) return;
    if (str_starts(str_sub(text, bos.len, text.len - bos.len), bos))
        note(e, true, "bos-twice", "the template itself writes %.*s twice", STR_ARG(bos));
    else if (s.add_bos)
        note(e, false, "bos-doubled",
             "template and tokenizer both add %.*s: an encoder that adds special tokens doubles it "
             "(cairn does not)",
             STR_ARG(bos));
}

/* The first special token behind the assistant's words; -1: none.  A special token is an id that the
   text gives only when special tokens are parsed. */
static int32_t turn_end(const exam *e)
{
    const size_t at = str_find(buf_view(&e->turn), str_of(bot_text), 0);
    int32_t found = -1;
    buf ids;

    if (!e->turn.len || at == SIZE_MAX) return -1;
    const size_t from = at + sizeof bot_text - 1;
    buf_init(&ids, MEM_TEXT);
    if (tok_encode(e->f.tok, str_sub(buf_view(&e->turn), from, e->turn.len - from),
                   TOK_PARSE_SPECIAL, &ids, NULL) == CAIRN_OK)
        for (size_t i = 0; i < ids.len / sizeof(int32_t) && found < 0; i++) {
            const int32_t id = ((const int32_t *)(const void *)ids.ptr)[i];
            buf plain;
            buf_init(&plain, MEM_TEXT);
            const bool shown =
                tok_decode(e->f.tok, &id, 1, false, &plain, NULL) == CAIRN_OK && plain.len;
            if (!shown && piece(e, id).len) found = id;
            buf_deinit(&plain);
        }
    buf_deinit(&ids);
    return found;
}

static void check_stops(exam *e)
{
    const tok_special s = tok_specials(e->f.tok);
    const int32_t end = turn_end(e);
    meta m, one;
    bool listed = false;

    if (s.eos < 0) note(e, false, "eos-missing", "the tokenizer names no end-of-text token");
    if (end >= 0 && !tok_is_eos(e->f.tok, end))
        note(e, true, "turn-end-not-stop",
             "the template ends the assistant's turn with %.*s (id %d), which does not end an "
             "answer",
             STR_ARG(piece(e, end)), (int)end);
    if (!e->generation || s.eos < 0) return;
    const meta_view v = hfconfig_meta(e->generation);
    if (!meta_get(&v, "eos_token_id", &m)) return;
    if (m.type == META_INT) listed = m.u.i == s.eos;
    json_iter it = hfconfig_each(&m);
    while (hfconfig_next(&it, &one)) listed |= one.type == META_INT && one.u.i == s.eos;
    if (!listed)
        note(e, false, "eos-differs",
             "generation_config.json does not list the tokenizer's end token %.*s (id %d); cairn "
             "stops "
             "at both",
             STR_ARG(piece(e, s.eos)), (int)s.eos);
}

/* GGUF: token types 3 (control) and 4 (user defined) are parsed as one token; HF: `special`. */
static bool is_marked(const exam *e, int32_t id, bool *known)
{
    meta list, one;
    json_iter it;
    json_val t;

    *known = false;
    if (e->gguf) {
        *known = meta_get(&e->gguf->meta, "tokenizer.ggml.token_type", &list) &&
                 list.type == META_ARR && meta_at(&e->gguf->meta, &list, (size_t)id, &one) &&
                 one.type == META_INT;
        return *known && (one.u.i == 3 || one.u.i == 4);
    }
    if (!e->tokens) return false;
    it = json_each(json_get(json_root(e->tokens), "added_tokens"));
    *known = true;
    while (json_next(&it, &t))
        if (json_int(json_get(t, "id"), -1) == id) return json_bool(json_get(t, "special"), false);
    return false;
}

static void check_marks(exam *e)
{
    const tok_special s = tok_specials(e->f.tok);
    const int32_t ids[] = {s.bos, s.eos};
    static const char *const what[] = {"BOS", "EOS"};
    bool known;

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (ids[i] >= 0 && !is_marked(e, ids[i], &known) && known)
            note(e, true, "special-unmarked",
                 "%s %.*s (id %d) is not marked as a special token: written in a text it is cut "
                 "into "
                 "pieces",
                 what[i], STR_ARG(piece(e, ids[i])), (int)ids[i]);
}

/* Rows of the embedding; 0: not known from the text files. */
static int64_t embedding_rows(const exam *e)
{
    if (e->gguf) {
        const tensor_desc *t = source_find(e->gguf, "token_embd.weight");
        return t && t->n_dim == 2 ? t->dim[0] : 0;
    }
    if (!e->config) return 0;
    const meta_view v = hfconfig_meta(e->config);
    return meta_int(&v, "vocab_size", 0);
}

static void check_sizes(exam *e)
{
    const int64_t rows = embedding_rows(e), vocab = tok_vocab(e->f.tok);
    json_iter it;
    json_val t;

    if (rows && vocab < rows)
        note(e, false, "vocab-smaller",
             "%lld tokens for %lld rows of the embedding: the rest is padding", (long long)vocab,
             (long long)rows);
    if (rows && vocab > rows)
        note(e, true, "vocab-larger", "%lld tokens for %lld rows of the embedding",
             (long long)vocab, (long long)rows);
    if (!e->tokens || !rows) return;
    it = json_each(json_get(json_root(e->tokens), "added_tokens"));
    while (json_next(&it, &t))
        if (json_int(json_get(t, "id"), 0) >= rows) {
            note(e, true, "added-token-outside",
                 "added token %.*s has id %lld, the embedding %lld rows",
                 STR_ARG(json_str(json_get(t, "content"))),
                 (long long)json_int(json_get(t, "id"), 0), (long long)rows);
            return;
        }
}

static void open_config(exam *e, const char *name, hfconfig **out)
{
    cairn_diag dg = {0};
    buf path;
    buf_init(&path, MEM_TEXT);
    if (path_join(&path, e->path, name) && file_exists(path.ptr) &&
        hfconfig_open(path.ptr, out, &dg) != CAIRN_OK)
        note(e, true, "config-broken", "%s", dg.message);
    buf_deinit(&path);
}

/* What the engine does not keep: the files themselves. */
static void open_files(exam *e)
{
    cairn_diag dg = {0};
    bool found = false;
    buf text;

    if (!e->is_dir) {
        if (gguf_open(e->path, &e->gguf, &dg) != CAIRN_OK) e->gguf = NULL;
        return;
    }
    open_config(e, "config.json", &e->config);
    open_config(e, "generation_config.json", &e->generation);
    buf_init(&text, MEM_TEXT);
    if (chatfile_read(e->path, "tokenizer.json", MAX_JSON, false, &text, &found, &dg) == CAIRN_OK &&
        found && json_parse(buf_view(&text), &e->tokens, &dg) != CAIRN_OK)
        e->tokens = NULL; /* textfiles_open says what is wrong with it */
    buf_deinit(&text);
}

static cairn_status examine(exam *e)
{
    cairn_diag dg = {0};

    open_files(e);
    check_pretokenizer(e);
    const cairn_status st = textfiles_open(e->path, &e->f, &dg);
    if (st == CAIRN_E_NOMEM) return st;
    if (st != CAIRN_OK) {
        const bool pre = strstr(dg.message, "tokenizer.ggml.pre") != NULL;
        note(e, true, pre ? "pre-unknown" : "tokenizer-broken", "%s", dg.message);
        return CAIRN_OK;
    }
    check_template(e);
    check_tools(e);
    check_bos(e);
    check_stops(e);
    check_marks(e);
    check_sizes(e);
    return CAIRN_OK;
}

cairn_status cairn_doctor_run(const char *path, cairn_doctor **out, cairn_diag *dg)
{
    cairn_status st;
    exam e = {.path = path};

    if (!path || !out) return diag_set(dg, CAIRN_E_ARG, "cairn_doctor_run: path or out is NULL");
    e.is_dir = file_is_dir(path);
    if (!e.is_dir && !file_exists(path))
        return diag_set(dg, CAIRN_E_NOTFOUND, "%s: no such file or directory", path);
    e.d = mem_calloc(1, sizeof *e.d, MEM_TEXT);
    if (e.d) e.d->v = mem_calloc(MAX_FINDINGS, sizeof *e.d->v, MEM_TEXT);
    buf_init(&e.turn, MEM_TEXT);
    buf_init(&e.ask, MEM_TEXT);
    st = e.d && e.d->v ? examine(&e) : CAIRN_E_NOMEM;
    buf_deinit(&e.turn);
    buf_deinit(&e.ask);
    textfiles_close(&e.f);
    source_close(e.gguf);
    json_free(e.tokens);
    hfconfig_close(e.config);
    hfconfig_close(e.generation);
    if (st == CAIRN_OK) {
        *out = e.d;
        return st;
    }
    cairn_doctor_free(e.d);
    return diag_set(dg, st, "%s: no memory to look at it", path);
}

size_t cairn_doctor_count(const cairn_doctor *d)
{
    return d->n;
}

cairn_finding cairn_doctor_at(const cairn_doctor *d, size_t i)
{
    return (cairn_finding){.bad = d->v[i].bad, .code = d->v[i].code, .message = d->v[i].message};
}

void cairn_doctor_free(cairn_doctor *d)
{
    if (!d) return;
    mem_free(d->v);
    mem_free(d);
}
