/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of MPI that libmpix_sparse_preload puts before those of the MPI library. A call that the
 * library has no use for goes to its PMPI twin with the arguments it came with, wrong ones too. */

#include "preload/persistent.h"

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm)
{
    struct sar_asked asked = { sendbuf, recvbuf, count, datatype, op, comm };
    struct sar_visit visit;
    if (!sar_visit_enter(&asked, &visit))
        return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
    return sar_visit_leave(&visit, visit.note.taken
                                       ? PMPIX_Sparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm)
                                       : PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm));
}

int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    struct sar_asked asked = { sendbuf, recvbuf, count, datatype, op, comm };
    if (sar_visit_passing(&asked))
        return PMPIX_Isparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
    return PMPI_Iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
}

#ifdef HAVE_MPI_LARGE_COUNT
int MPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm)
{
    struct sar_asked asked = { sendbuf, recvbuf, count, datatype, op, comm };
    struct sar_visit visit;
    if (!sar_visit_enter(&asked, &visit))
        return PMPI_Allreduce_c(sendbuf, recvbuf, count, datatype, op, comm);
    return sar_visit_leave(&visit, visit.note.taken
                                       ? PMPIX_Sparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm)
                                       : PMPI_Allreduce_c(sendbuf, recvbuf, count, datatype, op, comm));
}

int MPI_Iallreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                     MPI_Comm comm, MPI_Request *request)
{
    struct sar_asked asked = { sendbuf, recvbuf, count, datatype, op, comm };
    if (sar_visit_passing(&asked))
        return PMPIX_Isparse_allreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
    return PMPI_Iallreduce_c(sendbuf, recvbuf, count, datatype, op, comm, request);
}
#endif

#ifdef HAVE_MPI_ALLREDUCE_INIT
int MPI_Allreduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct sar_asked asked = { sendbuf, recvbuf, count, datatype, op, comm };
    int code = PMPI_Allreduce_init(sendbuf, recvbuf, count, datatype, op, comm, info, request);
    if (code == MPI_SUCCESS)
        sar_persistent_watch(&asked, info, *request);
    return code;
}

#ifdef HAVE_MPI_LARGE_COUNT
int MPI_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct sar_asked asked = { sendbuf, recvbuf, count, datatype, op, comm };
    int code = PMPI_Allreduce_init_c(sendbuf, recvbuf, count, datatype, op, comm, info, request);
    if (code == MPI_SUCCESS)
        sar_persistent_watch(&asked, info, *request);
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
    sar_persistent_end();
    sar_preload_end();
    return PMPI_Finalize();
}
