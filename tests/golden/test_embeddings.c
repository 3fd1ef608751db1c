/* Every embedding model against its reference: vectors of token lists and of texts, hidden states layer by
   layer, and the same bits whatever the company, the steps and the threads.  The checkpoints are made here
   from their manifests; README.md says how the goldens were made. */
#include "test.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "cairn/embed.h"
#include "engine/embed.h"
#include "engine/forward.h"
#include "format/format.h"
#include "mkweights.h"

enum { MAX_FOLDERS = 64, TEXTS = 3, MAX_DIM = 512 };
static const char root[] = "tests/golden/embed";

typedef struct vector {
    float v[MAX_DIM];
    int32_t n;
} vector;

static const tensor_desc *numbered(const source *s, const char *what, int32_t i)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s.%d", what, (int)i);
    return source_find(s, name);
}

static const float *floats(const tensor_desc *t)
{
    return (const float *)(const void *)t->data;
}

static double noise_of(const source *s)
{
    const cairn_str noise = meta_str(&s->meta, "f32_noise", STR_LIT("0"));
    char z[32] = {0};
    memcpy(z, noise.ptr, noise.len < sizeof z ? noise.len : sizeof z - 1);
    return strtod(z, NULL);
}

/* What a value may be off by: the families' tolerance (README.md of these goldens). */
static double tolerance(const float *x, size_t n, double noise)
{
    double sum = 0, sq = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
        sq += (double)x[i] * (double)x[i];
    }
    return fmax(2e-3 * sqrt(sq / (double)n - (sum / (double)n) * (sum / (double)n)), 100 * noise);
}

static double worst_of(const float *found, const float *want, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)found[i] - (double)want[i]);
        if (!(d <= worst)) worst = isnan(d) ? (double)INFINITY : d;
    }
    return worst;
}

static bool keep(void *ctx, const cairn_embedding *e)
{
    vector *out = ctx;
    assert_in_range(e->n_values, 1, MAX_DIM);
    memcpy(out[e->index].v, e->values, (size_t)e->n_values * sizeof *e->values);
    out[e->index].n = e->n_values;
    return true;
}

static bool keep_at(void *ctx, size_t i, const float *v, int32_t dim)
{
    vector *out = ctx;
    assert_in_range(dim, 1, MAX_DIM);
    memcpy(out[i].v, v, (size_t)dim * sizeof *v);
    out[i].n = dim;
    return true;
}

/* Rows 0, n/2 and n - 1 are in the golden; the last state is taken after the final norm, which vectors
   cover. */
typedef struct hidden_compare {
    const source *src;
    int32_t text, n, n_layer, hidden, first_bad;
} hidden_compare;

static bool compare_hidden(void *ctx, int32_t pos, const float *h)
{
    hidden_compare *c = ctx;
    const int32_t row = pos == 0 ? 0 : pos == c->n / 2 ? 1 : pos == c->n - 1 ? 2 : -1;
    const size_t d = (size_t)c->hidden;
    char what[24];
    if (row < 0) return true;
    (void)snprintf(what, sizeof what, "hidden.%d", (int)c->text);
    for (int32_t l = 0; l < c->n_layer; l++) {
        const tensor_desc *t = numbered(c->src, what, l);
        assert_non_null(t);
        assert_int_equal(t->dim[1], c->hidden);
        const float *want = floats(t) + (size_t)row * d;
        const double allowed = tolerance(want, d, noise_of(c->src));
        if (!(worst_of(h + (size_t)l * d, want, d) <= allowed) && c->first_bad < 0)
            c->first_bad = l;
    }
    return true;
}

static void check_hidden(const model *m, const source *g)
{
    const cairn_score_opts o = {.struct_size = sizeof o};
    cairn_diag dg = {0};
    for (int32_t k = 0; k < TEXTS; k++) {
        const tensor_desc *ids = numbered(g, "ids", k);
        hidden_compare c = {g, k, (int32_t)ids->dim[0], m->shape.n_layer, m->shape.hidden, -1};
        if (forward_hidden(m, (const int32_t *)(const void *)ids->data, (size_t)c.n, &o,
                           compare_hidden, &c, &dg) != CAIRN_OK)
            fail_msg("%s", dg.message);
        if (c.first_bad >= 0)
            fail_msg("text %d: hidden state %d differs (0: embedding, i: after layer i-1)", (int)k,
                     (int)c.first_bad);
    }
}

static size_t golden_texts(const source *g, embed_text out[TEXTS])
{
    for (int32_t k = 0; k < TEXTS; k++) {
        const tensor_desc *t = numbered(g, "ids", k);
        out[k] = (embed_text){(const int32_t *)(const void *)t->data, (int32_t)t->dim[0], 0};
    }
    return TEXTS;
}

