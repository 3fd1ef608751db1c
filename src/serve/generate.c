/* What a curve does to what a model writes: a few short samples of one text, and whether each is junk.  They are
   the choices of one request, drawn by the engine like any other. */
#include "serve/generate.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/utf8.h"
#include "serve/chat_sampling.h"
#include "serve/endpoint.h"
#include "serve/openai_messages.h"
#include "serve/openai_wire.h"
#include "serve/prompt.h"
#include "serve/random.h"
#include "serve/text_of.h"

enum {
    MAX_SAMPLES = 8,  /* to be looked at side by side */
    MAX_TOKENS = 256, /* a page of text: enough to see it fall apart */
    SAMPLES = 3,      /* unless the body says otherwise, like the next: a few lines of each */
    TOKENS = 80,
    JUNK_PERCENT = 2 /* of letters of other scripts, and more: fewer may be a name */
};

static cairn_status bad_knot(chat_fault *f, size_t i, const char *what)
{
    char name[32];

    (void)snprintf(name, sizeof name, "curve[%zu]", i);
    return chat_fault_set(f, CAIRN_E_ARG, name, "`%s` %s", name, what);
}

static cairn_status read_percent(json_val v, const char *name, size_t i, float *out, chat_fault *f)
{
    const double x = json_num(json_get(v, name), -1);
    char param[40];

    (void)snprintf(param, sizeof param, "curve[%zu].%s", i, name);
    if (!(x >= 0 && x <= 100))
        return chat_want(f, param, "a number from 0 to 100", json_get(v, name));
    *out = (float)x;
    return CAIRN_OK;
}

/* The engine checks the same (sample_check): here the point is named as the body has it. */
static cairn_status read_knot(json_val v, size_t i, cairn_knot *out, chat_fault *f)
{
    if (json_typeof(v) != JSON_OBJ)
        return bad_knot(f, i, "must be {\"x_pct\": …, \"y_pct\": …}, numbers from 0 to 100");
    TRY(read_percent(v, "x_pct", i, &out->x, f));
    TRY(read_percent(v, "y_pct", i, &out->y, f));
    if (i && (out->x <= out[-1].x || out->x <= 1e-7f || out->y < out[-1].y))
        return bad_knot(f, i,
                        "must have a greater x_pct than the one before (above 1e-7), and no "
                        "smaller y_pct: the curve has to be monotone");
    return CAIRN_OK;
}

static cairn_status read_curve(json_val root, chat_ask *a, chat_fault *f)
{
    const json_val v = json_get(root, "curve");
    const size_t n = json_size(v);
    json_iter it = json_each(v);
    json_val item;
    cairn_knot *list;

    if (json_typeof(v) != JSON_ARR || n < 2 || n > CAIRN_MAX_KNOTS)
        return chat_fault_set(
            f, CAIRN_E_ARG, "curve",
            "`curve` must be an array of 2 to %d points, or left out where `default` is true",
            CAIRN_MAX_KNOTS);
    list = arena_calloc(&a->mem, n, sizeof *list);
    if (!list) return chat_fault_set(f, CAIRN_E_NOMEM, "curve", "no memory");
    for (size_t i = 0; json_next(&it, &item); i++) TRY(read_knot(item, i, &list[i], f));
    a->rq.sampling.curve = list;
    a->rq.sampling.n_curve = n;
    return CAIRN_OK;
}

cairn_status generate_ask_read(chat_ask *a, cairn_str body, chat_fault *f)
{
    bool plain = false;

    TRY(chat_ask_open(a, body, f));
    const json_val root = json_root(a->doc);
    a->n = SAMPLES;
    a->rq.max_tokens = TOKENS;
    a->rq.keep_special = true; /* <unused7> is to be seen */
    TRY(chat_want_int(root, "n", 1, MAX_SAMPLES, &a->n, f));
    TRY(chat_want_int(root, "max_tokens", 1, MAX_TOKENS, &a->rq.max_tokens, f));
    TRY(chat_want_bool(root, "default", &plain, f));
    TRY(chat_seed_read(root, a, f));
    if (!a->has_seed) a->rq.sampling.seed = random_seed();
    if (plain && json_typeof(json_get(root, "curve")) <= JSON_NULL) return CAIRN_OK;
    TRY(read_curve(root, a, f));
    if (plain) a->rq.sampling.n_curve = 0; /* it was given, and is to be one */
    return CAIRN_OK;
}

static bool encode(prompt *p)
{
    const struct cairn_text *t = served_model_text(p->model);
    const json_val v = json_get(json_root(p->ask.doc), "prompt");
    cairn_diag dg = {0};
    cairn_status st;

    if (json_typeof(v) != JSON_STR || json_str(v).len == 0)
        return prompt_refuse(p, 400, "prompt", "invalid_value",
                             "`prompt` must be a string that is not empty");
    if (!t) return prompt_refuse_as(p, CAIRN_E_ARG, "model", "the model has no tokenizer");
    if (!prompt_fits(p, "prompt", "at least ", cairn_text_least_ids(t, json_str(v)))) return false;
    p->ids = mem_calloc(1, sizeof *p->ids, MEM_SERVE);
    if (!p->ids) return prompt_no_memory(p);
    p->n_ids = 1;
    st = cairn_text_encode_prompt(t, json_str(v), p->ids, &dg);
    if (st != CAIRN_OK) return prompt_refuse_as(p, st, "prompt", dg.message);
    if (p->ids->len == 0)
        return prompt_refuse(p, 400, "prompt", "invalid_value", "`prompt` makes no tokens");
    return prompt_fits(p, "prompt", "", p->ids->len);
}

