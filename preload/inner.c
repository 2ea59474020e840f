/* SPDX-License-Identifier: BSD-3-Clause */
/* What the copy of the library inside libmpix_sparse_preload calls. The linker's --wrap sends its own calls
 * of the functions that the preload library defines here, whatever thread or callback they come from, so
 * that they are not taken for the program's. */

#include <mpi.h>

int __wrap_MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm);
int __wrap_MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm, MPI_Request *request);
int __wrap_MPI_Wait(MPI_Request *request, MPI_Status *status);
int __wrap_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int __wrap_MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]);
int __wrap_MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]);
int __wrap_MPI_Request_free(MPI_Request *request);

int __wrap_MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm)
{
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int __wrap_MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm, MPI_Request *request)
{
    return PMPI_Iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
}

int __wrap_MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    return PMPI_Wait(request, status);
}

int __wrap_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    return PMPI_Test(request, flag, status);
}

int __wrap_MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    return PMPI_Waitall(n, requests, statuses);
}

int __wrap_MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    return PMPI_Testall(n, requests, flag, statuses);
}

int __wrap_MPI_Request_free(MPI_Request *request)
{
    return PMPI_Request_free(request);
}
