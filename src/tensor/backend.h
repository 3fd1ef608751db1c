/* The interface of a backend: a device, weights it adopts, programs it compiles and runs. */
#ifndef TENSOR_BACKEND_H
#define TENSOR_BACKEND_H

#include "cairn/model.h"
#include "tensor/batch.h"
#include "tensor/plan.h"
#include "tensor/weight.h"

typedef struct dev dev;   /* one device; each backend defines its own */
typedef struct exec exec; /* one compiled program */

typedef struct dev_opts {
    cairn_compute compute;
    int32_t n_threads; /* 0: all cores of the process */
    const char *isa;   /* kernel level, docs/kernels.md; NULL: CAIRN_ISA or the machine's best */
} dev_opts;

/* A piece of work beside a step, by one of the device's threads on this machine. */
typedef void (*dev_task)(void *ctx, int32_t i_task, int32_t i_thread);

/* What a device can do at most: 10^9 bytes read a second, over at least 1 GiB; 10^12 operations a second of
   dots of bytes, and of multiply-adds of floats. */
typedef struct dev_limits {
    double read_gbs, int8_tops, f32_tflops;
    double weights_gbs; /* of the weights that it holds, again and again; 0: it holds none */
} dev_limits;

typedef struct backend {
    const char *name;
    cairn_status (*open)(const dev_opts *o, dev **out, cairn_diag *dg);
    void (*close)(dev *d);
    /* Makes w->dev (repacked) or leaves it NULL (used in place).  Afterwards LINEAR does not read
       w->data if w->dev is set; the source's pages were let go (w->gather reads stay possible). */
    cairn_status (*adopt)(dev *d, weight *w, cairn_diag *dg);
    void (*release)(dev *d, weight *w);
    size_t (*held)(cairn_compute compute, const weight *w);  /* bytes that w takes once adopted */
    bool (*repacks)(cairn_compute compute, const weight *w); /* adopting it makes w->dev */
    size_t (*resident)(const dev *d); /* bytes of all adopted weights, in place ones included */
    size_t (*spare)(const dev *d); /* bytes that are mapped for weights and that nobody touches */
    /* `max_ctx`: highest position + 1 that a step may hold.  The plan and program must outlive it. */
    cairn_status (*compile)(dev *d, const plan *pl, int32_t max_ctx, exec **out, cairn_diag *dg);
    size_t (*exec_bytes)(const exec *x);
    /* Computes the step; on return logits and taps are there, unless it was stopped.  Allocates nothing.  One at a
       time. */
    void (*run)(exec *x, const step *s);
    void (*exec_free)(exec *x);
    const char *(*isa)(const dev *d);
    int32_t (*threads)(const dev *d);
    void (*limit_threads)(dev *d, int32_t n); /* between runs; 0: all */
    cairn_status (*measure)(dev *d, dev_limits *out);
    /* From the next run on, adds the nanoseconds of op i of the program to ns[i]; NULL: no longer. */
    void (*time_ops)(exec *x, uint64_t *ns);
    /* Products of w are dots of small integers; else of floats. */
    bool (*integer)(const dev *d, const weight *w);
    void (*busy)(dev *d, bool on); /* hint: steps follow closely (threads spin); calls nest */
    /* fn for tasks 0 … n - 1, each once, on the threads that there are, the caller's among them; returns when all are
       done.  Between runs. */
    void (*each)(dev *d, int32_t n, dev_task fn, void *ctx);
} backend;

extern const backend backend_cpu;

#endif
