/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread: sleeps on a condition variable while no call is active, else calls the progress
 * engine in a loop and yields the processor after each round. */

#include "mpi_ext/progress_thread.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "core/progress.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool running, stopping;

/* Sleep until a call is active. Returns false when the thread must end. */
static bool wait_for_work(void)
{
    pthread_mutex_lock(&lock);
    while (!stopping && !sar_comm_state_any_active())
        pthread_cond_wait(&wake, &lock);
    bool stop = stopping;
    pthread_mutex_unlock(&lock);
    return !stop;
}

static void *work(void *unused)
{
    while (wait_for_work()) {
        sar_progress();
        sched_yield();
    }
    return unused;
}

enum sar_status sar_progress_thread_ensure(void)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        return SAR_NO_THREADS;
    pthread_mutex_lock(&lock);
    if (!running)
        running = pthread_create(&thread, NULL, work, NULL) == 0;
    bool started = running;
    pthread_mutex_unlock(&lock);
    return started ? SAR_OK : SAR_NO_MEMORY;
}

void sar_progress_thread_wake(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

void sar_progress_thread_stop(void)
{
    pthread_mutex_lock(&lock);
    bool join = running;
    stopping = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    if (join)
        pthread_join(thread, NULL);
    running = stopping = false;
}
