/* Owns the reading of tiktoken's rank files: a line for each piece, its bytes in base64 and its rank,
   which is its id.  Two neighbours merge if what they make together is a piece, the least rank first.
   The split rule is in the program that uses the file: it goes by the file's name and the config's
   tokenizer_class here, and an unknown pair has the rule that transformers assumes. */
#include "text/rules.h"
#include "text/tok_config.h"

typedef struct loader {
    tok *t;
    const char *where;
    cairn_diag *dg;
    cairn_str text;
    uint32_t line;
} loader;

static cairn_status corrupt(loader *l)
{
    return diag_set(l->dg, CAIRN_E_CORRUPT,
                    "%s: line %u: found something else; expected a piece in base64 and its rank",
                    l->where, l->line);
}

static int digit_of(char c)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *p = c ? strchr(digit, c) : NULL;

    return p ? (int)(p - digit) : -1;
}

size_t tok_base64(cairn_str s, char *into)
{
    size_t n = 0;
    uint32_t bits = 0, have = 0;

    if (s.len % 4) return SIZE_MAX;
    while (s.len && s.ptr[s.len - 1] == '=') s.len--;
    for (size_t i = 0; i < s.len; i++) {
        int d = digit_of(s.ptr[i]);
        if (d < 0) return SIZE_MAX;
        bits = bits << 6 | (uint32_t)d;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        into[n++] = (char)(uint8_t)(bits >> have);
        bits &= (1U << have) - 1;
    }
    return n;
}

/* The next line's two halves; false at the end. */
static bool next_line(loader *l, cairn_str *spelt, cairn_str *rank)
{
    while (l->text.len) {
        size_t end = str_find(l->text, STR_LIT("\n"), 0);
        cairn_str line = str_sub(l->text, 0, end == SIZE_MAX ? l->text.len : end);
        l->text = str_sub(l->text, line.len + (end != SIZE_MAX),
                          l->text.len - line.len - (end != SIZE_MAX));
        l->line++;
        line = str_trim(line);
        if (line.len == 0) continue;
        size_t cut = str_find(line, STR_LIT(" "), 0);
        *spelt = str_sub(line, 0, cut == SIZE_MAX ? line.len : cut);
        *rank = (cairn_str){0};
        if (cut != SIZE_MAX) *rank = str_sub(line, cut + 1, line.len - cut - 1);
        return true;
    }
    return false;
}

static int32_t number_of(cairn_str s)
{
    int32_t n = 0;

    if (s.len == 0 || s.len > 7) return -1;
    for (size_t i = 0; i < s.len; i++) {
        if (!str_is_digit(s.ptr[i])) return -1;
        n = n * 10 + (s.ptr[i] - '0');
    }
    return n < TOK_MAX_VOCAB ? n : -1;
}

bool tok_is_tiktoken(cairn_str bytes)
{
    loader l = {.text = str_sub(bytes, 0, bytes.len < 512 ? bytes.len : 512)};
    cairn_str spelt, rank;
    char into[512];

    return next_line(&l, &spelt, &rank) && number_of(rank) >= 0 && spelt.len &&
           tok_base64(spelt, into) != SIZE_MAX;
}

static cairn_status count(loader *l, int32_t *n)
{
    loader copy = *l;
    cairn_str spelt, rank;

    while (next_line(&copy, &spelt, &rank)) {
        int32_t id = number_of(rank);
        l->line = copy.line;
        if (id < 0 || spelt.len == 0 || spelt.len > TOK_MAX_PIECE) return corrupt(l);
        if (id >= *n) *n = id + 1;
    }
    return *n ? CAIRN_OK
              : diag_set(l->dg, CAIRN_E_CORRUPT, "%s: found no pieces; expected one a line",
                         l->where);
}

static cairn_status read_pieces(loader *l)
{
    tok *t = l->t;
    cairn_str spelt, rank;

    if (map_reserve(&t->by_key, (size_t)t->n) != CAIRN_OK)
        return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a vocabulary");
    while (next_line(l, &spelt, &rank)) {
        int32_t id = number_of(rank);
        char *into = arena_alloc(&t->mem, spelt.len + 1);
        if (!into) return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
        size_t n = tok_base64(spelt, into);
        if (n == SIZE_MAX || n == 0 || t->flag[id] & TOK_F_USED) return corrupt(l);
        t->text[id] = t->out[id] = (cairn_str){into, n};
        t->flag[id] |= TOK_F_USED;
        if (n > t->max_text) t->max_text = n;
        if (n > t->max_out) t->max_out = n;
        if (map_put(&t->by_key, t->text[id], (uint32_t)id) != CAIRN_OK)
            return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a vocabulary");
    }
    return CAIRN_OK;
}

