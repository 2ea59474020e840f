/* SPDX-License-Identifier: BSD-3-Clause */
/* Library for LD_PRELOAD that makes waiting ranks yield. MPICH spins when it waits, and with more ranks than
 * processors delays the rank that it waits for by time slices. The library yields when UCX has no event. */

#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*progress_fn)(void *worker);

static progress_fn progress;

__attribute__((constructor)) static void find(void)
{
    *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
}

unsigned ucp_worker_progress(void *worker);
unsigned ucp_worker_progress(void *worker)
{
    unsigned events = progress(worker);
    if (events == 0)
        sched_yield();
    return events;
}
