/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_ALIVE_H
#define SAR_MPI_EXT_ALIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Whether MPI may be called: the world is up, or the library has contexts, perhaps those of a session. */
bool sar_is_alive(void);

/** Count contexts, and those being made: how many there are after the change. */
int sar_alive_count(int change);

/** Whether this process is a child of fork() made while MPI was up. It has its parent's memory, but nobody to
 * send to: MPI must not be called. */
bool sar_is_forked(void);

/** How often it has come about that what is remembered of communicators no longer holds: a context went, the
 * knobs of one changed, or this process is a child of fork(). For the functions below only. */
extern atomic_uint_fast64_t sar_alive_upheavals;

static inline uint_fast64_t sar_alive_age(void)
{
    return atomic_load_explicit(&sar_alive_upheavals, memory_order_acquire);
}

/** Make void what any thread remembers from before, before it is so. */
static inline void sar_alive_overturn(void)
{
    atomic_fetch_add(&sar_alive_upheavals, 1);
}

#endif
