/* Which files are read, who wins and what the tokenizer and the template are given.  Both stand-ins
   below only write down what they get: their own tests are in unit/text. */
#include "test.h"
#include "tmp.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "format/textfiles.h"

struct tok {
    int32_t n_vocab;
};
struct chat {
    int unused;
};

static struct {
    char config[2000], text[200], bos[40], eos[40], extra[400], where[300], opener[40];
    char named[200]; /* NAME=TEXT; of each further template of the last chat */
    int32_t eos_id[600];
    size_t n_eos;
    int32_t n_vocab; /* 0: 100 */
    cairn_status chat_status;
    int n_open;
} got;

static void keep(char *to, size_t size, cairn_str s)
{
    snprintf(to, size, "%.*s", STR_ARG(s));
}

static cairn_status fake_tok(tok **out)
{
    *out = mem_calloc(1, sizeof **out, MEM_TEXT);
    if (!*out) return CAIRN_E_NOMEM;
    (*out)->n_vocab = got.n_vocab ? got.n_vocab : 100;
    got.n_open++;
    return CAIRN_OK;
}

cairn_status tok_open_hf(cairn_str tokenizer_json, cairn_str tokenizer_config, const char *where,
                         tok **out, cairn_diag *dg)
{
    (void)where;
    (void)dg;
    assert_str(tokenizer_json, "{\"model\":1}");
    keep(got.config, sizeof got.config, tokenizer_config);
    return fake_tok(out);
}

cairn_status tok_open_gguf(const meta_view *gguf, const char *where, tok **out, cairn_diag *dg)
{
    (void)gguf;
    (void)where;
    (void)dg;
    return fake_tok(out);
}

bool tok_is_tiktoken(cairn_str bytes)
{
    return str_is(bytes, "YQ== 0");
}

static cairn_status named_tok(const char *name, tok **out)
{
    keep(got.opener, sizeof got.opener, str_of(name));
    return fake_tok(out);
}

cairn_status tok_open_sentencepiece(cairn_str model, cairn_str config, const char *where, tok **out,
                                    cairn_diag *dg)
{
    (void)model;
    (void)config;
    (void)where;
    (void)dg;
    return named_tok("sentencepiece", out);
}

cairn_status tok_open_tiktoken(cairn_str ranks, cairn_str config, const char *name,
                               const char *where, tok **out, cairn_diag *dg)
{
    (void)ranks;
    (void)config;
    (void)where;
    (void)dg;
    return named_tok(name, out);
}

cairn_status tok_open_merges(cairn_str vocab, cairn_str merges, cairn_str config, const char *where,
                             tok **out, cairn_diag *dg)
{
    (void)vocab;
    (void)config;
    (void)where;
    (void)dg;
    assert_str(merges, "a b");
    return named_tok("merges", out);
}

cairn_status tok_open_wordpiece(cairn_str vocab, cairn_str config, const char *where, tok **out,
                                cairn_diag *dg)
{
    (void)vocab;
    (void)config;
    (void)where;
    (void)dg;
    return named_tok("wordpiece", out);
}

void tok_close(tok *t)
{
    got.n_open--;
    mem_free(t);
}

cairn_status tok_add_eos(tok *t, int32_t id)
{
    (void)t;
    got.eos_id[got.n_eos++] = id;
    return CAIRN_OK;
}

bool tok_is_eos(const tok *t, int32_t id)
{
    (void)t;
    for (size_t i = 0; i < got.n_eos; i++)
        if (got.eos_id[i] == id) return true;
    return false;
}

int32_t tok_find(const tok *t, cairn_str piece)
{
    (void)t;
    return str_is(piece, "nope") ? -1 : 3;
}

tok_special tok_specials(const tok *t)
{
    (void)t;
    return (tok_special){.bos = 1, .eos = 2, .unk = 0, .pad = -1};
}

int32_t tok_vocab(const tok *t)
{
    return t->n_vocab;
}

