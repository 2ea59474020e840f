/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI library that is not aware of CUDA crashes on device memory, so that it cannot be tried without
 * being asked first; and those that say yes may be wrong, as where a transport is missing. */

#include "net/aware.h"

#include <dlfcn.h>
#include <string.h>

enum { BYTES = 1 << 18 /* more than is sent eagerly */ };

static bool says_so(void)
{
    int (*query)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    return query != NULL && query() == 1;
}

static void fill(struct sar_mirror *mirror)
{
    unsigned char *bytes = mirror->host;
    for (size_t i = 0; i < mirror->bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
}

static enum sar_status send_to_self(const struct sar_net *net, const struct sar_memory *memory,
                                    struct sar_mirror mirrors[2], bool *arrived)
{
    const struct sar_mirror *from = &mirrors[0], *to = &mirrors[1];
    fill(&mirrors[0]);
    memset(to->host, 0, BYTES);
    SAR_TRY(sar_mirrors_write(memory, mirrors, 2));
    SAR_TRY(sar_mpi(PMPI_Sendrecv(from->device, BYTES, MPI_BYTE, net->rank, 0, to->device, BYTES, MPI_BYTE,
                                  net->rank, 0, net->comm, MPI_STATUS_IGNORE)));
    SAR_TRY(sar_mirrors_read(memory, to, 1));
    *arrived = memcmp(from->host, to->host, BYTES) == 0;
    return SAR_OK;
}

static enum sar_status take(const struct sar_memory *memory, struct sar_mirror *mirror)
{
    void *device;
    SAR_TRY(memory->accelerator->allocate(memory->place, BYTES, &device));
    enum sar_status status = sar_mirror_take(memory, device, BYTES, mirror);
    if (status != SAR_OK)
        memory->accelerator->release(memory->place, device);
    mirror->in = mirror->out = true;
    return status;
}

static void give_back(const struct sar_memory *memory, struct sar_mirror *mirror)
{
    if (mirror->device == NULL)
        return;
    memory->accelerator->release(memory->place, mirror->device);
    sar_mirror_release(mirror);
}

bool sar_net_takes(const struct sar_net *net, const struct sar_memory *memory)
{
    struct sar_mirror mirrors[2] = { { .host = NULL }, { .host = NULL } };
    bool arrived = false;
    if (!says_so())
        return false;
    enum sar_status status = take(memory, &mirrors[0]);
    if (status == SAR_OK)
        status = take(memory, &mirrors[1]);
    if (status == SAR_OK)
        status = send_to_self(net, memory, mirrors, &arrived);
    give_back(memory, &mirrors[0]);
    give_back(memory, &mirrors[1]);
    return status == SAR_OK && arrived;
}
