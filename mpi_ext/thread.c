/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/thread.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "plan/progress.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool running, ending;

/* Sleeps while nothing is in flight. */
static bool wait_for_work(void)
{
    pthread_mutex_lock(&lock);
    while (!ending && !sar_progress_wanted())
        pthread_cond_wait(&news, &lock);
    bool end = ending;
    pthread_mutex_unlock(&lock);
    return !end;
}

static void *work(void *unused)
{
    while (wait_for_work()) {
        sar_progress();
        sched_yield();
    }
    return unused;
}

enum sar_status sar_thread_need(void)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        return SAR_NO_THREADS;
    pthread_mutex_lock(&lock);
    if (!running)
        running = pthread_create(&thread, NULL, work, NULL) == 0;
    bool there = running;
    pthread_mutex_unlock(&lock);
    return there ? SAR_OK : SAR_NO_MEMORY;
}

void sar_thread_wake(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
}

void sar_thread_end(void)
{
    pthread_mutex_lock(&lock);
    bool join = running;
    ending = true;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
    if (join)
        pthread_join(thread, NULL);
    running = ending = false;
}
