/* The CPU as a backend: its device, the memory of a compiled program, limits measured.  Ops live in
   their own files; weights are adopted by repack.c.  A run allocates nothing: compile sized the
   scratch for the plan's most rows and for max_ctx. */
#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/tiles.h"
#include "base/diag.h"
#include "base/machine.h"
#include "base/num.h"

static void cpu_close(dev *d)
{
    if (!d) return;
    workers_free(d->pool);
    mem_free(d);
}

/* What the caller asks for, else what the user does, else the machine's best. */
static cairn_status choose_level(const char *asked, isa_level *out, cairn_diag *dg)
{
    const char *name = asked ? asked : machine_isa();
    char here[128];
    isa_level l = isa_detect();
    const bool known = !name || isa_parse(name, &l);
    if (!known || !isa_runs(l)) {
        isa_list(isa_machine(), here, sizeof here);
        return diag_set(dg, CAIRN_E_ARG, "%s\"%s\"%s: this machine runs %s",
                        asked ? "kernel level " : "CAIRN_ISA=", name,
                        known ? "" : " is no kernel level", here);
    }
    *out = l;
    return CAIRN_OK;
}

static cairn_status cpu_open(const dev_opts *o, dev **out, cairn_diag *dg)
{
    isa_level level = ISA_REF;
    TRY(choose_level(o->isa, &level, dg));
    dev *d = mem_calloc(1, sizeof *d, MEM_ENGINE);
    if (!d) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the device");
    kern_init(&d->k, level);
    d->compute = o->compute;
    int32_t n = o->n_threads > 0 ? o->n_threads : machine_cores();
    cairn_status st = workers_new(n, &d->pool);
    if (st != CAIRN_OK) {
        cpu_close(d);
        return diag_set(dg, st, "cannot start %d threads", n);
    }
    *out = d;
    return CAIRN_OK;
}

static size_t cpu_resident(const dev *d)
{
    return d->resident;
}

static size_t cpu_spare(const dev *d)
{
    return slabs_spare(&d->tile_memory);
}

/* What the neediest op wants; threads' parts on lines of their own. */
static cpu_need scratch_need(const dev *d, const plan *pl, int32_t max_ctx)
{
    cpu_need most = {0, 0};
    for (int32_t i = 0; i < pl->p->n_op; i++) {
        const op *o = &pl->p->op[i];
        cpu_need n = {0, 0};
        if (o->kind == OP_LINEAR) n = cpu_linear_need(d, o, pl->max_rows);
        if (o->kind == OP_HEADS) n = cpu_heads_need(o);
        if (o->kind == OP_DELTA) n = cpu_delta_need(o);
        if (o->kind == OP_ROUTE) n = cpu_route_need(pl->p->value[o->in[0]].cols);
        if (o->kind == OP_EXPERTS) n = cpu_experts_need(d, o, pl->max_rows);
        if (o->kind == OP_ATTEND || o->kind == OP_ATTEND_AT) n = cpu_attend_need(d, pl, o, max_ctx);
        if (o->kind == OP_PICK) n = cpu_pick_need(d, o, pl->max_rows, max_ctx);
        if (n.shared > most.shared) most.shared = n.shared;
        if (n.thread > most.thread) most.thread = n.thread;
    }
    most.thread = round_up(most.thread, 64);
    return most;
}

static void cpu_exec_free(exec *x)
{
    if (!x) return;
    if (x->values) mem_unmap(x->values, x->values_size, MEM_SCRATCH);
    if (x->shared) mem_unmap(x->shared, x->shared_size, MEM_SCRATCH);
    if (x->thread)
        mem_unmap(x->thread, x->thread_size * (size_t)workers_count(x->d->pool), MEM_SCRATCH);
    if (x->rope) mem_unmap(x->rope, x->rope_size, MEM_SCRATCH);
    mem_free(x->with);
    mem_free(x);
}

/* Nothing to hold is no special case: a span of 0 bytes has a pointer too. */
static cairn_status cpu_compile(dev *d, const plan *pl, int32_t max_ctx, exec **out, cairn_diag *dg)
{
    exec *x = mem_calloc(1, sizeof *x, MEM_ENGINE);
    if (!x) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a program");
    const cpu_need need = scratch_need(d, pl, max_ctx);
    const size_t threads_size = need.thread * (size_t)workers_count(d->pool);
    *x = (exec){.d = d,
                .pl = pl,
                .max_ctx = max_ctx,
                .values_size = pl->peak,
                .shared_size = need.shared,
                .thread_size = need.thread,
                .rope_size = cpu_rope_size(pl)};
    x->with = mem_alloc((size_t)pl->p->n_op + 1, MEM_ENGINE);
    x->values = mem_map(x->values_size, MEM_SCRATCH);
    x->shared = mem_map(x->shared_size, MEM_SCRATCH);
    x->rope = mem_map(x->rope_size, MEM_SCRATCH);
    x->thread = mem_map(threads_size, MEM_SCRATCH);
    if (!x->with || !x->values || !x->shared || !x->rope || !x->thread) {
        size_t sum = x->values_size + x->shared_size + x->rope_size + threads_size;
        cpu_exec_free(x);
        return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for a program's values and scratch", sum);
    }
    cpu_find_gated(d, pl->p, x->with);
    *out = x;
    return CAIRN_OK;
}

static size_t cpu_exec_bytes(const exec *x)
{
    return x->values_size + x->shared_size + x->rope_size +
           x->thread_size * (size_t)workers_count(x->d->pool);
}

static const char *cpu_isa(const dev *d)
{
    return isa_name(d->k.level);
}

static int32_t cpu_threads(const dev *d)
{
    return workers_active(d->pool);
}

static void cpu_limit_threads(dev *d, int32_t n)
{
    int32_t all = workers_count(d->pool);
    workers_limit(d->pool, n > 0 && n < all ? n : all);
}

static bool cpu_integer(const dev *d, const weight *w)
{
    return tiles_act_group(d->compute, w) > 0;
}

static void cpu_busy(dev *d, bool on)
{
    if (on && d->n_busy++ == 0) workers_begin(d->pool);
    if (!on && --d->n_busy == 0) workers_end(d->pool);
}

static void cpu_each(dev *d, int32_t n, dev_task fn, void *ctx)
{
    workers_run(d->pool, n, fn, ctx);
}

const backend backend_cpu = {.name = "cpu",
                             .open = cpu_open,
                             .close = cpu_close,
                             .adopt = cpu_weight_adopt,
                             .release = cpu_weight_release,
                             .held = cpu_weight_held,
                             .repacks = cpu_weight_repacks,
                             .resident = cpu_resident,
                             .spare = cpu_spare,
                             .compile = cpu_compile,
                             .exec_bytes = cpu_exec_bytes,
                             .run = cpu_run_step,
                             .exec_free = cpu_exec_free,
                             .isa = cpu_isa,
                             .threads = cpu_threads,
                             .limit_threads = cpu_limit_threads,
                             .measure = cpu_measure,
                             .time_ops = cpu_time_ops,
                             .integer = cpu_integer,
                             .busy = cpu_busy,
                             .each = cpu_each};
