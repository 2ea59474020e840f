/* SPDX-License-Identifier: BSD-3-Clause */
/* The two halves of an allreduce: reduce_scatter and allgather. They run as MPIX_Sparse_allreduce and
 * MPIX_Sparse_allreduce_coo do, with another collective in their arguments. */

#include <mpix_sparse.h>

#include "mpi_ext/allreduce.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "core/comm_state.h"
#include "mpi_ext/persistent.h"

/* Gets the number of parts: the ranks of comm, or of this rank's group. */
static int count_parts(MPI_Comm comm, const char *function, int *parts)
{
    struct sar_comm_state *comm_state;
    int code = sar_comm_state_get_opt(comm, function, &comm_state);
    return code == MPI_SUCCESS ? PMPI_Comm_size(comm, parts) : code;
}

int PMPIX_Sparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    static const char function[] = "MPIX_Sparse_reduce_scatter";
    struct sar_call_args call;
    int parts, code = count_parts(comm, function, &parts);
    if (code != MPI_SUCCESS)
        return code;
    sar_args_check_reduce_scatter_dense(&call, sendbuf, recvbuf, recvcount, datatype, op, parts);
    return sar_dense_run(comm, function, &call);
}

int PMPIX_Isparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    static const char function[] = "MPIX_Isparse_reduce_scatter";
    struct sar_call_args call;
    int parts, code = count_parts(comm, function, &parts);
    if (code != MPI_SUCCESS)
        return code;
    sar_args_check_reduce_scatter_dense(&call, sendbuf, recvbuf, recvcount, datatype, op, parts);
    return sar_dense_start(comm, function, &call, request);
}

int PMPIX_Sparse_reduce_scatter_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                     MPIX_Sparse_plan *plan)
{
    static const char function[] = "MPIX_Sparse_reduce_scatter_init";
    struct sar_call_args call;
    int parts, code = count_parts(comm, function, &parts);
    if (code != MPI_SUCCESS)
        return code;
    sar_args_check_reduce_scatter_dense(&call, sendbuf, recvbuf, recvcount, datatype, op, parts);
    return sar_plan_make(&call, comm, info, function, plan);
}

/* Fills a call from the arguments of a reduce_scatter of coordinates, without this rank's elements. */
static int fill_call(struct sar_call_args *call, MPI_Datatype indextype, MPI_Count count, MPI_Count block,
                     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, const char *function)
{
    int parts, code = count_parts(comm, function, &parts);
    if (code != MPI_SUCCESS)
        return code;
    sar_args_check_coo(call, indextype, count, datatype, op);
    sar_args_check_reduce_scatter(call, block, parts);
    return MPI_SUCCESS;
}

int PMPIX_Sparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz,
                                    MPI_Datatype indextype, MPI_Count count, MPI_Count block,
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                    MPIX_Sparse_result *result)
{
    static const char function[] = "MPIX_Sparse_reduce_scatter_coo";
    struct sar_call_args call;
    int code = fill_call(&call, indextype, count, block, datatype, op, comm, function);
    if (code != MPI_SUCCESS)
        return code;
    sar_args_check_elements(&call, indices, values, nnz);
    return sar_coo_run(comm, function, &call, result);
}

int PMPIX_Isparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz,
                                     MPI_Datatype indextype, MPI_Count count, MPI_Count block,
                                     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                     MPIX_Sparse_result *result, MPI_Request *request)
{
    static const char function[] = "MPIX_Isparse_reduce_scatter_coo";
    struct sar_call_args call;
    int code = fill_call(&call, indextype, count, block, datatype, op, comm, function);
    if (code != MPI_SUCCESS)
        return code;
    sar_args_check_elements(&call, indices, values, nnz);
    return sar_coo_start(comm, function, &call, result, request);
}

int PMPIX_Sparse_reduce_scatter_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Count block,
                                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                         MPIX_Sparse_plan *plan)
{
    static const char function[] = "MPIX_Sparse_reduce_scatter_coo_init";
    struct sar_call_args call;
    int code = fill_call(&call, indextype, count, block, datatype, op, comm, function);
    return code == MPI_SUCCESS ? sar_plan_make(&call, comm, info, function, plan) : code;
}

int PMPIX_Sparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                               MPIX_Sparse_result *result)
{
    struct sar_call_args call;
    sar_args_check_allgather(&call, indextype, count, datatype);
    sar_args_check_elements(&call, indices, values, nnz);
    return sar_coo_run(comm, "MPIX_Sparse_allgather_coo", &call, result);
}

int PMPIX_Isparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz,
                                MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                                MPIX_Sparse_result *result, MPI_Request *request)
{
    struct sar_call_args call;
    sar_args_check_allgather(&call, indextype, count, datatype);
    sar_args_check_elements(&call, indices, values, nnz);
    return sar_coo_start(comm, "MPIX_Isparse_allgather_coo", &call, result, request);
}

int PMPIX_Sparse_allgather_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype,
                                    MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan)
{
    struct sar_call_args call;
    sar_args_check_allgather(&call, indextype, count, datatype);
    return sar_plan_make(&call, comm, info, "MPIX_Sparse_allgather_coo_init", plan);
}

#pragma weak MPIX_Sparse_reduce_scatter = PMPIX_Sparse_reduce_scatter
#pragma weak MPIX_Isparse_reduce_scatter = PMPIX_Isparse_reduce_scatter
#pragma weak MPIX_Sparse_reduce_scatter_init = PMPIX_Sparse_reduce_scatter_init
#pragma weak MPIX_Sparse_reduce_scatter_coo = PMPIX_Sparse_reduce_scatter_coo
#pragma weak MPIX_Isparse_reduce_scatter_coo = PMPIX_Isparse_reduce_scatter_coo
#pragma weak MPIX_Sparse_reduce_scatter_coo_init = PMPIX_Sparse_reduce_scatter_coo_init
#pragma weak MPIX_Sparse_allgather_coo = PMPIX_Sparse_allgather_coo
#pragma weak MPIX_Isparse_allgather_coo = PMPIX_Isparse_allgather_coo
#pragma weak MPIX_Sparse_allgather_coo_init = PMPIX_Sparse_allgather_coo_init
