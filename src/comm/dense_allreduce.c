/* SPDX-License-Identifier: BSD-3-Clause */
/* The dense allreduce and reduce_scatter of the MPI library, in chunks of 1 GiB.
 *
 *     time = that of MPI_Allreduce; by recursive halving and doubling 2 log2(p) alpha + 2 (p-1)/p bytes beta
 *
 * MPI_Reduce_scatter_block takes half of that. Its parts cannot be cut into chunks that are contiguous for
 * it: longer inputs go to MPI_Reduce, chunk by chunk, with the owner as root. In place, the part of rank 0,
 * at the beginning of the buffer, is reduced first; then the other ranks may write their sums over it.
 *
 * MPI tells a user's op only the datatype, so each op on each 16-bit type needs a function of its own. An op
 * combines two vectors of 16-bit floats, so each step rounds. The library's own reductions round once. */

#include "comm/dense_allreduce.h"

#include <limits.h>

#include "comm/collective.h"

uint64_t sar_dense_allreduce_chunk_bytes = SAR_DENSE_ALLREDUCE_CHUNK_BYTES;

enum { DTYPES16 = SAR_DTYPES - SAR_BF16, OPS16 = SAR_PROD + 1 };

uint64_t sar_dense_allreduce_chunk_count(uint64_t left, MPI_Aint extent)
{
    uint64_t size = extent < 0 ? -(uint64_t)extent : (uint64_t)extent;
    uint64_t most = sar_dense_allreduce_chunk_bytes;
    uint64_t max_count = size > most ? 1 : most / (size > 0 ? size : 1);
    return left < max_count ? left : max_count;
}

bool sar_dense_allreduce_fits(const struct sar_dense_args *args, MPI_Aint extent)
{
    uint64_t size = extent < 0 ? -(uint64_t)extent : (uint64_t)extent;
    return args->count <= INT_MAX &&
           sar_mul_saturate(sar_dense_args_total(args), size) <= sar_dense_allreduce_chunk_bytes;
}

/* Only the MPI library knows which ops it has for its own types. */
static enum sar_status status_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        PMPI_Error_class(code, &class);
    return class == MPI_ERR_OP ? SAR_UNDEFINED_OP : sar_mpi(code);
}

/* The arguments of one call of MPI. */
struct chunk {
    const void *in;
    void *out;
    int n;
    int root; /* of MPI_Reduce */
};

/* The first part needs no buffer of its own in place. */
static struct chunk part_chunk_at(const struct sar_dense_args *args, MPI_Aint extent, uint64_t done, int rank)
{
    uint64_t root = done / args->count, within = done % args->count;
    bool in_place = args->sendbuf == MPI_IN_PLACE;
    const char *from = in_place ? args->recvbuf : args->sendbuf;
    return (struct chunk){ in_place && rank == 0 && root == 0 ? MPI_IN_PLACE : from + (MPI_Aint)done * extent,
                           (char *)args->recvbuf + (MPI_Aint)within * extent,
                           (int)sar_dense_allreduce_chunk_count(args->count - within, extent), (int)root };
}

static struct chunk chunk_at(const struct sar_dense_args *args, MPI_Aint extent, uint64_t done)
{
    MPI_Aint offset = (MPI_Aint)done * extent;
    bool in_place = args->sendbuf == MPI_IN_PLACE;
    return (struct chunk){ in_place ? MPI_IN_PLACE : (const char *)args->sendbuf + offset,
                           (char *)args->recvbuf + offset,
                           (int)sar_dense_allreduce_chunk_count(args->count - done, extent), 0 };
}

static int allreduce(MPI_Comm comm, const struct sar_dense_args *args, MPI_Aint extent, uint64_t *done,
                     MPI_Request *request)
{
    struct chunk c = chunk_at(args, extent, *done);
    *done += (uint64_t)c.n;
    return request == NULL ? PMPI_Allreduce(c.in, c.out, c.n, args->datatype, args->op, comm)
                           : PMPI_Iallreduce(c.in, c.out, c.n, args->datatype, args->op, comm, request);
}

static int reduce_scatter(MPI_Comm comm, const struct sar_dense_args *args, uint64_t *done,
                          MPI_Request *request)
{
    int n = (int)args->count;
    *done = sar_dense_args_total(args);
    return request == NULL
               ? PMPI_Reduce_scatter_block(args->sendbuf, args->recvbuf, n, args->datatype, args->op, comm)
               : PMPI_Ireduce_scatter_block(args->sendbuf, args->recvbuf, n, args->datatype, args->op, comm,
                                            request);
}

static int reduce_part(MPI_Comm comm, const struct sar_dense_args *args, MPI_Aint extent, uint64_t *done,
                       MPI_Request *request)
{
    int rank, code = PMPI_Comm_rank(comm, &rank);
    if (code != MPI_SUCCESS)
        return code;
    struct chunk c = part_chunk_at(args, extent, *done, rank);
    *done += (uint64_t)c.n;
    return request == NULL ? PMPI_Reduce(c.in, c.out, c.n, args->datatype, args->op, c.root, comm)
                           : PMPI_Ireduce(c.in, c.out, c.n, args->datatype, args->op, c.root, comm, request);
}

