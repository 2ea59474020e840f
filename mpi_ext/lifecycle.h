/* SPDX-License-Identifier: BSD-3-Clause */
/* Process-wide state of the library: is MPI usable, was the process forked, and which cached facts are stale.
 * Every call reads it; the cost is one atomic load. */

#ifndef SAR_MPI_EXT_LIFECYCLE_H
#define SAR_MPI_EXT_LIFECYCLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** True if MPI may be called: MPI_COMM_WORLD is initialized, or a comm_state exists, perhaps of a session.
 * Local. */
bool sar_lifecycle_mpi_usable(void);

/** Adds `change` to the number of comm_states, including those being created. Returns the new number.
 * Local. */
int sar_lifecycle_count(int change);

/** True in a child of fork() whose parent had MPI initialized. Such a process must not call MPI. Local. */
bool sar_lifecycle_is_forked(void);

/** Generation number of cached facts about communicators. Use the two functions below. */
extern atomic_uint_fast64_t sar_lifecycle_generations;

/** Returns the current generation. Data cached in another generation is stale. Local; any thread. */
static inline uint_fast64_t sar_lifecycle_generation(void)
{
    return atomic_load_explicit(&sar_lifecycle_generations, memory_order_acquire);
}

/** Starts a new generation, so that every thread drops its caches. Call it before a comm_state is freed or
 * configured. Local; any thread. */
static inline void sar_lifecycle_invalidate(void)
{
    atomic_fetch_add(&sar_lifecycle_generations, 1);
}

#endif