/* Every cut of a piece in two pieces is a merge, ranked as the piece. */
static cairn_status add_merges(loader *l, int32_t id, bool count_only, size_t *n)
{
    tok *t = l->t;
    cairn_str s = t->text[id];
    uint32_t a, b;

    if (s.len > 512) return CAIRN_OK; /* quadratic; the longest known have 128 bytes */
    for (size_t cut = 1; cut < s.len; cut++) {
        if (!map_get(&t->by_key, str_sub(s, 0, cut), &a) ||
            !map_get(&t->by_key, str_sub(s, cut, s.len - cut), &b))
            continue;
        if (!count_only) bpe_put(&t->bpe, a, b, (uint32_t)id);
        if (++*n > TOK_MAX_MERGES)
            return diag_set(l->dg, CAIRN_E_LIMIT, "%s: found more merges than expected, %d",
                            l->where, TOK_MAX_MERGES);
    }
    return CAIRN_OK;
}

static cairn_status read_merges(loader *l, int32_t ranks)
{
    size_t n = 0;

    for (int32_t id = 0; id < ranks; id++) TRY(add_merges(l, id, true, &n));
    TRY(bpe_init(l->t, (uint32_t)n, l->dg));
    l->t->bpe.rank_is_id = true;
    n = 0;
    for (int32_t id = 0; id < ranks; id++) TRY(add_merges(l, id, false, &n));
    return CAIRN_OK;
}

static const char *rule_of(cairn_str name, json_val config)
{
    static const struct {
        const char *in_name, *tokenizer_class, *rule;
    } known[] = {
        {"qwen.", "QWenTokenizer", RULE_QWEN2},
        {"cl100k", NULL, RULE_CL100K},
        {"o200k", NULL, RULE_O200K},
        {"p50k", NULL, RULE_GPT2},
        {"r50k", NULL, RULE_GPT2},
        {"gpt2", NULL, RULE_GPT2},
        {NULL, "TikTokenTokenizer", RULE_KIMI},
        {NULL, "ChatGLM4Tokenizer", RULE_LLAMA3},
    };
    cairn_str class = json_str(json_get(config, "tokenizer_class"));

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].tokenizer_class && str_is(class, known[i].tokenizer_class))
            return known[i].rule;
        if (known[i].in_name && str_find(name, str_of(known[i].in_name), 0) != SIZE_MAX)
            return known[i].rule;
    }
    return RULE_LLAMA3;
}

static cairn_status build(loader *l, cairn_str name, json_val config)
{
    int32_t ranks = 0, named = config_vocab(config);
    pre_step s = {.behavior = PRE_ISOLATED};

    TRY(count(l, &ranks));
    TRY(tok_new(ranks > named ? ranks : named, &l->t, l->dg));
    tok *t = l->t;
    t->byte_level = true; /* keys are bytes */
    t->dec.byte_level = true;
    l->line = 0;
    TRY(read_pieces(l));
    TRY(read_merges(l, ranks));
    t->bpe.ignore_merges = true;
    t->word = bpe_word;
    TRY(bpe_finish(t, l->dg));
    t->pre = arena_calloc(&t->mem, 1, sizeof *t->pre);
    if (!t->pre) return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
    TRY(pre_of_pattern(str_of(rule_of(name, config)), l->where, &s, l->dg));
    t->pre[t->n_pre++] = s;
    TRY(config_added(t, config, l->where, l->dg));
    return config_specials(t, config, false, false, l->dg);
}

cairn_status tok_open_tiktoken(cairn_str ranks, cairn_str config, const char *name,
                               const char *where, tok **out, cairn_diag *dg)
{
    loader l = {.where = where, .dg = dg, .text = ranks};
    json_doc *doc = NULL;
    cairn_status st = config_parse(config, where, &doc, dg);

    if (st == CAIRN_OK) st = build(&l, str_of(name), doc ? json_root(doc) : (json_val){0});
    json_free(doc);
    if (st == CAIRN_OK)
        *out = l.t;
    else
        tok_close(l.t);
    return st;
}
