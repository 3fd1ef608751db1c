/* How likely an engine says a prompt's tokens are, against log-softmax of the reference's logits in double. */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "base/thread.h"
#include "cairn/engine.h"
#include "format/format.h"

/* Made with transformers: README.md.  Full and windowed attention, state, experts. */
static const char *const folders[] = {"tests/golden/gguf/llama", "tests/golden/gguf/gemma3",
                                      "tests/golden/gguf/falcon_h1",
                                      "tests/golden/gguf/granite_moe"};
enum { MOST = 512, TOP = 5 };

typedef struct told {
    mutex mu;
    cond over;
    bool done;
    cairn_finish finish;
    int32_t n, id[MOST];
    float logprob[MOST];
    cairn_logprob top[MOST][TOP];
} told;

static void hear(void *ctx, const cairn_event *ev)
{
    told *t = ctx;
    mutex_lock(&t->mu);
    if (ev->kind == CAIRN_EV_PROMPT && t->n < MOST && ev->n_top == TOP) {
        t->id[t->n] = ev->id;
        t->logprob[t->n] = ev->logprob;
        memcpy(t->top[t->n++], ev->top, sizeof *t->top);
    }
    t->done |= ev->kind == CAIRN_EV_DONE;
    if (t->done) t->finish = ev->finish;
    cond_signal(&t->over);
    mutex_unlock(&t->mu);
}

static void ask(const char *dir, const int32_t *ids, size_t n, told *t)
{
    char path[300];
    cairn_model *m = NULL;
    cairn_engine *e = NULL;
    cairn_model_opts mo;
    cairn_request r;
    cairn_request_id id;
    cairn_diag dg = {0};

    (void)snprintf(path, sizeof path, "%s/model.gguf", dir);
    cairn_model_opts_init(&mo);
    mo.compute = CAIRN_COMPUTE_F32;
    mo.n_threads = 2;
    if (cairn_model_open(path, &mo, &m, &dg) != CAIRN_OK ||
        cairn_engine_open(m, NULL, &e, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    cairn_request_init(&r);
    r.ids = ids;
    r.n_ids = n;
    r.n_logprobs = TOP;
    r.prompt_logprobs = r.prompt_only = true;
    r.sampling.repetition_penalty = 1.5f; /* has no part in it */
    if (cairn_engine_submit(e, &r, hear, t, &id, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    mutex_lock(&t->mu);
    for (int s = 0; s < TEST_WAIT_MS / 1000 && !t->done; s++)
        (void)cond_wait_ms(&t->over, &t->mu, 1000);
    const bool done = t->done;
    mutex_unlock(&t->mu);
    assert_true(done);
    cairn_engine_close(e);
    cairn_model_close(m);
}

static double log_sum(const float *x, int32_t n)
{
    double best = -(double)INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) best = fmax(best, (double)x[i]);
    for (int32_t i = 0; i < n; i++) sum += exp((double)x[i] - best);
    return best + log(sum);
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

static const void *need(const source *s, const char *name, int64_t dim[2])
{
    const tensor_desc *t = source_find(s, name);
    if (!t) fail_msg("golden lacks %s", name);
    for (int i = 0; dim && i < 2; i++) dim[i] = t->dim[i];
    return t->data;
}

/* Each logit is within `tolerance` of the reference's (test_families.c says why), and so is the logarithm of their sum
   of exponentials, a mean of them: so their difference is within twice that, and f32's rounding. */
static double check_row(const told *t, int32_t i, const float *want, int32_t vocab,
                        double tolerance)
{
    const double lse = log_sum(want, vocab);
    double worst = fabs((double)t->logprob[i] - ((double)want[t->id[i]] - lse));
    for (int32_t k = 0; k < TOP; k++) {
        const cairn_logprob *p = &t->top[i][k];
        worst = fmax(worst, fabs((double)p->logprob - ((double)want[p->id] - lse)));
        if (k) assert_true(p->logprob <= p[-1].logprob);
    }
    for (int32_t v = 0; v < vocab;
         v++) /* nothing that is clearly likelier than the last of the best is left out */
        if ((double)want[v] - lse > (double)t->top[i][TOP - 1].logprob + 4 * tolerance) {
            bool there = false;
            for (int32_t k = 0; k < TOP; k++) there |= t->top[i][k].id == v;
            assert_true(there);
        }
    return worst;
}

static void check_model(const char *dir)
{
    char path[300];
    source *src = NULL;
    cairn_diag dg = {0};
    int64_t dim[2];
    static told t;

    (void)snprintf(path, sizeof path, "%s/golden.safetensors", dir);
    if (safetensors_open_file(path, &src, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    const float *logits = need(src, "logits", dim);
    const int32_t *ids = need(src, "ids", NULL), n = (int32_t)dim[0], vocab = (int32_t)dim[1];
    const double tolerance = 2e-3 * deviation(logits, (size_t)n * (size_t)vocab);
    double worst = 0;

    t = (told){.finish = CAIRN_FINISH_ERROR};
    mutex_init(&t.mu);
    cond_init(&t.over);
    ask(dir, ids, (size_t)n, &t);
    assert_int_equal(t.finish, CAIRN_FINISH_LENGTH);
    assert_int_equal(t.n, n - 1);
    for (int32_t i = 0; i < t.n; i++) {
        assert_int_equal(t.id[i], ids[i + 1]);
        worst = fmax(worst, check_row(&t, i, logits + (size_t)i * (size_t)vocab, vocab, tolerance));
    }
    print_message("%-32s %d tokens, worst error %.2e (allowed %.2e)\n", dir, (int)t.n, worst,
                  2 * tolerance);
    assert_true(worst <=
                2 * tolerance + 2e-6); /* log-probabilities of up to 16: half a unit of f32 */
    cond_deinit(&t.over);
    mutex_deinit(&t.mu);
    source_close(src);
}

static void as_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) check_model(folders[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
