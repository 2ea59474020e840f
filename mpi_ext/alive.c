/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/alive.h"

#include <pthread.h>

#include "net/net.h"

atomic_uint_fast64_t sar_alive_upheavals;
static atomic_int contexts;
static bool forked;

bool sar_is_alive(void)
{
    return atomic_load(&contexts) > 0 || sar_net_world_is_up();
}

int sar_alive_count(int change)
{
    return atomic_fetch_add(&contexts, change) + change;
}

static void remember(void)
{
    forked = forked || sar_is_alive();
    sar_alive_overturn();
}

/* When the library is loaded: a fork before its first use counts too, one before MPI_Init does not. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, remember);
}

bool sar_is_forked(void)
{
    return forked;
}
