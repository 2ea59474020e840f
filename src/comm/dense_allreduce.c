/* SPDX-License-Identifier: BSD-3-Clause */
/* The dense allreduce of the MPI library, in chunks of 1 GiB.
 *
 *     time = that of MPI_Allreduce; by recursive halving and doubling 2 log2(p) alpha + 2 (p-1)/p bytes beta
 *
 * MPI tells a user's op only the datatype, so each op on each 16-bit type needs a function of its own. An op
 * combines two vectors of 16-bit floats, so each step rounds. The library's own reductions round once. */

#include "comm/dense_allreduce.h"

#include "comm/collective.h"

enum { DTYPES16 = SAR_DTYPES - SAR_BF16, OPS16 = SAR_PROD + 1 };

uint64_t sar_dense_allreduce_chunk_count(uint64_t left, MPI_Aint extent)
{
    uint64_t size = extent < 0 ? -(uint64_t)extent : (uint64_t)extent;
    uint64_t max_count =
        size > SAR_DENSE_ALLREDUCE_CHUNK_BYTES ? 1 : SAR_DENSE_ALLREDUCE_CHUNK_BYTES / (size > 0 ? size : 1);
    return left < max_count ? left : max_count;
}

/* Only the MPI library knows which ops it has for its own types. */
static enum sar_status status_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        PMPI_Error_class(code, &class);
    return class == MPI_ERR_OP ? SAR_UNDEFINED_OP : sar_mpi(code);
}

/* The arguments of one MPI_Allreduce. */
struct chunk {
    const void *in;
    void *out;
    int n;
};

static struct chunk chunk_at(const struct sar_dense_args *args, MPI_Aint extent, uint64_t done)
{
    MPI_Aint offset = (MPI_Aint)done * extent;
    bool in_place = args->sendbuf == MPI_IN_PLACE;
    return (struct chunk){ in_place ? MPI_IN_PLACE : (const char *)args->sendbuf + offset,
                           (char *)args->recvbuf + offset,
                           (int)sar_dense_allreduce_chunk_count(args->count - done, extent) };
}

int sar_dense_allreduce_blocking(MPI_Comm comm, const struct sar_dense_args *args)
{
    MPI_Aint low, extent;
    uint64_t done = 0;
    int code = PMPI_Type_get_extent(args->datatype, &low, &extent);
    if (code != MPI_SUCCESS)
        return code;
    do {
        struct chunk chunk = chunk_at(args, extent, done);
        code = PMPI_Allreduce(chunk.in, chunk.out, chunk.n, args->datatype, args->op, comm);
        done += (uint64_t)chunk.n;
    } while (code == MPI_SUCCESS && done < args->count);
    return code;
}

static enum sar_status post_chunk(struct sar_dense_allreduce *dense)
{
    const struct sar_dense_args *args = &dense->args;
    struct chunk chunk = chunk_at(args, dense->extent, dense->done);
    sar_watchdog_begin(dense->comm, &dense->collective, "dense allreduce");
    dense->done += (uint64_t)chunk.n;
    return status_of(PMPI_Iallreduce(chunk.in, chunk.out, chunk.n, args->datatype, args->op,
                                     dense->comm->mpi_comm, &dense->collective.request));
}

enum sar_status sar_dense_allreduce_start(const struct sar_comm *comm, const struct sar_dense_args *args,
                                          bool block, struct sar_dense_allreduce *dense)
{
    MPI_Aint low;
    *dense =
        (struct sar_dense_allreduce){ .comm = comm, .args = *args, .collective.request = MPI_REQUEST_NULL };
    if (block) {
        dense->done = args->count;
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
    if (over && dense->done < dense->args.count)
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