cairn_status chat_open(cairn_str template_text, cairn_str bos, cairn_str eos, json_val extra,
                       const char *where, chat **out, cairn_diag *dg)
{
    buf b;
    got.named[0] = '\0';
    keep(got.text, sizeof got.text, template_text);
    keep(got.bos, sizeof got.bos, bos);
    keep(got.eos, sizeof got.eos, eos);
    keep(got.where, sizeof got.where, str_of(where));
    buf_init(&b, MEM_TEXT);
    json_writer w = json_write(&b);
    json_w_val(&w, extra);
    const cairn_status st = buf_status(&b);
    keep(got.extra, sizeof got.extra, buf_view(&b));
    buf_deinit(&b);
    if (st != CAIRN_OK) return diag_set(dg, st, "extra");
    if (got.chat_status != CAIRN_OK) return diag_set(dg, got.chat_status, "%s: bad tag", where);
    *out = mem_calloc(1, sizeof **out, MEM_TEXT);
    if (!*out) return diag_set(dg, CAIRN_E_NOMEM, "chat");
    got.n_open++;
    return CAIRN_OK;
}

cairn_status chat_add_named(chat *c, cairn_str name, cairn_str template_text, const char *where,
                            cairn_diag *dg)
{
    const size_t at = strlen(got.named);
    (void)c;
    (void)where;
    (void)dg;
    snprintf(got.named + at, sizeof got.named - at, "%.*s=%.*s;", STR_ARG(name),
             STR_ARG(template_text));
    return CAIRN_OK;
}

bool chat_has_named(const chat *c, cairn_str name)
{
    char word[64];
    (void)c;
    snprintf(word, sizeof word, "%.*s=", STR_ARG(name));
    return strstr(got.named, word) != NULL;
}

void chat_close(chat *c)
{
    got.n_open--;
    mem_free(c);
}

static tmp_dir dir;

static void put(const char *name, const char *text)
{
    assert_ok(file_replace(tmp_path(&dir, name), text, strlen(text), NULL));
}

