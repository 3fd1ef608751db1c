/* Every layout of a cache with every codec under random programs on real models (cache_world.h).
     test_cache_programs [SEED [COUNT [NAME]]]
   Alone: a few pairs; with a seed: COUNT programs of every pair whose text has NAME in it
   (`make test-programs`). */
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "api/api_model.h"
#include "base/file.h"
#include "golden/cache_world.h"
#include "golden/mkweights.h"

enum { SHORT_OPS = 100, LONG_OPS = 400 };

typedef struct layout {
    const char *dir, *what;
    const char *window; /* in place of the golden's, which is less than a block */
    bool is_large;      /* shorter programs, and the only one with heads that turbo can rotate */
} layout;

static const layout layouts[] = {
    {"llama", "full", NULL, false},
    {"gemma3", "windows", NULL, false},
    {"gemma3", "windows over blocks", "100", false},
    {"gpt_oss", "windows and sinks", NULL, false},
    {"gpt_oss", "wide windows and sinks", "70", false},
    {"gemma3n", "shared layers", NULL, false},
    {"gemma4_e2b", "shared layers", "65", false},
    {"deepseek_v3", "latent", NULL, false},
    {"deepseek_v32", "latent and indexer", NULL, false},
    {"lfm2", "convolutions", NULL, false},
    {"mamba2", "states", NULL, false},
    {"qwen3_next", "delta rule", NULL, false},
    {"falcon_h1", "keys and states", NULL, false},
    {"granite_h", "keys or states", NULL, false},
    {"nemotron_h", "keys or states", NULL, false},
    {"llama_minicpm5", "large heads", NULL, true},
};
enum { N_LAYOUT = sizeof layouts / sizeof *layouts };

/* mix and mix@: a kv_config.json, with delayed layers or without. */
static const char *const codecs[] = {"f16",    "q8",         "q8@64",  "k8v4", "mix",
                                     "q4@128", "bf16",       "turbo",  "mix@", "q4",
                                     "f32",    "turbo:k4v3", "k8v4@64"};
enum { N_CODEC = sizeof codecs / sizeof *codecs };

typedef struct pair {
    const layout *l;
    const char *codec;
    char name[80];
} pair;

static pair pairs[N_LAYOUT * N_CODEC];
static struct CMUnitTest tests[N_LAYOUT * N_CODEC];
static size_t n_pair;
static uint64_t seed = 1, count = 1;
static bool whole;

/* What is an error by design: no keys to code, heads too small for a rotation. */
static bool is_legal(const layout *l, const char *codec)
{
    const bool states = strcmp(l->dir, "mamba2") == 0;
    if (strstr(codec, "turbo")) return l->is_large;
    return !states || strcmp(codec, "f16") == 0;
}

/* The golden's sliding_window, which its config.json has once, becomes another. */
static void set_window(const char *made, const char *window)
{
    static const char key[] = "\"sliding_window\": ";
    char path[MKWEIGHTS_PATH + 20];
    buf in, out;
    cairn_diag dg = {0};
    buf_init(&in, MEM_MISC);
    buf_init(&out, MEM_MISC);
    (void)snprintf(path, sizeof path, "%s/config.json", made);
    assert_ok(file_read_input(path, 1 << 20, &in, &dg));
    buf_byte(&in, 0);
    char *at = strstr(in.ptr, key);
    assert_non_null(at);
    at += strlen(key);
    buf_put(&out, in.ptr, (size_t)(at - in.ptr));
    buf_printf(&out, "%s%s", window, at + strspn(at, "0123456789"));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(out.ptr, 1, out.len, f), out.len);
    assert_int_equal(fclose(f), 0);
    buf_deinit(&in);
    buf_deinit(&out);
}

