/* SPDX-License-Identifier: BSD-3-Clause */
/* Redirects programs of tests/mpi, which use host memory, to device memory. Its functions replace the
 * library's weak ones: they copy the arguments to a device, call the library, and copy the result back.
 * Nonblocking calls are completed at once. Pinned blocks have the minimum size. At the end the device must
 * have no allocated memory. */

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpix_sparse.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

/* An array of a program and its device copy. */
struct twin {
    void *host, *device;
    size_t bytes;
    MPI_Aint offset;
};

/* Facts of a result or a plan that the library cannot report. */
struct known {
    const void *of;
    size_t index_bytes, element_bytes, count;
    MPI_Datatype indextype, datatype;
    struct twin send, receive;
    void *indices, *values;
};

static struct known table[MOST];

static void require(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "FAIL: CUDA says %d\n", (int)error);
    abort();
}

static struct known *known_of(const void *of)
{
    for (int i = 0; i < MOST; i++)
        if (table[i].of == of)
            return &table[i];
    abort();
}

static struct known *learn(const void *of)
{
    struct known *known = NULL;
    for (int i = 0; i < MOST && known == NULL; i++)
        if (table[i].of == of)
            known = &table[i];
    if (known == NULL)
        known = known_of(NULL);
    known->of = of;
    return known;
}

static void forget(struct known *known)
{
    free(known->indices);
    free(known->values);
    *known = (struct known){ 0 };
}

static void *to_device(const void *host, size_t bytes)
{
    void *device;
    setenv("MPIX_SPARSE_STAGING", "4096", 0);
    if (host == NULL || host == MPI_IN_PLACE || host == MPIX_SPARSE_STRIDED)
        return (void *)(uintptr_t)host;
    require(cudaMalloc(&device, bytes + 1));
    require(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    return device;
}

static bool is_on_device(const void *address)
{
    struct cudaPointerAttributes attributes;
    require(cudaPointerGetAttributes(&attributes, address));
    return attributes.type == cudaMemoryTypeDevice;
}

static void drop(void *device)
{
    if (device != NULL && is_on_device(device))
        require(cudaFree(device));
}

/* Copy count elements, starting from the first byte that MPI accesses. */
static struct twin make_twin(const void *host, MPI_Count count, MPI_Datatype type)
{
    struct twin twin = { .host = (void *)(uintptr_t)host, .device = (void *)(uintptr_t)host };
    MPI_Aint lower, extent, true_extent;
    if (host == NULL || host == MPI_IN_PLACE || count <= 0 || type == MPI_DATATYPE_NULL)
        return twin;
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_get_true_extent(type, &twin.offset, &true_extent);
    twin.bytes = (size_t)(count - 1) * (size_t)extent + (size_t)true_extent;
    twin.device = to_device((const char *)host + twin.offset, twin.bytes);
    return twin;
}

static void *address_of(const struct twin *twin)
{
    return twin->bytes == 0 ? twin->host : (char *)twin->device - twin->offset;
}

static void fetch(const struct twin *twin)
{
    if (twin->bytes != 0)
        require(
            cudaMemcpy((char *)twin->host + twin->offset, twin->device, twin->bytes, cudaMemcpyDeviceToHost));
}

static void end_twins(struct twin *send, struct twin *receive)
{
    fetch(receive);
    if (send->bytes != 0)
        drop(send->device);
    if (receive->bytes != 0)
        drop(receive->device);
}

static int finish(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? PMPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

/* The arrays of a call on vectors. In place, the receive buffer has what would be sent. */
static void make_twins(const void *sendbuf, void *recvbuf, MPI_Count sent, MPI_Count received,
                       MPI_Datatype datatype, struct twin *send, struct twin *receive)
{
    *send = make_twin(sendbuf, sent, datatype);
    *receive = make_twin(recvbuf, sendbuf == MPI_IN_PLACE ? sent : received, datatype);
}

int MPIX_Sparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                          MPI_Op op, MPI_Comm comm)
{
    struct twin send, receive;
    make_twins(sendbuf, recvbuf, count, count, datatype, &send, &receive);
    int code = PMPIX_Sparse_allreduce(address_of(&send), address_of(&receive), count, datatype, op, comm);
    end_twins(&send, &receive);
    return code;
}

int MPIX_Isparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct twin send, receive;
    make_twins(sendbuf, recvbuf, count, count, datatype, &send, &receive);
    int code =
        PMPIX_Isparse_allreduce(address_of(&send), address_of(&receive), count, datatype, op, comm, request);
    code = finish(code, request);
    end_twins(&send, &receive);
    return code;
}

/* Elements that a rank sends in a reduce_scatter. */
static MPI_Count parts_of(MPI_Comm comm, MPI_Count part)
{
    int size = 1;
    if (comm != MPI_COMM_NULL)
        PMPI_Comm_size(comm, &size);
    return part * size;
}

int MPIX_Sparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm)
{
    struct twin send, receive;
    make_twins(sendbuf, recvbuf, parts_of(comm, recvcount), recvcount, datatype, &send, &receive);
    int code =
        PMPIX_Sparse_reduce_scatter(address_of(&send), address_of(&receive), recvcount, datatype, op, comm);
    end_twins(&send, &receive);
    return code;
}

