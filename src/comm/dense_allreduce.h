/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce and MPI_Reduce_scatter_block on dense buffers: in chunks, and with ops for 16-bit floats. */

#ifndef SAR_COMM_DENSE_ALLREDUCE_H
#define SAR_COMM_DENSE_ALLREDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "comm/watchdog.h"
#include "vector/vec_desc.h"

/** Arguments of an MPI_Allreduce or MPI_Reduce_scatter_block whose count may exceed an int. */
struct sar_dense_args {
    const void *sendbuf; /**< or MPI_IN_PLACE */
    void *recvbuf;
    uint64_t count; /**< elements of the result on one rank */
    MPI_Datatype datatype;
    MPI_Op op;
    uint32_t parts; /**< reduce_scatter: ranks, each with a part of `count` elements; allreduce: 0 */
};

/** Returns the elements of the input: those of all parts. */
static inline uint64_t sar_dense_args_total(const struct sar_dense_args *args)
{
    return args->parts > 1 ? sar_mul_saturate(args->count, args->parts) : args->count;
}

/** An allreduce or reduce_scatter in flight, chunk by chunk. */
struct sar_dense_allreduce {
    const struct sar_comm *comm;
    struct sar_dense_args args;
    MPI_Aint extent; /**< of the datatype */
    uint64_t done;   /**< elements of the input that are reduced, or posted */
    struct sar_collective collective;
};

/** Most bytes of a chunk, unless one element is larger. MPI libraries compute byte counts in int. */
enum { SAR_DENSE_ALLREDUCE_CHUNK_BYTES = 1 << 30 };

/** SAR_DENSE_ALLREDUCE_CHUNK_BYTES; tests set less before their first call. Equal on all ranks. */
extern uint64_t sar_dense_allreduce_chunk_bytes;

/** True if one call of MPI can reduce the whole input: its numbers of elements and bytes fit.
 * @param extent  of the datatype, in bytes */
bool sar_dense_allreduce_fits(const struct sar_dense_args *args, MPI_Aint extent);

/** Returns the number of elements of the next chunk, of `left` elements with that extent. */
uint64_t sar_dense_allreduce_chunk_count(uint64_t left, MPI_Aint extent);

/** Reduces by MPI_Allreduce or MPI_Reduce_scatter_block, chunk by chunk; returns MPI's code. Collective over
 * comm, an intracommunicator if there are parts. Blocks. */
int sar_dense_allreduce_blocking(MPI_Comm comm, const struct sar_dense_args *args);

/** Starts an allreduce or reduce_scatter. If `block`, it uses sar_dense_allreduce_blocking, which is often
 * faster, and is complete on return. The buffers of `args` belong to the operation until then. Collective
 * over comm. */
enum sar_status sar_dense_allreduce_start(const struct sar_comm *comm, const struct sar_dense_args *args,
                                          bool block, struct sar_dense_allreduce *dense);

/** Makes progress. Sets *done once all elements are reduced. If `block`, returns when a chunk is. */
enum sar_status sar_dense_allreduce_advance(struct sar_dense_allreduce *dense, bool block, bool *done);

/** Returns the MPI op for 16-bit floats, which MPI handles as a type of 2 bytes. It gives the same bits as
 * the kernels. Only for SAR_BF16 and SAR_FP16, and ops up to SAR_PROD. */
MPI_Op sar_op16_get(enum sar_dtype dtype, enum sar_op op);

/** Creates these MPI ops; once in a process. Local. */
enum sar_status sar_op16_setup(void);

/** Frees these MPI ops, if they exist. Local. */
void sar_op16_cleanup(void);

#endif
