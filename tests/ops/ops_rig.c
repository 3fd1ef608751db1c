/* Builds a program of one op by hand, so that an op is tested without models, planner or fuser. */
#include "ops/ops_rig.h"

#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/num.h"
#include "base/rng.h"

void rig_open(rig *g, const char *isa, int32_t n_threads, const op *o, const value *v, int32_t n,
              int32_t max_rows, int32_t max_ctx, const rope_spec *rs)
{
    memset(g, 0, sizeof *g);
    g->op = *o;
    g->p.op = &g->op;
    g->p.n_op = 1;
    g->p.value = g->value;
    g->p.n_value = n;
    if (rs) {
        g->p.rope[0] = *rs;
        g->p.n_rope = 1;
    }
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        g->value[i] = v[i];
        g->offset[i] = at;
        at += round_up((size_t)v[i].cols * (size_t)max_rows * sizeof(float), 64);
    }
    g->pl = (plan){&g->p, max_rows, max_rows, g->offset, at};
    dev_opts opts = {CAIRN_COMPUTE_FAST, n_threads, isa};
    cairn_diag dg = {0};
    if (backend_cpu.open(&opts, &g->d, &dg) != CAIRN_OK ||
        backend_cpu.compile(g->d, &g->pl, max_ctx, &g->x, &dg) != CAIRN_OK) {
        fprintf(stderr, "rig: %s\n", dg.message);
        __builtin_trap();
    }
}

void rig_close(rig *g)
{
    backend_cpu.exec_free(g->x);
    backend_cpu.close(g->d);
}

float *rig_val(const rig *g, val v)
{
    return (float *)(void *)(g->x->values + g->offset[v]);
}

float rig_rand(uint64_t seed, uint64_t i)
{
    return (float)(2.0 * rng_unit(seed, 1, i) - 1.0);
}

bool rig_same(float a, float b)
{
    return f32_bits(a) == f32_bits(b) || (a != a && b != b);
}

int32_t rig_levels(void)
{
    int32_t n = 0;
    for (isa_level l = ISA_REF; l < ISA_COUNT; l++) {
        n += isa_runs(l);
        if (!isa_runs(l)) printf("level %s: skipped, the machine lacks it\n", isa_name(l));
    }
    return n;
}

isa_level rig_level(int32_t i)
{
    isa_level l = ISA_REF;
    while (i > 0) i -= isa_runs(++l);
    return l;
}

bool rig_level_adds_none(isa_level l)
{
    static kern all[ISA_COUNT];
    static bool ready;
    for (isa_level k = ISA_REF; !ready && k < ISA_COUNT; k++) kern_init(&all[k], k);
    ready = true;
    for (isa_level k = ISA_REF; k < l; k++)
        if (all[k].level == k && memcmp(&all[k].vec, &all[l].vec, sizeof all[l].vec) == 0)
            return true;
    return false;
}
