/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of the fake CUDA runtime. Work runs in the order of its stream and of the stream's waits, and in no
 * other order. Most work runs as late as possible, when a thread waits for it; a random part runs at once.
 * Code that omits a wait therefore reads old data. One thread runs host functions, as in CUDA, and first runs
 * the work queued before them. */

#include <pthread.h>
#include <stdlib.h>

#include "fake_cuda.h"

struct job {
    void (*work)(void *);
    void *argument;
    bool by_thread;       /* a function of the host */
    struct stream *other; /* stream to wait for, up to an amount of work; or NULL */
    long mark;
    struct job *next;
};

struct stream {
    struct job *first, **last;
    long queued, done;
    bool busy;     /* the first job is running */
    bool blocking; /* the default stream waits for it */
    struct stream *next;
};

/* A request to the thread. */
struct order {
    struct stream *stream;
    long mark;
    struct order *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream standard = { .last = &standard.first }, *streams = &standard;
static struct order *orders, **last_order = &orders;
static __thread bool is_thread, in_function;

static struct stream *stream_of(void *handle)
{
    return handle == NULL ? &standard : handle;
}

/* Streams are never freed, since events may refer to them. */
void *fake_cuda_make_stream(bool blocking)
{
    struct stream *made = calloc(1, sizeof *made);
    made->last = &made->first;
    made->blocking = blocking;
    pthread_mutex_lock(&lock);
    made->next = streams;
    streams = made;
    pthread_mutex_unlock(&lock);
    return made;
}

bool fake_cuda_is_blocking(void *stream)
{
    return stream_of(stream)->blocking;
}

/* True if the calling thread runs a host function called by CUDA. */
bool fake_cuda_is_in_function(void)
{
    return in_function;
}

static bool is_held_up(const struct job *job)
{
    return job->other != NULL && job->other->done < job->mark;
}

/* Called with the lock held; releases it while the job runs. */
static void do_first(struct stream *stream)
{
    struct job *job = stream->first;
    stream->busy = true;
    pthread_mutex_unlock(&lock);
    in_function = job->by_thread;
    if (job->work != NULL)
        job->work(job->argument);
    in_function = false;
    pthread_mutex_lock(&lock);
    stream->busy = false;
    stream->first = job->next;
    if (stream->first == NULL)
        stream->last = &stream->first;
    stream->done++;
    free(job);
    pthread_cond_broadcast(&changed);
}

/* Called with the lock held. A stream waits only for work queued earlier, so the recursion ends. */
static void drain(struct stream *stream, long mark)
{
    while (stream->done < mark) {
        const struct job *job = stream->first;
        if (stream->busy || (job->by_thread && !is_thread))
            pthread_cond_wait(&changed, &lock);
        else if (is_held_up(job))
            drain(job->other, job->mark);
        else
            do_first(stream);
    }
}

static void *see_to_orders(void *unused)
{
    is_thread = true;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (orders == NULL)
            pthread_cond_wait(&changed, &lock);
        struct order *order = orders;
        drain(order->stream, order->mark);
        orders = order->next;
        if (orders == NULL)
            last_order = &orders;
        free(order);
    }
    return unused;
}

static void give_order(struct stream *stream)
{
    static bool working;
    pthread_t thread;
    struct order *order = malloc(sizeof *order);
    *order = (struct order){ stream, stream->queued, NULL };
    *last_order = order;
    last_order = &order->next;
    if (!working)
        working = pthread_create(&thread, NULL, see_to_orders, NULL) == 0;
}

/* Pseudorandom numbers, equal in every run. */
static unsigned draw(void)
{
    static unsigned state = 1;
    state = state * 1103515245u + 12345u;
    return state >> 16;
}

static void do_some(void)
{
    enum { ONE_IN = 4 };
    if (draw() % ONE_IN != 0)
        return;
    unsigned steps = draw() % ONE_IN;
    struct stream *stream = streams;
    for (unsigned i = draw() % 16; i > 0; i--)
        stream = stream->next == NULL ? streams : stream->next;
    while (steps-- > 0 && stream->first != NULL && !stream->busy && !stream->first->by_thread &&
           !is_held_up(stream->first))
        do_first(stream);
}

static void queue(struct stream *stream, struct job wanted)
{
    if (fake_cuda_captures(stream == &standard ? NULL : stream))
        return;
    struct job *job = malloc(sizeof *job);
    *job = wanted;
    pthread_mutex_lock(&lock);
    *stream->last = job;
    stream->last = &job->next;
    stream->queued++;
    if (job->by_thread)
        give_order(stream);
    pthread_cond_broadcast(&changed);
    do_some();
    pthread_mutex_unlock(&lock);
}

void fake_cuda_queue(void *stream, void (*work)(void *), void *argument)
{
    queue(stream_of(stream), (struct job){ .work = work, .argument = argument });
}

void fake_cuda_queue_function(void *stream, void (*work)(void *), void *argument)
{
    queue(stream_of(stream), (struct job){ .work = work, .argument = argument, .by_thread = true });
}

void fake_cuda_queue_wait(void *stream, void *other, long mark)
{
    queue(stream_of(stream), (struct job){ .other = stream_of(other), .mark = mark });
}

long fake_cuda_mark(void *stream)
{
    pthread_mutex_lock(&lock);
    long queued = stream_of(stream)->queued;
    pthread_mutex_unlock(&lock);
    return queued;
}

void fake_cuda_drain(void *stream, long mark)
{
    pthread_mutex_lock(&lock);
    drain(stream_of(stream), mark);
    pthread_mutex_unlock(&lock);
}

void fake_cuda_drain_all(void)
{
    pthread_mutex_lock(&lock);
    for (struct stream *stream = streams; stream != NULL; stream = stream->next)
        drain(stream, stream->queued);
    pthread_mutex_unlock(&lock);
}

bool fake_cuda_is_done(void *stream)
{
    pthread_mutex_lock(&lock);
    bool done = stream_of(stream)->first == NULL;
    pthread_mutex_unlock(&lock);
    return done;
}
