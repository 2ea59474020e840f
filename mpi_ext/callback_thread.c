/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/callback_thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/parallel.h"

/* A thread, which sleeps while it has no function. */
struct worker {
    pthread_t thread;
    pthread_cond_t changed;
    void (*function)(void *); /* to run, or NULL */
    void *argument;
    bool stopping;
    struct worker *next; /* in the list of idle workers */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *idle;

static void *work(void *argument)
{
    struct worker *self = argument;
    pthread_mutex_lock(&lock);
    while (!self->stopping) {
        if (self->function == NULL) {
            pthread_cond_wait(&self->changed, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        self->function(self->argument);
        pthread_mutex_lock(&lock);
        self->function = NULL;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&lock);
    sar_parallel_close();
    return NULL;
}

static struct worker *make_worker(void)
{
    struct worker *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    pthread_cond_init(&made->changed, NULL);
    if (pthread_create(&made->thread, NULL, work, made) == 0)
        return made;
    pthread_cond_destroy(&made->changed);
    free(made);
    return NULL;
}

static struct worker *take_worker(void)
{
    pthread_mutex_lock(&lock);
    struct worker *found = idle;
    if (found != NULL)
        idle = found->next;
    pthread_mutex_unlock(&lock);
    return found != NULL ? found : make_worker();
}

void sar_callback_thread_run(void (*function)(void *argument), void *argument)
{
    struct worker *worker = take_worker();
    if (worker == NULL) {
        function(argument);
        return;
    }
    pthread_mutex_lock(&lock);
    worker->argument = argument;
    worker->function = function;
    pthread_cond_broadcast(&worker->changed);
    while (worker->function != NULL)
        pthread_cond_wait(&worker->changed, &lock);
    worker->next = idle;
    idle = worker;
    pthread_mutex_unlock(&lock);
}

void sar_callback_threads_stop(void)
{
    struct worker *worker;
    while ((worker = idle) != NULL) {
        idle = worker->next;
        pthread_mutex_lock(&lock);
        worker->stopping = true;
        pthread_cond_broadcast(&worker->changed);
        pthread_mutex_unlock(&lock);
        pthread_join(worker->thread, NULL);
        pthread_cond_destroy(&worker->changed);
        free(worker);
    }
}