static void check_vectors(const model *m, const source *g, const char *dir)
{
    static vector found[TEXTS];
    embed_text text[TEXTS];
    cairn_diag dg = {0};
    const embed_how how = {0};
    double worst = 0, part = 0;
    const size_t n = golden_texts(g, text);
    if (embed_run(m, text, n, &how, keep_at, found, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    for (int32_t k = 0; k < TEXTS; k++) {
        const tensor_desc *t = numbered(g, "vector", k);
        assert_int_equal(t->dim[0], found[k].n);
        const size_t dim = (size_t)t->dim[0];
        const double allowed = tolerance(floats(t), dim, noise_of(g));
        const double off = worst_of(found[k].v, floats(t), dim);
        worst = fmax(worst, off);
        part = fmax(part, off / allowed);
        if (!(off <= allowed)) fail_msg("text %d is off by %g; allowed %g", (int)k, off, allowed);
    }
    print_message("%-40s worst error %.2e = %.4f of what is allowed\n", dir, worst, part);
}

static void check_numerics(const model *m, const source *g)
{
    embed_text text[TEXTS];
    cairn_diag dg = {0};
    cairn_numerics_report r = {.struct_size = sizeof r};
    if (test_part() > 1) return; /* thirteen runs of each text */
    golden_texts(g, text);
    for (int32_t k = 0; k < TEXTS; k++) {
        if (embed_check_numerics(m, text[k].ids, (size_t)text[k].n, 2, NULL, NULL, &r, &dg) !=
            CAIRN_OK)
            fail_msg("%s", dg.message);
        if (r.n_different) fail_msg("one numerics: text %d, %s", (int)k, r.first);
        assert_true(r.n_comparisons > 0);
    }
}

/* Whole texts with the model's tokenizer, prompts and longest length. */
static void check_texts(const char *made, const char *dir, const source *g)
{
    static vector found[1];
    cairn_diag dg = {0};
    cairn_model *m = NULL;
    json_doc *doc = NULL;
    json_val v;
    buf path, file;
    const cairn_model_opts mo = {.struct_size = sizeof mo, .compute = CAIRN_COMPUTE_F32};
    buf_init(&path, MEM_MISC);
    buf_init(&file, MEM_MISC);
    assert_non_null(path_join(&path, dir, "texts.json"));
    if (file_exists(path.ptr)) {
        assert_ok(file_read(path.ptr, 1 << 20, &file, &dg));
        assert_ok(json_parse(buf_view(&file), &doc, &dg));
        assert_ok(cairn_model_open(made, &mo, &m, &dg));
    }
    json_iter it = json_each(doc ? json_root(doc) : (json_val){0});
    for (int32_t i = 0; json_next(&it, &v); i++) {
        const cairn_str text = json_str(json_get(v, "text"));
        const tensor_desc *want = numbered(g, "text", i);
        cairn_embed_opts o;
        cairn_embed_opts_init(&o);
        o.prompt_name = json_str(json_get(v, "prompt_name"));
        o.truncate = true;
        if (cairn_embed(m, &text, 1, &o, keep, found, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
        assert_int_equal(want->dim[0], found[0].n);
        const size_t dim = (size_t)want->dim[0];
        const double off = worst_of(found[0].v, floats(want), dim);
        if (!(off <= tolerance(floats(want), dim, noise_of(g))))
            fail_msg("entry %d of texts.json is off by %g", (int)i, off);
    }
    cairn_model_close(m);
    json_free(doc);
    buf_deinit(&path);
    buf_deinit(&file);
}

static void check_model(void **state)
{
    const char *dir = *state;
    char made[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    model *m = NULL;
    source *g = NULL;
    buf path;
    cairn_model_opts mo = {.struct_size = sizeof mo, .compute = CAIRN_COMPUTE_F32, .n_threads = 2};
    buf_init(&path, MEM_MISC);
    assert_non_null(path_join(&path, dir, "golden.safetensors"));
    if (safetensors_open_file(path.ptr, &g, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    (void)snprintf(made, sizeof made, "%.200s/model.gguf", dir);
    const bool gguf = access(made, R_OK) == 0;
    if (!gguf && mkweights_temp(dir, made, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    if (model_open(made, &mo, &m, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    check_hidden(m, g);
    check_vectors(m, g, dir);
    check_numerics(m, g);
    model_close(m);
    mo.compute = CAIRN_COMPUTE_FAST;
    if (model_open(made, &mo, &m, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    check_numerics(m, g);
    model_close(m);
    check_texts(made, dir, g);
    if (!gguf) mkweights_remove(made);
    source_close(g);
    buf_deinit(&path);
}

static bool drop(void *ctx, const cairn_embedding *e)
{
    (void)ctx;
    return e->n_values > 0;
}

/* From the folder to the vectors: files, dense modules, prompts, steps. */
static cairn_status open_and_embed(void *ctx)
{
    static const cairn_str texts[] = {{"the tide rose", 13}, {"moon", 4}};
    const cairn_model_opts mo = {.struct_size = sizeof mo, .n_threads = 1};
    cairn_model *m = NULL;
    cairn_embed_opts o;
    cairn_status st;
    cairn_embed_opts_init(&o);
    o.prompt_name = STR_LIT("query");
    TRY_GOTO(cairn_model_open(ctx, &mo, &m, NULL), out);
    st = cairn_embed(m, texts, 2, &o, drop, NULL, NULL);
out:
    cairn_model_close(m);
    return st;
}

/* A Gemma 3 that sees both sides has no next token: who asks for one hears which field says so. */
static void a_chat_names_the_field(void **state)
{
    char made[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    const cairn_model_opts o = {.struct_size = sizeof o, .no_weights = true};
    model *m = NULL;
    (void)state;
    assert_ok(mkweights_temp("tests/golden/embed/embeddinggemma", made, &dg));
    assert_ok(model_open(made, &o, &m, &dg));
    assert_int_equal(model_check_head(m, "to generate", &dg), CAIRN_E_ARG);
    assert_non_null(strstr(dg.message, "(gemma3_text with use_bidirectional_attention)"));
    model_close(m);
    mkweights_remove(made);
}

typedef struct allowance {
    int left, n_vectors;
} allowance;

static bool while_left(void *ctx)
{
    return ((allowance *)ctx)->left-- > 0;
}

static bool count(void *ctx, const cairn_embedding *e)
{
    ((allowance *)ctx)->n_vectors++;
    return e->n_values > 0;
}

/* More texts than a step has: asked before each, and no step after a no. */
static void ends_when_told(void **state)
{
    enum { MANY = 40, STEPS = 2 };
    cairn_str texts[MANY];
    char made[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    const cairn_model_opts mo = {.struct_size = sizeof mo, .n_threads = 1};
    cairn_model *m = NULL;
    cairn_embed_opts o;
    allowance all = {.left = 1000};
    (void)state;
    for (int i = 0; i < MANY; i++) texts[i] = STR_LIT("moon");
    assert_ok(mkweights_temp("tests/golden/embed/bert", made, &dg));
    assert_ok(cairn_model_open(made, &mo, &m, &dg));
    cairn_embed_opts_init(&o);
    o.go_on = while_left;
    o.go_on_ctx = &all;
    assert_ok(cairn_embed(m, texts, MANY, &o, count, &all, &dg));
    assert_int_equal(all.n_vectors, MANY);
    assert_int_equal(1000 - all.left, MANY + STEPS);
    for (int left = 0; left < MANY + STEPS; left++) {
        allowance some = {.left = left};
        o.go_on_ctx = &some;
        assert_int_equal(cairn_embed(m, texts, MANY, &o, count, &some, &dg), CAIRN_E_CANCELLED);
        assert_int_equal(some.left, -1); /* asked once after the last yes */
        assert_int_equal(some.n_vectors, left > MANY ? 32 : 0);
    }
    cairn_model_close(m);
    mkweights_remove(made);
}

static void memory_runs_out(void **state)
{
    char made[MKWEIGHTS_PATH];
    cairn_diag dg = {0};
    (void)state;
    assert_ok(mkweights_temp("tests/golden/embed/bert", made, &dg));
    assert_true(fault_loop(open_and_embed, made) > 50);
    mkweights_remove(made);
}

/* usage: test_embeddings [NAME]: all, or those whose folder begins with NAME */
int main(int argc, char **argv)
{
    static char path[MAX_FOLDERS][300];
    static struct CMUnitTest tests[MAX_FOLDERS];
    const char *name = argc > 1 ? argv[1] : "";
    size_t n = 0;
    DIR *d = opendir(root);
    for (struct dirent *e; d && n + 3 < MAX_FOLDERS && (e = readdir(d));) {
        if (e->d_name[0] == '.' || strncmp(e->d_name, name, strlen(name)) != 0) continue;
        (void)snprintf(path[n], sizeof path[n], "%s/%s", root, e->d_name);
        tests[n] = (struct CMUnitTest){path[n], check_model, NULL, NULL, path[n]};
        n++;
    }
    if (d) closedir(d);
    if (!name[0]) tests[n++] = (struct CMUnitTest)cmocka_unit_test(memory_runs_out);
    if (!name[0]) tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_chat_names_the_field);
    if (!name[0]) tests[n++] = (struct CMUnitTest)cmocka_unit_test(ends_when_told);
    if (n == 0) {
        fprintf(stderr, "no goldens of \"%s\" under %s: run from the top of the repository\n", name,
                root);
        return 1;
    }
    return _cmocka_run_group_tests("embeddings", tests, n, NULL, NULL);
}
