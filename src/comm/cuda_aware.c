/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI library without CUDA support crashes on device memory, so MPIX_Query_cuda_support must be asked
 * first. Its answer may be wrong, for example if a transport is missing, so a message is tried, too. Runs
 * once for each communicator, when device memory is first used. */

#include "comm/cuda_aware.h"

#include <dlfcn.h>
#include <string.h>

enum { BYTES = 1 << 18 /* beyond the eager limit of MPI libraries */ };

static enum sar_status send_to_self(const struct sar_comm *comm, const struct sar_device_ctx *memory,
                                    struct sar_host_copy copies[2], bool *arrived)
{
    const struct sar_host_copy *from = &copies[0], *to = &copies[1];
    for (size_t i = 0; i < BYTES; i++)
        ((unsigned char *)from->host)[i] = (unsigned char)(i * 7 + i / 251);
    memset(to->host, 0, BYTES);
    SAR_TRY(sar_host_copies_write(memory, copies, 2));
    SAR_TRY(sar_mpi(PMPI_Sendrecv(from->device, BYTES, MPI_BYTE, comm->rank, 0, to->device, BYTES, MPI_BYTE,
                                  comm->rank, 0, comm->mpi_comm, MPI_STATUS_IGNORE)));
    SAR_TRY(sar_host_copies_read(memory, to, 1));
    *arrived = memcmp(from->host, to->host, BYTES) == 0;
    return SAR_OK;
}

static enum sar_status alloc_copy(const struct sar_device_ctx *memory, struct sar_host_copy *copy)
{
    void *device;
    SAR_TRY(memory->accelerator->allocate(memory->device_id, BYTES, &device));
    enum sar_status status = sar_host_copy_alloc(memory, device, BYTES, copy);
    if (status != SAR_OK)
        memory->accelerator->release(memory->device_id, device);
    copy->copy_in = copy->copy_out = true;
    return status;
}

static void free_copy(const struct sar_device_ctx *memory, struct sar_host_copy *copy)
{
    if (copy->device == NULL)
        return;
    memory->accelerator->release(memory->device_id, copy->device);
    sar_host_copy_release(copy);
}

bool sar_comm_is_cuda_aware(const struct sar_comm *comm, const struct sar_device_ctx *memory)
{
    struct sar_host_copy copies[2] = { { .host = NULL }, { .host = NULL } };
    bool arrived = false;
    int (*query)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    if (query == NULL || query() != 1)
        return false;
    enum sar_status status = alloc_copy(memory, &copies[0]);
    if (status == SAR_OK)
        status = alloc_copy(memory, &copies[1]);
    if (status == SAR_OK)
        status = send_to_self(comm, memory, copies, &arrived);
    free_copy(memory, &copies[0]);
    free_copy(memory, &copies[1]);
    return status == SAR_OK && arrived;
}
