/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory through the interface of the CUDA plug-in, which is opened at run time. */

#include "bench/lib/device_buffers.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "device/accelerator.h"

static const struct sar_accelerator *accelerator;
static int device;

/* Returns the number of devices by the runtime that the plug-in has loaded, or 1. */
static int count_devices(void *plugin)
{
    int n = 0;
    void *symbol = dlsym(plugin, "cudaGetDeviceCount");
    int (*count)(int *) = *(int (**)(int *)) & symbol;

    return count != NULL && count(&n) == 0 && n > 0 ? n : 1;
}

/* Returns NULL, or why the device cannot be opened. */
static const char *open_device(int n)
{
    void *plugin = dlopen("libmpix_sparse_cuda.so", RTLD_NOW | RTLD_LOCAL), *memory = NULL;
    const struct sar_accelerator *found = plugin == NULL ? NULL : dlsym(plugin, SAR_ACCELERATOR_SYMBOL);

    if (plugin == NULL)
        return dlerror();
    if (found == NULL || found->version != SAR_ACCELERATOR_VERSION)
        return "the plug-in for CUDA is of another version";
    device = n % count_devices(plugin);
    if (found->allocate(device, 1, &memory) != SAR_OK)
        return "there is no device of CUDA here";
    found->release(device, memory);
    accelerator = found;
    return NULL;
}

bool perf_device_open(int n, bool wanted)
{
    const char *why = wanted ? open_device(n) : NULL;
    int rank, ranks, first;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    first = why != NULL ? rank : ranks;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == rank)
        fprintf(stderr, "mpix_sparse_perf: option --buffers: %s%s\n", why,
                strstr(why, "cannot open shared object file") != NULL
                    ? "; configure --with-cuda builds it with the library"
                    : "");
    return first == ranks;
}

bool perf_device_is_open(void)
{
    return accelerator != NULL;
}

static void require(enum sar_status status, const char *what)
{
    if (status == SAR_OK)
        return;
    fprintf(stderr, "mpix_sparse_perf: %s failed on the device\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void *perf_device_make(const void *from, size_t bytes)
{
    void *memory;

    require(accelerator->allocate(device, bytes + 1, &memory), "taking memory");
    perf_device_copy(memory, from, bytes);
    return memory;
}

void perf_device_free(void *memory)
{
    if (memory != NULL)
        accelerator->release(device, memory);
}

void perf_device_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return;
    require(accelerator->copy(device, to, from, bytes, NULL), "a copy");
    require(accelerator->wait(device, NULL), "a copy");
}
