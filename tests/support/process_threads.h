/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of threads of the process. */

#ifndef SAR_TESTS_SUPPORT_PROCESS_THREADS_H
#define SAR_TESTS_SUPPORT_PROCESS_THREADS_H

#include <dirent.h>
#include <pthread.h>
#include <time.h>

/** Returns the threads that the system lists, or 0 if it lists none. */
static inline int process_threads(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

/** As process_threads, after a second at most in which they become `wanted`. A thread that was joined may be
 * listed for a moment. */
static inline int process_threads_settled(int wanted)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    int n = process_threads();
    for (int i = 0; i < 1000 && n != wanted; i++, n = process_threads())
        nanosleep(&pause, NULL);
    return n;
}

/** As process_threads, without threads that end within a tenth of a second. MPI_Init may have joined some. */
static inline int process_threads_least(void)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    int least = process_threads();
    for (int i = 0; i < 100; i++) {
        nanosleep(&pause, NULL);
        int n = process_threads();
        least = n < least ? n : least;
    }
    return least;
}

static inline void *process_threads_do_nothing(void *arg)
{
    return arg;
}

/** As process_threads_least, at the start of a program. A sanitizer makes a thread of its own together with
 * the program's first thread, which is made and joined here. */
static inline int process_threads_at_start(void)
{
    pthread_t first;
    if (pthread_create(&first, NULL, process_threads_do_nothing, NULL) == 0)
        pthread_join(first, NULL);
    return process_threads_least();
}

#endif