int MPIX_Isparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct twin send, receive;
    make_twins(sendbuf, recvbuf, parts_of(comm, recvcount), recvcount, datatype, &send, &receive);
    int code = PMPIX_Isparse_reduce_scatter(address_of(&send), address_of(&receive), recvcount, datatype, op,
                                            comm, request);
    code = finish(code, request);
    end_twins(&send, &receive);
    return code;
}

/* Keeps the arrays of a plan until MPIX_Sparse_plan_free. */
static int keep_plan(int code, MPIX_Sparse_plan plan, struct twin *send, struct twin *receive)
{
    if (code != MPI_SUCCESS) {
        end_twins(send, receive);
        return code;
    }
    struct known *known = learn(plan);
    known->send = *send;
    known->receive = *receive;
    return code;
}

int MPIX_Sparse_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan)
{
    struct twin send, receive;
    make_twins(sendbuf, recvbuf, count, count, datatype, &send, &receive);
    int code = PMPIX_Sparse_allreduce_init(address_of(&send), address_of(&receive), count, datatype, op, comm,
                                           info, plan);
    return keep_plan(code, *plan, &send, &receive);
}

int MPIX_Sparse_reduce_scatter_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                    MPIX_Sparse_plan *plan)
{
    struct twin send, receive;
    make_twins(sendbuf, recvbuf, parts_of(comm, recvcount), recvcount, datatype, &send, &receive);
    int code = PMPIX_Sparse_reduce_scatter_init(address_of(&send), address_of(&receive), recvcount, datatype,
                                                op, comm, info, plan);
    return keep_plan(code, *plan, &send, &receive);
}

int MPIX_Sparse_plan_start(MPIX_Sparse_plan plan, MPI_Request *request)
{
    const struct twin *send = &known_of(plan)->send, *receive = &known_of(plan)->receive;
    if (send->bytes != 0)
        require(
            cudaMemcpy(send->device, (char *)send->host + send->offset, send->bytes, cudaMemcpyHostToDevice));
    else if (receive->bytes != 0)
        require(cudaMemcpy(receive->device, (char *)receive->host + receive->offset, receive->bytes,
                           cudaMemcpyHostToDevice));
    int code = finish(PMPIX_Sparse_plan_start(plan, request), request);
    fetch(receive);
    return code;
}

int MPIX_Sparse_plan_free(MPIX_Sparse_plan *plan)
{
    struct known *known = known_of(*plan);
    end_twins(&known->send, &known->receive);
    forget(known);
    return PMPIX_Sparse_plan_free(plan);
}

/* Coordinates of a call, and their device copies. Without elements the program's pointers are passed on. */
struct coo_twins {
    struct twin values;
    void *copy;          /* of the indices, or NULL */
    const void *indices; /* to pass */
    MPI_Datatype indextype, datatype;
};

static struct coo_twins open_coo(const void *indices, const void *values, MPI_Count nnz,
                                 MPI_Datatype indextype, MPI_Datatype datatype)
{
    struct coo_twins coo = { .indices = indices, .indextype = indextype, .datatype = datatype };
    int index_bytes = 0;
    if (indextype != MPI_DATATYPE_NULL)
        PMPI_Type_size(indextype, &index_bytes);
    coo.values = make_twin(values, nnz, datatype);
    if (nnz > 0)
        coo.indices = coo.copy = to_device(indices, (size_t)nnz * (size_t)index_bytes);
    return coo;
}

static int close_coo(int code, struct coo_twins *coo, MPI_Count count, const MPIX_Sparse_result *result)
{
    if (coo->values.bytes != 0)
        drop(coo->values.device);
    drop(coo->copy);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Aint lower, extent;
    int index_bytes;
    PMPI_Type_get_extent(coo->datatype, &lower, &extent);
    PMPI_Type_size(coo->indextype, &index_bytes);
    struct known *known = learn(*result);
    known->index_bytes = (size_t)index_bytes;
    known->element_bytes = (size_t)extent;
    known->count = (size_t)count;
    return code;
}

int MPIX_Sparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                              MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                              MPIX_Sparse_result *result)
{
    struct coo_twins coo = open_coo(indices, values, nnz, indextype, datatype);
    int code = PMPIX_Sparse_allreduce_coo(coo.indices, address_of(&coo.values), nnz, indextype, count,
                                          datatype, op, comm, result);
    return close_coo(code, &coo, count, result);
}

int MPIX_Sparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz,
                                   MPI_Datatype indextype, MPI_Count count, MPI_Count block,
                                   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                   MPIX_Sparse_result *result)
{
    struct coo_twins coo = open_coo(indices, values, nnz, indextype, datatype);
    int code = PMPIX_Sparse_reduce_scatter_coo(coo.indices, address_of(&coo.values), nnz, indextype, count,
                                               block, datatype, op, comm, result);
    return close_coo(code, &coo, count, result);
}

