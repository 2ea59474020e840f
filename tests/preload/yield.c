/* SPDX-License-Identifier: BSD-3-Clause */
/* Library for LD_PRELOAD that makes waiting ranks yield. MPICH spins when it waits, and with more ranks than
 * processors delays the rank that it waits for by time slices. The library yields when UCX has no event. */

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

typedef unsigned (*progress_fn)(void *worker);

/* Python loads UCX after this library, and not for all to see. */
static progress_fn find(void)
{
    void *found = dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (found == NULL) {
        void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        found = ucp == NULL ? NULL : dlsym(ucp, "ucp_worker_progress");
    }
    if (found == NULL)
        abort();
    return *(progress_fn *)&found;
}

unsigned ucp_worker_progress(void *worker);
unsigned ucp_worker_progress(void *worker)
{
    static progress_fn progress;
    progress_fn known = __atomic_load_n(&progress, __ATOMIC_RELAXED);
    if (known == NULL) {
        known = find();
        __atomic_store_n(&progress, known, __ATOMIC_RELAXED);
    }
    unsigned events = known(worker);
    if (events == 0)
        sched_yield();
    return events;
}
