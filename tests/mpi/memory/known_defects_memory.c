/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests bounds on memory where other implementations of sparse allreduce need too much: every scheme with
 * coordinates, and `balanced` with dense buffers.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free, and with the library's objects. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "malloc_count.h"
#include "scheme/scheme.h"

enum { TIMEOUT = 280 /* seconds */, SEGMENT = 16384, WHOLE = 100000000 };

/* A vector of 8-byte numbers; the fullest rank has one element in `step`. */
struct size {
    int64_t count, nnz, step;
};

/* Peak of the library's memory in a call, above its memory before, on the rank with the highest peak. If
 * `target` is not negative, other ranks have one element. */
static uint64_t bytes_for(const struct size *s, int target, MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int64_t *index = get_memory((size_t)s->nnz, sizeof *index);
    int64_t *value = get_memory((size_t)s->nnz, sizeof *value);
    for (int64_t k = 0; k < s->nnz; k++)
        index[k] = k * s->step;
    int64_t before = malloc_count_begin();
    check_success(MPIX_Sparse_allreduce_coo(index, value, target < 0 || rank == target ? s->nnz : 1,
                                            MPI_INT64_T, s->count, MPI_INT64_T, MPI_SUM, comm, &result),
                  "MPIX_Sparse_allreduce_coo");
    uint64_t bytes = (uint64_t)(malloc_count_peak() - before);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    free(index);
    free(value);
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return bytes;
}

/* Schemes that need a dense vector by definition. */
static bool carries_everything(const char *scheme)
{
    return strcmp(scheme, "dense") == 0;
}

/* SparCML: temporary buffers of the vector's length for few elements. The bound excludes even a bitmap. */
static void handful(MPI_Comm comm)
{
    const struct size size = { .count = 50000000, .nnz = 3, .step = 9 };
    const uint64_t most = 4 << 20;
    uint64_t found = bytes_for(&size, -1, comm);
    check(found <= most, "expected at most %llu bytes for 3 elements, found %llu", (unsigned long long)most,
          (unsigned long long)found);
}

/* Horovod (#554, 4.25 GB), PyTorch (#22226): every rank's elements are padded to those of the fullest rank.
 * The bound is below that from 13 ranks on, and above the log n messages that some schemes keep. */
static void uneven(MPI_Comm comm)
{
    const struct size size = { .count = 10000000, .nnz = 100000, .step = 9 };
    const uint64_t most = 13 * 16 * (uint64_t)size.nnz;
    uint64_t found = bytes_for(&size, ranks - 1, comm);
    check(found <= most, "expected at most %llu bytes for %lld elements on one rank, found %llu",
          (unsigned long long)most, (long long)size.nnz, (unsigned long long)found);
}

static void try_scheme(const char *scheme)
{
    MPI_Comm comm = settings_comm(&(struct settings){ scheme, "coo", NULL, NULL, NULL });
    check_case("memory for a handful, scheme %s", scheme);
    handful(comm);
    check_case("memory for uneven ranks, scheme %s", scheme);
    uneven(comm);
    MPI_Comm_free(&comm);
}

/* Bytes in transit in three steps. */
static uint64_t under_way(void)
{
    return 32 * (uint64_t)ranks * SEGMENT + (1 << 20);
}

/* With segments balanced holds, beyond the result, indices in the library's width and the messages of three
 * steps in transit. Without segments it holds all of its messages. */
static void segments(int segment, bool cut)
{
    const struct size size = { .count = 2000000, .nnz = 400000, .step = 5 };
    const uint64_t result_bytes = 16 * (uint64_t)size.nnz;
    char bytes[16];
    snprintf(bytes, sizeof bytes, "%d", segment);
    MPI_Comm comm = settings_comm(&(struct settings){ "balanced", "coo", "hash", NULL, bytes });
    check_case("memory of balanced in segments of %s bytes", bytes);
    uint64_t found = bytes_for(&size, -1, comm);
    check((found <= 2 * result_bytes + under_way()) == cut, "expected %s %llu bytes, found %llu",
          cut ? "at most" : "more than", (unsigned long long)(2 * result_bytes + under_way()),
          (unsigned long long)found);
    MPI_Comm_free(&comm);
}

/* Dense buffers: beyond messages in transit, the elements of this rank and of the result. The result has more
 * elements than estimated, since ranks have no element in common. */
static void dense_segments(void)
{
    enum { COUNT = 4000000, STEP = 25, NNZ = COUNT / STEP };
    const uint64_t sparse = 8 * (uint64_t)NNZ * (uint64_t)(1 + ranks),
                   most = sparse + sparse / 4 + under_way();
    float *dense = get_memory(COUNT, sizeof *dense), *sum = get_memory(COUNT, sizeof *sum);
    char bytes[16];
    for (int k = 0; k < NNZ; k++)
        dense[k * STEP + rank % STEP] = 1;
    snprintf(bytes, sizeof bytes, "%d", SEGMENT);
    MPI_Comm comm = settings_comm(&(struct settings){ "balanced", "coo", "hash", NULL, bytes });
    check_case("memory of balanced with dense buffers");
    int64_t before = malloc_count_begin();
    for (int call = 0; call < 2; call++)
        check_success(MPIX_Sparse_allreduce(dense, sum, COUNT, MPI_FLOAT, MPI_SUM, comm),
                      "MPIX_Sparse_allreduce");
    uint64_t found = (uint64_t)(malloc_count_peak() - before);
    check(found <= most, "expected at most %llu bytes, found %llu", (unsigned long long)most,
          (unsigned long long)found);
    MPI_Comm_free(&comm);
    free(dense);
    free(sum);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(TIMEOUT);
    for (size_t s = 0; sar_schemes[s] != NULL; s++)
        if (sar_scheme_serves(sar_schemes[s], SAR_ALLREDUCE) && !carries_everything(sar_schemes[s]->name))
            try_scheme(sar_schemes[s]->name);
    segments(SEGMENT, true);
    segments(WHOLE, false);
    dense_segments();
    return check_end("known_defects_memory");
}
