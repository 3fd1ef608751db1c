/* What a fork and join of the thread pool costs: jobs whose tasks do nothing, or each as much as a task of a small
   product, by the number of threads and of tasks a thread.

     bench_pool [THREADS...]     1, 2, 4, … as many as there are cores by default */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/num.h"
#include "base/workers.h"

enum { JOBS = 2000, ROUNDS = 15, MOST = 64 };

static void task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const uint64_t ns = *(const uint64_t *)ctx;
    (void)i_task;
    (void)i_thread;
    if (ns == 0) return;
    for (const uint64_t from = clock_ns(); clock_ns() - from < ns;) {
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds a job, the median of the rounds. */
static double job_us(workers *w, int32_t n_tasks, uint64_t ns)
{
    double us[ROUNDS];
    for (int32_t i = 0; i < ROUNDS; i++) {
        workers_begin(w);
        const uint64_t from = clock_ns();
        for (int32_t k = 0; k < JOBS; k++) workers_run(w, n_tasks, task, &ns);
        us[i] = (double)(clock_ns() - from) / 1e3 / JOBS;
        workers_end(w);
    }
    qsort(us, ROUNDS, sizeof *us, by_value);
    return us[ROUNDS / 2];
}

static void measure(int32_t n_threads)
{
    workers *w = NULL;
    if (workers_new(n_threads, &w) != CAIRN_OK) {
        (void)fprintf(stderr, "bench_pool: no pool of %d threads\n", (int)n_threads);
        exit(1);
    }
    printf("%7d %12.2f %12.2f %12.2f %12.2f\n", (int)n_threads, job_us(w, 3, 0),
           job_us(w, n_threads, 0), job_us(w, 4 * n_threads, 0), job_us(w, n_threads, 2000) - 2);
    workers_free(w);
}

int main(int argc, char **argv)
{
    printf("microseconds a job\nthreads      3 tasks   one a thread  four a thread  one of 2 us, "
           "without these\n");
    for (int i = 1; i < argc; i++) measure(max_i32(2, atoi(argv[i])));
    for (int32_t t = 2; argc < 2 && t <= min_i32(MOST, machine_affinity()); t *= 2) measure(t);
    return 0;
}