/* Of every three layers with keys: eight bits, four bits, plain. */
static void write_mix(const cachespec *s, bool delayed, const char *path)
{
    FILE *f = fopen(path, "wb");
    int32_t n = 0;
    assert_non_null(f);
    for (int32_t i = 0; i < s->n_layer; i++) {
        if (s->layer[i].n_kv_head == 0 || n++ % 3 == 2) continue;
        (void)fprintf(f, "%s{\"layer_idx\": %d, \"bits\": %d%s}", n == 1 ? "[" : ", ", (int)i,
                      n % 3 == 1 ? 8 : 4,
                      delayed ? n % 2 ? ", \"start\": 64" : ", \"start\": 130" : "");
    }
    (void)fputs("]", f);
    assert_int_equal(fclose(f), 0);
}

static cairn_model *open_with(const char *made, const char *codec, const char *name)
{
    cairn_model_opts o;
    cairn_model *m = NULL;
    cairn_diag dg = {0};
    cairn_model_opts_init(&o);
    o.kv_codec = codec;
    o.no_text = true;
    o.n_threads = 1;
    if (cairn_model_open(made, &o, &m, &dg) != CAIRN_OK) fail_msg("%s: %s", name, dg.message);
    return m;
}

static cairn_model *open_pair(const pair *p, const char *made)
{
    char mix[MKWEIGHTS_PATH + 20];
    if (strncmp(p->codec, "mix", 3) != 0) return open_with(made, p->codec, p->name);
    cairn_model *plain = open_with(made, NULL, p->name);
    (void)snprintf(mix, sizeof mix, "%s/kv_config.json", made);
    write_mix(&plain->m->cache, p->codec[3] == '@', mix);
    cairn_model_close(plain);
    return open_with(made, mix, p->name);
}

static int n_ops(const layout *l)
{
    return (whole ? LONG_OPS : SHORT_OPS) / (l->is_large ? 10 : 1);
}

static void run_programs(void **state)
{
    const pair *p = *state;
    static world w;
    char made[MKWEIGHTS_PATH], dir[100];
    cairn_diag dg = {0};
    (void)snprintf(dir, sizeof dir, "tests/golden/hf/%s", p->l->dir);
    if (mkweights_temp(dir, made, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    if (p->l->window) set_window(made, p->l->window);
    cairn_model *m = open_pair(p, made);
    for (uint64_t k = 0; k < 2 * count; k++) {
        if (!whole && k % 2 != (uint64_t)(p - pairs) % 2) continue; /* a half of them is tight */
        w = (world){.name = p->name,
                    .m = m->m,
                    .n_path = p->l->is_large ? 2 : WORLD_PATHS,
                    .seed = seed + k / 2,
                    .tight = k % 2};
        world_begin(&w);
        for (int i = 0; i < n_ops(p->l); i++) world_do(&w, (uint64_t)i);
        world_end(&w);
        assert_true(w.n_rows > 0 && (w.n_hits > 0 || !w.keeps));
    }
    cairn_model_close(m);
    mkweights_remove(made);
}

/* Without a seed: two codecs of each layout, others for the next one. */
static bool in_short_form(size_t l, size_t c)
{
    if (layouts[l].is_large) return strcmp(codecs[c], "turbo:k4v3") == 0;
    return (c + N_CODEC - l * 2 % N_CODEC) % N_CODEC < 2 || !is_legal(&layouts[l], "q8");
}

int main(int argc, char **argv)
{
    if (access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 0); /* no fsync to wait for */
    whole = argc > 1;
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) count = strtoull(argv[2], NULL, 10);
    for (size_t l = 0; l < N_LAYOUT; l++)
        for (size_t c = 0; c < N_CODEC; c++) {
            pair *p = &pairs[n_pair];
            *p = (pair){.l = &layouts[l], .codec = codecs[c]};
            (void)snprintf(p->name, sizeof p->name, "%s (%s), %s", p->l->dir, p->l->what, p->codec);
            if (!is_legal(p->l, p->codec) || (!whole && (!in_short_form(l, c) || left_out())))
                continue;
            if (argc > 3 && !strstr(p->name, argv[3])) continue;
            tests[n_pair++] =
                (struct CMUnitTest){.name = p->name, .test_func = run_programs, .initial_state = p};
        }
    return _cmocka_run_group_tests("cache programs", tests, n_pair, NULL, NULL);
}
