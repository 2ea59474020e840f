/* SPDX-License-Identifier: BSD-3-Clause */
/* These functions intercept the library's MPI calls. */

#include "aware_mpi.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

bool aware_claimed = true;
long aware_messages, aware_bytes;
const void *(*aware_corrupt)(const void *piece, int *bytes, bool from_device);

/* Host address of device memory. Asks CUDA about the address, as a CUDA-aware MPI does. */
static void *reach(const void *address)
{
    struct cudaPointerAttributes attributes;
    cudaError_t asked = cudaPointerGetAttributes(&attributes, address);
    check(asked == cudaSuccess, "expected CUDA to describe a buffer, found error %d", (int)asked);
    void *(*find)(const void *) = (void *(*)(const void *))dlsym(RTLD_DEFAULT, "fake_cuda_reach");
    return find == NULL ? (void *)(uintptr_t)address : find(address);
}

int MPIX_Query_cuda_support(void)
{
    int (*query)(void) = (int (*)(void))dlsym(RTLD_NEXT, "MPIX_Query_cuda_support");
    bool stands_in = dlsym(RTLD_DEFAULT, "fake_cuda_reach") != NULL;
    return aware_claimed && (stands_in || (query != NULL && query() != 0));
}

int PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    const void *at = reach(buffer);
    bool from_device = at != buffer;
    aware_messages += from_device;
    aware_bytes += from_device ? n : 0;
    if (aware_corrupt != NULL)
        at = aware_corrupt(at, &n, from_device);
    return MPI_Isend(at, n, type, to, tag, comm, request);
}

int PMPI_Irecv(void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Irecv(reach(buffer), n, type, from, tag, comm, request);
}

int PMPI_Sendrecv(const void *from, int count, MPI_Datatype type, int to_rank, int tag, void *to,
                  int to_count, MPI_Datatype to_type, int from_rank, int to_tag, MPI_Comm comm,
                  MPI_Status *status)
{
    return MPI_Sendrecv(reach(from), count, type, to_rank, tag, reach(to), to_count, to_type, from_rank,
                        to_tag, comm, status);
}

int PMPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const void *from = sendbuf == MPI_IN_PLACE ? sendbuf : reach(sendbuf);
    return MPI_Allreduce(from, reach(recvbuf), count, type, op, comm);
}

int PMPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request)
{
    const void *from = sendbuf == MPI_IN_PLACE ? sendbuf : reach(sendbuf);
    return MPI_Iallreduce(from, reach(recvbuf), count, type, op, comm, request);
}
