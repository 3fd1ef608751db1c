/* Every family against its reference implementation: logits position by position, hidden states layer
   by layer, greedy text.  HF checkpoints are made here from their manifests, GGUF files lie beside
   their goldens; README.md says how both were made. */
#include "test.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "engine/forward.h"
#include "format/format.h"
#include "mkweights.h"
#include "model/family.h"
#include "model/model.h"

/* Under a sanitizer the same code has run once: that is what it looks at. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WATCHED = 1 };
#else
enum { WATCHED = 0 };
#endif

enum { MAX_FOLDERS = 512 };

typedef struct golden {
    source *src;
    const int32_t *ids, *greedy;
    const float *logits, *margin;
    int32_t n, vocab, n_greedy;
    double noise;
} golden;

typedef struct compare {
    const golden *g;
    double worst;
    int32_t worst_pos, n_seen;
    int32_t layer_at_fault; /* -1: none */
    double tolerance;
} compare;

static const tensor_desc *need(const source *s, const char *name)
{
    const tensor_desc *t = source_find(s, name);
    if (!t) fail_msg("golden lacks %s", name);
    return t;
}

static const void *data(const source *s, const char *name)
{
    return need(s, name)->data;
}

static golden golden_open(const char *dir)
{
    buf path;
    cairn_diag dg = {0};
    golden g = {0};
    buf_init(&path, MEM_MISC);
    if (safetensors_open_file(path_join(&path, dir, "golden.safetensors"), &g.src, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    const tensor_desc *l = need(g.src, "logits");
    g.n = (int32_t)l->dim[0];
    g.vocab = (int32_t)l->dim[1];
    g.logits = (const float *)(const void *)l->data;
    g.ids = data(g.src, "ids");
    if (source_find(g.src, "greedy")) {
        g.greedy = data(g.src, "greedy");
        g.margin = data(g.src, "margin");
        g.n_greedy = (int32_t)need(g.src, "greedy")->dim[0];
    }
    const cairn_str noise = meta_str(&g.src->meta, "f32_noise", STR_LIT("0"));
    char z[32] = {0};
    memcpy(z, noise.ptr, noise.len < sizeof z ? noise.len : sizeof z - 1);
    g.noise = strtod(z, NULL);
    buf_deinit(&path);
    return g;
}

static double deviation(const float *x, size_t n)
{
    double sum = 0, sq = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
        sq += (double)x[i] * (double)x[i];
    }
    return sqrt(sq / (double)n - (sum / (double)n) * (sum / (double)n));
}

static bool compare_row(void *ctx, int32_t pos, const float *logits)
{
    compare *c = ctx;
    const float *want = c->g->logits + (size_t)pos * (size_t)c->g->vocab;
    for (int32_t i = 0; i < c->g->vocab; i++) {
        const double d = fabs((double)logits[i] - (double)want[i]);
        if (d > c->worst || isnan(d)) {
            c->worst = isnan(d) ? (double)INFINITY : d;
            c->worst_pos = pos;
        }
    }
    c->n_seen++;
    return true;
}

/* Hidden states that the golden holds: rows 0, 7 and the last.  The reference's last entry is taken
   after the final norm, which the logits cover; its Mamba-2 leaves the embedding out, and what it calls 0
   comes after the first layer. */
typedef struct hidden_compare {
    const golden *g;
    int32_t n_layer, hidden, first_tap, first_bad;
} hidden_compare;

static bool compare_hidden(void *ctx, int32_t pos, const float *h)
{
    hidden_compare *c = ctx;
    const int32_t row = pos == 0 ? 0 : pos == 7 ? 1 : pos == c->g->n - 1 ? 2 : -1;
    if (row < 0) return true;
    for (int32_t l = 0; l < c->n_layer; l++) {
        char name[24];
        (void)snprintf(name, sizeof name, "hidden.%d", (int)l);
        const tensor_desc *t = need(c->g->src, name);
        const size_t d = (size_t)c->hidden;
        assert_int_equal(t->dim[1], c->hidden);
        const float *want = (const float *)(const void *)t->data + (size_t)row * d;
        const double tolerance = 2e-3 * deviation(want, d) + 100 * c->g->noise;
        for (size_t i = 0; i < d; i++)
            if (!(fabs((double)h[(size_t)(l + c->first_tap) * d + i] - (double)want[i]) <=
                  tolerance) &&
                (c->first_bad < 0 || l < c->first_bad))
                c->first_bad = l;
    }
    return true;
}

static bool best_of(void *ctx, int32_t pos, const float *logits)
{
    int32_t *best = ctx;
    const int32_t vocab = best[1];
    (void)pos;
    best[0] = 0;
    for (int32_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best[0]]) best[0] = i;
    return true;
}

static void check_greedy(const model *m, const golden *g, double tolerance)
{
    int32_t seq[256];
    cairn_diag dg = {0};
    cairn_score_opts o = {.struct_size = sizeof o};
    assert_true(g->n + g->n_greedy <= 256);
    memcpy(seq, g->ids, (size_t)g->n * sizeof *seq);
    for (int32_t i = 0; i < g->n_greedy; i++) {
        int32_t best[2] = {0, g->vocab};
        const int32_t n = g->n + i;
        seq[n] = g->greedy[i];
        if (left_out()) continue;
        o.first = n - 1;
        if (forward_score(m, seq, (size_t)n, &o, best_of, best, &dg) != CAIRN_OK)
            fail_msg("%s", dg.message);
        if ((double)g->margin[i] > 2 * tolerance && best[0] != g->greedy[i])
            fail_msg("greedy token %d is %d; expected %d (margin %g)", (int)i, (int)best[0],
                     (int)g->greedy[i], (double)g->margin[i]);
    }
}

