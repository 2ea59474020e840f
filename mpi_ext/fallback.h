/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes calls on dense buffers to MPI_Allreduce or MPI_Reduce_scatter_block on the caller's communicator;
 * core/fallback.h decides which ones. An error on this rank is raised here; MPI raises its own errors. A
 * rank that cannot read its vector takes part with poisoned host copies before it raises the error, since
 * the other ranks wait for it.
 *
 * The fast path: each thread caches its last such allreduce. A call with the same arguments, apart from the
 * buffers, takes the same path while the generation of lifecycle.h is unchanged. A hit costs about 55
 * instructions and no function call. */

#ifndef SAR_MPI_EXT_FALLBACK_H
#define SAR_MPI_EXT_FALLBACK_H

#include "mpi_ext/lifecycle.h"
#include "core/active_call.h"
#include "core/fallback.h"

/** Runs a call by MPI, in chunks if it does not fit an int. Returns an MPI error code. Collective over comm;
 * blocking. */
int sar_fallback_run(MPI_Comm comm, const char *function, const struct sar_call_args *call);

/** True if the call fits one call of MPI: its count fits an int, and its bytes fit one chunk. Local. */
bool sar_fallback_fits_int(const struct sar_call_args *call);

/** Starts a call that fits an int by the nonblocking function of MPI. The request is MPI's. If this rank
 * cannot read its vector, the function waits for the other ranks and returns the error. Collective over
 * comm. */
int sar_fallback_start(MPI_Comm comm, const char *function, const struct sar_call_args *call,
                       MPI_Request *request);

/* Access to a thread-local variable without a function call. glibc reserves little such space for libraries
 * that are opened by dlopen, so use it rarely. */
#ifdef __GLIBC__
#define SAR_TLS_INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#else
#define SAR_TLS_INITIAL_EXEC
#endif

/** A call that MPI_Allreduce ran. Its datatype is predefined, so that the handle never names another type. */
struct sar_fallback_cache {
    const void *sendbuf;
    void *recvbuf; /**< matches no buffer if device memory may later appear at either address */
    MPI_Count count;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
    uint_fast64_t generation;        /**< sar_lifecycle_generation when the entry was stored */
    struct sar_fallback_entry entry; /**< state that counts the repetitions */
};

/** Last entry of the calling thread, or NULL. Use the functions below. */
extern _Thread_local struct sar_fallback_cache *sar_fallback_cache_last SAR_TLS_INITIAL_EXEC;

/** Clears the cache of the calling thread, so that its next call is checked. Local. */
static inline void sar_fallback_cache_clear(void)
{
    sar_fallback_cache_last = NULL;
}

/** Stores an allreduce that is about to be passed to MPI; does nothing for other calls. Clears the cache if
 * such a call cannot be repeated without checks. Local.
 * @param comm_state  NULL for an intercommunicator, whose calls are not cached */
void sar_fallback_cache_store(MPI_Comm comm, struct sar_comm_state *comm_state,
                              const struct sar_call_args *call);

/** True if other buffers are as valid for the cached call as its own: both in host memory, and in place or
 * not alike. Local. */
bool sar_fallback_cache_accepts(const struct sar_fallback_cache *last, const void *sendbuf,
                                const void *recvbuf);

/** Returns the cached call if it matches the arguments, else NULL. Handles need not be valid. Local. */
static inline const struct sar_fallback_cache *sar_fallback_cache_find(const void *sendbuf,
                                                                       const void *recvbuf, MPI_Count count,
                                                                       MPI_Datatype datatype, MPI_Op op,
                                                                       MPI_Comm comm)
{
    const struct sar_fallback_cache *last = sar_fallback_cache_last;
    if (last == NULL || count != last->count || datatype != last->datatype || op != last->op ||
        comm != last->comm || sar_lifecycle_generation() != last->generation)
        return NULL;
    bool same = sendbuf == last->sendbuf && recvbuf == last->recvbuf;
    return same || sar_fallback_cache_accepts(last, sendbuf, recvbuf) ? last : NULL;
}

/** True if a call with these arguments can be passed to MPI_Allreduce without checks. Counts the call if so.
 * Local. */
static inline bool sar_fallback_cache_hit(const void *sendbuf, const void *recvbuf, MPI_Count count,
                                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    const struct sar_fallback_cache *cached =
        sar_fallback_cache_find(sendbuf, recvbuf, count, datatype, op, comm);
    return cached != NULL && sar_fallback_repeat(&cached->entry);
}

/** sar_fallback_cache_hit for MPI_Iallreduce: true only if such calls are always passed to MPI. Local. */
static inline bool sar_fallback_cache_hit_start(const void *sendbuf, const void *recvbuf, MPI_Count count,
                                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    const struct sar_fallback_cache *cached =
        sar_fallback_cache_find(sendbuf, recvbuf, count, datatype, op, comm);
    return cached != NULL && cached->entry.tensor == NULL && sar_fallback_repeat(&cached->entry);
}

#endif
