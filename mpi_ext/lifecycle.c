/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the comm_states, detects fork(), and warns of an exit without MPI_Finalize. */

#include "mpi_ext/lifecycle.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/parallel.h"
#include "comm/comm.h"

atomic_uint_fast64_t sar_lifecycle_generations;
static atomic_int comm_states;
static bool forked;

bool sar_lifecycle_mpi_usable(void)
{
    return atomic_load(&comm_states) > 0 || sar_mpi_world_is_up();
}

int sar_lifecycle_count(int change)
{
    return atomic_fetch_add(&comm_states, change) + change;
}

static void on_fork(void)
{
    forked = forked || sar_lifecycle_mpi_usable();
    sar_lifecycle_invalidate();
}

#ifdef HAVE_ON_EXIT
/* A launcher reports other statuses itself. MPI_Abort ends with one of them, too. */
static void on_process_exit(int status, void *unused)
{
    (void)unused;
    if (status == 0 && !forked && atomic_load(&comm_states) > 0 && sar_mpi_world_is_up())
        SAR_LOG(WARN, MPI, "this rank ends without MPI_Finalize; other ranks may wait for it");
}
#endif

/* A child cannot use the threads of OpenMP that loops have made: they end before the fork. Runs when the
 * library is loaded, so that a fork before the first call is detected too. A fork before
 * MPI_Init does no harm. Handlers of exit() that the program registers later run earlier, and may finalize
 * MPI. The library stays loaded until then (-z nodelete). */
__attribute__((constructor)) static void register_handlers(void)
{
    pthread_atfork(sar_parallel_close, NULL, on_fork);
#ifdef HAVE_ON_EXIT
    on_exit(on_process_exit, NULL);
#endif
}

bool sar_lifecycle_is_forked(void)
{
    return forked;
}
