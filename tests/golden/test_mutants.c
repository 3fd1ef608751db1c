/* Every value of every golden's config.json made another one, every key renamed, bytes of every GGUF
   golden's header flipped: the model opens, and then runs, or is refused in one line that names the file.  Nothing
   crashes (the sanitizers watch), leaks or hangs.  What a refusal says is test_refusals' matter.

   About one case in CAIRN_MUTANTS is tried (1: all of them; 40, and fewer under sanitizers). */
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/rng.h"
#include "cairn/score.h"
#include "mkweights.h"

static const char *const values[] = {
    "0",    "-1",    "1",  "3",  "2147483647", "1e300", "-0.5",  "1e-30",
    "null", "\"x\"", "[]", "{}", "[1, 2]",     "true",  "false", "18446744073709551615"};
enum { N_VALUES = sizeof values / sizeof values[0] };

static uint64_t n_case, n_tried, n_run;

static bool chosen(void)
{
    const char *given = getenv("CAIRN_MUTANTS");
    const uint64_t every = given ? strtoull(given, NULL, 10) : test_part() > 1 ? 80 : 40;
    return rng_u64(11, 0, n_case++) % (every ? every : 1) == 0;
}

static bool ignore_logits(void *ctx, int32_t pos, const float *logits)
{
    (void)ctx, (void)pos, (void)logits;
    return true;
}

enum { HANGS = 60 }; /* seconds; a mutant takes milliseconds */

