/* SPDX-License-Identifier: BSD-3-Clause */
/* The reduction is timed in a thread of its own, so that OpenMP makes a team of its own there, and ends it
 * with that thread. The program's team does not change, and no thread waits for the first large call. */

#include "comm/thread_ratio.h"

#include <math.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/trace.h"
#include "comm/collective.h"
#include "vector/reduce.h"

/* A simulation defines it: bench/sim/smpi_work.h. */
#ifndef SAR_THREAD_RATIO
#define SAR_THREAD_RATIO(threads) measure_in_thread(threads)
#endif

enum { TRIALS = 4, RUNS = 3, THREAD_ELEMENTS = 16 << 10, STRIDE = 50 };

struct measurement {
    int threads;
    double ratio;
    struct sar_vec_desc desc;
    struct sar_spvec runs[RUNS], sum;
    struct sar_arena arena, scratch;
};

static enum sar_status set_up(struct measurement *m)
{
    uint32_t n = THREAD_ELEMENTS * (uint32_t)m->threads;
    m->desc = (struct sar_vec_desc){ .count = (uint64_t)n * STRIDE,
                                     .row_len = 1,
                                     .element_size = 4,
                                     .index_size = 4,
                                     .kernels = sar_op_kernels_of(SAR_FLOAT, SAR_SUM) };
    for (uint32_t r = 0; r < RUNS; r++) {
        SAR_TRY(sar_spvec_alloc(&m->desc, n, &m->arena, &m->runs[r]));
        for (uint32_t i = 0; i < n; i++) {
            ((uint32_t *)m->runs[r].index)[i] = i * STRIDE + r * i % STRIDE;
            ((float *)m->runs[r].value)[i] = 1;
        }
    }
    return sar_spvec_alloc(&m->desc, RUNS * (size_t)n, &m->arena, &m->sum);
}

/* Returns the least time of some reductions, INFINITY if one fails. */
static double least_ns(struct measurement *m, int threads)
{
    double least = INFINITY;
    struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = threads });
    for (int i = 0; i < TRIALS; i++) {
        sar_arena_reset(&m->scratch);
        int64_t start = sar_span_clock();
        if (sar_reduce(&m->desc, m->runs, RUNS, &m->scratch, &m->sum) == SAR_OK)
            least = fmin(least, (double)(sar_span_clock() - start));
    }
    sar_parallel_end(former);
    return least;
}

static void *measure(void *arg)
{
    struct measurement *m = arg;
    if (set_up(m) == SAR_OK) {
        double one = least_ns(m, 1), all = least_ns(m, m->threads);
        m->ratio = isfinite(one) && isfinite(all) && one > 0 ? fmin(all / one, 1) : 1;
    }
    sar_parallel_close();
    sar_arena_free(&m->arena);
    sar_arena_free(&m->scratch);
    return NULL;
}

static void *wait_for_mutex(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

/* OpenMP ends the process if it cannot make a thread. Returns true if so many threads can be there at a time,
 * beside those of now. */
static bool can_make_threads(int threads)
{
    pthread_mutex_t all_made = PTHREAD_MUTEX_INITIALIZER;
    pthread_t made[SAR_THREADS_MAX];
    int n = 0;
    pthread_mutex_lock(&all_made);
    while (n < threads && pthread_create(&made[n], NULL, wait_for_mutex, &all_made) == 0)
        n++;
    pthread_mutex_unlock(&all_made);
    for (int i = 0; i < n; i++)
        pthread_join(made[i], NULL);
    return n == threads;
}

__attribute__((unused)) static double measure_in_thread(int threads)
{
    if (sar_parallel_limit(threads) == 1)
        return 1;
    if (!can_make_threads(threads)) {
        SAR_LOG(WARN, COMM, "%d threads cannot be made; calls run on one", threads);
        sar_parallel_disable();
        return 1;
    }
    struct measurement m = { .threads = threads, .ratio = 1 };
    pthread_t thread;
    if (pthread_create(&thread, NULL, measure, &m) == 0)
        pthread_join(thread, NULL);
    return m.ratio;
}

enum sar_status sar_thread_ratio_measure(const struct sar_comm *comm, int threads, double *ratio)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int known_threads;
    static double known;
    *ratio = 1;
    pthread_mutex_lock(&lock);
    if (threads > 1 && known_threads != threads) {
        known = SAR_THREAD_RATIO(threads);
        known_threads = threads;
    }
    if (threads > 1)
        *ratio = known;
    pthread_mutex_unlock(&lock);
    return sar_comm_max(comm, ratio, 1);
}

double sar_thread_ratio_of(double ratio, const struct sar_vec_desc *desc, double nnz)
{
    double bytes = nnz * (double)(desc->element_size + desc->index_size);
    double pieces = floor(bytes / (double)sar_parallel_piece_bytes);
    return pieces < 2 ? 1 : fmax(ratio, 1 / pieces);
}