/* Worker. */
static void make(prompt *p, const models *m, cairn_str body)
{
    *p = (prompt){.client = p->client};
    if (prompt_read(p, generate_ask_read, body) && prompt_find_engine(p, m)) (void)encode(p);
    if (p->fault.status) prompt_deinit(p);
}

/* A letter of a script that is not Latin: all from Greek on but Latin's later blocks, marks, signs, symbols and
   pictures. */
static bool is_foreign(uint32_t cp)
{
    static const uint32_t others[][2] = {
        {0x1E00, 0x1EFF}, {0x2000, 0x2BFF},   {0x2C60, 0x2C7F},    {0x2E00, 0x2E7F},
        {0x3000, 0x3004}, {0x3008, 0x3030},   {0xA720, 0xA7FF},    {0xAB30, 0xAB6F},
        {0xD800, 0xF8FF}, {0xFB00, 0xFB06},   {0xFE00, 0xFE6F},    {0xFF00, 0xFF65},
        {0xFFE0, 0xFFFF}, {0x1F000, 0x1FBFF}, {0xE0000, 0x10FFFF},
    };

    if (cp < 0x370) return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (cp >= others[i][0] && cp <= others[i][1]) return false;
    return true;
}

/* "<unused", digits, ">". */
static bool has_unused(cairn_str s)
{
    static const char word[] = "<unused";
    size_t at = 0;

    while ((at = str_find(s, (cairn_str){word, sizeof word - 1}, at)) != SIZE_MAX) {
        size_t end = at += sizeof word - 1;
        while (end < s.len && s.ptr[end] >= '0' && s.ptr[end] <= '9') end++;
        if (end > at && end < s.len && s.ptr[end] == '>') return true;
    }
    return false;
}

static bool is_junk(cairn_str s)
{
    size_t n = 0, foreign = 0;
    uint32_t cp;

    for (size_t at = 0; at < s.len; n++) {
        const int k = utf8_decode(s.ptr + at, s.len - at, &cp);
        if (cp == 0xFFFD) return true;
        foreign += is_foreign(cp);
        at += (size_t)(k < 0 ? -k : k);
    }
    return (foreign > 0 && foreign * 100 >= n * JUNK_PERCENT) || has_unused(s);
}

typedef struct samples {
    uint32_t n;
    buf text[MAX_SAMPLES];
} samples;

static void *samples_open(const prompt *p)
{
    samples *o = mem_calloc(1, sizeof *o, MEM_SERVE);

    if (!o) return NULL;
    o->n = (uint32_t)p->ask.n;
    for (uint32_t i = 0; i < o->n; i++) buf_init(&o->text[i], MEM_SERVE);
    return o;
}

static void samples_close(void *out)
{
    samples *o = out;

    for (uint32_t i = 0; i < o->n; i++) buf_deinit(&o->text[i]);
    mem_free(o);
}

static void samples_begin(void *out, uint32_t i, buf *frames)
{
    (void)out, (void)i, (void)frames;
}

static void samples_delta(void *out, uint32_t i, const reply_delta *d, buf *frames)
{
    samples *o = out;

    (void)frames;
    buf_str(&o->text[i], d->text);
}

static void samples_end(void *out, uint32_t i, const answer_end *e, buf *frames)
{
    (void)out, (void)i, (void)e, (void)frames;
}

static bool samples_whole(void *out, const answer_usage *u, buf *body)
{
    const samples *o = out;
    json_writer w = json_write(body);

    (void)u;
    json_w_obj(&w);
    json_w_key(&w, "samples");
    json_w_arr(&w);
    for (uint32_t i = 0; i < o->n; i++) {
        const cairn_str text = text_of(&o->text[i]);
        json_w_obj(&w);
        json_w_kstr(&w, "text", text);
        json_w_kbool(&w, "junk", is_junk(text));
        json_w_end_obj(&w);
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    return false;
}

static cairn_status samples_status(const void *out)
{
    const samples *o = out;
    cairn_status st = CAIRN_OK;

    for (uint32_t i = 0; i < o->n && st == CAIRN_OK; i++) st = buf_status(&o->text[i]);
    return st;
}

/* Never a stream: what only streams have is left out. */
static const answer_format samples_format = {
    .refuse = openai_refuse,
    .open = samples_open,
    .close = samples_close,
    .begin = samples_begin,
    .delta = samples_delta,
    .end = samples_end,
    .whole = samples_whole,
    .status = samples_status,
};

void generate_serve(cairn_server *s, http_req *rq)
{
    static const endpoint e = {.format = &samples_format, .make = make};

    endpoint_serve(s, rq, &e);
}