/* Opens it and runs three tokens, or is told in one line where the fault is. */
static void try_model(const char *path, const char *what)
{
    static const int32_t ids[] = {1, 0, 1};
    const cairn_model_opts o = {.struct_size = sizeof o, .n_threads = 1};
    cairn_score_opts so;
    cairn_model *m = NULL;
    cairn_diag dg = {0};
    const uint64_t before = mem_used_all();
    (void)alarm(HANGS);
    cairn_status st = cairn_model_open(path, &o, &m, &dg);
    n_tried++;
    if (st == CAIRN_OK) {
        cairn_score_opts_init(&so);
        st = cairn_score(m, ids, 3, &so, ignore_logits, NULL, &dg);
        n_run += st == CAIRN_OK;
    }
    cairn_model_close(m);
    assert_int_equal(mem_used_all(), before);
    if (st != CAIRN_OK && (!dg.message[0] || strchr(dg.message, '\n') || !strstr(dg.message, path)))
        fail_msg("%s: status %d says \"%s\"; expected one line that names %s", what, (int)st,
                 dg.message, path);
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Past the scalar at `at`; strings have no escapes in these files. */
static size_t scalar_end(cairn_str s, size_t at)
{
    if (s.ptr[at] == '"') return str_find(s, STR_LIT("\""), at + 1) + 1;
    while (at < s.len && !strchr(",]} \n", s.ptr[at])) at++;
    return at;
}

/* The value that begins at `at`, whole. */
static size_t value_end(cairn_str s, size_t at)
{
    int32_t depth = 0;
    if (s.ptr[at] != '[' && s.ptr[at] != '{') return scalar_end(s, at);
    do {
        if (s.ptr[at] == '"') {
            at = scalar_end(s, at);
            continue;
        }
        depth += s.ptr[at] == '[' || s.ptr[at] == '{';
        depth -= s.ptr[at] == ']' || s.ptr[at] == '}';
        at++;
    } while (depth > 0);
    return at;
}

/* A file and one that stands in for it. */
typedef struct mutant {
    const char *golden, *dir;
    char path[MKWEIGHTS_PATH + 32];
    cairn_str text;
    buf now;
} mutant;

/* The text with `value` for what stands from `at` to `end`. */
static void try_value(mutant *m, size_t at, size_t end, const char *value)
{
    char what[400];
    const size_t line = at > 60 ? at - 60 : 0;
    if (!chosen()) return;
    buf_clear(&m->now);
    buf_printf(&m->now, "%.*s%s%.*s", (int)at, m->text.ptr, value, (int)(m->text.len - end),
               m->text.ptr + end);
    write_file(m->path, m->now.ptr, m->now.len);
    (void)snprintf(what, sizeof what, "%s with …%.*s[%s]", m->golden, (int)(at - line),
                   m->text.ptr + line, value);
    try_model(m->dir, what);
}

/* Every value, lists and objects whole and what is in them; and every key another one's. */
static void mutate_config(const char *golden, const char *dir)
{
    mutant m = {.golden = golden, .dir = dir};
    buf whole;
    cairn_diag dg;
    (void)snprintf(m.path, sizeof m.path, "%s/config.json", dir);
    buf_init(&whole, MEM_MISC);
    buf_init(&m.now, MEM_MISC);
    assert_ok(file_read(m.path, 1 << 20, &whole, &dg));
    m.text = buf_view(&whole);
    const cairn_str s = m.text;
    for (size_t at = 1; at < s.len; at++) {
        if (!strchr("-0123456789tfn\"[{", s.ptr[at])) continue;
        const size_t end = value_end(s, at);
        const bool key = s.ptr[at] == '"' && end < s.len && s.ptr[end] == ':';
        if (key) try_value(&m, at, end, "\"no_such_key\"");
        for (size_t v = 0; !key && v < N_VALUES; v++) try_value(&m, at, end, values[v]);
        if (s.ptr[at] != '[' && s.ptr[at] != '{') at = end - 1;
    }
    buf_deinit(&whole);
    buf_deinit(&m.now);
}

static void mutate_folder(const char *golden)
{
    char dir[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    assert_ok(mkweights_temp(golden, dir, &dg));
    mutate_config(golden, dir);
    mkweights_remove(dir);
}

/* A byte, a bit or a word of the first that come before the tensors' data, or of their beginning. */
static void mutate_header(const char *golden)
{
    enum { MUTANTS = 4000, REACH = 8192 };
    char path[MKWEIGHTS_PATH], temp[] = "/tmp/cairn-mutant-XXXXXX", what[400];
    buf file;
    cairn_diag dg;
    buf_init(&file, MEM_MISC);
    (void)snprintf(path, sizeof path, "%s/model.gguf", golden);
    assert_ok(file_read(path, 1 << 24, &file, &dg));
    const int fd = mkstemp(temp);
    assert_true(fd >= 0 && close(fd) == 0);
    const size_t n = file.len - 8 < REACH ? file.len - 8 : REACH;
    for (uint64_t i = 0; i < MUTANTS; i++) {
        uint8_t saved[4], *at = (uint8_t *)file.ptr + rng_u64(12, i, 0) % n;
        const uint64_t r = rng_u64(12, i, 1);
        if (!chosen()) continue;
        memcpy(saved, at, 4);
        if (r % 3 == 0) at[0] = (uint8_t)(r >> 8);
        if (r % 3 == 1) at[0] ^= (uint8_t)(1 << (r >> 8) % 8);
        if (r % 3 == 2) memset(at, r >> 8 & 1 ? 0xff : 0, 4);
        write_file(temp, file.ptr, file.len);
        (void)snprintf(what, sizeof what, "%s with %02x for %02x at %td", golden, at[0], saved[0],
                       at - (uint8_t *)file.ptr);
        try_model(temp, what);
        memcpy(at, saved, 4);
    }
    (void)unlink(temp);
    buf_deinit(&file);
}

static void each(const char *root, void (*mutate)(const char *golden))
{
    char golden[MKWEIGHTS_PATH];
    struct dirent **name;
    const int n = scandir(root, &name, NULL, alphasort); /* the cases are chosen by their number */
    assert_true(n > 2);
    n_tried = n_run = 0;
    for (int i = 0; i < n; i++) {
        (void)snprintf(golden, sizeof golden, "%s/%.200s", root, name[i]->d_name);
        if (name[i]->d_name[0] != '.') mutate(golden);
        free(name[i]);
    }
    free(name);
    print_message("%s: %d mutants, %d still run\n", root, (int)n_tried, (int)n_run);
    assert_true(n_tried > 0 && n_run < n_tried);
}

static void configs(void **state)
{
    (void)state;
    each("tests/golden/hf", mutate_folder);
    each("tests/golden/quant", mutate_folder);
    each("tests/golden/mlx", mutate_folder);
}

static void headers(void **state)
{
    (void)state;
    each("tests/golden/gguf", mutate_header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(configs), cmocka_unit_test(headers)};
    return cmocka_run_group_tests_name("mutants", tests, NULL, NULL);
}
