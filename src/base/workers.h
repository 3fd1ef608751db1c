/* Fork-join pool.  Each thread owns a stretch of the tasks, task i of n being thread i * active / n's, and takes
   others' when it has none left.  Each is computed whole by one thread, so neither their order nor the number of
   threads can matter to a result.  No allocation and no
   lock in workers_run.  Between workers_begin and workers_end the threads spin for the next call
   (a futex wake-up costs 25–80 µs, a spinning join 0.3 µs), for about as long as a wake-up costs and
   only where each may have a core; then, and outside, they sleep. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include "cairn/status.h"

enum { WORKERS_MAX = 1023 }; /* ten bits of the ticket */

typedef struct workers workers;
typedef void (*worker_fn)(void *ctx, int32_t i_task, int32_t i_thread);

/* 1 … WORKERS_MAX threads, of which the caller is one.  Where the caller may run on several memory nodes, the
   others are bound to one each, in rising order: a thread that packs a stretch of weights, and so has them on its
   node, later owns the same stretch of products. */
cairn_status workers_new(int32_t n_threads, workers **out);
/* Likewise, the nodes read below `root`, which outlives the pool. */
cairn_status workers_new_at(const char *root, int32_t n_threads, workers **out);
void workers_free(workers *w);
int32_t workers_count(const workers *w);
/* Threads that take part from the next call on, 1 … count. Between steps only. */
void workers_limit(workers *w, int32_t n_threads);
int32_t workers_active(const workers *w);
void workers_begin(workers *w);
void workers_end(workers *w);
/* Thread `id` will likely read n bytes from p next: it fetches them into its caches while it waits for a task,
   or for the others.  Advice that holds until the next: nothing is read, so p need not be there any more.  By the
   caller of workers_run. */
void workers_ahead(workers *w, int32_t id, const void *p, size_t n);
/* Runs fn for i_task 0 … n_tasks-1 and returns when all are done.  One caller at a time.
   i_thread < workers_count. Works outside begin/end too (threads are woken, then sleep). */
void workers_run(workers *w, int32_t n_tasks, worker_fn fn, void *ctx);

#endif
