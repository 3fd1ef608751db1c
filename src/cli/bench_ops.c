/* bench --ops: where the time of a pass goes, beside what the machine's limits would let it be.  The op
   with the largest loss is on top. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/str.h"
#include "cli/bench_ops.h"

enum { MAX_OPS = 256 };

typedef struct op_row {
    cairn_op_cost c;
    char label[CAIRN_MAX_OP_LABEL];
    double limit; /* seconds that the machine needs at least; 0: bound by nothing we know */
} op_row;

struct bench_ops {
    cairn_machine_limits max;
    op_row row[MAX_OPS];
    int32_t n;
    bool full; /* labels beyond MAX_OPS; the largest of our families has a fifth of that */
};

static double limit_of(const cairn_op_cost *c, const cairn_machine_limits *max)
{
    const double read = c->bytes / (max->read_gbs * 1e9);
    const double compute =
        c->int_ops / (max->int8_tops * 1e12) + c->float_ops / (max->f32_tflops * 1e12);
    return read > compute ? read : compute;
}

static void take(void *ctx, const cairn_op_cost *c)
{
    bench_ops *b = ctx;
    if (b->n == MAX_OPS) {
        b->full = true;
        return;
    }
    op_row *r = &b->row[b->n++];
    r->c = *c;
    const size_t n = strnlen(c->label, CAIRN_MAX_OP_LABEL - 1);
    memcpy(r->label, c->label, n);
    r->label[n] = '\0';
    r->limit = limit_of(c, &b->max);
}

static int by_loss(const void *a, const void *b)
{
    const op_row *x = a, *y = b;
    const double lx = x->c.seconds - x->limit, ly = y->c.seconds - y->limit;
    if (x->c.decode != y->c.decode) return x->c.decode - y->c.decode;
    return (lx < ly) - (lx > ly);
}

cairn_status bench_ops_run(cairn_model *m, const cairn_bench_opts *o,
                           const cairn_machine_limits *max, bench_ops **out, cairn_diag *dg)
{
    bench_ops *b = mem_calloc(1, sizeof *b, MEM_MISC);
    if (!b) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the costs of ops");
    b->max = *max;
    cairn_status st = cairn_bench_ops(m, o, take, b, dg);
    if (st == CAIRN_OK && b->full)
        st = diag_set(dg, CAIRN_E_LIMIT, "found more kinds of ops; expected at most %d", MAX_OPS);
    if (st != CAIRN_OK) {
        bench_ops_free(b);
        return st;
    }
    qsort(b->row, (size_t)b->n, sizeof *b->row, by_loss);
    *out = b;
    return CAIRN_OK;
}

void bench_ops_free(bench_ops *b)
{
    mem_free(b);
}

static double phase_seconds(const bench_ops *b, bool decode)
{
    double s = 0;
    for (int32_t i = 0; i < b->n; i++)
        if (b->row[i].c.decode == decode) s += b->row[i].c.seconds;
    return s;
}

static void print_row(const op_row *r, double phase, buf *out)
{
    const cairn_op_cost *c = &r->c;
    buf_printf(out, "  %9.3f %5.1f%% ", 1e3 * c->seconds, 100 * c->seconds / phase);
    if (r->limit > 0)
        buf_printf(out, "%9.3f %5.1f%% %8.2f %9.1f", 1e3 * r->limit, 100 * r->limit / c->seconds,
                   c->bytes / c->seconds / 1e9, (c->int_ops + c->float_ops) / c->seconds / 1e9);
    else
        buf_printf(out, "%9s %6s %8s %9s", "-", "-", "-", "-");
    buf_printf(out, " %7lld  %s\n", (long long)c->n_runs, r->label);
}

void bench_ops_text(const bench_ops *b, buf *out)
{
    for (int decode = 0; decode < 2; decode++) {
        const double phase = phase_seconds(b, decode);
        if (phase <= 0) continue;
        buf_printf(out,
                   "\n  %s, by time lost against the limits: %.2f GB/s read, %.3f TOPS of bytes, "
                   "%.3f TFLOPS\n  %9s %6s %9s %6s %8s %9s %7s  op\n",
                   decode ? "decode" : "prefill", b->max.read_gbs, b->max.int8_tops,
                   b->max.f32_tflops, "ms", "of all", "limit ms", "share", "GB/s", "Gop/s", "runs");
        for (int32_t i = 0; i < b->n; i++)
            if (b->row[i].c.decode == decode) print_row(&b->row[i], phase, out);
    }
}

void bench_ops_json(const bench_ops *b, json_writer *w)
{
    json_w_key(w, "ops");
    json_w_arr(w);
    for (int32_t i = 0; i < b->n; i++) {
        const op_row *r = &b->row[i];
        json_w_obj(w);
        json_w_kstr(w, "phase", str_of(r->c.decode ? "decode" : "prefill"));
        json_w_kstr(w, "op", str_of(r->label));
        json_w_kint(w, "runs", r->c.n_runs);
        json_w_knum(w, "seconds", r->c.seconds);
        json_w_knum(w, "limit_seconds", r->limit);
        json_w_knum(w, "bytes", r->c.bytes);
        json_w_knum(w, "int_ops", r->c.int_ops);
        json_w_knum(w, "float_ops", r->c.float_ops);
        json_w_end_obj(w);
    }
    json_w_end_arr(w);
}
