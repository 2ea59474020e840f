/* SPDX-License-Identifier: BSD-3-Clause */
/* For LD_PRELOAD: MPICH spins where it waits, and on more ranks than processors keeps the one that it waits
 * for from running, so that a call takes time slices of the system. This lets others run where UCX finds
 * nothing to do. */

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