int MPIX_Isparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz,
                                    MPI_Datatype indextype, MPI_Count count, MPI_Count block,
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                    MPIX_Sparse_result *result, MPI_Request *request)
{
    struct coo_twins coo = open_coo(indices, values, nnz, indextype, datatype);
    int code = PMPIX_Isparse_reduce_scatter_coo(coo.indices, address_of(&coo.values), nnz, indextype, count,
                                                block, datatype, op, comm, result, request);
    return close_coo(finish(code, request), &coo, count, result);
}

int MPIX_Sparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                              MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                              MPIX_Sparse_result *result)
{
    struct coo_twins coo = open_coo(indices, values, nnz, indextype, datatype);
    int code = PMPIX_Sparse_allgather_coo(coo.indices, address_of(&coo.values), nnz, indextype, count,
                                          datatype, comm, result);
    return close_coo(code, &coo, count, result);
}

int MPIX_Isparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                               MPIX_Sparse_result *result, MPI_Request *request)
{
    struct coo_twins coo = open_coo(indices, values, nnz, indextype, datatype);
    int code = PMPIX_Isparse_allgather_coo(coo.indices, address_of(&coo.values), nnz, indextype, count,
                                           datatype, comm, result, request);
    return close_coo(finish(code, request), &coo, count, result);
}

/* Keeps the types and the count, for MPIX_Sparse_plan_start_coo. */
static int keep_coo_plan(int code, MPIX_Sparse_plan plan, MPI_Datatype indextype, MPI_Count count,
                         MPI_Datatype datatype)
{
    if (code != MPI_SUCCESS)
        return code;
    struct known *known = learn(plan);
    known->indextype = indextype;
    known->datatype = datatype;
    known->count = (size_t)count;
    return code;
}

int MPIX_Sparse_reduce_scatter_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Count block,
                                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                        MPIX_Sparse_plan *plan)
{
    int code = PMPIX_Sparse_reduce_scatter_coo_init(indextype, count, block, datatype, op, comm, info, plan);
    return keep_coo_plan(code, *plan, indextype, count, datatype);
}

int MPIX_Sparse_allgather_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype,
                                   MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan)
{
    int code = PMPIX_Sparse_allgather_coo_init(indextype, count, datatype, comm, info, plan);
    return keep_coo_plan(code, *plan, indextype, count, datatype);
}

int MPIX_Sparse_plan_start_coo(MPIX_Sparse_plan plan, const void *indices, const void *values, MPI_Count nnz,
                               MPIX_Sparse_result *result, MPI_Request *request)
{
    const struct known *known = known_of(plan);
    MPI_Count count = (MPI_Count)known->count;
    struct coo_twins coo = open_coo(indices, values, nnz, known->indextype, known->datatype);
    int code = PMPIX_Sparse_plan_start_coo(plan, coo.indices, address_of(&coo.values), nnz, result, request);
    return close_coo(finish(code, request), &coo, count, result);
}

static void *copy_of(const void *array, size_t bytes, void **kept)
{
    if (array == NULL || !is_on_device(array))
        return (void *)(uintptr_t)array;
    *kept = realloc(*kept, bytes + 1);
    require(cudaMemcpy(*kept, array, bytes, cudaMemcpyDeviceToHost));
    return *kept;
}

int MPIX_Sparse_result_get(MPIX_Sparse_result result, MPI_Count *nnz, const void **indices,
                           const void **values)
{
    MPI_Count n;
    const void *i, *v;
    int code = PMPIX_Sparse_result_get(result, &n, &i, &v);
    if (code != MPI_SUCCESS)
        return code;
    struct known *known = known_of(result);
    if (nnz != NULL)
        *nnz = n;
    if (indices != NULL)
        *indices = copy_of(i, (size_t)n * known->index_bytes, &known->indices);
    if (values != NULL)
        *values = copy_of(v, (size_t)n * known->element_bytes, &known->values);
    return code;
}

int MPIX_Sparse_result_dense(MPIX_Sparse_result result, void *recvbuf)
{
    const void *i = NULL;
    int code = PMPIX_Sparse_result_get(result, NULL, &i, NULL);
    if (code != MPI_SUCCESS || i == NULL || !is_on_device(i))
        return PMPIX_Sparse_result_dense(result, recvbuf);
    const struct known *known = known_of(result);
    size_t bytes = known->count * known->element_bytes;
    void *device = to_device(recvbuf, bytes);
    code = PMPIX_Sparse_result_dense(result, device);
    require(cudaMemcpy(recvbuf, device, bytes, cudaMemcpyDeviceToHost));
    drop(device);
    return code;
}

int MPIX_Sparse_result_free(MPIX_Sparse_result *result)
{
    if (result != NULL && *result != MPIX_SPARSE_RESULT_NULL)
        forget(learn(*result));
    return PMPIX_Sparse_result_free(result);
}

/* Read the counters of fake_runtime.c; the real runtime has none. */
int MPI_Finalize(void)
{
    int code = PMPI_Finalize();
    long (*taken)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "fake_cuda_taken");
    if (taken == NULL || taken() == 0)
        return code;
    fprintf(stderr, "FAIL: %ld arrays are left on the device\n", taken());
    abort();
}
