/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI functions that libmpix_sparse_preload defines in front of the MPI library: the allreduce family, init
 * and finalize. A call that cannot gain goes to its PMPI function with unchanged arguments, even invalid
 * ones. */

#include "preload/persistent.h"

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm)
{
    struct sar_mpi_args args = { sendbuf, recvbuf, count, datatype, op, comm };
    struct sar_call_hook hook;
    if (!sar_call_hook_begin(&args, &hook))
        return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
    return sar_call_hook_end(&hook, hook.stats.taken
                                        ? PMPIX_Sparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm)
                                        : PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm));
}

int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    struct sar_mpi_args args = { sendbuf, recvbuf, count, datatype, op, comm };
    if (sar_call_hook_takes_nonblocking(&args))
        return PMPIX_Isparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
    return PMPI_Iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
}

#ifdef HAVE_MPI_LARGE_COUNT
int MPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm)
{
    struct sar_mpi_args args = { sendbuf, recvbuf, count, datatype, op, comm };
    struct sar_call_hook hook;
    if (!sar_call_hook_begin(&args, &hook))
        return PMPI_Allreduce_c(sendbuf, recvbuf, count, datatype, op, comm);
    return sar_call_hook_end(&hook, hook.stats.taken
                                        ? PMPIX_Sparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm)
                                        : PMPI_Allreduce_c(sendbuf, recvbuf, count, datatype, op, comm));
}

int MPI_Iallreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                     MPI_Comm comm, MPI_Request *request)
{
    struct sar_mpi_args args = { sendbuf, recvbuf, count, datatype, op, comm };
    if (sar_call_hook_takes_nonblocking(&args))
        return PMPIX_Isparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
    return PMPI_Iallreduce_c(sendbuf, recvbuf, count, datatype, op, comm, request);
}
#endif

#ifdef HAVE_MPI_ALLREDUCE_INIT
int MPI_Allreduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct sar_mpi_args args = { sendbuf, recvbuf, count, datatype, op, comm };
    int code = PMPI_Allreduce_init(sendbuf, recvbuf, count, datatype, op, comm, info, request);
    if (code == MPI_SUCCESS)
        sar_persistent_track(&args, info, *request);
    return code;
}

#ifdef HAVE_MPI_LARGE_COUNT
int MPI_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct sar_mpi_args args = { sendbuf, recvbuf, count, datatype, op, comm };
    int code = PMPI_Allreduce_init_c(sendbuf, recvbuf, count, datatype, op, comm, info, request);
    if (code == MPI_SUCCESS)
        sar_persistent_track(&args, info, *request);
    return code;
}
#endif
#endif

int MPI_Init(int *argc, char ***argv)
{
    int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS)
        sar_preload_begin();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        sar_preload_begin();
    return code;
}

int MPI_Finalize(void)
{
    sar_persistent_cleanup();
    sar_preload_end();
    return PMPI_Finalize();
}
