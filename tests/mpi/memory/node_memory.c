/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the memory of calls beyond inputs and results. On one node it is at most one and a half times the
 * size of inputs and results; on two nodes it is twice their size, also with many segments. Counts requested
 * bytes, including shared memory that is never touched.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=ftruncate, and with the
 * library's objects. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "malloc_count.h"

enum { COUNT = 8000000, STEP = 25, NNZ = COUNT / STEP, CONSTANT = 2 << 20, TIMEOUT = 120 /* seconds */ };

int __real_ftruncate(int file, off_t bytes);
int __wrap_ftruncate(int file, off_t bytes);

/* All shared memory ever made. */
int __wrap_ftruncate(int file, off_t bytes)
{
    malloc_count_add((int64_t)bytes);
    return __real_ftruncate(file, bytes);
}

enum order { ASCENDING, DESCENDING, IN_DENSE_BUFFERS, ORDERS };

static const char *const orders[ORDERS] = { "ascending", "descending", "in dense buffers" };

/* A scheme; the number of nodes, each of which holds a result; and the memory allowed, in half_units. */
struct setting {
    const char *scheme;
    int nodes, half_units;
};

struct buffers {
    int32_t *index;
    float *value, *dense, *sum;
};

/* Each rank has elements of its own, and one element in four is common to all ranks. */
static int32_t index_of(int32_t k)
{
    return k * STEP + (k % 4 == 0 ? 0 : rank % STEP);
}

static void fill(struct buffers *b, enum order order)
{
    for (int32_t k = 0; k < NNZ; k++) {
        int32_t to = order == DESCENDING ? NNZ - 1 - k : k;
        b->index[to] = index_of(k);
        b->value[to] = 1;
        b->dense[index_of(k)] = 1;
    }
}

static int64_t union_of_ranks(void)
{
    int different = ranks < STEP ? ranks : STEP;
    return NNZ / 4 + (int64_t)(NNZ - NNZ / 4) * different;
}

/* Bytes allocated in a call by all ranks together. */
static int64_t taken(const struct buffers *b, enum order order, MPI_Comm comm, MPIX_Sparse_result *result)
{
    int64_t before = malloc_count_begin(), bytes;
    if (order == IN_DENSE_BUFFERS)
        check_success(MPIX_Sparse_allreduce(b->dense, b->sum, COUNT, MPI_FLOAT, MPI_SUM, comm),
                      "MPIX_Sparse_allreduce");
    else
        check_success(MPIX_Sparse_allreduce_coo(b->index, b->value, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT,
                                                MPI_SUM, comm, result),
                      "MPIX_Sparse_allreduce_coo");
    bytes = malloc_count_peak() - before;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return bytes;
}

/* On one node a dense call needs at most capacity, with a margin, for each rank's elements and for its part
 * of all ranks' elements, which has the same size. */
static int64_t most_of(enum order order, const struct setting *setting)
{
    int64_t input = NNZ * 8, result_bytes = union_of_ranks() * 8;
    if (order == IN_DENSE_BUFFERS && setting->nodes == 1)
        return ranks * (11 * input / 4 + CONSTANT / 2);
    int64_t results = order == IN_DENSE_BUFFERS ? 0 : setting->nodes * result_bytes;
    return results + ranks * (setting->half_units * (input + result_bytes) / 2 + CONSTANT);
}

static void try_order(const struct buffers *b, enum order order, const struct setting *setting, MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int64_t most = most_of(order, setting);
    check_case("memory of %s on %d nodes, %s", setting->scheme, setting->nodes, orders[order]);
    for (int call = 0; call < 3; call++) {
        int64_t bytes = taken(b, order, comm, &result);
        check(bytes <= most, "expected at most %lld bytes, found %lld", (long long)most, (long long)bytes);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

static void try_setting(struct buffers *b, const struct setting *setting)
{
    nodes_set(setting->nodes);
    for (int order = 0; order < ORDERS; order++) {
        MPI_Comm comm = settings_comm(&(struct settings){ setting->scheme, "coo", NULL, "64", "100000" });
        fill(b, (enum order)order);
        try_order(b, (enum order)order, setting, comm);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(TIMEOUT);
    struct buffers b = { get_memory(NNZ, sizeof *b.index), get_memory(NNZ, sizeof *b.value),
                         get_memory(COUNT, sizeof *b.dense), get_memory(COUNT, sizeof *b.sum) };
    try_setting(&b, &(struct setting){ "shared", 1, 3 });
    if (ranks > 2)
        try_setting(&b, &(struct setting){ "two_level", 2, 4 });
    free(b.index);
    free(b.value);
    free(b.dense);
    free(b.sum);
    return check_end("node_memory");
}