/* Reduces the next chunk, or starts that if `request` is not NULL. */
static int reduce_chunk(MPI_Comm comm, const struct sar_dense_args *args, MPI_Aint extent, uint64_t *done,
                        MPI_Request *request)
{
    if (args->parts == 0)
        return allreduce(comm, args, extent, done, request);
    return sar_dense_allreduce_fits(args, extent) ? reduce_scatter(comm, args, done, request)
                                                  : reduce_part(comm, args, extent, done, request);
}

int sar_dense_allreduce_blocking(MPI_Comm comm, const struct sar_dense_args *args)
{
    MPI_Aint low, extent;
    uint64_t done = 0;
    int code = PMPI_Type_get_extent(args->datatype, &low, &extent);
    if (code != MPI_SUCCESS)
        return code;
    do {
        code = reduce_chunk(comm, args, extent, &done, NULL);
    } while (code == MPI_SUCCESS && done < sar_dense_args_total(args));
    return code;
}

static enum sar_status post_chunk(struct sar_dense_allreduce *dense)
{
    sar_watchdog_begin(dense->comm, &dense->collective,
                       dense->args.parts == 0 ? "dense allreduce" : "dense reduce_scatter");
    return status_of(reduce_chunk(dense->comm->mpi_comm, &dense->args, dense->extent, &dense->done,
                                  &dense->collective.request));
}

enum sar_status sar_dense_allreduce_start(const struct sar_comm *comm, const struct sar_dense_args *args,
                                          bool block, struct sar_dense_allreduce *dense)
{
    MPI_Aint low;
    *dense =
        (struct sar_dense_allreduce){ .comm = comm, .args = *args, .collective.request = MPI_REQUEST_NULL };
    if (block) {
        dense->done = sar_dense_args_total(args);
        return status_of(sar_dense_allreduce_blocking(comm->mpi_comm, args));
    }
    SAR_TRY(sar_mpi(PMPI_Type_get_extent(args->datatype, &low, &dense->extent)));
    return post_chunk(dense);
}

enum sar_status sar_dense_allreduce_advance(struct sar_dense_allreduce *dense, bool block, bool *done)
{
    bool over = true;
    *done = false;
    if (dense->collective.request != MPI_REQUEST_NULL)
        SAR_TRY(sar_collective_test(dense->comm, &dense->collective, block, &over));
    if (over && dense->done < sar_dense_args_total(&dense->args))
        return post_chunk(dense);
    *done = over;
    return SAR_OK;
}

static MPI_Op mpi_ops[DTYPES16][OPS16];
static bool ready;

#define DEFINE_CALLBACK(name, dtype, op)                                    \
    static void name(void *in, void *inout, int *n, MPI_Datatype *datatype) \
    {                                                                       \
        (void)datatype;                                                     \
        sar_op_kernels_of(dtype, op)->apply(inout, in, (size_t)*n);         \
    }

DEFINE_CALLBACK(bf16_sum, SAR_BF16, SAR_SUM)
DEFINE_CALLBACK(bf16_max, SAR_BF16, SAR_MAX)
DEFINE_CALLBACK(bf16_min, SAR_BF16, SAR_MIN)
DEFINE_CALLBACK(bf16_prod, SAR_BF16, SAR_PROD)
DEFINE_CALLBACK(fp16_sum, SAR_FP16, SAR_SUM)
DEFINE_CALLBACK(fp16_max, SAR_FP16, SAR_MAX)
DEFINE_CALLBACK(fp16_min, SAR_FP16, SAR_MIN)
DEFINE_CALLBACK(fp16_prod, SAR_FP16, SAR_PROD)

static MPI_User_function *const callbacks[DTYPES16][OPS16] = {
    { bf16_sum, bf16_max, bf16_min, bf16_prod },
    { fp16_sum, fp16_max, fp16_min, fp16_prod },
};

MPI_Op sar_op16_get(enum sar_dtype dtype, enum sar_op op)
{
    return mpi_ops[dtype - SAR_BF16][op];
}

enum sar_status sar_op16_setup(void)
{
    for (int i = 0; i < DTYPES16; i++)
        for (int op = 0; op < OPS16; op++)
            SAR_TRY(sar_mpi(PMPI_Op_create(callbacks[i][op], 1, &mpi_ops[i][op])));
    ready = true;
    return SAR_OK;
}

void sar_op16_cleanup(void)
{
    for (int i = 0; ready && i < DTYPES16; i++)
        for (int op = 0; op < OPS16; op++)
            PMPI_Op_free(&mpi_ops[i][op]);
    ready = false;
}
