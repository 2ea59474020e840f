/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that owners reduce parts of the push as they arrive. The last rank withholds its message to rank 0
 * until rank 0 has reduced the other parts. No other rank waits, and the result is right.
 *
 * Link with -Wl,--wrap=PMPI_Isend,--wrap=sar_reduce, and with the library's objects. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "vector/reduce.h"

enum {
    NNZ = 20000,
    STEP = 7,
    COUNT = NNZ * STEP,
    PUSH = 1000 /* lower bound in bytes */,
    TAG = 77,
    TIMEOUT = 20 /* seconds */
};

static bool armed, notified, kept_back, received_events;

enum sar_status __real_sar_reduce(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n,
                                  struct sar_arena *arena, struct sar_spvec *out);
enum sar_status __wrap_sar_reduce(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n,
                                  struct sar_arena *arena, struct sar_spvec *out);
int __real_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);

enum sar_status __wrap_sar_reduce(const struct sar_vec_desc *shape, const struct sar_spvec runs[], size_t n,
                                  struct sar_arena *arena, struct sar_spvec *out)
{
    enum sar_status status = __real_sar_reduce(shape, runs, n, arena, out);
    if (armed && rank == 0 && !notified) {
        MPI_Send(NULL, 0, MPI_BYTE, ranks - 1, TAG, MPI_COMM_WORLD);
        notified = true;
    }
    return status;
}

static bool receive_from_owner(void)
{
    int there = 0;
    for (time_t start = time(NULL); !there && time(NULL) - start < TIMEOUT;)
        MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    return there != 0;
}

/* A message longer than those of the consistency check belongs to the push. */
int __wrap_PMPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    if (armed && !kept_back && rank == ranks - 1 && to == 0 && n > PUSH) {
        kept_back = true;
        received_events = receive_from_owner();
    }
    return __real_PMPI_Isend(buf, n, type, to, tag, comm, request);
}

static void check_result(MPIX_Sparse_result result)
{
    MPI_Count nnz;
    const void *indices, *values;
    check_success(MPIX_Sparse_result_get(result, &nnz, &indices, &values), "MPIX_Sparse_result_get");
    check(nnz == NNZ, "expected %d elements, found %lld", NNZ, (long long)nnz);
    for (int i = 0; i < NNZ; i++) {
        int index = ((const int32_t *)indices)[i];
        float value = ((const float *)values)[i], sum = (float)(ranks * (ranks + 1) / 2);
        check(index == i * STEP && value == sum, "expected %g at %d, found %g at %d", (double)sum, i * STEP,
              (double)value, index);
    }
}

static void call(MPI_Comm comm)
{
    static int32_t index[NNZ];
    static float value[NNZ];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int i = 0; i < NNZ; i++) {
        index[i] = i * STEP;
        value[i] = (float)(rank + 1);
    }
    check_success(MPIX_Sparse_allreduce_coo(index, value, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    check_result(result);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static void try_scheme(const char *scheme)
{
    MPI_Comm comm = settings_comm(&(struct settings){ scheme, "coo", NULL, NULL, NULL });
    check_case("scheme %s", scheme);
    kept_back = received_events = notified = false;
    armed = true;
    call(comm);
    armed = false;
    check(rank != ranks - 1 || (kept_back && received_events), "expected rank 0 to reduce while this rank %s",
          kept_back ? "kept its message back" : "had a message for it");
    if (rank == ranks - 1)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { EVERY_OWNER_SCHEME, NULL };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (ranks < 3)
        return check_skip("reduce_on_arrival", "one rank to keep back and two to reduce of are needed");
    check_alarm(200);
    nodes_set(2);
    for (int i = 0; schemes[i] != NULL; i++)
        try_scheme(schemes[i]);
    return check_end("reduce_on_arrival");
}