static int set_up(void **state)
{
    (void)state;
    memset(&got, 0, sizeof got);
    if (!tmp_make(&dir)) return -1;
    put("tokenizer.json", "{\"model\":1}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return tmp_drop(&dir) ? 0 : -1;
}

static void open_ok(textfiles *t)
{
    cairn_diag dg = {0};
    if (textfiles_open(dir.path, t, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    assert_non_null(t->tok);
}

static void tokenizer_alone(void **state)
{
    textfiles t;
    (void)state;
    open_ok(&t);
    assert_null(t.chat);
    assert_int_equal(t.chat_diag.status, CAIRN_OK);
    assert_string_equal(got.config, "");
    textfiles_close(&t);
    assert_int_equal(got.n_open, 0);
    textfiles_close(&t); /* harmless */
}

/* Without a tokenizer.json: the order in which other files are looked for. */
static void other_files(void **state)
{
    static const struct {
        const char *name, *text, *beside, *beside_text, *opener;
    } later[] = {{"vocab.txt", "a", NULL, NULL, "wordpiece"},
                 {"vocab.json", "{}", "merges.txt", "a b", "merges"},
                 {"qwen.tiktoken", "YQ== 0", NULL, NULL, "qwen.tiktoken"},
                 {"tokenizer.model", "model", NULL, NULL, "sentencepiece"},
                 {"tokenizer.model", "YQ== 0", NULL, NULL, "tokenizer.model"}};
    textfiles t;

    (void)state;
    unlink(tmp_path(&dir, "tokenizer.json"));
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        put(later[i].name, later[i].text);
        if (later[i].beside) put(later[i].beside, later[i].beside_text);
        open_ok(&t);
        assert_string_equal(got.opener, later[i].opener);
        textfiles_close(&t);
    }
    assert_int_equal(got.n_open, 0);
}

static void tokens_reach_the_template(void **state)
{
    textfiles t;
    (void)state;
    put("tokenizer_config.json",
        "{\"bos_token\":{\"content\":\"<s>\",\"lstrip\":false},\"eos_token\":\"</s>\","
        "\"pad_token\":\"<pad>\",\"unk_token\":null,\"add_bos_token\":true,"
        "\"boi_token\":{\"content\":\"<boi>\"},\"extra_special_tokens\":{\"image\":\"<img>\"},"
        "\"model_max_length\":1000000000000000019884624838656,\"chat_template\":\"KEY\"}");
    open_ok(&t);
    assert_non_null(t.chat);
    assert_string_equal(got.text, "KEY");
    assert_string_equal(got.bos, "<s>");
    assert_string_equal(got.eos, "</s>");
    assert_string_equal(got.extra,
                        "{\"pad_token\":\"<pad>\",\"boi_token\":\"<boi>\",\"image\":\"<img>\"}");
    assert_non_null(strstr(got.where, "tokenizer_config.json"));
    assert_non_null(strstr(got.config, "1000000000000000019884624838656.0"));
    textfiles_close(&t);
    assert_int_equal(got.n_open, 0);
}

/* transformers 5.24: a chat_template.jinja wins over the key, named templates or not. */
static void which_template_wins(void **state)
{
    textfiles t;
    (void)state;
    put("chat_template.json", "{\"chat_template\":\"LEGACY\"}");
    open_ok(&t);
    assert_string_equal(got.text, "LEGACY");
    textfiles_close(&t);
    put("tokenizer_config.json", "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"T\"},"
                                 "{\"name\":\"default\",\"template\":\"D\"}]}");
    open_ok(&t);
    assert_string_equal(got.text, "D");
    assert_string_equal(got.named, "tool_use=T;");
    textfiles_close(&t);
    put("tokenizer_config.json", "{\"chat_template\":\"KEY\"}");
    open_ok(&t);
    assert_string_equal(got.text, "KEY");
    textfiles_close(&t);
    put("chat_template.jinja", "FILE");
    open_ok(&t);
    assert_string_equal(got.text, "FILE");
    assert_non_null(strstr(got.where, "chat_template.jinja"));
    textfiles_close(&t);
    assert_int_equal(got.n_open, 0);
}

static void eos_is_a_union(void **state)
{
    textfiles t;
    (void)state;
    put("config.json", "{\"eos_token_id\":7,\"text_config\":{\"eos_token_id\":9}}");
    put("generation_config.json", "{\"eos_token_id\":[1,99,7,1,100]}");
    open_ok(&t);
    assert_int_equal(got.n_eos, 3);
    assert_int_equal(got.eos_id[0], 7);
    assert_int_equal(got.eos_id[1], 1);
    assert_int_equal(got.eos_id[2], 99); /* 100 is beyond the vocabulary */
    textfiles_close(&t);
}

/* What decides is how many distinct ids there are, and a list is read once. */
static void eos_lists_are_bounded(void **state)
{
    textfiles t;
    cairn_diag dg = {0};
    buf b;
    (void)state;
    buf_init(&b, MEM_TEXT);
    buf_puts(&b, "{\"eos_token_id\":[0");
    for (int i = 0; i < 300000; i++) buf_printf(&b, ",%d", i % 256);
    buf_puts(&b, "]}");
    got.n_vocab = 1000;
    put("generation_config.json", b.ptr);
    const double start = clock_s();
    open_ok(&t);
    assert_true(clock_s() - start < 5); /* quadratic: minutes */
    assert_int_equal(got.n_eos, 256);
    textfiles_close(&t);
    got.n_eos = 0;
    buf_cut(&b, b.len - 2);
    buf_puts(&b, ",256]}");
    put("generation_config.json", b.ptr);
    assert_int_equal(textfiles_open(dir.path, &t, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "generation_config.json: eos_token_id: found over 256 ids; expected at most");
    buf_deinit(&b);
    assert_int_equal(got.n_open, 0);
}

static void refuses(const char *name, const char *text, const char *says)
{
    textfiles t;
    cairn_diag dg = {0};
    put(name, text);
    assert_int_equal(textfiles_open(dir.path, &t, &dg), CAIRN_E_CORRUPT);
    assert_says(&dg, name);
    if (!strstr(dg.message, says)) fail_msg("%s", dg.message);
    put(name, "{}");
}

static void odd_values_are_named(void **state)
{
    (void)state;
    refuses("generation_config.json", "{\"eos_token_id\":[1,\"x\"]}",
            "eos_token_id: found \"x\"; expected a token id");
    refuses("config.json", "{\"eos_token_id\":NaN}", "eos_token_id: found NaN; expected");
    refuses("tokenizer_config.json", "{\"bos_token\":-Infinity}",
            "bos_token: found -Infinity; expected a text");
    refuses("tokenizer_config.json", "{\"pad_token\":5}",
            "pad_token: found an integer; expected a text");
    refuses("tokenizer_config.json", "[]", "found an array; expected an object");
}

static void ids_and_numbers(void **state)
{
    static const char both[][2][120] = {
        {"{\"eos_token_id\":-1}", "eos_token_id: found -1; expected a token id"},
        {"{\"eos_token_id\":[1000000000]}", "eos_token_id: found 1000000000; expected"},
        {"{\"eos_token_id\":[null]}", "eos_token_id: found null; expected"},
        {"{\"eos_token_id\":0.5}", "eos_token_id: found 0.5; expected"},
        {"{\"eos_token_id\":\"7\"}", "eos_token_id: found \"7\"; expected"},
        {"{\"bos_token_id\":-1}", "bos_token_id: found -1; expected a token id (0 to 16777215)"},
        {"{\"bos_token_id\":1e300}", "bos_token_id: found 1e+300; expected"},
        {"{\"pad_token_id\":\"7\"}", "pad_token_id: found \"7\"; expected a token id (-1 to"},
        {"{\"pad_token_id\":-2}", "pad_token_id: found -2; expected"},
        {"{\"temperature\":\"x\"}", "temperature: found \"x\"; expected a number of 0 or more"},
        {"{\"temperature\":-5}", "temperature: found -5; expected"},
        {"{\"temperature\":NaN}", "temperature: found NaN; expected"},
        {"{\"top_p\":7}", "top_p: found 7; expected a number from 0 to 1"},
        {"{\"min_p\":true}", "min_p: found true; expected a number from 0 to 1"},
        {"{\"top_k\":-9}", "top_k: found -9; expected a whole number of 0 or more"},
        {"{\"top_k\":1.5}", "top_k: found 1.5; expected"},
        {"{\"repetition_penalty\":0}", "repetition_penalty: found 0; expected a number over 0"},
    };
    textfiles t;
    (void)state;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        refuses("generation_config.json", both[i][0], both[i][1]);
        refuses("config.json", both[i][0], both[i][1]);
    }
    put("generation_config.json",
        "{\"eos_token_id\":null,\"pad_token_id\":-1,\"bos_token_id\":5,\"temperature\":0,"
        "\"top_p\":null,\"top_k\":-1,\"min_p\":0.05,\"repetition_penalty\":1}");
    open_ok(&t);
    textfiles_close(&t);
    refuses("tokenizer_config.json", "{\"eos_token\":{\"content\":5}}",
            "eos_token.content: found an integer; expected a text");
    refuses("tokenizer_config.json", "{\"eos_token\":{\"content\":\"nope\"}}",
            "eos_token: found \"nope\"; expected a token of the vocabulary");
    refuses("tokenizer_config.json", "{\"bos_token\":\"nope\"}",
            "bos_token: found \"nope\"; expected a token of the vocabulary");
}

static bool has_template(const char *path)
{
    bool has = false;
    cairn_diag dg = {0};
    if (textfiles_has_template(path, &has, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return has;
}

/* Answered without a look at tokenizer.json. */
static void knows_of_a_template(void **state)
{
    (void)state;
    put("tokenizer.json", "not even JSON");
    put("tokenizer_config.json", "{\"model_max_length\":Infinity}");
    assert_false(has_template(dir.path));
    put("tokenizer_config.json", "{\"chat_template\":\"X\"}");
    assert_true(has_template(dir.path));
    put("tokenizer_config.json", "{}");
    put("chat_template.jinja", "X");
    assert_true(has_template(dir.path));
    assert_true(has_template("tests/unit/format/data/chat.gguf"));
    assert_int_equal(got.n_open, 0);
}

static void a_bad_template_is_not_fatal(void **state)
{
    textfiles t;
    (void)state;
    put("chat_template.jinja", "{% x %}");
    got.chat_status = CAIRN_E_CORRUPT;
    open_ok(&t);
    assert_null(t.chat);
    assert_int_equal(t.chat_diag.status, CAIRN_E_CORRUPT);
    assert_says(&t.chat_diag, "chat_template.jinja: bad tag");
    textfiles_close(&t);
    assert_int_equal(got.n_open, 0);
}

static void errors_name_the_file(void **state)
{
    static const char *const name[] = {"tokenizer_config.json", "config.json",
                                       "generation_config.json", "chat_template.json"};
    cairn_diag dg = {0};
    textfiles t;

    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        put(name[i], "{\"a\":");
        assert_int_equal(textfiles_open(dir.path, &t, &dg), CAIRN_E_CORRUPT);
        assert_says(&dg, name[i]);
        (void)unlink(tmp_path(&dir, name[i]));
    }
    assert_int_equal(got.n_open, 0);
    assert_int_equal(textfiles_open("/nonexistent", &t, &dg), CAIRN_E_NOTFOUND);
    assert_int_equal(textfiles_open("tests/unit", &t, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "expected tokenizer.json");
    assert_int_equal(textfiles_open("tests/unit/format/data/split-00001-of-00003.gguf", &t, &dg),
                     CAIRN_E_NOTFOUND);
    assert_says(&dg, "expected a vocabulary");
}

static void from_gguf(void **state)
{
    cairn_diag dg = {0};
    textfiles t;
    (void)state;
    assert_ok(textfiles_open("tests/fuzz/corpus/gguf/vocab.gguf", &t, &dg));
    assert_null(t.chat); /* no template in it */
    textfiles_close(&t);
    assert_ok(textfiles_open("tests/unit/format/data/chat.gguf", &t, &dg));
    assert_string_equal(got.text, "GGUF");
    assert_string_equal(got.bos, "<s>");
    assert_string_equal(got.eos, "</s>");
    assert_string_equal(got.extra, "{\"unk_token\":\"<unk>\"}");
    textfiles_close(&t);
    assert_int_equal(got.n_open, 0);
}

static cairn_status open_close(void *ctx)
{
    textfiles t;
    const cairn_status st = textfiles_open(ctx, &t, NULL);
    if (st == CAIRN_OK) textfiles_close(&t);
    got.n_eos = 0;
    return st;
}

static void every_allocation_may_fail(void **state)
{
    char gguf[] = "tests/unit/format/data/chat.gguf";
    (void)state;
    put("tokenizer_config.json", "{\"pad_token\":\"<pad>\",\"chat_template\":\"KEY\"}");
    put("generation_config.json", "{\"eos_token_id\":[1,2]}");
    assert_true(fault_loop(open_close, dir.path) > 10);
    assert_true(fault_loop(open_close, gguf) > 5);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(tokenizer_alone),
        TEST(other_files),
        TEST(tokens_reach_the_template),
        TEST(which_template_wins),
        TEST(eos_is_a_union),
        TEST(eos_lists_are_bounded),
        TEST(ids_and_numbers),
        TEST(a_bad_template_is_not_fatal),
        TEST(errors_name_the_file),
        TEST(odd_values_are_named),
        TEST(knows_of_a_template),
        TEST(from_gguf),
        TEST(every_allocation_may_fail),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
