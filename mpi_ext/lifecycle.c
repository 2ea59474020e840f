/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the comm_states, and detects fork(). */

#include "mpi_ext/lifecycle.h"

#include <pthread.h>

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

/* A child cannot use the threads of OpenMP that loops have made: they end before the fork. Runs when the
 * library is loaded, so that a fork before the first call is detected too. A fork before
 * MPI_Init does no harm. */
__attribute__((constructor)) static void register_fork_handler(void)
{
    pthread_atfork(sar_parallel_close, NULL, on_fork);
}

bool sar_lifecycle_is_forked(void)
{
    return forked;
}