static void check_hidden(const model *m, const golden *g)
{
    cairn_diag dg = {0};
    cairn_score_opts o = {.struct_size = sizeof o};
    const int32_t first_tap = strcmp(m->family->name, "mamba2") == 0;
    hidden_compare h = {g, m->shape.n_layer, m->shape.hidden, first_tap, -1};
    if (forward_hidden(m, g->ids, (size_t)g->n, &o, compare_hidden, &h, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    if (h.first_bad >= 0)
        fail_msg("hidden state %d differs (0: embedding, i: after layer i-1)", (int)h.first_bad);
}

static void check_numerics(const model *m, const golden *g)
{
    cairn_diag dg = {0};
    cairn_numerics_report r = {.struct_size = sizeof r};
    if (test_part() > 1 || WATCHED) return; /* thirteen runs of the model */
    if (numerics_check(m, g->ids, (size_t)g->n, 2, NULL, NULL, &r, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    if (r.n_different) fail_msg("one numerics: %s", r.first);
    assert_true(r.n_comparisons > 0);
}

/* The file to open: dir's model.gguf, or a temporary checkpoint of its manifest (false). */
static bool checkpoint(const char *dir, char path[MKWEIGHTS_PATH])
{
    cairn_diag dg = {0};
    const int len = snprintf(path, MKWEIGHTS_PATH, "%s/model.gguf", dir);
    assert_in_range(len, 1, MKWEIGHTS_PATH - 1);
    if (access(path, R_OK) == 0) return true;
    if (mkweights_temp(dir, path, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return false;
}

static void check_family(void **state)
{
    const char *dir = *state;
    char made[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    model *m = NULL;
    cairn_model_opts mo = {.struct_size = sizeof mo, .compute = CAIRN_COMPUTE_F32, .n_threads = 2};
    cairn_score_opts o = {.struct_size = sizeof o};
    golden g = golden_open(dir);
    const double std = deviation(g.logits, (size_t)g.n * (size_t)g.vocab);
    compare c = {.g = &g, .tolerance = fmax(2e-3 * std, 100 * g.noise)};

    const bool gguf = checkpoint(dir, made);
    if (model_open(made, &mo, &m, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    assert_int_equal(m->shape.vocab, g.vocab);
    if (source_find(g.src, "hidden.0")) check_hidden(m, &g);
    if (forward_score(m, g.ids, (size_t)g.n, &o, compare_row, &c, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    assert_int_equal(c.n_seen, g.n);
    print_message("%-40s worst error %.2e = %.2e deviations (allowed %.2e)\n", dir, c.worst,
                  c.worst / std, c.tolerance);
    if (!(c.worst <= c.tolerance))
        fail_msg("position %d is off by %g; allowed %g", (int)c.worst_pos, c.worst, c.tolerance);
    check_greedy(m, &g, c.tolerance);
    check_numerics(m, &g);
    model_close(m);

    /* The same bits whatever the company, in the arithmetic that serves too. */
    mo.compute = CAIRN_COMPUTE_FAST;
    if (model_open(made, &mo, &m, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    check_numerics(m, &g);
    model_close(m);
    source_close(g.src);
    if (!gguf) mkweights_remove(made);
}

/* A test for each folder under `root` whose name begins with `name`. */
static size_t add_tests(const char *root, const char *name, char path[][300],
                        struct CMUnitTest *tests, size_t n)
{
    DIR *d = opendir(root);
    for (struct dirent *e = d ? readdir(d) : NULL; e && n < MAX_FOLDERS; e = readdir(d)) {
        if (e->d_name[0] == '.' || strncmp(e->d_name, name, strlen(name)) != 0) continue;
        (void)snprintf(path[n], sizeof path[n], "%s/%s", root, e->d_name);
        tests[n] = (struct CMUnitTest){path[n], check_family, NULL, NULL, path[n]};
        n++;
    }
    if (d) closedir(d);
    return n;
}

/* usage: test_families [--root DIR] [NAME]: all checkpoints, or those whose folder begins with NAME */
int main(int argc, char **argv)
{
    static const char *const ours[] = {"tests/golden/hf", "tests/golden/gguf", "tests/golden/mlx",
                                       "tests/golden/quant"};
    static char path[MAX_FOLDERS][300];
    static struct CMUnitTest tests[MAX_FOLDERS];
    const bool other = argc > 2 && strcmp(argv[1], "--root") == 0;
    const char *name = argc > 1 + 2 * other ? argv[1 + 2 * other] : "";
    size_t n = 0;
    if (other) n = add_tests(argv[2], name, path, tests, n);
    for (size_t i = 0; !other && i < sizeof ours / sizeof ours[0]; i++)
        n = add_tests(ours[i], name, path, tests, n);
    if (n == 0) {
        fprintf(stderr, "no goldens of \"%s\" under %s%s\n", name, other ? argv[2] : "tests/golden",
                other ? "" : ": run from the top of the repository");
        return 1;
    }
    return _cmocka_run_group_tests("families", tests, n, NULL, NULL);
}
